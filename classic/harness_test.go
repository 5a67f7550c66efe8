package classic_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/classic"
	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/leak"
)

// The tests step clients by hand: an actor's commands wait until the test lets
// them go, one by one, so that a schedule is written down and always the same.
// The time that clients believe in is theirs alone; a key's timeout on the
// server passes when the test says so.

func TestMain(m *testing.M) { leak.Main(m) }

// server is one that the algorithms run on.
type server struct {
	addr string
	dial func(context.Context, string, string) (net.Conn, error) // nil for TCP
	// Admin is a client that no test steps.
	admin *redis.Client
}

// onEach runs a test on a real Redis and on the engine in process.
func onEach(t *testing.T, test func(t *testing.T, s *server)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) { test(t, onRedis(t)) })
	t.Run("engine", func(t *testing.T) {
		e, err := engine.Open(engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { must(t, e.Close()) })
		s := &server{addr: "engine", dial: func(context.Context, string, string) (net.Conn, error) { return e.Dial() }}
		s.admin = s.connect(t, nil)
		test(t, s)
	})
}

func onRedis(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{addr: difftest.Redis(t, args...).Addr}
	s.admin = s.connect(t, nil)
	return s
}

// connect opens a client; wrap sees each of its connections, nil for none.
func (s *server) connect(t *testing.T, wrap func(net.Conn) net.Conn) *redis.Client {
	t.Helper()
	dial := s.dial
	if dial == nil {
		dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		}
	}
	client := redis.NewClient(&redis.Options{
		Addr: s.addr, MaxRetries: -1,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err == nil && wrap != nil {
				conn = wrap(conn)
			}
			return conn, err
		},
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { must(t, client.Close()) })
	return client
}

// timeout lets the time pass that a key has left on the server. A key without
// one fails the test.
func (s *server) timeout(t *testing.T, key string) {
	t.Helper()
	if left := s.admin.PTTL(t.Context(), key).Val(); left <= 0 {
		t.Fatalf("%s has no timeout that could pass (PTTL %d)", key, left)
	}
	must(t, s.admin.PExpire(t.Context(), key, 0).Err())
}

// epoch is when every actor's clock starts.
var epoch = time.Date(2015, 7, 22, 15, 15, 0, 0, time.UTC)

// clock is an actor's. Sleeping moves it on at once.
type clock struct {
	mu  sync.Mutex
	now time.Time
	// sleeps is how many more may be slept before giving up; negative: any.
	sleeps int
	// onSleep is called at the first sleep, if set.
	onSleep func()
}

var errNoPatience = errors.New("slept as often as the test allows")

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if do := c.onSleep; do != nil {
		c.onSleep = nil
		do()
	}
	if c.sleeps == 0 {
		return errNoPatience
	}
	c.sleeps--
	c.now = c.now.Add(d)
	return ctx.Err()
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// actor is one client of an algorithm, whose commands the test lets go.
type actor struct {
	classic.Client
	clock   *clock
	name    string
	gated   bool // set while no command is under way
	crashed bool
	asks    chan string
	answers chan verdict
	done    chan struct{}
	mu      sync.Mutex
	sent    []string
}

// verdict is what becomes of a command.
type verdict int

const (
	proceed   verdict = iota
	crash             // the client dies before it is sent
	loseReply         // it is done, and the client never hears of it
)

var errCrashed = errors.New("the client has crashed")

// actor opens a client with a clock and ids of its own: "a-1", "a-2", …
func (s *server) actor(t *testing.T, name string) *actor {
	t.Helper()
	client := s.connect(t, nil)
	ids := 0
	a := &actor{
		name: name, clock: &clock{now: epoch, sleeps: -1},
		asks: make(chan string), answers: make(chan verdict), done: make(chan struct{}),
	}
	a.Client = classic.Client{Redis: client, Clock: a.clock, NewID: func() string {
		ids++
		return fmt.Sprintf("%s-%d", name, ids)
	}}
	client.AddHook(a)
	return a
}

