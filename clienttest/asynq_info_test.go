package clienttest

import (
	"testing"
	"time"

	"github.com/hibiken/asynq"
)

// TestAsynqQueueInfo: what its dashboard shows of a queue, with the memory it takes.
func TestAsynqQueueInfo(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		p := openAsynq(t, addr)
		p.enqueue(t, "mail", asynq.TaskID("now"))
		p.enqueue(t, "mail", asynq.TaskID("then"), asynq.ProcessIn(time.Hour))
		p.enqueue(t, "mail", asynq.TaskID("grouped"), asynq.Group("letters"))
		must(t, "pause", p.inspector.PauseQueue("default"))
		info, err := p.inspector.GetQueueInfo("default")
		must(t, "queue info", err)
		check(t, "counts", []int{3, 1, 1, 1, 1, 0}, []int{info.Size, info.Pending, info.Scheduled, info.Aggregating, info.Groups, info.Active}, nil)
		check(t, "paused, with a size in memory", true, info.Paused && info.MemoryUsage > 0, nil)
	})
}
