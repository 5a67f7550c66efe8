package benchmark

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/classic"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// How often each semaphore lets too many in. All clients are in this process, so that a witness can count who is inside
// at any moment. A client counts as inside from after it was told that it has a permit until before it gives it back:
// what the witness sees is never more than there is. The clocks of the clients are spread evenly over the skew; ours
// sends no client's clock, and so has nothing for the skew to work on.

// SemaphoreSettings say who competes for how many permits.
type SemaphoreSettings struct {
	Clients int
	Limit   int
	// Skews are how far the fastest clock of the clients is before the slowest, one cell for each and each semaphore.
	Skews []time.Duration
}

// SemaphoreTimeout is how long a permit of the book's semaphores lasts. A clock that is ahead by more takes the permits
// of the others for expired.
const SemaphoreTimeout = 10 * time.Second

// permitHeld is how long a client is inside, at least.
const permitHeld = time.Millisecond

// SemaphoreRow is one kind of semaphore with clocks that differ by so much. Counts are the sums of all rounds.
type SemaphoreRow struct {
	Semaphore string        `json:"semaphore"`
	Skew      time.Duration `json:"skew_ns"`
	Clients   int           `json:"clients"`
	Limit     int           `json:"limit"`
	Grants    int64         `json:"grants"`
	Refusals  int64         `json:"refusals"`
	// OverLimit are the grants that came while the limit was reached.
	OverLimit int64 `json:"over_limit"`
	// MostHolders is how many were inside at once.
	MostHolders int `json:"most_holders"`
}

// PercentOver is the share of the grants that were over the limit.
func (r *SemaphoreRow) PercentOver() float64 {
	if r.Grants == 0 {
		return 0
	}
	return 100 * float64(r.OverLimit) / float64(r.Grants)
}

// The kinds of semaphores, by the names that they have in reports.
const (
	bookSemaphore   = "basic (6.3.1)"
	fairSemaphore   = "fair (6.3.2)"
	lockedSemaphore = "fair with a lock (6.3.5)"
	luaSemaphore    = "Lua (11.2)"
	ourSemaphore    = "signalbox"
)

// witness counts who is inside.
type witness struct {
	mu  sync.Mutex
	row *SemaphoreRow
	in  int
}

func (w *witness) enters() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.in++
	w.row.Grants++
	if w.in > w.row.Limit {
		w.row.OverLimit++
	}
	w.row.MostHolders = max(w.row.MostHolders, w.in)
}

func (w *witness) leaves() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.in--
}

func (w *witness) refused() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.row.Refusals++
}

func (b *Bench) semaphoreCells() []cell[SemaphoreRow] {
	var cells []cell[SemaphoreRow]
	for _, kind := range []string{bookSemaphore, fairSemaphore, lockedSemaphore, luaSemaphore, ourSemaphore} {
		for _, skew := range b.settings.Semaphores.Skews {
			label := fmt.Sprintf("%s, clocks differ by %v", kind, skew)
			cells = append(cells, cell[SemaphoreRow]{label, func(ctx context.Context) (SemaphoreRow, error) {
				return b.semaphoreCell(ctx, kind, skew)
			}})
		}
	}
	return cells
}

func (b *Bench) semaphoreCell(ctx context.Context, kind string, skew time.Duration) (SemaphoreRow, error) {
	s := b.settings.Semaphores
	row := SemaphoreRow{Semaphore: kind, Skew: skew, Clients: s.Clients, Limit: s.Limit}
	name := b.server.name("semaphores", strconv.Itoa(b.done))
	ours, err := ledger.NewResource(name)
	if err != nil {
		return row, err
	}
	b.server.owns(slices.Values(append(ours.Keys(), name, name+":owner", name+":counter", "lock:"+name)))
	w := &witness{row: &row}
	_, err = squad(ctx, s.Clients, b.settings.Duration, func(ctx context.Context, i int) (worker, error) {
		if kind == ourSemaphore {
			return b.ourVisitor(ctx, w, name)
		}
		ahead := time.Duration(0)
		if s.Clients > 1 {
			ahead = skew * time.Duration(i) / time.Duration(s.Clients-1)
		}
		return b.bookVisitor(ctx, w, kind, name, ahead)
	})
	return row, err
}

// visitable is what the semaphores of the book have in common.
type visitable interface {
	Acquire(ctx context.Context) (id string, err error)
	Release(ctx context.Context, id string) error
}

// bookVisitor is a client of one of the book's semaphores, whose clock is ahead of the slowest. Who is refused asks
// again a millisecond later.
func (b *Bench) bookVisitor(ctx context.Context, w *witness, kind, name string, ahead time.Duration) (worker, error) {
	client := b.server.client(nil)
	plain := classic.Semaphore{
		Client: classic.Client{Redis: client, Clock: &clock{ahead: ahead}},
		Name:   name, Limit: w.row.Limit, Timeout: SemaphoreTimeout,
	}
	var semaphore visitable = plain
	switch kind {
	case fairSemaphore:
		semaphore = classic.FairSemaphore(plain)
	case lockedSemaphore:
		semaphore = classic.LockedSemaphore{FairSemaphore: classic.FairSemaphore(plain), LockTimeout: lockTimeout}
	case luaSemaphore:
		semaphore = classic.LuaSemaphore(plain)
	}
	turn := func(ctx context.Context) error {
		// A try is finished once it has begun: one that is cut off leaves a permit, or the lock, with nobody.
		whole := context.WithoutCancel(ctx)
		id, err := semaphore.Acquire(whole)
		if errors.Is(err, classic.ErrBusy) {
			w.refused()
			return pause(ctx, permitHeld)
		}
		if err != nil {
			return err
		}
		w.enters()
		_ = pause(ctx, permitHeld) // it is cut short at the end
		w.leaves()
		if err := semaphore.Release(whole, id); !errors.Is(err, classic.ErrLost) {
			return err // that others have taken it for expired is what is measured
		}
		return nil
	}
	closeClient, err := connected(ctx, client)
	return worker{turn, closeClient}, err
}

// ourVisitor is a client of our semaphore, which waits its turn.
func (b *Bench) ourVisitor(ctx context.Context, w *witness, name string) (worker, error) {
	box, closeBox, err := b.box(ctx)
	turn := func(ctx context.Context) error {
		lease, err := box.Semaphore(name, w.row.Limit).Acquire(ctx)
		if err != nil {
			return err
		}
		w.enters()
		_ = pause(ctx, permitHeld) // it is cut short at the end
		w.leaves()
		return lease.Release(context.WithoutCancel(ctx))
	}
	return worker{turn, closeBox}, err
}

// mergeSemaphores adds up: what may never happen is not to be lost in a median.
func mergeSemaphores(rows []SemaphoreRow) SemaphoreRow {
	row := rows[0]
	for _, r := range rows[1:] {
		row.Grants += r.Grants
		row.Refusals += r.Refusals
		row.OverLimit += r.OverLimit
		row.MostHolders = max(row.MostHolders, r.MostHolders)
	}
	return row
}
