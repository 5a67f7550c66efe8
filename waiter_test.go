package signalbox

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A message is late, and the server's clock was set forward before the grant it tells of: the lease must not last
// longer here than it does there all the same.
func TestGrantAfterTheServersClockJumped(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1}) // nobody listens
	defer client.Close()
	box := New(client)
	defer box.Close()
	w := newWaiter(t.Context(), box.Semaphore("s", 1), newTerms(nil), true)
	now := time.Now()
	w.waiting, w.sent, w.serverMs = true, now.Add(-900*time.Millisecond), 1_000_000
	granted := now.Add(-800 * time.Millisecond)
	w.hear(message{verb: "grant", number: [3]int64{1, w.serverMs + 10_100, DefaultClaim.Milliseconds()}})
	lease := (<-w.outcome).lease
	if late := lease.Deadline().Sub(granted.Add(DefaultClaim)); late >= 0 {
		t.Fatalf("the lease ends %v later here than on the server", late)
	}
}
