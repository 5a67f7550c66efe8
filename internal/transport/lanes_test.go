package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/internal/leak"
	"github.com/signalbox-io/signalbox/internal/transport"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
	"github.com/signalbox-io/signalbox/internal/transport/transporttest"
)

func TestLanesAreATransport(t *testing.T) {
	defer leak.Check(t)()
	for name, room := range map[string]int{"room": transport.InFlight, "a lane of one": 1} {
		t.Run(name, func(t *testing.T) {
			transporttest.Exercise(t, func(t *testing.T, dial func() (net.Conn, error)) (transport.Transport, func()) {
				client := redis.NewClient(&redis.Options{
					Dialer:     func(context.Context, string, string) (net.Conn, error) { return dial() },
					MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, ReadTimeout: 2 * time.Minute,
					MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
				})
				return transport.NewLanesOf(goredis.New(client), room), func() {
					if err := client.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

func TestLanesInCluster(t *testing.T) {
	transporttest.ExerciseCluster(t, func(t *testing.T, addrs []string, dial func(string) (net.Conn, error)) transport.Transport {
		client := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: addrs, Dialer: func(_ context.Context, _, addr string) (net.Conn, error) { return dial(addr) },
			MaxRetries: -1, ContextTimeoutEnabled: true, ClusterStateReloadInterval: time.Hour,
		})
		t.Cleanup(func() {
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		})
		return transport.NewLanes(goredis.New(client))
	})
}

// network stands in for a slow one: every answer takes a round trip, and is the key that was asked for. A key is
// "server/word"; a hung server answers when it is told to.
type network struct {
	transport.Transport
	roundTrip time.Duration
	hung      map[string]chan struct{}

	mu       sync.Mutex
	onTheWay map[string]int
	most     int        // on their way to one server
	calls    [][]string // the keys of each, in the order in which they were sent
	bounds   []time.Duration
	contexts []context.Context
}

func (n *network) Server(key string) string {
	server, _, _ := strings.Cut(key, "/")
	return server
}

func (n *network) Do(ctx context.Context, command transport.Command) (any, error) {
	reply := n.Pipeline(ctx, []transport.Command{command})[0]
	return reply.Value, reply.Err
}

func (n *network) Pipeline(ctx context.Context, commands []transport.Command) []transport.Reply {
	keys, replies := make([]string, len(commands)), make([]transport.Reply, len(commands))
	for i, command := range commands {
		keys[i] = command.Words[1].(string)
		replies[i].Value = keys[i]
	}
	server := n.Server(keys[0])
	n.mu.Lock()
	n.calls = append(n.calls, keys)
	bound := time.Duration(0)
	if until, limited := ctx.Deadline(); limited {
		bound = time.Until(until)
	}
	n.bounds, n.contexts = append(n.bounds, bound), append(n.contexts, ctx)
	n.onTheWay[server]++
	n.most = max(n.most, n.onTheWay[server])
	n.mu.Unlock()
	if hung := n.hung[server]; hung != nil {
		<-hung
	}
	time.Sleep(n.roundTrip)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.onTheWay[server]--
	return replies
}

const roundTrip = 10 * time.Millisecond

// inLanes runs a test in virtual time over a network whose server "hung" answers nothing until the test is over.
func inLanes(t *testing.T, room int, test func(t *testing.T, n *network, lanes *transport.Lanes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		hung := make(chan struct{})
		n := &network{roundTrip: roundTrip, hung: map[string]chan struct{}{"hung": hung}, onTheWay: map[string]int{}}
		test(t, n, transport.NewLanesOf(n, room))
		close(hung)
		time.Sleep(roundTrip) // what hung goes home
	})
}

func get(key string) transport.Command { return transport.Command{Words: []any{"get", key}, Key: 1} }

// answer is what becomes of a request in the background.
type answer struct {
	value any
	err   error
}

func ask(ctx context.Context, lanes *transport.Lanes, command transport.Command) <-chan answer {
	asked := make(chan answer, 1)
	go func() {
		value, err := lanes.Do(ctx, command)
		asked <- answer{value, err}
	}()
	synctest.Wait()
	return asked
}

func TestWhoFindsRoomSendsByHimself(t *testing.T) {
	inLanes(t, 3, func(t *testing.T, n *network, lanes *transport.Lanes) {
		for i := range 3 {
			ask(t.Context(), lanes, get(fmt.Sprint("a/", i)))
		}
		if len(n.calls) != 3 {
			t.Errorf("%d are on their way, want 3", len(n.calls))
		}
		time.Sleep(roundTrip)
	})
}

func TestWhatIsQueuedGoesTogetherInOrder(t *testing.T) {
	inLanes(t, 1, func(t *testing.T, n *network, lanes *transport.Lanes) {
		var want []string
		var asked []<-chan answer
		for i := range 1203 {
			key := fmt.Sprint("a/", i)
			want, asked = append(want, key), append(asked, ask(t.Context(), lanes, get(key)))
		}
		for i, asked := range asked {
			if got := <-asked; got.err != nil || got.value != want[i] {
				t.Errorf("%s was answered %v, %v", want[i], got.value, got.err)
			}
		}
		var sizes []int
		for _, keys := range n.calls {
			sizes = append(sizes, len(keys))
		}
		if !slices.Equal(slices.Concat(n.calls...), want) || !slices.Equal(sizes, []int{1, 64, 128, 256, 500, 254}) {
			t.Errorf("sent out of order, or in pieces of %v", sizes)
		}
	})
}

// TestCrowd: what 40,000 at once take is a matter of round trips, and no reply goes astray.
func TestCrowd(t *testing.T) {
	const crowd = 40_000
	inLanes(t, transport.InFlight, func(t *testing.T, n *network, lanes *transport.Lanes) {
		begin := time.Now()
		var all sync.WaitGroup
		for i := range crowd {
			all.Go(func() {
				key := fmt.Sprint("a/", i)
				if value, err := lanes.Do(t.Context(), get(key)); err != nil || value != key {
					t.Errorf("%s was answered %v, %v", key, value, err)
				}
			})
		}
		all.Wait()
		took, least := time.Since(begin), crowd/500/transport.InFlight*roundTrip
		if took > least+4*roundTrip || n.most > transport.InFlight { // some go while the batches grow
			t.Errorf("took %v where %v are possible, with %d on their way", took, least, n.most)
		}
	})
}

func TestPipelineIsCut(t *testing.T) {
	const many = 100_000
	inLanes(t, transport.InFlight, func(t *testing.T, n *network, lanes *transport.Lanes) {
		commands := make([]transport.Command, many)
		for i := range commands {
			commands[i] = get(fmt.Sprint(string(rune('a'+i%2)), "/", i))
		}
		begin := time.Now()
		for i, reply := range lanes.Pipeline(t.Context(), commands) {
			if want := commands[i].Words[1]; reply.Err != nil || reply.Value != want {
				t.Fatalf("%s was answered %+v", want, reply)
			}
		}
		took, least := time.Since(begin), roundTrip*(many/2/500+transport.InFlight-1)/transport.InFlight
		if took > 2*least || n.most > transport.InFlight { // some go while the batches grow
			t.Errorf("took %v where %v are possible, with %d on their way to a server", took, least, n.most)
		}
		for _, keys := range n.calls {
			if len(keys) > 500 || slices.ContainsFunc(keys, func(key string) bool { return key[0] != keys[0][0] }) {
				t.Fatalf("%d commands in a batch for %s, or some of another server", len(keys), n.Server(keys[0]))
			}
		}
	})
}

func TestHungServerDelaysNobodyElse(t *testing.T) {
	inLanes(t, 2, func(t *testing.T, n *network, lanes *transport.Lanes) {
		ctx, cancel := context.WithCancel(t.Context())
		var stuck []<-chan answer
		for range 10 {
			stuck = append(stuck, ask(ctx, lanes, get("hung/x")))
		}
		begin := time.Now()
		if _, err := lanes.Do(ctx, get("a/x")); err != nil || time.Since(begin) != roundTrip {
			t.Errorf("took %v: %v", time.Since(begin), err)
		}
		mixed := make(chan []transport.Reply)
		go func() { mixed <- lanes.Pipeline(ctx, []transport.Command{get("hung/y"), get("a/y"), get("b/y")}) }()
		time.Sleep(roundTrip)
		synctest.Wait()
		cancel()
		replies := <-mixed
		if !errors.Is(replies[0].Err, transport.ErrUnsent) || replies[1].Value != "a/y" || replies[2].Value != "b/y" {
			t.Errorf("a pipeline to three servers, one of which hangs: %+v", replies)
		}
		for _, asked := range stuck[2:] { // the first two have the room
			if got := <-asked; !errors.Is(got.err, transport.ErrUnsent) || !errors.Is(got.err, context.Canceled) {
				t.Errorf("who was queued is told %v", got.err)
			}
		}
	})
}

// TestGivingUp: who gives up in the queue was surely not sent; who gives up on the way cannot know, and takes nobody with
// him.
func TestGivingUp(t *testing.T) {
	inLanes(t, 1, func(t *testing.T, n *network, lanes *transport.Lanes) {
		type label struct{}
		impatient, cancel := context.WithCancel(context.WithValue(t.Context(), label{}, "first"))
		queued, cancelQueued := context.WithCancel(t.Context())
		direct := ask(t.Context(), lanes, get("a/1"))
		first, leaving, last := ask(impatient, lanes, get("a/2")), ask(queued, lanes, get("a/3")), ask(t.Context(), lanes, get("a/4"))
		cancelQueued()
		if got := <-leaving; !errors.Is(got.err, transport.ErrUnsent) || !errors.Is(got.err, context.Canceled) {
			t.Errorf("in the queue: %v", got.err)
		}
		<-direct
		synctest.Wait() // the batch is on its way
		begin := time.Now()
		cancel()
		if got := <-first; errors.Is(got.err, transport.ErrUnsent) || !errors.Is(got.err, context.Canceled) || time.Since(begin) > 0 {
			t.Errorf("on the way: %v after %v", got.err, time.Since(begin))
		}
		if got := <-last; got.err != nil || got.value != "a/4" {
			t.Errorf("who stayed was answered %v, %v", got.value, got.err)
		}
		if want := [][]string{{"a/1"}, {"a/2", "a/4"}}; !slices.EqualFunc(n.calls, want, slices.Equal) {
			t.Errorf("sent: %v, want %v", n.calls, want)
		}
		if value := n.contexts[1].Value(label{}); value != "first" {
			t.Errorf("the batch's context has the value %v", value)
		}
	})
}

// Close fails what waits, ends what is on its way, and leaves no goroutine.
func TestClosedLanes(t *testing.T) {
	inLanes(t, 1, func(t *testing.T, _ *network, lanes *transport.Lanes) {
		direct := ask(t.Context(), lanes, get("a/1"))
		queued := ask(t.Context(), lanes, get("a/2"))
		synctest.Wait()
		lanes.Close()
		if got := <-queued; !errors.Is(got.err, transport.ErrClosed) || !errors.Is(got.err, transport.ErrUnsent) {
			t.Errorf("what was queued: %v", got.err)
		}
		late := ask(t.Context(), lanes, get("a/3"))
		if got := <-late; !errors.Is(got.err, transport.ErrClosed) {
			t.Errorf("what comes when the lane is full and closed: %v", got.err)
		}
		if got := <-direct; got.err != nil {
			t.Errorf("what was on its way: %v", got.err)
		}
	})
}

// limited is a context with a deadline and without Done.
type limited struct {
	context.Context
	until time.Time
}

func (l limited) Deadline() (time.Time, bool) { return l.until, true }

func TestDeadlineWithoutDoneIsHeardInTheQueue(t *testing.T) {
	inLanes(t, 1, func(t *testing.T, _ *network, lanes *transport.Lanes) {
		ask(t.Context(), lanes, get("hung/1"))
		begin := time.Now()
		_, err := lanes.Do(limited{context.Background(), begin.Add(time.Second)}, get("hung/2"))
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, transport.ErrUnsent) || time.Since(begin) != time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	})
}

// TestBoundStartsWhenSent: a bound does not run in the queue, and a batch has the longest of its members'.
func TestBoundStartsWhenSent(t *testing.T) {
	inLanes(t, 1, func(t *testing.T, n *network, lanes *transport.Lanes) {
		bounded := func(key string, within time.Duration) transport.Command {
			command := get(key)
			command.Within = within
			return command
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		// The first of each round finds room, the others wait for it.
		for _, round := range [][]transport.Command{
			{bounded("a/1", time.Minute), bounded("a/2", time.Nanosecond), bounded("a/3", time.Minute)},
			{bounded("a/4", time.Minute), bounded("a/5", time.Minute), get("a/6")},
		} {
			var asked []<-chan answer
			for i, command := range round {
				ctx := t.Context()
				if i != 1 {
					ctx = soon
				}
				asked = append(asked, ask(ctx, lanes, command))
			}
			for _, asked := range asked {
				if got := <-asked; got.err != nil {
					t.Error(got.err)
				}
			}
		}
		if want := []time.Duration{time.Second, time.Minute, time.Second - 2*roundTrip, 0}; !slices.Equal(n.bounds, want) {
			t.Errorf("bounds %v, want %v", n.bounds, want)
		}
	})
}
