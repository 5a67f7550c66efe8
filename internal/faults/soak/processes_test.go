//go:build unix

package soak_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/faults"
)

// TestProcesses: PROCESSES_FOR is how long; then there are 200.
func TestProcesses(t *testing.T) {
	length, asked := lengthOf(t, "PROCESSES_FOR", 2*time.Second)
	faults.BeginFor(t, length)
	processes, ttl := 20, 3*faults.TTL
	if asked {
		processes, ttl = 200, 15*time.Second
	}
	limits := []int{1, 1, 1, 3, 3} // of the names, which the processes take in turn
	f := newFleet(t, plan{Boxes: 1, Workers: 1, TTL: ttl, Claim: 3 * faults.Claim, NoFailure: true})
	var children []*faults.Child
	for i := range processes {
		f.plan.Name, f.plan.Limit = fmt.Sprintf("name:%d", i%len(limits)), limits[i%len(limits)]
		children = append(children, f.start())
	}
	f.begin(children...)
	pass(length)
	least, most := make([]int, len(limits)), make([]int, len(limits))
	for i, a := range f.finish() {
		name := i % len(limits)
		if most[name] = max(most[name], a.Turns); i < len(limits) || a.Turns < least[name] {
			least[name] = a.Turns
		}
	}
	// First come, first served: who stood in the queue as long had as many turns, but for the beginning and the end.
	const around = 5
	for name := range limits {
		t.Logf("name:%d of %d: %d to %d turns", name, limits[name], least[name], most[name])
		if most[name] > 2*least[name]+around {
			t.Errorf("name:%d: one process had %d turns and another %d", name, most[name], least[name])
		}
	}
}
