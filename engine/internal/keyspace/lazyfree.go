package keyspace

import "github.com/signalbox-io/signalbox/engine/internal/ds"

// Redis frees large values in the background when it is asked to (UNLINK, ASYNC, the
// lazyfree parameters), and counts them: INFO's lazyfreed_objects. Here the collector frees
// everything in the background; what Redis would count is counted all the same, since tests
// and dashboards look at it.

const (
	// freedAtOnce is up to how many allocations Redis frees a value on the spot.
	freedAtOnce = 64
	// listNodeBytes is how much of a list Redis has in one allocation.
	listNodeBytes = 8 << 10
)

// CountFreed counts an object that is removed, and freed later if it is large.
func (s *Space) CountFreed(o *Object) {
	if freeEffort(o) > freedAtOnce {
		s.FreedLater++
	}
}

func (db *DB) countFreed(key string) {
	if o, ok := db.objects.GetString(key); ok {
		db.space.CountFreed(o)
	}
}

// freeEffort is about how many allocations Redis has to free.
func freeEffort(o *Object) int {
	switch value := o.Value().(type) {
	case *ds.Deque:
		return value.MemoryBytes() / listNodeBytes
	case *ds.Stream:
		effort := value.TreeNodes()
		for _, group := range value.Groups() {
			effort += 1 + group.Pending().Len()
		}
		return effort
	case interface {
		Encoding() string
		Len() int
	}:
		if name := value.Encoding(); name == "hashtable" || name == "skiplist" {
			return value.Len()
		}
	}
	return 1
}
