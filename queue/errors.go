package queue

import (
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// What can go wrong. Every error wraps one of these, or the error of the context that ended, and names the queue.
var (
	// ErrInvalid: an argument that no server was asked about.
	ErrInvalid = ledger.ErrInvalid
	// ErrUnavailable: the server was out of reach, or not ready. After it from Enqueue nobody knows whether the jobs were
	// taken in; give them ids of your own (ID) if you will enqueue them again.
	ErrUnavailable = ledger.ErrUnavailable
	// ErrServer: the server refused for a reason that does not pass, such as missing rights.
	ErrServer = ledger.ErrServer
	// ErrWrongType: a key of the queue holds something that is not Signalbox's.
	ErrWrongType = ledger.ErrWrongType
	// ErrUnsupportedServer: the server is older than Redis 7.0.
	ErrUnsupportedServer = ledger.ErrUnsupportedServer
	// ErrClosed: the Queue was closed.
	ErrClosed = errors.New("queue closed")
	// ErrUnknownJob: there is no such job. It may have ended, and its kind keeps no results: see Retain. Or the server has lost
	// its data: see Rebuild.
	ErrUnknownJob = errors.New("unknown job")
	// ErrDead: the job has failed for good. The error is a *DeadError.
	ErrDead = errors.New("job failed")
	// ErrCanceled is the cause of the context of a job that an operator or a caller has canceled, and the error of Wait.
	ErrCanceled = errors.New("job canceled")
	// ErrLeaseLost is the cause of the context of jobs whose worker could not be heard by the server in time: others may run
	// them now.
	ErrLeaseLost = errors.New("lease lost")
	// ErrTimeout is the cause of the context of a job that took longer than its Timeout.
	ErrTimeout = errors.New("job timed out")
	// ErrStopped is the cause of the context of jobs that had not ended when the time to drain was over. They run again.
	ErrStopped = errors.New("worker stopped")
	// ErrOfferOver: the job is not, or not any more, the worker's to accept.
	ErrOfferOver = errors.New("offer over")
	// ErrNameTaken: a worker that takes offers is online with that name already.
	ErrNameTaken = errors.New("worker's name taken")
	// ErrSnoozed is what Snooze returns.
	ErrSnoozed = errors.New("snoozed")
	// ErrParent: a job was to wait for one that has failed or was canceled.
	ErrParent = errors.New("a parent has failed")
)

// DeadError is the end of a job that failed. errors.Is(err, ErrDead) matches it.
type DeadError struct {
	ID     string
	Reason string // the error of its last attempt
}

func (e *DeadError) Error() string { return fmt.Sprintf("job %s: %v: %s", e.ID, ErrDead, e.Reason) }

// Is makes errors.Is(err, ErrDead) hold.
func (e *DeadError) Is(target error) bool { return target == ErrDead }

// verdict is an error of a handler that says what is to become of the job.
type verdict struct {
	verb  string
	after time.Duration
	err   error
}

func (v *verdict) Error() string {
	if v.err == nil {
		return v.verb
	}
	return v.err.Error()
}

func (v *verdict) Unwrap() error { return v.err }

// Retry has a job tried again after a while, instead of the one its kind's Backoff says. It counts as an attempt.
func Retry(err error, after time.Duration) error { return &verdict{"retry", max(after, 0), err} }

// Fail ends a job at once, whatever attempts are left: trying again is no use.
func Fail(err error) error { return &verdict{"dead", 0, err} }

// Snooze has a job run again after a while, and does not count as an attempt: it was not its time yet.
func Snooze(after time.Duration) error { return &verdict{"snooze", max(after, 0), ErrSnoozed} }
