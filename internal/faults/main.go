package faults

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// clientsOwn are goroutines of go-redis that outlive the Close of their client, by a second at most: the search for a
// server that is gone.
var clientsOwn = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"),
	goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9.(*clusterStateHolder).LazyReload.func1"),
}

// Main runs the tests of a package of faults, and then looks for goroutines that are left. The client's own log has a
// line for every connection that a fault breaks, so it is kept out of the output.
func Main(m *testing.M) {
	redis.SetLogger(silence{})
	goleak.VerifyTestMain(m, clientsOwn...)
}

type silence struct{}

// Printf is what go-redis writes its log with.
func (silence) Printf(context.Context, string, ...any) {}
