package server

import (
	"testing"
	"testing/synctest"
	"time"
)

// rested is how long a job rests after it has worked for so long.
func rested(p *pace, worked time.Duration, served int64, hurry bool) time.Duration {
	time.Sleep(worked)
	begin := time.Now()
	p.rest(served, hurry)
	return time.Since(begin)
}

func TestAJobRestsWhileClientsAreServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pace{began: time.Now()}
		for _, step := range []struct {
			what   string
			worked time.Duration
			served int64
			hurry  bool
			want   time.Duration
		}{
			{"nobody was served, a short turn", busyTurn, 0, false, 0},
			{"nobody was served, a turn", idleTurn - busyTurn, 0, false, idleRest},
			{"somebody was served", idleTurn, 1, false, mostRest},
			{"and is served", busyTurn, 2, false, 2 * busyTurn},
			{"less than a turn", busyTurn / 2, 3, false, 0},
			{"somebody waits for the job", busyTurn / 2, 3, true, 0},
			{"the disk is slow", time.Second, 4, false, mostRest},
			{"nobody any more", busyTurn, 4, false, idleRest},
			{"a short turn again", busyTurn, 4, false, 0},
		} {
			if got := rested(&p, step.worked, step.served, step.hurry); got != step.want {
				t.Errorf("%s: rested %v, want %v", step.what, got, step.want)
			}
		}
	})
}
