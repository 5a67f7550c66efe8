package late_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faults"
)

func TestMain(m *testing.M) { faults.Main(m) }

// wire is what a client sends through. It loses one answer, or keeps one request to deliver it later; the caller sees a
// time-out either way.
type wire struct {
	mu    sync.Mutex
	about string // the request is the next one with this in an argument; "": all pass
	keep  bool   // the request does not arrive,
	kept  []any  // but is noted here
}

var errNoAnswer = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}

func (w *wire) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *wire) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		hit, keep := w.hits(cmd)
		var err error
		if !hit || !keep {
			err = next(ctx, cmd)
		}
		if hit && !redis.HasErrorPrefix(err, "NOSCRIPT") {
			cmd.SetErr(errNoAnswer)
			return errNoAnswer
		}
		return err
	}
}

// ProcessPipelineHook treats a pipeline as one request: it fails as a whole.
func (w *wire) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			hit, keep := w.hits(cmd)
			if !hit {
				continue
			}
			if !keep {
				_ = next(ctx, cmds) // whatever the answer is, it is lost
			}
			for _, lost := range cmds {
				lost.SetErr(errNoAnswer)
			}
			return errNoAnswer
		}
		return next(ctx, cmds)
	}
}

// hits reports whether a request is the one.
func (w *wire) hits(cmd redis.Cmder) (hit, keep bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, arg := range cmd.Args() {
		if text, ok := arg.(string); w.about != "" && ok && strings.Contains(text, w.about) {
			w.about = ""
			if w.keep {
				w.kept = append([]any(nil), cmd.Args()...)
			}
			return true, w.keep
		}
	}
	return false, false
}

// next arms the wire for the next request about a lease or a name.
func (w *wire) next(about string, keep bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.about, w.keep, w.kept = about, keep, nil
}

// site is a server, and two boxes on it, of which the first sends through a wire.
type site struct {
	t             *testing.T
	wire          *wire
	direct        *redis.Client
	first, second *signalbox.Box
}

func start(t *testing.T) *site {
	t.Helper()
	faults.Begin(t)
	server := difftest.Redis(t)
	s := &site{t: t, wire: &wire{}, direct: dial(t, server)}
	through := dial(t, server)
	through.AddHook(s.wire)
	s.first, s.second = s.box(through), s.box(dial(t, server))
	// From here on the server knows the scripts, so that a request is what it says.
	mutex := s.first.RWMutex("first")
	lease, err := mutex.Write().Acquire(t.Context())
	must(t, err)
	must(t, mutex.Downgrade(t.Context(), lease))
	must(t, lease.Release(t.Context()))
	return s
}

func (s *site) box(client *redis.Client) *signalbox.Box {
	box := signalbox.New(client)
	s.t.Cleanup(func() { must(s.t, box.Close()) })
	return box
}

func dial(t *testing.T, server *difftest.Server) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr, MaxRetries: -1, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { must(t, client.Close()) })
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// loses makes a call whose request is executed and whose answer is lost. The library may ask again by itself.
func (s *site) loses(lease *signalbox.Lease, call func() error) {
	s.t.Helper()
	s.wire.next(lease.ID(), false)
	if err := call(); err != nil && !errors.Is(err, signalbox.ErrUnavailable) {
		s.t.Errorf("an answer was lost: %v", err)
	}
}

// delays makes a call whose request does not arrive before what is returned is called.
func (s *site) delays(lease *signalbox.Lease, call func() error) (arrive func()) {
	s.t.Helper()
	s.wire.next(lease.ID(), true)
	if err := call(); err != nil && !errors.Is(err, signalbox.ErrUnavailable) {
		s.t.Errorf("a request is late: %v", err)
	}
	return s.arrive
}

// arrive delivers the request that was kept.
func (s *site) arrive() {
	s.t.Helper()
	s.wire.mu.Lock()
	defer s.wire.mu.Unlock()
	if s.wire.kept == nil {
		s.t.Fatal("no request was kept: this test looks at nothing")
	}
	must(s.t, s.direct.Do(s.t.Context(), s.wire.kept...).Err())
}
