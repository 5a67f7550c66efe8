package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/queue"
)

// How jobs are shown: a list of them, one in full, and why one does not run.

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func (a *app) queueListCommand() *cobra.Command {
	var f jobFlags
	var most int
	cmd := &cobra.Command{
		Use: "ls", Short: "List jobs", Args: exactly(),
		Long: `List jobs: those that run, those that wait, the ones that were pushed first in front,
and those that have ended and are kept. It looks at every job; signalbox queue stats
counts them without that.

JSON: a list of {id, kind, key, tags, cost, state, attempts, crashes, enqueued, since,
due, until, for, declined, parents, worker, by, lost, error, arguments, result,
progress, log}, without what is empty.`,
		Example: `  signalbox queue ls --state dead --error timeout
  signalbox queue ls --key tenant:42 --older-than 1h`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if most < 0 {
				return usage("--limit must be at least 0, not %d", most)
			}
			return a.lookQueue(cmd.Context(), func(q *queue.Queue) error {
				var jobs []queue.JobInfo
				all := 0
				if q != nil {
					var err error
					if jobs, all, err = firstJobs(cmd.Context(), q, f.filter(), most); err != nil {
						return err
					}
				}
				return a.printJobs(jobs, all)
			})
		},
	}
	f.define(cmd.Flags())
	cmd.Flags().IntVar(&most, "limit", 50, "list so many at most; 0 lists all")
	return cmd
}

// shownFirst is the order of states in a list.
var shownFirst = []queue.State{queue.Running, queue.Offered, queue.Pending, queue.Delayed, queue.Held, queue.Dead, queue.Canceled, queue.Done}

// firstJobs returns the first jobs that a filter means, and how many there are. It keeps twice as many as are wanted.
func firstJobs(ctx context.Context, q *queue.Queue, filter queue.Filter, most int) (jobs []queue.JobInfo, all int, err error) {
	cut := func() {
		slices.SortFunc(jobs, func(x, y queue.JobInfo) int {
			return cmp.Or(cmp.Compare(slices.Index(shownFirst, x.State), slices.Index(shownFirst, y.State)), x.Due.Compare(y.Due),
				x.Enqueued.Compare(y.Enqueued), cmp.Compare(len(x.ID), len(y.ID)), strings.Compare(x.ID, y.ID))
		})
		if most > 0 && len(jobs) > most {
			jobs = jobs[:most]
		}
	}
	for job, err := range q.Jobs(ctx, filter) {
		if err != nil {
			return nil, 0, err
		}
		all++
		if jobs = append(jobs, job); most > 0 && len(jobs) >= 2*most+1000 {
			cut()
		}
	}
	cut()
	return jobs, all, nil
}

func (a *app) printJobs(jobs []queue.JobInfo, all int) error {
	if a.json {
		if jobs == nil {
			jobs = []queue.JobInfo{}
		}
		return a.printJSON(jobs)
	}
	if len(jobs) == 0 {
		_, err := fmt.Fprintf(a.stdout, "No such jobs in queue %s. To add one: signalbox queue push KIND ARGUMENTS; for another queue: --queue NAME\n", printable(a.queue))
		return err
	}
	t := newTable("ID", "STATE", "KIND", "KEY", ">AGE", ">FAILED", "WHAT")
	now := time.Now()
	for i := range jobs {
		j := &jobs[i]
		t.add(printable(j.ID), string(j.State), printable(j.Kind), printable(j.Key), span(now.Sub(j.Enqueued)), strconv.Itoa(j.Attempts), what(j, now))
	}
	if err := t.fit(a.stdout, "WHAT", "KEY", "KIND").print(a.stdout); err != nil {
		return err
	}
	return a.printRest(all-len(jobs), "job")
}

