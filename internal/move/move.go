// Package move takes all data of a live server to another one, and then the callers: what `signalbox move` does.
//
//	move.go     Run: the steps
//	server.go   the two servers, what is asked of them before anything is done
//	callers.go  whether the callers will be let in at the target
//	follow.go   the target as a replica of the source (REPLICAOF)
//	restore.go  the snapshot, written to the target by RESTORE
//	relay.go    the stream behind it, written to the target as it comes
//	filter.go   which of the stream's requests are meant (--match), and which keys may have ended too early
//	wire.go     a connection to the target for a flood of requests
//	compare.go  whether both have the same
//	cutover.go  the moment between the two
//	undo.go     how the target is emptied again
//
// The promise: at each moment either the source takes writes and the target is a copy that nobody knows, or the source
// takes none any more and the target has everything. What parts the two is one request (close, in cutover.go). So a move
// that is killed leaves one or the other.
package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/address"
)

// What can go wrong, besides what the servers and the network say.
var (
	ErrRefused  = errors.New("refused")   // by a check before anything was done
	ErrDiverged = errors.New("not alike") // the target is not what the source is
	ErrTooSlow  = errors.New("too slow")  // the target does not follow, or the pause was too short
)

// The ways of copying.
const (
	ByAny       = "auto"
	ByReplicaOf = "replicaof"
	ByRestore   = "restore"
)

// How much is compared.
const (
	CheckAuto   = "auto" // everything up to wholeUpTo keys, else a sample
	CheckAll    = "all"
	CheckSample = "sample"
	CheckNone   = "none"
)

// Options say what to move, and how.
type Options struct {
	From, To Server
	// Match is what a key's name must begin with; "" for all keys. It has no character that means something to KEYS.
	Match string
	// LeaveOpen lets the source go on taking writes. Who uses the keys that were moved must have been stopped.
	LeaveOpen bool
	Replace   bool   // what the target has may be deleted
	By        string // ByAny, ByReplicaOf or ByRestore
	Check     string // CheckAuto, ...
	// Announce is the URL that is left in the source for its callers; "" for none. Unless it is Meant, it is looked whether those
	// who use the source will be let in there.
	Announce string
	Meant    bool
	Pause    time.Duration // the longest that writes may be held up
	MaxSkew  time.Duration // of the clocks
	Tell     func(Event)   // hears how it goes; must return quickly
}

// The steps, in their order.
const (
	StepCopy    = "copy"    // the snapshot
	StepFollow  = "follow"  // what has changed meanwhile
	StepCheck   = "check"   // both are compared
	StepCutOver = "cutover" // writes are paused
	StepNote    = "note"    // something to be known: Text
	StepDone    = "done"
)

// Event says how it goes.
type Event struct {
	Step     string  `json:"step"`
	By       string  `json:"by,omitempty"`
	Keys     int64   `json:"keys,omitempty"` // copied, or compared
	Of       int64   `json:"of,omitempty"`
	Bytes    int64   `json:"bytes,omitempty"`
	LagBytes int64   `json:"lag_bytes"` // of the stream, that the target has yet to hear
	Seconds  float64 `json:"seconds"`   // since the move began
	PauseMs  float64 `json:"pause_ms,omitempty"`
	Repaired int     `json:"repaired,omitempty"` // keys that were copied again in the pause
	Text     string  `json:"text,omitempty"`
}

// Server is one end.
type Server struct {
	Client *redis.Client // the caller's, not retrying; for DB 0
	Place  string        // to be told: no password
	Local  bool          // an engine in this process: nobody else can reach it
}

// mover is a move under way.
type mover struct {
	Options
	from, to  facts
	began     time.Time
	skew      time.Duration // by how much the target's clock is ahead of ours
	followed  bool          // the target was following the source already
	copying   copying
	restless  []key // that were never seen alike
	targets   map[int]*redis.Client
	announced bool  // the source has the new URL
	paused    bool  // writes on the source
	closed    bool  // the source: the move is done
	keepsOpen error // why the source is closed until it is started again only
	cutOffset int64 // of the source's stream, when writes were paused
}

// copying is a way of having the target hear what the source has and gets.
type copying interface {
	// start returns when the target has the source's snapshot.
	start(ctx context.Context) error
	// lag is how many bytes of the stream up to an offset the target has not heard; not below 0.
	lag(ctx context.Context, offset int64) (int64, error)
	// finish makes the target a server of its own that has all up to the offset. Writes are paused.
	finish(ctx context.Context, offset int64) (repaired int, err error)
	// stop ends what goes on, and can be called at any time.
	stop() error
}

