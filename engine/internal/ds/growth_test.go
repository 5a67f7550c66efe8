package ds

import (
	"runtime/metrics"
	"strconv"
	"testing"
)

// TestDictGrowsInSmallSteps: no element of many makes the table take more at once than a
// page of entries and the directories, whatever the size. A table that doubled at once would
// take megabytes. The runtime counts small objects in batches; they are in the bound.
func TestDictGrowsInSmallSteps(t *testing.T) {
	const most = 512 << 10
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	taken := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	d := NewDict[*int]()
	before, longest := taken(), uint64(0)
	for i := range 300_000 {
		d.Set(strconv.Itoa(i), nil)
		after := taken()
		longest = max(longest, after-before)
		before = after
	}
	if longest > most {
		t.Errorf("one element made the table take %d bytes, more than %d", longest, most)
	}
}
