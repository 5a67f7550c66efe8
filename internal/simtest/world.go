package simtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// world is one run.
type world struct {
	plan    *Plan
	trace   *trace
	check   *checker
	network *network
	direct  *redis.Client  // a client of the engine that no fault reaches
	ledger  *ledger.Ledger // over direct
	boxes   []*box
	near    []*box    // that reach the server without a network; a restart and CLIENT KILL hit them too
	ends    time.Time // of the clients' work
	work    sync.WaitGroup
}

// box is a signalbox.Box on its host.
type box struct {
	*signalbox.Box
	host   *host
	client *redis.Client
}

// Run runs a plan in virtual time and fails t at the first invariant that does not hold.
func Run(t *testing.T, plan Plan) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, err := newWorld(&plan)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if violation := w.check.violation(); violation != "" {
				t.Errorf("seed %d: %s\n%v", plan.Seed, violation, plan)
			}
		}()
		w.run()
		t.Logf("%d granted", w.check.grants)
	})
}

func newWorld(plan *Plan) (*world, error) {
	e, err := plan.open()
	if err != nil {
		return nil, err
	}
	t := &trace{origin: time.Now()}
	check := newChecker(plan, t)
	w := &world{plan: plan, trace: t, check: check, ends: t.origin.Add(plan.Length + calmFor)}
	w.network = &network{plan: plan, trace: t, fault: check.broken, engine: e, told: make(map[string]bool)}
	w.direct = redis.NewClient(&redis.Options{
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return w.network.direct() },
		MaxRetries:               directTries, // CLIENT KILL and restarts hit this client too
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	w.ledger = ledger.New(&steady{goredis.New(w.direct)})
	for i := range plan.Boxes {
		w.boxes = append(w.boxes, w.newBox(i))
	}
	return w, nil
}

// open opens an engine, with what it has kept. Nothing is answered that is not on disk.
func (p *Plan) open() (*engine.Engine, error) {
	if p.Dir == "" {
		return engine.Open(engine.Options{})
	}
	config, err := engine.ReadConfig("", "appendonly=yes", "appendfsync=always", "save=")
	if err != nil {
		return nil, err
	}
	return engine.Open(engine.Options{Dir: p.Dir, Config: config})
}

// newBox makes a box on a host of its own.
func (w *world) newBox(number int) *box {
	h := newHost(w.network, fmt.Sprintf("box%d", number))
	w.check.hosts[h.name] = h
	return w.boxOver(h, h.dial)
}

// newNearBox makes a box that no fault of the network reaches.
func (w *world) newNearBox(name string) *box {
	b := w.boxOver(newHost(w.network, name), func(context.Context) (net.Conn, error) { return w.network.direct() })
	w.near = append(w.near, b)
	return b
}

// boxOver makes a box as signalbox.Open would, except for the time that the client is patient for.
func (w *world) boxOver(h *host, dial func(context.Context) (net.Conn, error)) *box {
	client := redis.NewClient(&redis.Options{
		Dialer:     func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		MaxRetries: -1, ContextTimeoutEnabled: true,
		DialTimeout: w.plan.Timeout, ReadTimeout: w.plan.Timeout, WriteTimeout: w.plan.Timeout,
		// A pool that nobody has to queue for: go-redis keeps the timers of those who do for the whole process, and
		// a timer must not leave its bubble.
		PoolSize:                 512,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	return &box{
		Box:  signalbox.New(client, signalbox.Claim(w.plan.Claim), signalbox.Owner(h.name)),
		host: h, client: client,
	}
}

func (w *world) run() {
	var load workload
	if w.plan.Workload != "" {
		load = workloads[w.plan.Workload](w)
	}
	var beside sync.WaitGroup // ends with stop
	stop := make(chan struct{})
	for _, b := range w.boxes {
		for i := range w.plan.Clients {
			w.work.Go(w.client(load, b, i))
		}
	}
	if load.aside != nil {
		beside.Go(func() { load.aside(stop) })
	}
	beside.Go(func() { newNemesis(w, load.look).run(stop) })
	w.await("the clients", w.work.Wait)
	close(stop)
	beside.Wait()
	w.finish()
}

// client returns what one goroutine of a box does.
func (w *world) client(load workload, b *box, number int) func() {
	if load.turn == nil {
		return newClient(w, b, number).run
	}
	a := newActor(w, b, number)
	return func() { a.run(load.turn) }
}

// finish closes everything and looks for what is left.
func (w *world) finish() {
	all := slices.Concat(w.boxes, w.near)
	for _, b := range all {
		w.work.Go(func() {
			// Behind a network that is cut it says what it could not tell.
			if err := b.Close(); !errors.Is(err, signalbox.ErrUnavailable) {
				w.check.must("close the box", err)
			}
		})
	}
	w.await("Close of the boxes", w.work.Wait)
	w.nothingLeft()
	for _, b := range all {
		w.check.must("close the client", b.client.Close())
	}
	w.check.must("close the client", w.direct.Close())
	w.check.must("close the engine", w.network.server().Close())
	// A pool that could not dial for long tries on by itself until it finds itself closed.
	time.Sleep(w.plan.Timeout + 2*time.Second)
}

// patience is in virtual time, and longer than any queue can take.
const patience = 10 * time.Minute

// await waits for something that must end; that it does not is a violation that the run cannot survive.
func (w *world) await(what string, wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		w.check.broken("L5: %s did not end within %v; goroutines:\n%s", what, patience, goroutines())
		for _, b := range w.boxes {
			b.host.crash()
		}
	}
}

// goroutines lists those that are in this module.
func goroutines() string {
	buffer := make([]byte, 4<<20)
	var ours []string
	for stack := range strings.SplitSeq(string(buffer[:runtime.Stack(buffer, true)]), "\n\n") {
		if strings.Contains(stack, "signalbox.(*") {
			ours = append(ours, stack)
		}
	}
	return strings.Join(ours, "\n\n")
}

// tail is how long a key outlives what it holds, by prelude.lua.
const tail = 10 * time.Second

// nothingLeft is L6: when all is released or expired, every key is gone by itself.
func (w *world) nothingLeft() {
	ctx := context.Background()
	for i := range w.plan.Limits {
		resource := w.resource(resourceName(i))
		_, err := w.ledger.Resize(ctx, resource, 0)
		w.check.must("clear the operator's limit", err)
	}
	// A mended or resized state lives a tail longer than the keys it is about, which have one themselves.
	time.Sleep(2*max(w.plan.longestTTL(), w.plan.Claim) + 2*tail + time.Second)
	if w.plan.Workload != "" {
		time.Sleep(5 * time.Minute) // latches and fences remember for as long as they are told
	}
	keys, err := w.direct.Keys(ctx, "*").Result()
	w.check.must("list the keys", err)
	if len(keys) > 0 {
		state := w.direct.HGetAll(ctx, keys[0]).Val()
		w.check.broken("L6: left behind: %q, of %v to live: %q", keys, w.direct.PTTL(ctx, keys[0]).Val(), state)
	}
}

func (w *world) resource(name string) *ledger.Resource {
	resource, err := ledger.NewResource(name)
	w.check.must("name", err)
	return resource
}
