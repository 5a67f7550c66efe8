package benchmark

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/classic"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// Table 11.2 of the book: clients that do nothing but acquire and release one lock. A try of the book's locks is one
// attempt in their loop, after which they sleep for a millisecond; ours takes a place in the queue at its first try, and
// has no second. Each client has a connection of its own, as a process would.

// LockSettings say which clients compete for the lock.
type LockSettings struct {
	// Clients are the numbers of clients, one cell for each and each kind of lock.
	Clients []int
}

// LockRow is one kind of lock under one number of clients.
type LockRow struct {
	Lock     string `json:"lock"`
	Clients  int    `json:"clients"`
	Tries    int64  `json:"tries"`
	Acquires int64  `json:"acquires"`
	// The rates are over the time that the cell really took.
	TriesPerSecond    float64       `json:"tries_per_second"`
	AcquiresPerSecond float64       `json:"acquires_per_second"`
	WaitP50           time.Duration `json:"wait_p50_ns"`
	WaitP99           time.Duration `json:"wait_p99_ns"`
	WaitMax           time.Duration `json:"wait_max_ns"`
	// Fewest and Most are the acquires of the client that had fewest and most.
	Fewest int64 `json:"fewest_of_a_client"`
	Most   int64 `json:"most_of_a_client"`
}

// The kinds of locks, by the names that they have in reports.
const (
	bookLock    = "original lock"
	bookLuaLock = "Lua lock"
	ourLock     = "signalbox"
)

// lockTimeout is far longer than anybody holds a lock here.
const lockTimeout = 10 * time.Second

// patience is for acquiring: as long as the cell goes on.
const patience = 24 * time.Hour

// contender is one client of a lock. Only its worker uses it while the squad works.
type contender struct {
	acquire  func(ctx context.Context) (release func(ctx context.Context) error, err error)
	refused  func() int64 // tries that failed
	acquires int64
	waits    latencies
}

func (b *Bench) lockCells() []cell[LockRow] {
	var cells []cell[LockRow]
	for _, kind := range []string{bookLock, bookLuaLock, ourLock} {
		for _, n := range b.settings.Locks.Clients {
			clients := strconv.Itoa(n) + " clients"
			if n == 1 {
				clients = "1 client"
			}
			cells = append(cells, cell[LockRow]{kind + ", " + clients, func(ctx context.Context) (LockRow, error) {
				return b.lockCell(ctx, kind, n)
			}})
		}
	}
	return cells
}

func (b *Bench) lockCell(ctx context.Context, kind string, n int) (LockRow, error) {
	name := b.server.name("locks", strconv.Itoa(b.done))
	ours, err := ledger.NewResource(name)
	if err != nil {
		return LockRow{}, err
	}
	b.server.owns(slices.Values(append(ours.Keys(), "lock:"+name)))
	contenders := make([]*contender, n)
	took, err := squad(ctx, n, b.settings.Duration, func(ctx context.Context, i int) (worker, error) {
		c := &contender{waits: newLatencies()}
		contenders[i] = c
		closeClient, err := b.contend(ctx, c, kind, name)
		return worker{c.turn, closeClient}, err
	})
	if err != nil {
		return LockRow{}, err
	}
	return lockRow(kind, contenders, took), nil
}

// contend connects a client of a kind of lock.
func (b *Bench) contend(ctx context.Context, c *contender, kind, name string) (closeClient func() error, err error) {
	if kind == ourLock {
		return b.contendOurs(ctx, c, name)
	}
	client, clock := b.server.client(nil), &clock{}
	c.refused = clock.sleeps.Load
	of := classic.Client{Redis: client, Clock: clock}
	acquire, release := classic.Lock{Client: of, Name: name, Timeout: lockTimeout}.Acquire, classic.Lock{Client: of, Name: name}.Release
	if kind == bookLuaLock {
		lock := classic.LuaLock{Client: of, Name: name, Timeout: lockTimeout}
		acquire, release = lock.Acquire, lock.Release
	}
	c.acquire = func(ctx context.Context) (func(context.Context) error, error) {
		id, err := acquire(ctx, patience)
		return func(ctx context.Context) error { return release(ctx, id) }, err
	}
	return connected(ctx, client)
}

// connected makes sure that a client has its connection.
func connected(ctx context.Context, client *redis.Client) (closeClient func() error, err error) {
	if err := client.Ping(ctx).Err(); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client.Close, nil
}

// contendOurs gives the client a Box, as a process of its own would have.
func (b *Bench) contendOurs(ctx context.Context, c *contender, name string) (closeClient func() error, err error) {
	box, closeBox, err := b.box(ctx)
	if err != nil {
		return nil, err
	}
	c.refused = func() int64 { return 0 }
	c.acquire = func(ctx context.Context) (func(context.Context) error, error) {
		lease, err := box.Mutex(name).Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return lease.Release, nil
	}
	return closeBox, nil
}

// box opens a Box over connections of its own.
func (b *Bench) box(ctx context.Context) (_ *signalbox.Box, closeBox func() error, err error) {
	client := b.server.boxClient()
	if _, err := connected(ctx, client); err != nil {
		return nil, nil, err
	}
	box := signalbox.New(client)
	return box, func() error { return errors.Join(box.Close(), client.Close()) }, nil
}

// turn acquires the lock and gives it back at once.
func (c *contender) turn(ctx context.Context) error {
	asked := time.Now()
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	c.acquires++
	return errors.Join(c.waits.add(time.Since(asked)), release(context.WithoutCancel(ctx)))
}

func lockRow(kind string, contenders []*contender, took time.Duration) LockRow {
	waits := newLatencies()
	row := LockRow{Lock: kind, Clients: len(contenders), Fewest: contenders[0].acquires}
	for _, c := range contenders {
		row.Acquires += c.acquires
		row.Tries += c.acquires + c.refused()
		row.Fewest = min(row.Fewest, c.acquires)
		row.Most = max(row.Most, c.acquires)
		waits.merge(c.waits)
	}
	row.TriesPerSecond = perSecond(row.Tries, took)
	row.AcquiresPerSecond = perSecond(row.Acquires, took)
	row.WaitP50, row.WaitP99, row.WaitMax = waits.percentile(50), waits.percentile(99), waits.max()
	return row
}

// mergeLocks takes the median of everything, but the longest wait of all rounds, and the clients that had fewest and most
// of the round that was least fair: rounds differ in length, so those of different rounds say nothing together.
func mergeLocks(rows []LockRow) LockRow {
	row := rows[0]
	row.Tries = medianOf(rows, func(r *LockRow) int64 { return r.Tries })
	row.Acquires = medianOf(rows, func(r *LockRow) int64 { return r.Acquires })
	row.TriesPerSecond = medianRate(rows, func(r *LockRow) float64 { return r.TriesPerSecond })
	row.AcquiresPerSecond = medianRate(rows, func(r *LockRow) float64 { return r.AcquiresPerSecond })
	row.WaitP50 = medianOf(rows, func(r *LockRow) time.Duration { return r.WaitP50 })
	row.WaitP99 = medianOf(rows, func(r *LockRow) time.Duration { return r.WaitP99 })
	for _, r := range rows {
		row.WaitMax = max(row.WaitMax, r.WaitMax)
		if r.Most*row.Fewest > row.Most*r.Fewest || r.Fewest == 0 && row.Fewest > 0 {
			row.Fewest, row.Most = r.Fewest, r.Most
		}
	}
	return row
}
