package store

import (
	"testing"
	"time"
)

// A schedule that is set anew where the clock is behind has the same tick once more, whose job may run by then.
func TestATickComesOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	tick := Tick{"daily", l.engine.Now().UnixMilli(), "one"}
	job := item("daily@1")
	job.Lane.Kind, job.Rest, job.Retention = "note", "{}", time.Minute
	again := func() {
		t.Helper()
		must(t, l.SetSchedule(t.Context(), tick))
		done, err := l.EnqueueTick(t.Context(), tick, tick.Ms+86400000, []Item{job})
		must(t, err)
		want(t, "the tick is taken", done, true)
		findings, err := l.Check(t.Context(), false, time.Minute)
		must(t, err)
		want(t, "findings", len(findings), 0)
		tick.Text += " more"
	}
	again()
	claim := l.begin("p/1")[0]
	again()
	want(t, "jobs beside it", ids(l.work("p/1", room("slot:2")).Claims), "")
	l.work("p/1", over(claim, "done"), func(r *Report) { r.Done[0].After = time.Minute })
	again()
	want(t, "jobs after it", ids(l.work("p/1", room("slot:2")).Claims), "")
}
