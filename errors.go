package signalbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// What can go wrong. Every error wraps one of these, or the error of the context that ended, and names the resource.
var (
	// ErrBusy: TryAcquire found no permit free. The error is a *BusyError.
	ErrBusy = errors.New("busy")
	// ErrTooHeavy: the weight is more than the limit, so it could never be granted.
	ErrTooHeavy = errors.New("weight exceeds the limit")
	// ErrLeaseLost: the lease was not renewed in time, or the server lost it. Somebody else may hold the permits.
	ErrLeaseLost = errors.New("lease lost")
	// ErrForced: an operator ended the lease, or sent the waiter away.
	ErrForced = errors.New("ended by force")
	// ErrStale: a guarded write came with a token older than the newest seen. The error is a *StaleError.
	ErrStale = errors.New("stale token")
	// ErrReleased is the cause of the context of a lease that its holder released.
	ErrReleased = errors.New("lease released")
	// ErrClosed: the Box was closed.
	ErrClosed = errors.New("box closed")
	// ErrInvalid: an argument that no server was asked about.
	ErrInvalid = ledger.ErrInvalid
	// ErrUnavailable: the server was out of reach, or not ready, for longer than a waiter can go unheard.
	ErrUnavailable = ledger.ErrUnavailable
	// ErrWrongType: a key of the resource holds something that is not Signalbox's.
	ErrWrongType = ledger.ErrWrongType
	// ErrServer: the server refused for a reason that does not pass, such as missing rights.
	ErrServer = ledger.ErrServer
	// ErrUnsupportedServer: the server is older than Redis 7.0.
	ErrUnsupportedServer = ledger.ErrUnsupportedServer
	// ErrEvicts: the server removes keys when its memory is full, and with them leases that are held. The error is that of
	// an Observation.
	ErrEvicts = errors.New("server may forget leases")
	// ErrNewer: a server has functions of a newer version than those that were to be installed.
	ErrNewer = ledger.ErrNewer
)

// BusyError says why TryAcquire was refused. errors.Is(err, ErrBusy) matches it.
type BusyError struct {
	Resource   string
	RetryAfter time.Duration // until the earliest lease can expire; it may be released before
	Held       int           // permits held; less than Limit if others wait in front
	Limit      int
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("acquire %q: busy: %d of %d permits held; the earliest lease expires in %v",
		e.Resource, e.Held, e.Limit, e.RetryAfter)
}

// Is makes errors.Is(err, ErrBusy) hold.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

func isBusy(err error) bool { return errors.Is(err, ErrBusy) }
