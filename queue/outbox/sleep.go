package outbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A relay that finds no rows sleeps until it is told of some. Notifications are costly, so transactions make one only if the
// relay sleeps, which they see by lock 0 of the outbox: see signalbox_outbox_add. To fall asleep it asks for that lock. From
// then on every new transaction tells, and when it is granted those have ended that did not; a look after that has missed
// nothing. Until then the relay hears of new transactions already, and looks. It also looks without being told, at intervals
// that double: of those that do not tell some may have committed, since its last look before it asked or later, while another
// one goes on for long. A few jobs it relays half asleep, without giving the lock back; it wakes up when there are more.
//
// One connection hears, one has the lock, because asking for it may take as long as somebody's transaction; the third one looks.

const lockOfSleep = "'signalbox_outbox'::regclass::oid::integer, 0"

// sleeper is the two connections that sleeping takes.
type sleeper struct {
	look time.Duration
	lock *pgx.Conn
	told chan struct{} // holds one
	deaf chan error    // holds one: the connection that hears has failed

	tasks sync.WaitGroup
}

func (l *leader) startSleeper(ctx context.Context) (*sleeper, error) {
	s := &sleeper{look: l.look, told: make(chan struct{}, 1), deaf: make(chan error, 1)}
	hears, err := l.connect(ctx)
	if err != nil {
		return nil, err
	}
	if s.lock, err = l.connect(ctx); err != nil {
		hangUp(hears)
		return nil, err
	}
	if _, err = hears.Exec(ctx, "listen signalbox_outbox"); err != nil {
		hangUp(hears)
		hangUp(s.lock)
		return nil, explain("listen to the outbox", err)
	}
	s.tasks.Go(func() {
		defer hangUp(hears)
		s.deaf <- s.hear(ctx, hears)
	})
	return s, nil
}

// close is called when ctx has ended. The lock is given back with its connection.
func (s *sleeper) close() {
	s.tasks.Wait()
	hangUp(s.lock)
}

func (s *sleeper) hear(ctx context.Context, conn *pgx.Conn) error {
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return fmt.Errorf("listen to the outbox: %w", err)
		}
		s.tell()
	}
}

const (
	// halfAsleep is how many calls a relay makes before it wakes up.
	halfAsleep = 3
	// firstLook is when a relay that waits for the lock first looks without being told. A job that nobody tells of is thus
	// relayed within that and as long again as its transaction took.
	firstLook = 10 * time.Millisecond
)

// sleep drains when it is told to, and returns when there is more than that is for.
func (s *sleeper) sleep(ctx context.Context, drain func(ctx context.Context, calls int) (more bool, err error)) error {
	interval := firstLook
	looks := time.NewTicker(interval)
	defer looks.Stop()
	granted, asleep := s.ask(ctx), false
	for {
		select {
		case err := <-granted:
			if err != nil {
				return err
			}
			granted, asleep = nil, true
			looks.Reset(s.look)
		case <-s.told:
		case <-looks.C:
			if !asleep {
				interval = min(2*interval, s.look)
				looks.Reset(interval)
			}
		case err := <-s.deaf:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		more, err := drain(ctx, halfAsleep)
		if err != nil {
			return err
		}
		if more && asleep {
			return s.wake(ctx)
		}
		if more {
			s.tell()
		}
	}
}

// tell has it look.
func (s *sleeper) tell() {
	select {
	case s.told <- struct{}{}:
	default: // it has not looked yet
	}
}

// ask asks for the lock. The answer comes when all transactions have ended that found the relay awake.
func (s *sleeper) ask(ctx context.Context) <-chan error {
	granted := make(chan error, 1)
	s.tasks.Go(func() {
		_, err := s.lock.Exec(ctx, "select pg_advisory_lock("+lockOfSleep+")")
		if err != nil {
			err = explain("fall asleep over the outbox", err)
		}
		granted <- err
	})
	return granted
}

func (s *sleeper) wake(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if _, err := s.lock.Exec(ctx, "select pg_advisory_unlock("+lockOfSleep+")"); err != nil {
		return explain("wake up for the outbox", err)
	}
	return nil
}
