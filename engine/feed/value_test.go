package feed_test

import (
	"testing"

	"github.com/signalbox-io/signalbox/engine/feed"
	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

// set writes members in their order, compact or not.
func set(t *testing.T, members ...string) []byte {
	t.Helper()
	limits := ds.DefaultLimits()
	s := &ds.Set{}
	s.Within(&limits)
	for _, member := range members {
		s.Add([]byte(member))
	}
	payload, err := rdb.AppendPayload(nil, s)
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

func TestValuesAreTheSameHoweverTheyAreWritten(t *testing.T) {
	if same, err := feed.Same(set(t, "a", "b", "c"), set(t, "c", "a", "b")); err != nil || !same {
		t.Errorf("one set in two orders: %v, %v", same, err)
	}
	if same, err := feed.Same(set(t, "a", "b"), set(t, "a", "c")); err != nil || same {
		t.Errorf("two sets: %v, %v", same, err)
	}
	if _, err := feed.Same(set(t, "a"), []byte("nonsense")); err == nil {
		t.Error("nonsense is a value")
	}
}
