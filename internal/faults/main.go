package faults

import (
	"testing"

	"github.com/signalbox-io/signalbox/internal/leak"
	"github.com/signalbox-io/signalbox/internal/topology"
)

// clientsOwn are goroutines of go-redis that outlive the Close of their client, by a second at most: the search for a
// server that is gone.
var clientsOwn = []string{
	"github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial",
	"github.com/redis/go-redis/v9.(*clusterStateHolder).LazyReload.func1",
}

// Main runs the tests of a package of faults, as topology.Main does.
func Main(m *testing.M) { topology.Main(m, clientsOwn...) }

// Leaked finds goroutines that are left, in a process that is no test.
func Leaked() error { return leak.Find(clientsOwn...) }
