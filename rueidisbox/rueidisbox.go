// Package rueidisbox opens a signalbox.Box over a rueidis client, for programs that have one: of one server, of a Sentinel
// group or of a Cluster, whichever rueidis.NewClient made of its options. Locks, semaphores and all else of the Box are the
// same as over go-redis, and both kinds of processes may share resources.
//
// The client stays the caller's: Close of the Box leaves it open. Nothing in its options matters to the Box but the
// address. In particular
//
//   - DisableRetry need not be set: rueidis repeats by itself what it knows to be read-only, and takes nothing the Box
//     sends for that. The Box repeats on its own, with ids that make it harmless.
//   - ConnWriteTimeout bounds how long a request may go unanswered whose context has no deadline.
//   - DisableCache must be set for servers without client-side caching, as for all that rueidis does; signalbox serve is
//     one. The Box caches nothing.
//   - PipelineMultiplex, BlockingPoolSize and the like are as free as ever. Once somebody has had to wait, the Box keeps one
//     connection of the blocking pool, to hear of grants; in a Cluster one to each node where somebody waits.
//
// # How it is built
//
// A transport (transport.go) puts the Box's commands into rueidis' and its replies into plain values; listen.go is the
// subscription, shards.go that to a Cluster; errors.go says what the errors of rueidis mean. Package internal/transport says what they must be.
package rueidisbox

import (
	"github.com/redis/rueidis"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/transport/over"
)

// New returns a Box over a client that stays the caller's. Close the Box first, then the client.
func New(client rueidis.Client, options ...signalbox.Option) *signalbox.Box {
	return over.New(&carrier{client: client}, options...)
}
