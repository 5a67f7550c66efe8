package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// The subcommand locks: Signalbox's locks and semaphores beside those of other libraries and of the book. Every figure
// comes from a match (squad.go), whatever it is about, so that all rows have the same columns. A part is a list of
// matches, a table and its aims; a new one is a function like those in lock_parts.go, and a line in lockParts.

// lockPlan is how much is measured.
type lockPlan struct {
	Rounds      int
	Short       int           // rounds of what is short
	Window      time.Duration // of a bout, at least
	Rotations   int           // turns that each client of a queue should have in a window
	ShortWindow time.Duration
	Patience    time.Duration // for how long waiters wait
	Clients     []int
	Goroutines  int           // of the part load: cycles of one Box at once,
	IdleWindow  time.Duration // and how long its waiters are watched
}

var (
	fullLocks = lockPlan{
		Rounds: 3, Short: 7, Window: 800 * time.Millisecond, Rotations: 4, ShortWindow: 500 * time.Millisecond,
		Patience: 10 * time.Second, Clients: []int{1, 2, 10, 20, 50, 100},
		Goroutines: 40_000, IdleWindow: 20 * time.Second,
	}
	quickLocks = lockPlan{
		Rounds: 1, Short: 2, Window: 300 * time.Millisecond, Rotations: 1, ShortWindow: 250 * time.Millisecond,
		Patience: 3 * time.Second, Clients: []int{1, 10, 20, 100},
		Goroutines: 40_000, IdleWindow: 8 * time.Second,
	}
)

// lockBench is one run.
type lockBench struct {
	plan          lockPlan
	cores         cores
	servers       *servers
	apart         *squad // on the clients' cores,
	beside        *squad // on the server's core,
	inside        *squad // on all: the engine is in the process
	begin         time.Time
	played, total int
}

// lockPart is one table, or several about the same matches.
type lockPart struct {
	name     string
	rounds   int
	matches  []*match
	other    func(ctx context.Context) error // a round of what is no match
	sections func() []*section
}

var lockParts = []func(*lockBench) *lockPart{uncontendedPart, mutexPart, semaphorePart, crowdPart, waitingPart, loadPart}

func runLocks(ctx context.Context, args []string) error {
	flags := newRunFlags("locks", locksPage, "one short round and fewer client counts, under three minutes")
	only := flags.String("only", "", "measure these parts, separated by commas: uncontended, mutex, semaphore, crowd, waiting, load")
	goroutines := flags.Int("goroutines", fullLocks.Goroutines, "of one Box, in the part load")
	if _, err := flags.parse(args); err != nil {
		return err
	}
	b := &lockBench{plan: fullLocks, cores: availableCores(), begin: time.Now()}
	if flags.quick {
		b.plan = quickLocks
	}
	if b.plan.Goroutines = *goroutines; b.plan.Goroutines < 1 {
		return fmt.Errorf("-goroutines is %d, must be at least 1", b.plan.Goroutines)
	}
	r, err := b.measure(ctx, *only)
	if err != nil {
		return err
	}
	return flags.deliver(r, "make bench-locks", args, "Locks and semaphores, measured")
}

func (b *lockBench) measure(ctx context.Context, only string) (*report, error) {
	pair, err := startServers(ctx, b.cores)
	if err != nil {
		return nil, err
	}
	defer pair.stop()
	b.servers = pair
	b.apart, b.beside = &squad{on: b.cores.client}, &squad{on: b.cores.server}
	b.inside = &squad{on: append(slices.Clone(b.cores.server), b.cores.client...)}
	for _, q := range []*squad{b.apart, b.beside, b.inside} {
		defer q.stop()
	}
	parts, err := b.parts(only)
	if err != nil {
		return nil, err
	}
	r := &report{Machine: describeMachine(pair.redis.version, b.cores)}
	for _, part := range parts {
		if err := b.play(ctx, part); err != nil {
			return nil, err
		}
		r.Sections = append(r.Sections, part.sections()...)
	}
	r.explain(reasons)
	r.Seconds = time.Since(b.begin).Seconds()
	r.LoadAfter = loadAverage()
	return r, nil
}

// parts are those wanted; an empty list is all.
func (b *lockBench) parts(only string) ([]*lockPart, error) {
	wanted := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	var parts []*lockPart
	for _, make := range lockParts {
		part := make(b)
		i := slices.Index(wanted, part.name)
		if only != "" && i < 0 {
			continue
		}
		if i >= 0 {
			wanted = slices.Delete(wanted, i, i+1)
		}
		parts = append(parts, part)
		b.total += part.rounds * len(part.matches)
	}
	if len(wanted) > 0 {
		return nil, fmt.Errorf("unknown part %q", wanted[0])
	}
	if len(parts) == 0 {
		return nil, errors.New("nothing to measure")
	}
	return parts, nil
}

// play plays the rounds of a part. A bout that fails shows in its row.
func (b *lockBench) play(ctx context.Context, part *lockPart) error {
	for round := range part.rounds {
		for _, m := range orderOf(part.matches, round, part.rounds) {
			// What an earlier bout left is not this one's business. Scripts stay.
			if m.server != nil {
				if err := flush(ctx, m.server); err != nil {
					return err
				}
			}
			err := m.play(ctx)
			b.played++
			b.progress(part, round, m, err)
		}
		if part.other != nil {
			if err := part.other(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// orderOf is who plays after whom in a round. Those that are compared, because only the contestant differs, stay
// neighbours in time; but in each round another of them is first.
func orderOf(matches []*match, round, rounds int) []*match {
	var order []*match
	for len(matches) > 0 {
		n := 1
		for n < len(matches) && matches[n].comparesWith(matches[0]) {
			n++
		}
		first := round * n / rounds
		order = append(append(order, matches[first:n]...), matches[:first]...)
		matches = matches[n:]
	}
	return order
}

func flush(ctx context.Context, s *server) error {
	client := backend{Addr: s.addr}.client()
	defer shut(client)
	if err := client.FlushAll(ctx).Err(); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// progress goes to standard error: a whole run takes a quarter of an hour.
func (b *lockBench) progress(part *lockPart, round int, m *match, err error) {
	found := ""
	switch {
	case err != nil:
		found = err.Error()
	case len(m.bouts) > 0:
		last := m.bouts[len(m.bouts)-1]
		found = fmt.Sprintf("%.0f/s, longest wait %.1f ms", last.rate, last.longestMs)
		if last.fault != "" {
			found += ", " + last.fault
		}
	}
	fmt.Fprintf(os.Stderr, "%4.0fs [%d/%d] %s, round %d of %d: %s on %s, %d clients, hold %v: %s\n",
		time.Since(b.begin).Seconds(), b.played, b.total, part.name, round+1, part.rounds, m.name, m.where, m.clients,
		m.hold, found)
}
