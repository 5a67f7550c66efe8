// Package transporttest states what every transport.Transport must do, as tests: Exercise is the whole list. It asks the
// transport alone; what a Box makes of it is conformance.ExerciseOver's.
//
// To add a rule: a function here, a line in rules, and if it is new to the seam a sentence in package transport.
package transporttest

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// Open returns a transport over a new client, and what closes the client. The client connects with dial, and waits for an
// answer for more than a minute unless a context says otherwise.
type Open func(t *testing.T, dial func() (net.Conn, error)) (over transport.Transport, closeClient func())

var rules = map[string]func(*testing.T, Open){
	"replies are plain values":                repliesArePlain,
	"together is one connection":              togetherIsOneConnection,
	"the primary of one server is it":         onePrimary,
	"a server that is gone was not asked":     goneServerIsUnsent,
	"a server that hangs is given up":         deadlinesAreHeard,
	"a closed client is closed":               closedClient,
	"listening hears and tells the loss":      listenTellsLoss,
	"listening ends with the context":         listenEndsWithContext,
	"a refused subscription is told":          refusedSubscription,
	"a connection that fell silent is missed": silenceIsMissed,
}

// patience is how long anything may take that happens soon.
const patience = 20 * time.Second

// Exercise holds a transport to all rules.
func Exercise(t *testing.T, open Open) {
	t.Helper()
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) { rule(t, open) })
	}
}

func start(t *testing.T, open Open) (*difftest.Server, transport.Transport) {
	t.Helper()
	server := difftest.Redis(t)
	over, closeClient := open(t, server.Dial)
	t.Cleanup(closeClient)
	return server, over
}

func soon(t *testing.T) context.Context {
	ctx, done := context.WithTimeout(context.Background(), patience)
	t.Cleanup(done)
	return ctx
}

func keyed(words ...any) transport.Command { return transport.Command{Words: words, Key: 1} }

func repliesArePlain(t *testing.T, open Open) {
	_, over := start(t, open)
	commands := []transport.Command{
		keyed("set", "key", 7),
		keyed("get", "key"),
		keyed("get", "nothing"),
		keyed("incrby", "key", int64(1)),
		keyed("mget", "key", "nothing"),
		keyed("lpush", "key", "x"),
		{Words: []any{"evalsha", "ffffffffffffffffffffffffffffffffffffffff", 1, "key"}, Key: 3},
		{Words: []any{"eval", "return {1, 'a', {false, -1}}", 1, "key"}, Key: 3},
	}
	want := []transport.Reply{
		{Value: "OK"},
		{Value: "7"},
		{},
		{Value: int64(8)},
		{Value: []any{"8", nil}},
		{},
		{},
		{Value: []any{int64(1), "a", []any{nil, int64(-1)}}},
	}
	oneByOne := func(ctx context.Context, commands []transport.Command) (replies []transport.Reply) {
		for _, c := range commands {
			value, err := over.Do(ctx, c)
			replies = append(replies, transport.Reply{Value: value, Err: err})
		}
		return replies
	}
	for how, send := range map[string]func(context.Context, []transport.Command) []transport.Reply{
		"one by one": oneByOne, "pipeline": over.Pipeline, "together": over.Together,
	} {
		got := send(soon(t), commands)
		if !transport.HasPrefix(got[5].Err, "WRONGTYPE") || !transport.HasPrefix(got[6].Err, "NOSCRIPT") {
			t.Errorf("%s: lpush to a string: %v; an unknown script: %v", how, got[5].Err, got[6].Err)
		}
		got[5].Err, got[6].Err = nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", how, diff)
		}
	}
	if replies := append(over.Pipeline(soon(t), nil), over.Together(soon(t), nil)...); len(replies) > 0 {
		t.Errorf("no commands were answered by %v", replies)
	}
}

func togetherIsOneConnection(t *testing.T, open Open) {
	_, over := start(t, open)
	id := transport.Command{Words: []any{"client", "id"}}
	replies := over.Together(soon(t), []transport.Command{
		keyed("set", "key", 1), id, keyed("incrby", "key", 1), {Words: []any{"wait", 0, 1}}, id,
	})
	first := replies[1].Value
	if _, ok := first.(int64); !ok {
		t.Fatalf("client id: %+v", replies[1])
	}
	want := []transport.Reply{{Value: "OK"}, {Value: first}, {Value: int64(2)}, {Value: int64(0)}, {Value: first}}
	if diff := cmp.Diff(want, replies); diff != "" {
		t.Error(diff)
	}
}

