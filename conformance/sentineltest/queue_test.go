package sentineltest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/conformance"
	"github.com/signalbox-io/signalbox/internal/topology"
	"github.com/signalbox-io/signalbox/queue"
)

func TestQueue(t *testing.T) {
	group := topology.StartSentinel(t, topology.SentinelOptions{DownAfter: 15 * time.Second}) // nobody is to fail over
	t.Run("suite", func(t *testing.T) {
		conformance.ExerciseQueue(t, func(t *testing.T) redis.UniversalClient { return connect(t, group) })
	})
}

// A primary that has passed on all its writes dies: nobody loses anything.
func TestQueueWhileThePrimaryDies(t *testing.T) {
	group := topology.StartSentinel(t, topology.SentinelOptions{})
	// On a busy machine a takeover may last longer than a worker is believed in as a rule; its jobs would run twice, rightly.
	load := conformance.StartQueueLoad(t, "app", func(t *testing.T) redis.UniversalClient { return connect(t, group) }, queue.Lease(2*time.Minute))
	primary := group.Primary()
	primary.Quiesce(t)
	primary.Kill()
	group.AwaitTakeover(primary)
	load.Turns(50)
	load.Finish()
}

// A failover that waits for no replica may lose the last writes. What is there afterwards runs, and nothing is torn.
func TestQueueWhileTheSentinelsFailOver(t *testing.T) {
	group := topology.StartSentinel(t, topology.SentinelOptions{})
	load := conformance.StartQueueLoad(t, "app", func(t *testing.T) redis.UniversalClient { return connect(t, group) })
	for range 2 {
		load.Losing(func() { group.Failover() })
		load.Turns(50)
	}
	load.Finish()
}
