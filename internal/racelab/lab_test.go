package racelab

import (
	"os"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	for _, a := range All() {
		if only := os.Getenv("ONLY"); only != "" && a.Name != only {
			continue
		}
		began := time.Now()
		r := Explore(a, Bounds{Clients: a.Clients, Faults: 2, Depth: 60, Schedules: 30000}, nil)
		t.Logf("%s: %d schedules %d states %d cut whole=%v %v faults %v", a.Name, r.Schedules, r.States, r.Cut, r.Whole, time.Since(began), r.Faults)
		for _, f := range r.Findings {
			t.Logf("  %s: %s", f.Promise, f.Why)
			for _, row := range f.Rows {
				t.Logf("    %6d %s %s %s | %s | %s | %s", row.AtUs, row.Client, row.Call, row.Sent, row.Got, row.Event, row.Believes)
			}
		}
	}
}
