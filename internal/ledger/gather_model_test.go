package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// Models of what is no permit: rates, latches, barriers, guarded keys. As in model_test.go, time is moved by hand.

// gathering is what these models share.
type gathering struct {
	t        *rapid.T
	ctx      context.Context
	client   *redis.Client
	inbox    *redis.PubSub
	ledger   *ledger.Ledger
	resource *ledger.Resource
}

// each runs a model on every kind of server.
func each(t *testing.T, run func(*gathering)) {
	t.Helper()
	t.Parallel()
	for name, options := range servers(t) {
		t.Run(name, func(t *testing.T) {
			client := redis.NewClient(options)
			defer client.Close()
			inbox := client.PSubscribe(t.Context(), ledger.InboxPrefix+"*", "mark")
			defer inbox.Close()
			for range 2 {
				if _, err := inbox.Receive(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			n := 0
			rapid.Check(t, func(t *rapid.T) {
				n++
				resource, err := ledger.NewResource(fmt.Sprint("gathering ", n))
				if err != nil {
					t.Fatal(err)
				}
				run(&gathering{t, context.Background(), client, inbox, ledger.New(goredis.New(client)), resource})
			})
		})
	}
}

func (g *gathering) agree(what string, got, want any, err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatalf("%s: %v", what, err)
	}
	if got != want {
		g.t.Fatalf("%s: got %v, the model says %v", what, got, want)
	}
}

// told returns the messages since the last call, sorted.
func (g *gathering) told() (messages []string) {
	g.agree("publish", nil, nil, g.client.Publish(g.ctx, "mark", "here").Err())
	for {
		message, err := g.inbox.ReceiveMessage(g.ctx)
		g.agree("receive", nil, nil, err)
		if message.Channel == "mark" {
			slices.Sort(messages)
			return messages
		}
		process, _, _ := strings.Cut(strings.Fields(message.Payload)[1], ":")
		g.agree("channel of "+message.Payload, message.Channel, ledger.InboxPrefix+process, nil)
		messages = append(messages, message.Payload)
	}
}

func (g *gathering) hears(want []string) {
	g.t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(append([]string{}, want...), append([]string{}, g.told()...)); diff != "" {
		g.t.Fatalf("messages (-model +ledger):\n%s", diff)
	}
}

func (g *gathering) key(suffix string) string { return g.resource.Keys()[0] + ":" + suffix }

// silent lets the deadline of somebody pass, just now.
func (g *gathering) silent(suffix, who string) {
	past := redis.Z{Score: float64(g.now()/1000 - 1), Member: who}
	g.agree("zadd", nil, nil, g.client.ZAddXX(g.ctx, g.key(suffix), past).Err())
}

// now is the server's clock in us.
func (g *gathering) now() int64 {
	now, err := g.client.Time(g.ctx).Result()
	g.agree("time", nil, nil, err)
	return now.UnixMicro()
}

// The rate's state is put where the model wants it, behind or before the server's clock, whose reading in the script is
// between those before and after. So the answer is known to the us, but for what the clock does in between.
func TestLimitAgreesWithModel(t *testing.T) {
	each(t, func(g *gathering) {
		interval := rapid.Int64Range(1, int64(100*365*24*time.Hour/time.Microsecond)/1000).Draw(g.t, "interval us")
		burst := rapid.Int64Range(1, 1000).Draw(g.t, "burst")
		key, state := g.key("rate"), int64(0)
		g.t.Repeat(map[string]func(*rapid.T){
			"clock": func(t *rapid.T) { // moves the state instead
				ahead := rapid.Int64Range(-3*interval, (burst+3)*interval).Draw(t, "ahead us")
				state = g.now() + ahead
				g.agree("set", nil, nil, g.client.Set(g.ctx, key, state, time.Hour).Err())
			},
			"forget": func(*rapid.T) {
				state = 0
				g.agree("del", nil, nil, g.client.Del(g.ctx, key).Err())
			},
			"take": func(t *rapid.T) {
				cost := rapid.Int64Range(1, burst+2).Draw(t, "cost")
				wait := rapid.Int64Range(0, 2*interval).Draw(t, "wait us") * rapid.Int64Range(0, 1).Draw(t, "waits")
				request := ledger.LimitRequest{
					Resource: g.resource, Interval: time.Duration(interval) * time.Microsecond, Burst: int(burst), Cost: int(cost),
					Wait: time.Duration(wait) * time.Microsecond,
				}
				before := g.now()
				answer, err := g.ledger.Limit(g.ctx, &request)
				after := g.now()
				g.agree("limit", nil, nil, err)
				delayAt := func(now int64) int64 { return max(0, max(state, now)+cost*interval-burst*interval-now) }
				delay := answer.Delay.Microseconds()
				if most, least := delayAt(before), delayAt(after); delay > most || delay < least {
					t.Fatalf("delay %d us, the model says %d to %d", delay, least, most)
				}
				g.agree("taken", answer.Taken, delay <= wait, nil)
				if !answer.Taken {
					return
				}
				if least := max(state, before) + cost*interval; answer.Mark < least || answer.Mark > max(state, after)+cost*interval {
					t.Fatalf("mark %d, the model says %d", answer.Mark, least)
				}
				state = answer.Mark
				g.refund(&request, &state, answer.Mark, cost*interval)
			},
			"": func(*rapid.T) {
				text, err := g.client.Get(g.ctx, key).Result()
				onTime, _, _ := strings.Cut(text, ".")
				value, _ := strconv.ParseInt(onTime, 10, 64) // 0 for none
				if one, _ := strconv.ParseFloat(text, 64); int64(one) != value {
					g.t.Fatalf("%q read as one number, as the first version does, is %.0f", text, one)
				}
				if err != nil && state <= g.now() { // it has expired, and says no more than none
					state = 0
				}
				g.agree("state", value, state, nil)
				if left := g.client.PTTL(g.ctx, key).Val(); left == -1 {
					g.t.Fatalf("L6: the rate never expires")
				}
			},
		})
	})
}

// refund gives back what has just been taken, or after somebody else has taken, or twice.
func (g *gathering) refund(request *ledger.LimitRequest, state *int64, mark, units int64) {
	if mark < g.now()+time.Minute.Microseconds() {
		return // it may expire before
	}
	switch rapid.IntRange(0, 3).Draw(g.t, "refund") {
	case 0:
		back, err := g.ledger.Refund(g.ctx, request, mark)
		g.agree("refund", back, true, err)
		*state -= units
		back, err = g.ledger.Refund(g.ctx, request, mark)
		g.agree("refund once more", back, false, err)
	case 1:
		back, err := g.ledger.Refund(g.ctx, request, mark-1)
		g.agree("refund behind somebody", back, false, err)
	}
}

func TestLatchAgreesWithModel(t *testing.T) {
	each(t, func(g *gathering) {
		parties := rapid.IntRange(1, 4).Draw(g.t, "parties")
		counted, awaiting := make(map[string]bool), make(map[string]bool)
		call := func(verb ledger.LatchVerb, who string) {
			missing, err := g.ledger.Latch(g.ctx, &ledger.LatchRequest{
				Resource: g.resource, Verb: verb, Who: who, Parties: parties, Keep: time.Hour, Claim: time.Minute,
			})
			g.agree(string(verb), missing, max(0, parties-len(counted)), err)
			var open []string
			if missing == 0 {
				for id := range awaiting {
					open = append(open, "open "+id+" 0")
				}
				clear(awaiting)
			}
			g.hears(open)
		}
		id := func() string { return fmt.Sprintf("process%d:1", rapid.IntRange(1, 4).Draw(g.t, "id")) }
		g.t.Repeat(map[string]func(*rapid.T){
			"count": func(t *rapid.T) {
				party := fmt.Sprint("party ", rapid.IntRange(1, parties+1).Draw(t, "party"))
				counted[party] = true
				call(ledger.LatchCount, party)
			},
			"await": func(*rapid.T) {
				who := id()
				if len(counted) < parties {
					awaiting[who] = true
				}
				call(ledger.LatchAwait, who)
			},
			"leave": func(*rapid.T) {
				who := id()
				delete(awaiting, who)
				call(ledger.LatchLeave, who)
			},
			"silent": func(*rapid.T) { // one that awaits was not heard from
				who := id()
				delete(awaiting, who)
				g.silent("awaiting", who)
			},
			"look": func(*rapid.T) { call(ledger.LatchLook, "") },
		})
	})
}

func TestBarrierAgreesWithModel(t *testing.T) {
	each(t, func(g *gathering) {
		parties := rapid.IntRange(1, 4).Draw(g.t, "parties")
		arrived, left, passed, last := make(map[string]bool), make(map[string]bool), make(map[string]int64), int64(0)
		id := func() string { return fmt.Sprintf("process%d:1", rapid.IntRange(1, 6).Draw(g.t, "id")) }
		g.t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				who := id()
				answer, err := g.ledger.Arrive(g.ctx, g.resource, who, parties, time.Minute)
				if round, through := passed[who]; through {
					g.agree("asked again", answer, ledger.BarrierAnswer{Passed: true, Round: round}, err)
					return
				}
				if left[who] {
					g.agree("late", answer, ledger.BarrierAnswer{Barred: true}, err)
					return
				}
				arrived[who] = true
				if len(arrived) < parties {
					g.agree("arrive", answer, ledger.BarrierAnswer{Arrived: len(arrived)}, err)
					g.hears(nil)
					return
				}
				g.agree("passed", answer.Passed, true, err)
				if answer.Round <= last {
					t.Fatalf("round %d after %d", answer.Round, last)
				}
				last = answer.Round
				var open []string
				for party := range arrived {
					passed[party] = last
					if party != who {
						open = append(open, fmt.Sprintf("open %s %d", party, last))
					}
				}
				clear(arrived)
				g.hears(open)
			},
			"leave": func(*rapid.T) {
				who := id()
				answer, err := g.ledger.Depart(g.ctx, g.resource, who, parties, time.Minute)
				if round, through := passed[who]; through {
					g.agree("left too late", answer, ledger.BarrierAnswer{Passed: true, Round: round}, err)
					return
				}
				delete(arrived, who)
				left[who] = true
				g.agree("leave", answer, ledger.BarrierAnswer{Arrived: len(arrived)}, err)
			},
			"silent": func(*rapid.T) {
				who := id()
				delete(arrived, who)
				g.silent("arrived", who)
			},
			"bar is over": func(*rapid.T) {
				who := id()
				delete(left, who)
				g.agree("zrem", nil, nil, g.client.ZRem(g.ctx, g.key("left"), who).Err())
			},
			"forgotten": func(*rapid.T) { // the round was long ago
				who := id()
				delete(passed, who)
				g.agree("zrem", nil, nil, g.client.ZRem(g.ctx, g.key("passed"), who).Err())
			},
		})
	})
}

