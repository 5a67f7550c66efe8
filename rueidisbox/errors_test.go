package rueidisbox

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// refusing has a real server answer every command with the same error.
type refusing struct {
	*carrier
	text string
}

func (r refusing) Do(ctx context.Context, _ transport.Command) (any, error) {
	return r.carrier.Do(ctx, transport.Command{Words: []any{"eval", "return redis.error_reply(ARGV[1])", 0, r.text}})
}

// waiting has a real server take every command and not answer.
type waiting struct{ *carrier }

func (w waiting) Do(ctx context.Context, _ transport.Command) (any, error) {
	return w.carrier.Do(ctx, transport.Command{Words: []any{"blpop", "nothing", 0}, Key: 1})
}

// awaitBlocked returns when a client of the server is blocked.
func awaitBlocked(t *testing.T, looker *carrier) {
	t.Helper()
	for ctx := t.Context(); ; {
		info, err := looker.Do(ctx, transport.Command{Words: []any{"info", "clients"}})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(info.(string), "blocked_clients:1") {
			return
		}
	}
}

// became holds what the ledger made of an error of rueidis to what callers rely on.
func became(t *testing.T, what string, err, sentinel error, retryable, undone bool) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Errorf("%s became %v, want %v", what, err, sentinel)
	}
	if ledger.Retryable(err) != retryable || ledger.Undone(err) != undone {
		t.Errorf("%s became %v: retryable %v, undone %v", what, err, ledger.Retryable(err), ledger.Undone(err))
	}
}

func release(ctx context.Context, t *testing.T, over transport.Transport) error {
	t.Helper()
	resource, err := ledger.NewResource("a name")
	if err != nil {
		t.Fatal(err)
	}
	_, err = ledger.New(over).Release(ctx, resource, "process:1")
	return err
}

func TestAnswersAreClassified(t *testing.T) {
	client := newClient(t, rueidis.ClientOption{InitAddress: []string{difftest.Redis(t).Addr}})
	for _, test := range []struct {
		text      string
		sentinel  error
		retryable bool
	}{
		{"LOADING Redis is loading the dataset in memory", ledger.ErrUnavailable, true},
		{"BUSY Redis is busy running a script.", ledger.ErrUnavailable, true},
		{"READONLY You can't write against a read only replica.", ledger.ErrUnavailable, true},
		{"MASTERDOWN Link with MASTER is down", ledger.ErrUnavailable, true},
		{"MOVED 3999 127.0.0.1:6381", ledger.ErrUnavailable, true},
		{"ASK 3999 127.0.0.1:6381", ledger.ErrUnavailable, true},
		{"TRYAGAIN Multiple keys request during rehashing of slot", ledger.ErrUnavailable, true},
		{"CLUSTERDOWN The cluster is down", ledger.ErrUnavailable, true},
		{"NOSCRIPT No matching script.", ledger.ErrUnavailable, true},
		{"OOM command not allowed when used memory > 'maxmemory'.", ledger.ErrUnavailable, true},
		{"ERR max number of clients reached", ledger.ErrUnavailable, true},
		{"NOPERM this user has no permissions", ledger.ErrServer, false},
		{"ERR unknown command 'EVALSHA'", ledger.ErrServer, false},
		{"WRONGTYPE Operation against a key", ledger.ErrWrongType, false},
	} {
		err := release(t.Context(), t, refusing{&carrier{client: client}, test.text})
		became(t, test.text, err, test.sentinel, test.retryable, true)
		var own *rueidis.RedisError
		if !errors.As(err, &own) {
			t.Errorf("%v hides the error of rueidis", err)
		}
	}
}

func TestFailuresOfConnectionsAreClassified(t *testing.T) {
	server := difftest.Redis(t)
	client := newClient(t, rueidis.ClientOption{
		InitAddress: []string{server.Addr}, DisableCache: true, PipelineMultiplex: -1, // one connection
	})
	over := &carrier{client: client}
	if err := release(t.Context(), t, over); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	became(t, "a context that was cancelled", release(cancelled, t, over), ledger.ErrUnavailable, false, false)

	server.Pause()
	ctx, done := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer done()
	became(t, "no answer in time", release(ctx, t, over), ledger.ErrUnavailable, true, false)
	server.Resume()

	broken := make(chan error, 1)
	go func() { broken <- release(t.Context(), t, waiting{over}) }()
	looker := &carrier{client: newClient(t, rueidis.ClientOption{InitAddress: []string{server.Addr}, DisableCache: true})}
	awaitBlocked(t, looker)
	server.Kill()
	became(t, "a connection that broke", <-broken, ledger.ErrUnavailable, true, false)

	became(t, "nobody there", release(t.Context(), t, over), ledger.ErrUnavailable, true, true)
	server.Restart()
	if err := release(t.Context(), t, over); err != nil {
		t.Errorf("the server is back: %v", err)
	}
	looker.client.Close() // a client that was never out of reach, else rueidis tells of that
	became(t, "a closed client", release(t.Context(), t, looker), ledger.ErrUnavailable, false, false)
}

// A connection is opened in the name of the first request that wants it. If that one is cancelled meanwhile, it is not the end
// of those that wait for the same connection.
func TestACancelIsForItsOwnRequest(t *testing.T) {
	server := difftest.Redis(t)
	var hold atomic.Bool
	dialing := make(chan struct{})
	client := newClient(t, rueidis.ClientOption{
		InitAddress: []string{server.Addr}, DisableCache: true, PipelineMultiplex: -1, // one connection
		DialCtxFn: func(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if hold.CompareAndSwap(true, false) {
				dialing <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return dialer.DialContext(ctx, "tcp", address)
		},
	})
	over := &carrier{client: client}
	for range 20 { // the second may come too late to wait
		server.Restart()
		hold.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		for waits := false; !waits; {
			go func() { first <- release(ctx, t, over) }()
			select {
			case <-dialing:
				waits = true
			case err := <-first:
				t.Logf("it was on the old connection: %v", err)
			}
		}
		go func() { second <- release(t.Context(), t, over) }()
		runtime.Gosched()
		cancel()
		became(t, "a request that was cancelled", <-first, ledger.ErrUnavailable, false, false)
		if err := <-second; err != nil && !ledger.Retryable(err) {
			t.Errorf("another was cancelled: %v", err)
		}
	}
}
