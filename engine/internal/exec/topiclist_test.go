package exec

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestTopicListIsASet compares it with a plain list, across the size at which
// it gets an index.
func TestTopicListIsASet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var list topicList
		var model []string
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			topic := strconv.Itoa(rapid.IntRange(0, 40).Draw(t, "topic"))
			i := slices.Index(model, topic)
			if rapid.IntRange(0, 2).Draw(t, "kind") == 0 {
				if got := list.remove(topic); got != (i >= 0) {
					t.Fatalf("remove(%q) = %v with %q", topic, got, model)
				}
				if i >= 0 {
					model = slices.Delete(model, i, i+1)
				}
			} else {
				if got := list.add(topic); got != (i < 0) {
					t.Fatalf("add(%q) = %v with %q", topic, got, model)
				}
				if i < 0 {
					model = append(model, topic)
				}
			}
			got, want := slices.Sorted(slices.Values(list.names)), slices.Sorted(slices.Values(model))
			if !slices.Equal(got, want) || list.len() != len(model) {
				t.Fatalf("has %q, want %q", got, want)
			}
		}
	})
}