func TestFenceAgreesWithModel(t *testing.T) {
	each(t, func(g *gathering) {
		key := "guarded by " + g.resource.Name
		newest, value := int64(0), any(nil)
		g.agree("del", nil, nil, g.client.Del(g.ctx, key, "signalbox:fence:{"+key+"}:"+key).Err())
		run := func(token int64, command string, args ...any) {
			reply, refused, err := g.ledger.Fence(g.ctx, &ledger.FenceRequest{
				Key: key, Token: token, Keep: time.Hour, Command: command, Args: args,
			})
			if token < newest {
				g.agree("newest", refused, newest, err)
				return
			}
			g.agree("refused for", refused, int64(0), err)
			newest = token
			switch command {
			case "set":
				value = args[0]
			case "get":
				g.agree("value", reply, value, nil)
			}
		}
		// Far apart and one apart, where numbers of 17 digits would be equal in floats that lost their last.
		token := func() int64 {
			return rapid.SampledFrom([]int64{1, 2, 1 << 40, 1<<53 - 3, 1<<53 - 2, 1<<53 - 1}).Draw(g.t, "token")
		}
		g.t.Repeat(map[string]func(*rapid.T){
			"set":   func(t *rapid.T) { run(token(), "set", rapid.StringMatching("[a-z ]*").Draw(t, "value")) },
			"get":   func(*rapid.T) { run(token(), "get") },
			"check": func(*rapid.T) { run(token(), "") },
		})
	})
}
