package classic_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/classic"
)

func chat(a *actor) classic.Chat { return classic.Chat{Client: a.Client} }

// wantTexts fetches for a user, who is in one chat at most, and compares.
func wantTexts(t *testing.T, a *actor, user string, want ...string) {
	t.Helper()
	var got []string
	for _, p := range get(chat(a).Fetch(t.Context(), user))(t) {
		for _, m := range p.Messages {
			got = append(got, m.Text)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s gets %q, want %q", user, got, want)
	}
}

func (s *server) members(t *testing.T, id string) []string {
	t.Helper()
	return get(s.admin.ZRange(t.Context(), "chat:"+id, 0, -1).Result())(t)
}

func TestChatDeliversEachMessageOnceToEachMember(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		id := get(chat(a).Create(t.Context(), "ann", "hello", "bob", "eve"))(t)
		must(t, chat(a).Send(t.Context(), id, "bob", "hi"))
		wantTexts(t, a, "ann", "hello", "hi")
		wantTexts(t, a, "ann")
		must(t, chat(a).Send(t.Context(), id, "eve", "late"))
		wantTexts(t, a, "bob", "hello", "hi", "late")
		pending := get(chat(a).Fetch(t.Context(), "eve"))(t)
		want := classic.Message{ID: 3, Time: float64(epoch.Unix()), Sender: "eve", Text: "late"}
		if len(pending) != 1 || pending[0].Chat != id || len(pending[0].Messages) != 3 || pending[0].Messages[2] != want {
			t.Errorf("eve gets %+v, want three of chat %s, the last one %+v", pending, id, want)
		}
		wantTexts(t, a, "zoe")
		if left := s.admin.ZCard(t.Context(), "msgs:"+id).Val(); left != 1 {
			t.Errorf("%d messages are left, want the one that ann has not seen", left)
		}
		wantTexts(t, a, "ann", "late")
		s.wantNoKeys(t, "ids:chat", "ids:1", "chat:1", "seen:ann", "seen:bob", "seen:eve") // all have seen all
	})
}

func TestChatSendsWhatTheBookSays(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		id := get(chat(a).Create(t.Context(), "ann", "hello", "bob"))(t)
		wantRequests(t, a, "incr", "multi zadd zadd zadd exec", "setnx", "incr", "zadd", "watch", "get", "multi del exec")
		wantTexts(t, a, "bob", "hello")
		wantRequests(t, a, "zrange", "multi zrangebyscore exec", "zadd", "zrange", "multi zadd zremrangebyscore exec")
		must(t, chat(a).Leave(t.Context(), id, "bob"))
		wantRequests(t, a, "multi zrem zrem zcard exec", "zrange", "zremrangebyscore")
	})
}

func TestChatMembersJoinAndLeave(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		id := get(chat(a).Create(t.Context(), "ann", "before"))(t)
		must(t, chat(a).Join(t.Context(), id, "bob"))
		must(t, chat(a).Send(t.Context(), id, "ann", "after"))
		wantTexts(t, a, "bob", "after")
		must(t, chat(a).Leave(t.Context(), id, "ann")) // who has seen nothing: bob has seen all
		if left := s.admin.Exists(t.Context(), "msgs:"+id).Val(); left != 0 {
			t.Error("what bob alone has seen, and he has, is kept")
		}
		must(t, chat(a).Leave(t.Context(), id, "bob"))
		s.wantNoKeys(t, "ids:chat")
		wantErr(t, chat(a).Join(t.Context(), id, "eve"), classic.ErrNoChat)
		s.wantNoKeys(t, "ids:chat")
	})
}

func TestChatLostReplyLosesTheMessages(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		get(chat(b).Create(t.Context(), "ann", "hello", "bob"))(t)
		a.begin(t, func() error { _, err := chat(a).Fetch(t.Context(), "bob"); return err }).
			step("zrange", "multi zrangebyscore exec", "zadd", "zrange").loseReply("multi zadd zremrangebyscore exec")
		wantTexts(t, b, "bob")
	})
}

