package signalbox

import (
	"fmt"
	"testing"
)

// Events that were under way when a Snapshot was taken come behind it, and are older.
func TestObserveNeverGoesBack(t *testing.T) {
	t.Parallel()
	granted := func(term int64) Event { return Event{What: LeaseGranted, ID: fmt.Sprint("id:", term), Token: term} }
	released := func(term int64) Event { return Event{What: LeaseReleased, ID: fmt.Sprint("id:", term)} }
	snapshot := func(leader, last int64) Event {
		state := &State{Token: last}
		if leader > 0 {
			state.Holders = []Holder{{ID: fmt.Sprint("id:", leader), Token: leader}}
		}
		return Event{What: Snapshot, State: state}
	}
	for name, test := range map[string]struct {
		events []Event
		want   string
	}{
		"in order": {
			[]Event{snapshot(0, 0), granted(1), released(1), granted(2), released(2)}, "[0 1 0 2 0]",
		},
		"behind a snapshot with a leader": {
			[]Event{snapshot(6, 6), granted(5), released(5), granted(6), released(6), granted(7)}, "[6 0 7]",
		},
		"behind a snapshot when nobody leads": {
			[]Event{snapshot(6, 6), snapshot(0, 6), granted(5), released(5), granted(6), released(6), granted(7)}, "[6 0 7]",
		},
		"tokens reserved behind the leader's": {
			[]Event{snapshot(6, 9), released(6), granted(10)}, "[6 0 10]",
		},
		"permits that rest": {
			[]Event{
				granted(6), {What: Snapshot, State: &State{Token: 6, Holders: []Holder{{ID: "!id:6", Token: 6, Resting: true}}}},
			}, "[6 0]",
		},
	} {
		var seen []int64
		var s succession
		for _, event := range test.events {
			if leader, changed := s.follow(event); changed {
				seen = append(seen, leader.Term)
			}
		}
		if got := fmt.Sprint(seen); got != test.want {
			t.Errorf("%s: observed %s, want %s", name, got, test.want)
		}
	}
}