// Run moves. With an error the source is as it was, and the target is empty of what was copied, or the error says
// otherwise.
func Run(ctx context.Context, o Options) (err error) {
	m := &mover{Options: o, began: time.Now()}
	if m.Tell == nil {
		m.Tell = func(Event) {}
	}
	m.From.Client.Options().ClientName = ourName // of all connections from here on
	if err := m.examine(ctx); err != nil {
		return err
	}
	if err := m.prepare(ctx); err != nil {
		return err
	}
	defer func() {
		for _, client := range m.targets {
			err = errors.Join(err, client.Close())
		}
	}()
	if err = m.copy(ctx); err == nil {
		if err = m.compare(ctx); err == nil {
			err = m.cutOver(ctx)
		}
	}
	if err != nil && !errors.Is(err, errUnknown) {
		return errors.Join(err, m.giveUp())
	}
	if stopped := m.copying.stop(); stopped != nil {
		m.note("%v", stopped)
	}
	if err == nil {
		m.keepRole()
		m.tell(Event{Step: StepDone})
	}
	return err
}

// copy brings the data and has the target follow until it is nearly there.
func (m *mover) copy(ctx context.Context) error {
	way := m.By
	if way == ByAny {
		way = ByReplicaOf
		if why := m.cannotFollow(ctx); why != "" {
			way = ByRestore
			m.note("the target cannot be a replica of the source (%s): it is written to instead", why)
		}
	}
	if way == ByReplicaOf {
		m.copying = &following{mover: m}
		err := m.copying.start(ctx)
		if err == nil || m.By != ByAny || !errors.Is(err, errCannotFollow) {
			return m.approach(ctx, err)
		}
		m.note("%v: it is written to instead", err)
		if err := m.copying.stop(); err != nil {
			return err
		}
	}
	m.copying = &restoring{mover: m}
	return m.approach(ctx, m.copying.start(ctx))
}

// near is how many bytes behind a target may be when writes are paused.
const near = 64 << 10

// approach waits until the target has nearly all. A message first shows that the stream flows: it is in the stream like a
// change, and a primary may begin with that a second after its snapshot.
func (m *mover) approach(ctx context.Context, err error) error {
	if err == nil {
		err = m.From.Client.Publish(ctx, address.MovedKey, "").Err()
	}
	if err != nil {
		return err
	}
	first, err := m.offset(ctx)
	for best, since := int64(-1), time.Now(); err == nil; {
		var offset, lag, flows int64
		if offset, err = m.offset(ctx); err != nil {
			break
		}
		if lag, err = m.copying.lag(ctx, offset); err != nil {
			break
		}
		if flows, err = m.copying.lag(ctx, first); err != nil {
			break
		}
		if lag <= near && flows == 0 {
			return m.settle(ctx)
		}
		m.tell(Event{Step: StepFollow, LagBytes: lag})
		if best < 0 || lag < best {
			best, since = lag, time.Now()
		}
		if time.Since(since) > time.Minute {
			return fmt.Errorf("follow: %w: the target is %d bytes behind and does not come nearer: the source is written to faster "+
				"than the target takes it; move when less is written", ErrTooSlow, lag)
		}
		err = pass(ctx, 10*time.Millisecond)
	}
	return err
}

// settle waits until a target that became a replica has an append-only file of the new data: until then the file of before
// counts, and who starts it again finds that. A replica takes more than its maxmemory allows; as a primary it must have room.
func (m *mover) settle(ctx context.Context) error {
	failing := time.Time{}
	for {
		told, err := ask(ctx, m.To.Client, "persistence", "memory")
		if err != nil {
			return err
		}
		if used, most := told.number("used_memory"), told.number("maxmemory"); most > 0 && used >= most {
			return fmt.Errorf("copy: the target has %d bytes, and its maxmemory is %d: as a primary it would refuse writes, or remove leases; "+
				"give it more memory (maxmemory), and run the command again", used, most)
		}
		if told["aof_rewrite_in_progress"] != "1" && told["aof_rewrite_scheduled"] != "1" {
			return nil
		}
		switch {
		case told["aof_last_bgrewrite_status"] != "err":
			failing = time.Time{}
		case failing.IsZero():
			failing = time.Now()
		case time.Since(failing) > patience:
			return errors.New("copy: the target cannot write its append-only file, its log says why: see to its disk, and run the command again")
		}
		if err := pass(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// pass lets some time pass.
func pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *mover) tell(e Event) {
	e.Seconds = time.Since(m.began).Seconds()
	m.Tell(e)
}

func (m *mover) note(format string, args ...any) {
	m.tell(Event{Step: StepNote, Text: fmt.Sprintf(format, args...)})
}