// what is what is to be said of a job in a list.
func what(j *queue.JobInfo, now time.Time) string {
	const most = 60
	text := j.Error
	switch j.State {
	case queue.Running:
		text = fmt.Sprintf("%s, for %s", cmp.Or(j.By, "unknown worker"), span(now.Sub(j.Since)))
		if j.Lost {
			text += ", not heard of any more"
		}
		if j.Progress != nil {
			text += ": " + progressText(j.Progress)
		}
	case queue.Offered:
		text = fmt.Sprintf("to %s, for another %s", cmp.Or(j.By, "unknown worker"), span(j.Until.Sub(now)))
	case queue.Delayed:
		text = "in " + span(j.Due.Sub(now))
		if j.Error != "" {
			text += ": " + j.Error
		}
	case queue.Held:
		if j.Parents > 0 {
			text = "after " + count(j.Parents, "other job")
		}
	case queue.Done:
		text = string(j.Result)
	}
	return cut(printable(text), most)
}

func (a *app) queueShowCommand() *cobra.Command {
	follow := false
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show all there is to know of a job", Args: exactly("ID"),
		Long: `Show all there is to know of a job, and what its handler has said: how far it is, and
the end of its log, which for signalbox queue work is what its command says on standard
error. With --follow that is shown as it comes, until the job has ended; the status is 0
if it is done.

JSON: {id, kind, key, tags, cost, state, attempts, crashes, enqueued, since, due, until,
for, declined, parents, worker, by, lost, error, arguments, result,
progress: {percent, what, at},
log: [{at, attempt, text}]}, without what is empty; with --follow one of them a line.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.seeJob(cmd.Context(), args[0], func(q *queue.Queue) error {
				if follow {
					return a.followJob(cmd.Context(), q, args[0])
				}
				job, err := q.Look(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(job)
				}
				return a.printJob(job)
			})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "show what it says as it comes, until it has ended")
	return cmd
}

func (a *app) printJob(j *queue.JobInfo) error {
	moment := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return at.Local().Format("2006-01-02 15:04:05.000 -07:00")
	}
	parents, lost := "", ""
	if j.Parents > 0 {
		parents = count(j.Parents, "other job")
	}
	if j.Lost {
		lost = ", not heard of any more"
	}
	since := "ended"
	switch j.State {
	case queue.Running:
		since = "runs since"
	case queue.Offered:
		since = "offered"
	}
	t := newTable("", "")
	for _, row := range [][2]string{
		{"id", printable(j.ID)},
		{"kind", printable(j.Kind)},
		{"key", printable(j.Key)},
		{"tags", strings.Join(j.Tags, ", ")},
		{"cost", capacities(j.Cost)},
		{"state", string(j.State)},
		{"failed", strconv.Itoa(j.Attempts)},
		{"crashed", strconv.Itoa(j.Crashes)},
		{"pushed", moment(j.Enqueued)},
		{since, moment(j.Since)},
		{"due", moment(j.Due)},
		{"until", moment(j.Until)},
		{"reserved for", printable(j.For)},
		{"declined by", printable(strings.Join(j.Declined, ", "))},
		{"waits for", parents},
		{"worker", printable(j.By) + lost},
		{"error", printable(j.Error)},
		{"arguments", printable(string(j.Arguments))},
		{"result", printable(string(j.Result))},
		{"progress", progressText(j.Progress)},
	} {
		if row[1] != "" {
			t.add(row[0], row[1])
		}
	}
	if err := t.printRows(a.stdout); err != nil || len(j.Log) == 0 {
		return err
	}
	fmt.Fprintln(a.stdout)
	return a.printLog(j.Log)
}

func (a *app) queueWhyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "why ID", Short: "Say why a job does not run", Args: exactly("ID"),
		Long: `Say in a sentence why a job does not run: what is paused, which limit is used up,
until when a rate holds it back, what no worker that is online has, which workers are
busy, and how many go first.

JSON: {job, reason, scope, used, most, missing, until, before, ahead, text}; reason is
"not waiting", "paused", "limit", "rate", "reserved", "no worker", "busy" or "in turn".`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.seeJob(cmd.Context(), args[0], func(q *queue.Queue) error {
				why, err := q.Why(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(why)
				}
				_, err = fmt.Fprintf(a.stdout, "%s: %s\n", printable(args[0]), printable(why.String()))
				return err
			})
		},
	}
}