func TestChatCrashWithinFetchLosesWhatOthersHaveSeen(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		for _, othersFetch := range []bool{false, true} {
			a, b := s.actor(t, "a"), s.actor(t, "b")
			get(chat(b).Create(t.Context(), "ann", "hello", "bob"))(t)
			a.begin(t, func() error { _, err := chat(a).Fetch(t.Context(), "bob"); return err }).
				step("zrange", "multi zrangebyscore exec", "zadd").crash("zrange")
			if othersFetch {
				wantTexts(t, b, "ann", "hello")
				wantTexts(t, b, "bob")
			} else {
				wantTexts(t, b, "bob", "hello")
			}
			must(t, s.admin.FlushAll(t.Context()).Err())
		}
	})
}

func TestChatFetchedTwiceAtOnceDeliversTwice(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		get(chat(b).Create(t.Context(), "ann", "hello", "bob"))(t)
		var pending []classic.Pending
		first := a.begin(t, into(&pending, func() ([]classic.Pending, error) { return chat(a).Fetch(t.Context(), "bob") })).
			step("zrange", "multi zrangebyscore exec")
		wantTexts(t, b, "bob", "hello")
		must(t, first.finish())
		if len(pending) != 1 || pending[0].Messages[0].Text != "hello" {
			t.Errorf("the other one gets %+v, want hello as well", pending)
		}
	})
}

func TestChatCrashUnderTheLockClosesIt(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		id := get(chat(b).Create(t.Context(), "ann", "hello", "bob"))(t)
		a.begin(t, func() error { return chat(a).Send(t.Context(), id, "ann", "lost") }).step("setnx").crash("incr")
		wantErr(t, chat(b).Send(t.Context(), id, "bob", "never"), classic.ErrBusy)
		b.clock.advance(time.Hour)
		wantErr(t, chat(b).Send(t.Context(), id, "bob", "never"), classic.ErrBusy)
	})
}

func TestChatMemberWhoIsAwayKeepsEverything(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		id := get(chat(a).Create(t.Context(), "ann", "hello", "away"))(t)
		for range 20 {
			must(t, chat(a).Send(t.Context(), id, "ann", "and again"))
			get(chat(a).Fetch(t.Context(), "ann"))(t)
		}
		if kept := s.admin.ZCard(t.Context(), "msgs:"+id).Val(); kept != 21 {
			t.Errorf("%d messages are kept, want all 21", kept)
		}
	})
}

func TestChatFetchMakesWhoHasLeftAMemberAgain(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		id := get(chat(b).Create(t.Context(), "ann", "hello", "bob"))(t)
		fetching := a.begin(t, func() error { _, err := chat(a).Fetch(t.Context(), "bob"); return err }).
			step("zrange", "multi zrangebyscore exec")
		must(t, chat(b).Leave(t.Context(), id, "bob"))
		must(t, fetching.finish())
		if members := s.members(t, id); !slices.Contains(members, "bob") {
			t.Errorf("the members are %q, want bob among them", members)
		}
	})
}

func TestChatJoinBesideTheLastLeavingMissesMessages(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		id := get(chat(b).Create(t.Context(), "ann", "hello"))(t)
		leaving := a.begin(t, func() error { return chat(a).Leave(t.Context(), id, "ann") }).step("multi zrem zrem zcard exec")
		must(t, chat(b).Join(t.Context(), id, "bob"))
		must(t, leaving.finish())
		must(t, chat(b).Send(t.Context(), id, "bob", "missed"))
		must(t, chat(b).Send(t.Context(), id, "bob", "heard"))
		wantTexts(t, b, "bob", "heard")
	})
}

func TestChatMessageToAChatThatAllHaveLeftStays(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		id := get(chat(a).Create(t.Context(), "ann", "hello"))(t)
		must(t, chat(a).Leave(t.Context(), id, "ann"))
		must(t, chat(a).Send(t.Context(), id, "ann", "nobody is there"))
		s.wantNoKeys(t, "ids:chat", "ids:"+id, "msgs:"+id)
		if s.admin.ZCard(t.Context(), "msgs:"+id).Val() != 1 {
			t.Error("the message is gone")
		}
	})
}

func TestChatTextThatIsNoMessageStopsFetching(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		id := get(chat(a).Create(t.Context(), "ann", "hello", "bob"))(t)
		must(t, s.admin.ZAdd(t.Context(), "msgs:"+id, redis.Z{Score: 2, Member: "no JSON"}).Err())
		for range 2 {
			if _, err := chat(a).Fetch(t.Context(), "bob"); err == nil {
				t.Error("no error")
			}
		}
	})
}
