package main

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
)

// What the sentences of `why` say, of states that scripts do not come to without waiting.
func TestWhy(t *testing.T) {
	now := time.UnixMicro(1_700_000_000_000_000)
	holder := func(owner string, weight int, left time.Duration) signalbox.Holder {
		return signalbox.Holder{ID: owner, Owner: owner, Weight: weight, Since: now.Add(-time.Hour), TTL: 30 * time.Second, Expires: now.Add(left)}
	}
	resting := holder("gone:3", 1, 20*time.Second)
	resting.Resting = true
	waiter := func(owner string, weight int) signalbox.QueuedEntry {
		return signalbox.QueuedEntry{ID: owner, Owner: owner, Weight: weight, Limit: 4, Since: now.Add(-time.Minute), Claim: now.Add(2 * time.Second)}
	}
	paced, grouped := waiter("w:1", 1), waiter("w:1", 1)
	paced.Pace, grouped.Group = time.Hour, true
	writer := waiter("w:1", signalbox.MaxReaders)
	writer.Limit = signalbox.MaxReaders
	for _, c := range []struct {
		name  string
		state signalbox.State
		id    []string
		want  []string
	}{
		{"one that was not heard of, one that rests", signalbox.State{
			Held: 4, Holders: []signalbox.Holder{holder("a:1", 3, 5*time.Second), resting}, Queue: []signalbox.QueuedEntry{waiter("w:1", 2)},
		}, nil, []string{
			"held", "w:1 has waited for 1m00s for 2 permits, and is 1st in the queue.", "4 of 4 held.",
			"a:1 has held 3 permits for 1h00m, and was not heard of for 25s: if it is dead, they are free in 5s.",
			"1 permit rests after gone:3 (lock delay or minimum hold), for another 20s; signalbox release x --all frees it.",
		}},
		{"behind a heavy one, under a limit that was lowered", signalbox.State{
			Held: 4, Operator: 2, Holders: []signalbox.Holder{holder("a:1", 4, 25*time.Second)},
			Queue: []signalbox.QueuedEntry{waiter("w:1", 2), waiter("w:2", 1)},
		}, []string{"w:2"}, []string{
			"behind", "w:2 has waited for 1m00s for 1 permit, and is 2nd in the queue.",
			"Nobody passes the queue: it comes after 1 other, the first of them w:1, which wants 2 permits.", "4 of 2 held.",
			"The limit of 2 is an operator's; signalbox resize x --clear takes it back.",
			"That is more than the limit, which has become smaller: the next grant comes when 4 permits have been given back.",
			"a:1 has held 4 permits for 1h00m.",
		}},
		{"a pace", signalbox.State{Token: now.Add(-time.Minute).UnixMicro(), Queue: []signalbox.QueuedEntry{paced}}, nil, []string{
			"pace", "w:1 has waited for 1m00s for 1 permit, and is 1st in the queue.",
			"There is room, but the first in the queue wants 1h0m0s between two grants; the last was 1m00s ago.",
		}},
		{"several resources", signalbox.State{Queue: []signalbox.QueuedEntry{grouped}}, nil, []string{
			"group", "w:1 has waited for 1m00s for 1 permit, and is 1st in the queue.",
			"There is room, but the first in the queue wants other resources with it, and waits until all are free.",
		}},
		{"its turn", signalbox.State{Queue: []signalbox.QueuedEntry{waiter("w:1", 1)}}, nil, []string{
			"in turn", "w:1 has waited for 1m00s for 1 permit, and is 1st in the queue.",
			"There is room: the first in the queue has its turn now, or if its process is silent loses its place in 2s.",
		}},
		{"a writer behind readers", signalbox.State{
			Held: 1, Limit: signalbox.MaxReaders, Holders: []signalbox.Holder{holder("a:1", 1, 25*time.Second)}, Queue: []signalbox.QueuedEntry{writer},
		}, nil, []string{
			"held", "w:1 has waited for 1m00s for all permits, and is 1st in the queue.", "Held by 1 reader.", "a:1 has held 1 permit for 1h00m.",
		}},
		{"a holder", signalbox.State{Held: 1, Holders: []signalbox.Holder{holder("a:1", 1, 25*time.Second)}}, []string{"a:1"}, []string{
			"not waiting", "a:1 does not wait: it has held 1 permit for 1h00m.",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.state.Resource, c.state.Now, c.state.Leases, c.state.Waiters = "x", now, len(c.state.Holders), len(c.state.Queue)
			why, err := whyOf(&c.state, c.id)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := strings.Join(append([]string{why.Reason}, why.Text...), "\n"), strings.Join(c.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
