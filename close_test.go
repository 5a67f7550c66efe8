package signalbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faultproxy"
)

// Close does not take the connection from under a Release, which would leave the lease on the server until its ttl is over.
func TestCloseWaitsForARelease(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.Start(t, difftest.Redis(t).Addr)
	box := openBox(t, proxy.Addr())
	lease, err := box.Mutex("m").Acquire(t.Context())
	must(t, err)
	proxy.Set(faultproxy.Fault{Requests: faultproxy.Direction{Hold: true}})
	released, closed := make(chan error, 1), make(chan error, 1)
	go func() { released <- lease.Release(context.Background()) }()
	<-lease.Done()
	go func() { closed <- box.Close() }()
	eventually(t, "a box that closes", func() bool {
		ctx, done := context.WithTimeout(t.Context(), 20*time.Millisecond) // its request is held as well
		defer done()
		_, err := box.Inspect(ctx, "m")
		return errors.Is(err, signalbox.ErrClosed)
	})
	proxy.Restore()
	must(t, <-released)
	must(t, <-closed)
}