func onePrimary(t *testing.T, open Open) {
	_, over := start(t, open)
	if name := over.Server("key"); name != "" {
		t.Errorf("the only server is named %q", name)
	}
	visits, stop := 0, errors.New("stop")
	err := over.EachPrimary(soon(t), func(ctx context.Context, server transport.Doer) error {
		visits++
		if value, err := server.Do(ctx, transport.Command{Words: []any{"ping"}}); err != nil || value != "PONG" {
			t.Errorf("ping: %v, %v", value, err)
		}
		return stop
	})
	if visits != 1 || !errors.Is(err, stop) {
		t.Errorf("%d visits, the last of them failed: %v", visits, err)
	}
}

// goneServerIsUnsent: the first requests may find connections that break under them, later ones find none.
func goneServerIsUnsent(t *testing.T, open Open) {
	server, over := start(t, open)
	get := []transport.Command{keyed("get", "key")}
	if _, err := over.Do(soon(t), get[0]); err != nil {
		t.Fatal(err)
	}
	for how, send := range map[string]func() error{
		"one by one": func() error { _, err := over.Do(soon(t), get[0]); return err },
		"pipeline":   func() error { return over.Pipeline(soon(t), get)[0].Err },
		"together":   func() error { return over.Together(soon(t), get)[0].Err },
		"listening":  func() error { return over.Listen(soon(t), []string{"channel"}, func(transport.Event) {}) },
	} {
		server.Kill()
		const most = 50
		for tries := 1; ; tries++ {
			err := send()
			var operation *net.OpError
			if errors.As(err, &operation) && operation.Op == "dial" {
				break
			}
			if tries == most {
				t.Errorf("%s: %d requests to a server that is gone; the last: %v", how, tries, err)
				break
			}
		}
		server.Restart()
	}
}

// limited is a context with a deadline that its Done knows nothing of, as the library makes one to spare a timer.
type limited struct {
	context.Context
	until time.Time
}

func (l limited) Deadline() (time.Time, bool) { return l.until, true }

func deadlinesAreHeard(t *testing.T, open Open) {
	server, over := start(t, open)
	warm, cancel := context.WithCancel(context.Background())
	if _, err := over.Do(warm, keyed("get", "key")); err != nil {
		t.Fatal(err)
	}
	cancel()
	server.Pause()
	defer server.Resume()
	get := []transport.Command{keyed("get", "key")}
	sends := map[string]func(context.Context) error{
		"one by one": func(ctx context.Context) error { _, err := over.Do(ctx, get[0]); return err },
		"pipeline":   func(ctx context.Context) error { return over.Pipeline(ctx, get)[0].Err },
		"together":   func(ctx context.Context) error { return over.Together(ctx, get)[0].Err },
	}
	for how, send := range sends {
		plain, done := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer done()
		givenUp(t, how, func() error { return send(plain) })
		noDone := limited{context.Background(), time.Now().Add(50 * time.Millisecond)}
		givenUp(t, how+", a deadline without Done", func() error { return send(noDone) })
		later, cancel := context.WithCancel(context.Background())
		defer cancel()
		early := limited{later, time.Now().Add(50 * time.Millisecond)}
		givenUp(t, how+", a deadline before Done", func() error { return send(early) })
	}
}

func givenUp(t *testing.T, how string, send func() error) {
	t.Helper()
	answered := make(chan error, 1)
	go func() { answered <- send() }()
	select {
	case err := <-answered:
		var network net.Error
		if !errors.Is(err, context.DeadlineExceeded) && (!errors.As(err, &network) || !network.Timeout()) {
			t.Errorf("%s: %v is no timeout", how, err)
		}
	case <-soon(t).Done():
		t.Fatalf("%s: the deadline is not heard", how)
	}
}

func closedClient(t *testing.T, open Open) {
	over, closeClient := open(t, difftest.Redis(t).Dial)
	if _, err := over.Do(soon(t), keyed("get", "key")); err != nil {
		t.Fatal(err)
	}
	closeClient()
	_, err := over.Do(soon(t), keyed("get", "key"))
	for _, err := range []error{
		err,
		over.Pipeline(soon(t), []transport.Command{keyed("get", "key")})[0].Err,
		over.Listen(soon(t), []string{"channel"}, func(transport.Event) {}),
	} {
		if !errors.Is(err, transport.ErrClosed) {
			t.Errorf("a closed client: %v", err)
		}
	}
}