func (a *actor) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *actor) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return a.gate(cmd.Name(), func() error { return next(ctx, cmd) })
	}
}

func (a *actor) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		var names []string
		for _, cmd := range cmds {
			names = append(names, cmd.Name())
		}
		err := a.gate(strings.Join(names, " "), func() error { return next(ctx, cmds) })
		if errors.Is(err, errCrashed) {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// gate holds a request until the test says what becomes of it.
func (a *actor) gate(request string, send func() error) error {
	if strings.HasPrefix(request, "hello") || strings.HasPrefix(request, "client") {
		return send() // a new connection introduces itself, within another request
	}
	a.mu.Lock()
	a.sent = append(a.sent, request)
	a.mu.Unlock()
	if a.crashed {
		return errCrashed
	}
	if !a.gated {
		return send()
	}
	a.asks <- request
	switch <-a.answers {
	case crash:
		a.crashed = true
		return errCrashed
	case loseReply:
		err := send()
		a.crashed = true
		return errors.Join(errCrashed, err)
	}
	err := send()
	a.done <- struct{}{}
	return err
}

// requests is what the actor has sent since the last call.
func (a *actor) requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	sent := a.sent
	a.sent = nil
	return sent
}

// act is something that an actor is doing, step by step.
type act struct {
	t        *testing.T
	a        *actor
	finished chan error
}

// begin starts something that stops before its first command.
func (a *actor) begin(t *testing.T, do func() error) *act {
	t.Helper()
	a.gated = true
	started := &act{t, a, make(chan error, 1)}
	go func() { started.finished <- do() }()
	return started
}

// step lets the given requests go, one after the other. A pipeline is one
// request, its commands with spaces between. The test fails if the actor wants
// to send something else.
func (r *act) step(requests ...string) *act {
	r.t.Helper()
	for _, want := range requests {
		r.want(want)
		r.a.answers <- proceed
		<-r.a.done
	}
	return r
}

// want waits until the actor is about to send the request, and leaves it there.
func (r *act) want(request string) {
	r.t.Helper()
	select {
	case got := <-r.a.asks:
		if got != request {
			r.t.Fatalf("%s sends %q, the schedule says %q", r.a.name, got, request)
		}
	case err := <-r.finished:
		r.t.Fatalf("%s has ended (%v), the schedule says it sends %q", r.a.name, err, request)
	}
}

// crash ends the actor before it sends the request.
func (r *act) crash(request string) { r.t.Helper(); r.end(request, crash) }

// loseReply lets the request be done and ends the actor before it hears of it.
func (r *act) loseReply(request string) { r.t.Helper(); r.end(request, loseReply) }

func (r *act) end(request string, how verdict) {
	r.t.Helper()
	r.want(request)
	r.a.answers <- how
	if err := <-r.finished; !errors.Is(err, errCrashed) {
		r.t.Fatalf("%s crashed and says %v", r.a.name, err)
	}
}

// finish lets all the rest go and returns what came of it.
func (r *act) finish() error {
	r.t.Helper()
	for {
		select {
		case <-r.a.asks:
			r.a.answers <- proceed
			<-r.a.done
		case err := <-r.finished:
			r.a.gated = false
			return err
		}
	}
}

// into makes a call with a result one without.
func into[T any](result *T, call func() (T, error)) func() error {
	return func() (err error) {
		*result, err = call()
		return err
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		must(t, err)
		return value
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// wantNoKeys fails if anything is on the server but the given keys.
func (s *server) wantNoKeys(t *testing.T, but ...string) {
	t.Helper()
	for _, key := range s.admin.Keys(t.Context(), "*").Val() {
		found := false
		for _, allowed := range but {
			found = found || key == allowed
		}
		if !found {
			t.Errorf("%s was left behind", key)
		}
	}
}
