package signalbox

import (
	"testing"
	"time"
)

// A lease whose end is near may not wait long for the answer to its renewal. The others in need of one may, and go in
// as few pipelines as there can be.
func TestUrgentRenewalHurriesNobody(t *testing.T) {
	t.Parallel()
	now := time.Now()
	k := keeper{box: &Box{claim: DefaultClaim}}
	leases := []*Lease{{deadline: now.Add(-time.Second)}, {deadline: now.Add(20 * time.Millisecond)}}
	for range 2*batchMax + 1 {
		leases = append(leases, &Lease{deadline: now.Add(20 * time.Second)})
	}
	want := []struct {
		size     int
		patience time.Duration
	}{
		{1, time.Millisecond},
		{1, 10 * time.Millisecond},
		{batchMax, DefaultClaim},
		{batchMax, DefaultClaim},
		{1, DefaultClaim},
	}
	for i, w := range want {
		batch, patience := k.alike(leases, now)
		if len(batch) != w.size || patience != w.patience {
			t.Fatalf("batch %d: %d leases and %v, want %d and %v", i, len(batch), patience, w.size, w.patience)
		}
		leases = leases[len(batch):]
	}
	if len(leases) > 0 {
		t.Fatalf("%d leases are left over", len(leases))
	}
}