// listen listens in the background, and returns when the subscription stands.
func listen(ctx context.Context, t *testing.T, over transport.Transport) (<-chan transport.Event, <-chan error) {
	t.Helper()
	heard, ended := make(chan transport.Event, 10), make(chan error, 1)
	go func() { ended <- over.Listen(ctx, []string{"channel"}, func(e transport.Event) { heard <- e }) }()
	select {
	case first := <-heard:
		if want := (transport.Event{Channel: "channel", Subscribed: true}); first != want {
			t.Fatalf("heard %+v first", first)
		}
	case err := <-ended:
		t.Fatal(err)
	}
	return heard, ended
}

func listenTellsLoss(t *testing.T, open Open) {
	_, over := start(t, open)
	ctx := soon(t)
	for range 2 { // once lost, the next call connects anew
		heard, ended := listen(ctx, t, over)
		receivers, err := over.Do(ctx, transport.Command{Words: []any{"publish", "channel", "news"}})
		if err != nil || receivers != int64(1) {
			t.Fatalf("publish: %v receivers, %v", receivers, err)
		}
		if got, want := <-heard, (transport.Event{Channel: "channel", Payload: "news"}); got != want {
			t.Fatalf("heard %+v, want %+v", got, want)
		}
		if _, err := over.Do(ctx, transport.Command{Words: []any{"client", "kill", "type", "pubsub"}}); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil || ctx.Err() != nil {
			t.Fatalf("a connection that was lost: %v", err)
		}
	}
}

func listenEndsWithContext(t *testing.T, open Open) {
	_, over := start(t, open)
	ctx, cancel := context.WithCancel(soon(t))
	_, ended := listen(ctx, t, over)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("a context that ended: %v", err)
	}
	for {
		receivers, err := over.Do(soon(t), transport.Command{Words: []any{"publish", "channel", "news"}})
		if err != nil {
			t.Fatal(err)
		}
		if receivers == int64(0) {
			return
		}
	}
}

func refusedSubscription(t *testing.T, open Open) {
	_, over := start(t, open)
	if _, err := over.Do(soon(t), transport.Command{Words: []any{"acl", "setuser", "default", "resetchannels"}}); err != nil {
		t.Fatal(err)
	}
	err := over.Listen(soon(t), []string{"channel"}, func(e transport.Event) { t.Errorf("heard %+v", e) })
	if !transport.HasPrefix(err, "NOPERM") {
		t.Errorf("got %v, want NOPERM", err)
	}
}

// silenceIsMissed lets a subscription be idle for long, which must not end it, and then loses all that comes.
func silenceIsMissed(t *testing.T, open Open) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.Open(engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}()
		var muted atomic.Bool
		over, closeClient := open(t, func() (net.Conn, error) {
			conn, err := e.Dial()
			return &mutable{conn, &muted}, err
		})
		defer closeClient()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		heard, ended := listen(ctx, t, over)
		time.Sleep(10 * transport.Silence)
		if _, err := over.Do(t.Context(), transport.Command{Words: []any{"publish", "channel", "news"}}); err != nil {
			t.Fatal(err)
		}
		select {
		case event := <-heard:
			if event.Subscribed || event.Payload != "news" {
				t.Errorf("after a long silence heard %+v", event)
			}
		case err := <-ended:
			t.Fatalf("an idle subscription ended: %v", err)
		}
		muted.Store(true)
		begin := time.Now()
		select {
		case err := <-ended:
			if err == nil {
				t.Error("the loss is not told")
			}
		case <-time.After(2*transport.Silence + 5*time.Second): // some clients take their time to close
			t.Errorf("after %v the loss was not noticed", time.Since(begin))
		}
	})
}

// mutable is a connection that, once muted, delivers nothing any more.
type mutable struct {
	net.Conn
	muted *atomic.Bool
}

func (m *mutable) Read(p []byte) (int, error) {
	for {
		n, err := m.Conn.Read(p)
		if err != nil || !m.muted.Load() {
			return n, err
		}
	}
}
