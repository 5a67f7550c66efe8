package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// What is in use under a name besides permits: its barrier, its latch and its rate, for `inspect`, `ls` and `why`.

const (
	partiesMost = 1000 // listed of those that wait
	partiesSaid = 5    // named in a sentence
)

// besideJSON is the part of `inspect --json` and `ls --json` that is not about permits. What is not in use is left out.
type besideJSON struct {
	Barrier *barrierJSON `json:"barrier,omitempty"`
	Latch   *latchJSON   `json:"latch,omitempty"`
	Rate    *rateJSON    `json:"rate,omitempty"`
}

type barrierJSON struct {
	Parties int         `json:"parties"` // 0 if those that wait do not say
	Waiting int         `json:"waiting"`
	Who     []partyJSON `json:"who"`
}

type latchJSON struct {
	Parties int         `json:"parties"`
	Done    int         `json:"done"`
	Waiting int         `json:"waiting"`
	Who     []partyJSON `json:"who"`
}

type partyJSON struct {
	ID    string `json:"id"`
	Owner string `json:"owner"`
}

type rateJSON struct {
	Busy time.Duration `json:"busy_ns"`
}

func newBesideJSON(b *ledger.Beside) (out besideJSON) {
	if b.Arrived > 0 {
		out.Barrier = &barrierJSON{partiesOf(b.AtBarrier), b.Arrived, newPartiesJSON(b.AtBarrier)}
	}
	if b.Counted+b.Awaiting > 0 {
		out.Latch = &latchJSON{partiesOf(b.AtLatch), b.Counted, b.Awaiting, newPartiesJSON(b.AtLatch)}
	}
	if b.Rate > 0 {
		out.Rate = &rateJSON{b.Rate}
	}
	return out
}

func newPartiesJSON(parties []ledger.Party) []partyJSON {
	out := []partyJSON{}
	for _, p := range parties {
		out = append(out, partyJSON{p.ID, p.Owner})
	}
	return out
}

// partiesOf is for how many those wait that say it: each states a number of its own, and the largest waits for longest.
func partiesOf(parties []ledger.Party) (most int) {
	for _, p := range parties {
		most = max(most, p.Parties)
	}
	return most
}

// sayBeside is a sentence for each thing in use, which names who waits.
func sayBeside(b *ledger.Beside) (text []string) {
	if b.Arrived > 0 {
		text = append(text, sayBarrier(b)+": "+sayParties(b.AtBarrier, b.Arrived))
	}
	if b.Awaiting > 0 {
		text = append(text, sayLatch(b)+": "+sayParties(b.AtLatch, b.Awaiting))
	} else if b.Counted > 0 {
		text = append(text, sayLatch(b))
	}
	if b.Rate > 0 {
		text = append(text, sayRate(b))
	}
	return text
}

// sayBarrier is "2 of 3 wait at its barrier".
func sayBarrier(b *ledger.Beside) string {
	return ofAll(b.Arrived, partiesOf(b.AtBarrier)) + waitsOrWait(b.Arrived) + " at its barrier"
}

// sayLatch is "1 of 2 done at its latch, 1 waits".
func sayLatch(b *ledger.Beside) string {
	text := ofAll(b.Counted, partiesOf(b.AtLatch)) + " done at its latch"
	if b.Awaiting == 0 {
		return text + ", nobody waits"
	}
	return text + fmt.Sprintf(", %d", b.Awaiting) + waitsOrWait(b.Awaiting)
}

func sayRate(b *ledger.Beside) string {
	return fmt.Sprintf("its rate is in use, and idle in %s if nobody takes more", span(b.Rate))
}

func waitsOrWait(n int) string {
	if n == 1 {
		return " waits"
	}
	return " wait"
}

// ofAll is "2 of 3", or "2" if nobody says of how many.
func ofAll(n, parties int) string {
	if parties == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d of %d", n, parties)
}

func sayParties(parties []ledger.Party, all int) string {
	var names []string
	for _, p := range parties[:min(partiesSaid, len(parties))] {
		names = append(names, who(cmp.Or(p.Owner, p.ID), ""))
	}
	text := strings.Join(names, ", ")
	if rest := all - len(names); rest > 0 {
		text += fmt.Sprintf(", and %d more", rest)
	}
	return text
}

// besideOf looks at what is in use of a resource besides permits. An engine that does not run has nothing.
func (a *app) besideOf(ctx context.Context, name string) (ledger.Beside, error) {
	var found ledger.BesideResult
	err := a.lookLedger(ctx, func(l *ledger.Ledger) error {
		resource, err := ledger.NewResource(name)
		if err != nil {
			return err
		}
		found = l.BesideAll(ctx, []*ledger.Resource{resource}, partiesMost)[0]
		return found.Err
	})
	return found.Beside, err
}

// namedBeside is what is in use under a name.
type namedBeside struct {
	name string
	ledger.Beside
}

// listBeside finds all names of which something is in use besides permits, in their order.
func (a *app) listBeside(ctx context.Context) ([]namedBeside, error) {
	found := make(map[string]namedBeside)
	err := a.lookLedger(ctx, func(l *ledger.Ledger) error {
		return l.BesideNames(ctx, func(names []string) error {
			var resources []*ledger.Resource
			for _, name := range names {
				if resource, err := ledger.NewResource(name); err == nil { // else it is nobody's who uses this
					resources = append(resources, resource)
				}
			}
			for i, result := range l.BesideAll(ctx, resources, 1) {
				switch {
				case result.Err != nil:
					return result.Err
				case result.InUse():
					found[resources[i].Name] = namedBeside{resources[i].Name, result.Beside}
				}
			}
			return nil
		})
	})
	list := make([]namedBeside, 0, len(found))
	for _, name := range sortedKeys(found) {
		list = append(list, found[name])
	}
	return list, err
}

// whyBeside is why somebody waits at a barrier or a latch: the one of an id, or all if it is "".
func whyBeside(name string, b *ledger.Beside, id string) (why whyJSON, found bool) {
	why = whyJSON{Resource: name, ID: id}
	for _, in := range []struct {
		reason  string
		parties []ledger.Party
		part    ledger.Beside
	}{
		{"barrier", b.AtBarrier, ledger.Beside{Arrived: b.Arrived, AtBarrier: b.AtBarrier}},
		{"latch", b.AtLatch, ledger.Beside{Counted: b.Counted, Awaiting: b.Awaiting, AtLatch: b.AtLatch}},
		{"rate", nil, ledger.Beside{Rate: b.Rate}},
	} {
		named := slices.ContainsFunc(in.parties, func(p ledger.Party) bool { return p.ID == id })
		if in.part.InUse() && (named || id == "") {
			why.Reason = cmp.Or(why.Reason, in.reason)
			why.Text = append(why.Text, sayBeside(&in.part)[0]+".")
		}
	}
	return why, len(why.Text) > 0
}
