package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// A schedule is a text on the server with the time of its next tick. When that has come, the next worker to call is told,
// makes the job and sets the tick after it, in one transition that somebody else cannot make a second time: so there is no
// scheduler to run, and any number of processes may set the same schedules.

// Timing says when a schedule ticks.
type Timing struct {
	Spec string `json:"spec"` // "@every 5m0s", or the five fields of cron
	Zone string `json:"zone,omitempty"`
}

// Cron is the five fields of cron (minute, hour, day of the month, month, day of the week), or @hourly and its like, in a
// time zone such as "Europe/Berlin"; "" is UTC. A time that a change of clocks leaves out does not tick, one that it repeats
// ticks once.
func Cron(fields, zone string) Timing { return Timing{fields, zone} }

// Every ticks at the multiples of d since 1970, whoever set it and when. At least a second.
func Every(d time.Duration) Timing { return Timing{Spec: "@every " + d.String()} }

// MissedTicks says what becomes of ticks at which no worker was there.
type MissedTicks string

// Of ticks that were missed.
const (
	RunLast MissedTicks = "last" // the last one makes a job
	Skip    MissedTicks = "skip" // none does, unless it is less than a minute late
	RunEach MissedTicks = "each" // each does, the last hundred at most
)

const mostMissed = 100

// schedule is the text of one.
type schedule struct {
	Timing
	Missed MissedTicks `json:"missed"`
	Item   store.Item  `json:"item"`
}

// Schedule has a job made at every tick, until Unschedule. Set again, it holds anew from now on, and if nothing is different
// nothing is changed. The job's options may not say when it is to run, nor give it an id: that is the schedule's name, "@"
// and the tick in ms.
func (q *Queue) Schedule(ctx context.Context, name string, timing Timing, missed MissedTicks, job Request) error {
	doing := fmt.Sprintf("schedule %.150q of queue %q", name, q.name)
	if err := store.CheckName("schedule", name, maxNameLen-20); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	switch {
	case job.err != nil:
		return fmt.Errorf("%s: %w", doing, job.err)
	case job.item.ID != "" || job.item.Delay != 0 || !job.item.At.IsZero() || job.item.After.Mode != "":
		return fmt.Errorf("%s: %w: the job has an id, a time or parents of its own", doing, ErrInvalid)
	case missed != RunLast && missed != Skip && missed != RunEach:
		return fmt.Errorf("%s: %w: %q is no rule for missed ticks", doing, ErrInvalid, missed)
	}
	if _, err := timing.after(time.Now()); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	now, err := q.store.Time(ctx)
	if err != nil {
		return err
	}
	next, err := timing.after(now)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	text, err := json.Marshal(schedule{timing, missed, job.item})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return q.store.SetSchedule(ctx, store.Tick{Name: name, Ms: next.UnixMilli(), Text: string(text)})
}

// Unschedule ends a schedule. The jobs that it has made stay.
func (q *Queue) Unschedule(ctx context.Context, name string) error {
	was, err := q.store.RemoveSchedule(ctx, name)
	if err == nil && !was {
		return fmt.Errorf("unschedule %.150q of queue %q: %w: there is no such schedule", name, q.name, ErrInvalid)
	}
	return err
}

// Scheduled is a schedule as others see it.
type Scheduled struct {
	Name   string
	Timing Timing
	Missed MissedTicks
	Kind   string
	Next   time.Time
}

// Schedules lists all, by their next ticks.
func (q *Queue) Schedules(ctx context.Context) ([]Scheduled, error) {
	ticks, err := q.store.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Scheduled, len(ticks))
	for i, tick := range ticks {
		var s schedule
		if err := json.Unmarshal([]byte(tick.Text), &s); err != nil {
			return nil, fmt.Errorf("schedule %q of queue %q: %w: %w", tick.Name, q.name, ErrServer, err)
		}
		all[i] = Scheduled{tick.Name, s.Timing, s.Missed, s.Item.Lane.Kind, time.UnixMilli(tick.Ms)}
	}
	slices.SortFunc(all, func(a, b Scheduled) int {
		return cmp.Or(a.Next.Compare(b.Next), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// after is the first tick behind a time.
func (t Timing) after(from time.Time) (time.Time, error) {
	if text, every := strings.CutPrefix(t.Spec, "@every "); every {
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second {
			return time.Time{}, fmt.Errorf("%w: every %s: it is at least a second", ErrInvalid, text)
		}
		return time.UnixMilli((from.UnixMilli()/d.Milliseconds() + 1) * d.Milliseconds()), nil
	}
	if strings.HasPrefix(t.Spec, "TZ=") || strings.HasPrefix(t.Spec, "CRON_TZ=") || t.Zone == "Local" {
		return time.Time{}, fmt.Errorf("%w: cron %q, time zone %q: the zone is named beside the fields, as in Europe/Berlin", ErrInvalid, t.Spec, t.Zone)
	}
	zone, err := time.LoadLocation(t.Zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: time zone %q: %w", ErrInvalid, t.Zone, err)
	}
	parsed, err := cron.ParseStandard(t.Spec)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: cron %q: %w", ErrInvalid, t.Spec, err)
	}
	from = from.In(zone)
	next := parsed.Next(from)
	if fields, ok := parsed.(*cron.SpecSchedule); ok && fields.Hour&everyHour == 0 {
		for !next.IsZero() && wall(next) <= wall(from) { // an hour that the clocks repeat
			next = parsed.Next(next)
		}
	}
	if next.IsZero() {
		return time.Time{}, fmt.Errorf("%w: cron %q never comes", ErrInvalid, t.Spec)
	}
	return next, nil
}

// everyHour is the library's mark of an hour that is a star: such schedules tick in a repeated hour as in any other.
const everyHour = 1 << 63

// wall is what a clock on the wall shows, as text that sorts.
func wall(t time.Time) string { return t.Format("2006-01-02 15:04:05") }

// ticked makes the jobs of a tick that has come.
func (q *Queue) ticked(ctx context.Context, tick store.Tick) error {
	var s schedule
	if err := json.Unmarshal([]byte(tick.Text), &s); err != nil {
		return fmt.Errorf("schedule %q of queue %q: %w: %w", tick.Name, q.name, ErrServer, err)
	}
	now, err := q.store.Time(ctx) // ours may be ahead, and would pass over ticks to come
	if err != nil {
		return err
	}
	due := []time.Time{time.UnixMilli(tick.Ms)}
	var next time.Time
	for {
		if next, err = s.after(due[len(due)-1]); err != nil {
			return fmt.Errorf("schedule %q of queue %q: %w", tick.Name, q.name, err)
		}
		if next.After(now) {
			break
		}
		due = append(due, next)
		due = due[max(len(due)-mostMissed, 0):]
	}
	last := due[len(due)-1]
	if s.Missed != RunEach {
		due = due[len(due)-1:]
	}
	if s.Missed == Skip && now.Sub(last) > time.Minute {
		due = nil
	}
	items := make([]store.Item, len(due))
	for i, at := range due {
		items[i] = s.Item
		items[i].ID = tick.Name + "@" + strconv.FormatInt(at.UnixMilli(), 10)
	}
	_, err = q.store.EnqueueTick(ctx, tick, next.UnixMilli(), items)
	return err
}
