package classic_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/classic"
)

func market(a *actor) classic.Market { return classic.Market{Client: a.Client} }

// forSale is a market where ann sells a ring for 97, and bob and eve have 125.
func forSale(t *testing.T, s *server) {
	t.Helper()
	ctx := t.Context()
	must(t, s.admin.FlushAll(ctx).Err())
	must(t, s.admin.SAdd(ctx, "inventory:ann", "ring", "bow").Err())
	for _, user := range []string{"bob", "eve"} {
		must(t, s.admin.HSet(ctx, "users:"+user, "funds", 125).Err())
	}
	must(t, classic.Market{Client: classic.Client{Redis: s.admin}}.List(ctx, "ring", "ann", 97))
}

func wantFunds(t *testing.T, s *server, user, want string) {
	t.Helper()
	if got := s.admin.HGet(t.Context(), "users:"+user, "funds").Val(); got != want {
		t.Errorf("%s has %q, want %q", user, got, want)
	}
}

// purchases are the three ways to buy the ring.
func purchases(t *testing.T, a *actor) map[string]func(buyer string) error {
	return map[string]func(string) error{
		"Purchase":       func(buyer string) error { return market(a).Purchase(t.Context(), buyer, "ring", "ann", 97) },
		"PurchaseLocked": func(buyer string) error { return market(a).PurchaseLocked(t.Context(), buyer, "ring", "ann") },
		"PurchaseScript": func(buyer string) error { return market(a).PurchaseScript(t.Context(), buyer, "ring", "ann") },
	}
}

func TestMarketSellsAnItemOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		for name, purchase := range purchases(t, s.actor(t, "a")) {
			t.Run(name, func(t *testing.T) {
				forSale(t, s)
				wantErr(t, purchase("nobody"), classic.ErrRefused)
				must(t, purchase("bob"))
				wantErr(t, purchase("eve"), classic.ErrRefused)
				wantFunds(t, s, "ann", "97")
				wantFunds(t, s, "bob", "28")
				wantFunds(t, s, "eve", "125")
				if !s.admin.SIsMember(t.Context(), "inventory:bob", "ring").Val() {
					t.Error("bob does not have the ring")
				}
				s.wantNoKeys(t, "inventory:ann", "inventory:bob", "users:ann", "users:bob", "users:eve")
			})
		}
	})
}

func TestMarketRefusesWhatCannotBePaid(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		for name, purchase := range purchases(t, a) {
			forSale(t, s)
			must(t, s.admin.HSet(t.Context(), "users:bob", "funds", 96).Err())
			if err := purchase("bob"); err == nil {
				t.Errorf("%s: bob bought for 97 with 96", name)
			}
			wantFunds(t, s, "bob", "96")
		}
		must(t, s.admin.HSet(t.Context(), "users:bob", "funds", 200).Err())
		wantErr(t, market(a).Purchase(t.Context(), "bob", "ring", "ann", 96), classic.ErrRefused) // not the price
		wantErr(t, market(a).List(t.Context(), "ring", "ann", 5), classic.ErrRefused)             // not in her inventory
		wantErr(t, market(a).List(t.Context(), "sword", "ann", 5), classic.ErrRefused)
	})
}

func TestMarketPurchaseRetriesWhenTheMarketChanges(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		forSale(t, s)
		a, b := s.actor(t, "a"), s.actor(t, "b")
		buying := a.begin(t, func() error { return market(a).Purchase(t.Context(), "bob", "ring", "ann", 97) }).
			step("watch", "zscore", "hget")
		must(t, market(b).List(t.Context(), "bow", "ann", 5)) // another item altogether
		must(t, buying.step("multi hincrby hincrby sadd zrem exec", "watch", "zscore", "hget").finish())
		wantFunds(t, s, "bob", "28")
	})
}

func TestMarketPurchaseGivesUpUnderContention(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		forSale(t, s)
		a := s.actor(t, "a")
		buying := a.begin(t, func() error { return market(a).Purchase(t.Context(), "bob", "ring", "ann", 97) })
		for i := range 5 {
			buying.step("watch", "zscore", "hget")
			must(t, s.admin.Do(t.Context(), "ZADD", "market:", i, "bow.ann").Err())
			a.clock.advance(2 * time.Second) // the loop lasts for ten
			buying.step("multi hincrby hincrby sadd zrem exec")
		}
		wantErr(t, buying.finish(), classic.ErrBusy)
		wantFunds(t, s, "bob", "125")
	})
}

func TestMarketLockedAndWatchedPurchaseSellTwice(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		forSale(t, s)
		a, b := s.actor(t, "a"), s.actor(t, "b")
		buying := a.begin(t, func() error { return market(a).PurchaseLocked(t.Context(), "bob", "ring", "ann") }).
			step("setnx", "multi zscore hget exec")
		must(t, market(b).Purchase(t.Context(), "eve", "ring", "ann", 97))
		must(t, buying.finish())
		soldTwice(t, s)
	})
}

func TestMarketPauseBeyondTheLockSellsTwice(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		forSale(t, s)
		a, b := s.actor(t, "a"), s.actor(t, "b")
		withTimeout := func(of *actor) classic.Market {
			return classic.Market{Client: of.Client, LockTimeout: time.Second}
		}
		buying := a.begin(t, func() error { return withTimeout(a).PurchaseLocked(t.Context(), "bob", "ring", "ann") }).
			step("setnx", "expire", "multi zscore hget exec")
		s.timeout(t, "lock:market:")
		must(t, withTimeout(b).PurchaseLocked(t.Context(), "eve", "ring", "ann"))
		must(t, buying.finish())
		soldTwice(t, s)
	})
}

