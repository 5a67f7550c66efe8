package faults

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/signalbox-io/signalbox/internal/topology"
)

// clientsOwn are goroutines of go-redis that outlive the Close of their client, by a second at most: the search for a
// server that is gone.
var clientsOwn = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"),
	goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9.(*clusterStateHolder).LazyReload.func1"),
}

// Main runs the tests of a package of faults, as topology.Main does.
func Main(m *testing.M) { topology.Main(m, clientsOwn...) }
