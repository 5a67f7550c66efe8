package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/queue"
)

// The board is what the supervisor sees. All of it is read from the queue, so it shows agents and contacts of every process;
// only how many came and how they left is the account's. However many look at it, it is read twice a second.
type board struct {
	*centre
	mu   sync.Mutex
	read time.Time
	last *sight
}

// sight is the centre at one moment. Durations are the centre's.
type sight struct {
	At        time.Time
	Speed     float64
	Problem   string // why this is not from now; "" if it is
	Agents    []agentRow
	Waiting   []waitingRow // who has waited longest
	Unshown   int          // how many wait besides
	Channels  []channelRow
	Totals    totals
	Chaos     bool
	Incidents []incident
	AllEvents int
	Manager   string
}

type agentRow struct {
	Name, State, Skills, Room string
	Tasks                     []taskRow
}

type taskRow struct {
	Channel, Customer, State string
	For                      time.Duration
}

type waitingRow struct {
	Channel, Customer, Skill, Why string
	VIP                           bool
	For                           time.Duration
}

type channelRow struct {
	Name                           string
	Waiting, Running, Served, Left int
	Longest, Target                time.Duration
	Level                          int // percent that were answered in time
	Known, Paused                  bool
}

const mostWaiting = 12

// look returns a sight that is at most half a second old. If the server is away it is the last one, and says so.
func (b *board) look(ctx context.Context) *sight {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != nil && time.Since(b.read) < 500*time.Millisecond {
		return b.last
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	now, err := b.make(ctx)
	switch {
	case err == nil:
		b.last, b.read = now, time.Now()
	case b.last == nil:
		b.last = &sight{At: time.Now(), Speed: b.speed, Problem: "the server cannot be reached yet"}
	default:
		old := *b.last
		old.Problem = "the server cannot be reached: this is from " + old.At.Format(time.TimeOnly)
		old.Incidents, old.AllEvents = b.chronicle.recent()
		b.last = &old
	}
	return b.last
}

func (b *board) make(ctx context.Context) (*sight, error) {
	s := &sight{At: time.Now(), Speed: b.speed, Chaos: b.chaos}
	s.Incidents, s.AllEvents = b.chronicle.recent()
	var err error
	if s.Totals, err = b.account.check(ctx, b.q); err != nil && !errors.Is(err, errLost) {
		return nil, err
	}
	leader, err := b.box.Election(election).Leader(ctx)
	if err != nil {
		return nil, err
	}
	if leader.Exists() {
		s.Manager = leader.Owner
	}
	jobs, err := b.jobs(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.agents(ctx, s, jobs); err != nil {
		return nil, err
	}
	if err := b.waiting(ctx, s, jobs); err != nil {
		return nil, err
	}
	return s, b.channels(ctx, s, jobs)
}

// jobs are all that have not ended, the oldest first.
func (b *board) jobs(ctx context.Context) (open []queue.JobInfo, err error) {
	for job, err := range b.q.Jobs(ctx, queue.Filter{}) {
		if err != nil {
			return nil, err
		}
		if c := channelOf(job.Kind); c != nil && job.State != queue.Done && job.State != queue.Canceled && job.State != queue.Dead {
			open = append(open, job)
		}
	}
	slices.SortFunc(open, func(a, b queue.JobInfo) int {
		return cmp.Or(a.Enqueued.Compare(b.Enqueued), cmp.Compare(a.ID, b.ID))
	})
	return open, nil
}

func contactOf(job *queue.JobInfo) Contact {
	contact, err := channelOf(job.Kind).kind.Arguments(job)
	if err != nil {
		return Contact{Customer: "unreadable: " + err.Error()}
	}
	return contact
}

func (b *board) agents(ctx context.Context, s *sight, jobs []queue.JobInfo) error {
	workers, err := b.q.Workers(ctx)
	if err != nil {
		return err
	}
	online := map[string]bool{}
	for _, w := range workers {
		online[w.Name] = online[w.Name] || w.State != queue.Vanished
	}
	for _, w := range workers {
		if w.State == queue.Vanished && online[w.Name] {
			continue // he is back
		}
		row := agentRow{Name: w.Name, State: string(w.State), Skills: strings.Join(w.Tags, ", "), Room: room(w.Capacities)}
		for i := range jobs {
			if jobs[i].Worker == w.ID {
				row.Tasks = append(row.Tasks, taskRow{
					Channel: jobs[i].Kind, Customer: contactOf(&jobs[i]).Customer, State: string(jobs[i].State),
					For: b.pace().centre(w.Now.Sub(jobs[i].Since)),
				})
			}
		}
		s.Agents = append(s.Agents, row)
	}
	return nil
}

// room is what an agent takes of each channel.
func room(capacities map[string]queue.Occupied) string {
	var parts []string
	for _, c := range channels {
		if has := capacities[c.name]; has.Limit > 0 {
			parts = append(parts, plural(has.Limit, c.name))
		}
	}
	return strings.Join(parts, ", ")
}

func (b *board) waiting(ctx context.Context, s *sight, jobs []queue.JobInfo) error {
	for i := range jobs {
		job := &jobs[i]
		if job.State == queue.Running {
			continue
		}
		if len(s.Waiting) == mostWaiting {
			s.Unshown++
			continue
		}
		why, err := b.q.Why(ctx, job.ID)
		if err != nil {
			continue // it has just ended
		}
		contact := contactOf(job)
		s.Waiting = append(s.Waiting, waitingRow{
			Channel: job.Kind, Customer: contact.Customer, Skill: contact.Skill, VIP: contact.VIP, Why: why.Text,
			For: b.pace().centre(s.At.Sub(job.Enqueued)),
		})
	}
	return ctx.Err()
}

func (b *board) channels(ctx context.Context, s *sight, jobs []queue.JobInfo) error {
	settings, err := b.q.Settings(ctx)
	if err != nil {
		return err
	}
	for _, c := range channels {
		t := b.account.level(c)
		row := channelRow{Name: c.name, Served: t.served, Left: t.abandoned, Target: c.target, Known: t.served+t.abandoned > 0}
		if row.Known {
			row.Level = 100 * t.inTime / (t.served + t.abandoned)
		}
		for i := range jobs {
			switch {
			case jobs[i].Kind != c.name:
			case jobs[i].State == queue.Running:
				row.Running++
			default:
				row.Waiting++
				row.Longest = max(row.Longest, b.pace().centre(s.At.Sub(jobs[i].Enqueued)))
			}
		}
		for _, of := range settings.Scopes {
			row.Paused = row.Paused || of.Scope == queue.OfKind(c.name) && of.Paused
		}
		s.Channels = append(s.Channels, row)
	}
	return nil
}