func soldTwice(t *testing.T, s *server) {
	t.Helper()
	wantFunds(t, s, "bob", "28")
	wantFunds(t, s, "eve", "28")
	wantFunds(t, s, "ann", "194")
}

func TestMarketCrashUnderTheLockClosesIt(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		forSale(t, s)
		a, b := s.actor(t, "a"), s.actor(t, "b")
		a.begin(t, func() error { return market(a).PurchaseLocked(t.Context(), "bob", "ring", "ann") }).
			step("setnx").crash("multi zscore hget exec")
		b.clock.advance(time.Hour)
		wantErr(t, market(b).PurchaseLocked(t.Context(), "eve", "ring", "ann"), classic.ErrBusy)
	})
}

func TestMarketLostReplyHidesThatTheItemWasBought(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		forSale(t, s)
		a, b := s.actor(t, "a"), s.actor(t, "b")
		a.begin(t, func() error { return market(a).Purchase(t.Context(), "bob", "ring", "ann", 97) }).
			step("watch", "zscore", "hget").loseReply("multi hincrby hincrby sadd zrem exec")
		wantFunds(t, s, "bob", "28")
		wantErr(t, market(b).Purchase(t.Context(), "bob", "ring", "ann", 97), classic.ErrRefused) // as if another had it
	})
}

func TestMarketLockedPurchasePaysAnotherPriceThanWasSeen(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		for _, name := range []string{"PurchaseLocked", "PurchaseScript"} {
			forSale(t, s)
			must(t, s.admin.Do(t.Context(), "ZADD", "market:", 120, "ring.ann").Err())
			must(t, purchases(t, a)[name]("bob"))
			wantFunds(t, s, "bob", "5")
		}
	})
}

// A transaction is not undone when a command within it fails.
func TestMarketFailingCommandTakesTheMoneyAndLeavesNobodyPaid(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		for name, purchase := range purchases(t, a) {
			forSale(t, s)
			must(t, s.admin.HSet(t.Context(), "users:ann", "funds", "much").Err())
			if err := purchase("bob"); err == nil {
				t.Errorf("%s: no error", name)
			}
			want := "28"
			if name == "PurchaseScript" {
				want = "125" // which pays the seller first
			}
			wantFunds(t, s, "bob", want)
		}
	})
}

func logins(a *actor) classic.Logins { return classic.Logins{Client: a.Client} }

func TestUpdateTokenKeepsTwentyFiveItems(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		for name, update := range map[string]func(item string) error{
			"unpipelined": func(item string) error { return logins(a).UpdateToken(t.Context(), "t", "ann", item) },
			"pipelined":   func(item string) error { return logins(a).UpdateTokenPipelined(t.Context(), "t", "ann", item) },
		} {
			t.Run(name, func(t *testing.T) {
				must(t, s.admin.FlushAll(t.Context()).Err())
				for i := range 30 {
					a.clock.advance(time.Second)
					must(t, update(fmt.Sprintf("item%02d", i)))
				}
				must(t, update("item29"))
				must(t, update("")) // seen, nothing viewed
				viewed := s.admin.ZRange(t.Context(), "viewed:t", 0, -1).Val()
				if len(viewed) != 25 || viewed[0] != "item05" || viewed[24] != "item29" {
					t.Errorf("viewed are %q, want item05 to item29", viewed)
				}
				if n := s.admin.ZScore(t.Context(), "viewed:", "item29").Val(); n != -2 {
					t.Errorf("item29 has score %v, want -2 for two views", n)
				}
				if user := s.admin.HGet(t.Context(), "login:", "t").Val(); user != "ann" {
					t.Errorf("the token is of %q, want ann", user)
				}
				if n := s.admin.ZCard(t.Context(), "recent:").Val(); n != 1 {
					t.Errorf("%d recent tokens, want 1", n)
				}
			})
		}
	})
}

func TestUpdateTokenPipelinedIsOneRoundTrip(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		must(t, logins(a).UpdateToken(t.Context(), "t", "ann", "ring"))
		wantRequests(t, a, "hset", "zadd", "zadd", "zremrangebyrank", "zincrby")
		must(t, logins(a).UpdateTokenPipelined(t.Context(), "t", "ann", "ring"))
		wantRequests(t, a, "hset zadd zadd zremrangebyrank zincrby")
	})
}

func TestUpdateTokenCrashLeavesATokenWithoutATime(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		a.begin(t, func() error { return logins(a).UpdateToken(t.Context(), "t", "ann", "ring") }).step("hset").crash("zadd")
		s.wantNoKeys(t, "login:") // whoever cleans up by "recent:" never sees it
	})
}

func TestUpdateTokenSlowClockForgetsAViewAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		for i := range 25 {
			must(t, logins(a).UpdateToken(t.Context(), "t", "ann", fmt.Sprint("item", i)))
		}
		b.clock.advance(-time.Second)
		must(t, logins(b).UpdateToken(t.Context(), "t", "ann", "new"))
		if err := s.admin.ZScore(t.Context(), "viewed:t", "new").Err(); err == nil {
			t.Fatal("the new item is among those viewed")
		}
	})
}
