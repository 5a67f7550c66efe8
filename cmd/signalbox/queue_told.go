package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/queue/history"
)

// What a history tells: each event, or who was there at some time and what they ran.

// toldFilter says which events are shown.
type toldFilter struct {
	since, until time.Time
	worker, job  string
}

// presentJSON is an element of the output of `queue history show --at --json`.
type presentJSON struct {
	queue.HistoryWorker
	Since time.Time           `json:"since"` // when it logged in
	Jobs  []*queue.HistoryJob `json:"jobs"`  // that it ran, or was offered
}

func (a *app) historyShowCommand() *cobra.Command {
	var since, until, at string
	var filter toldFilter
	cmd := &cobra.Command{
		Use: "show PLACE", Short: "Show what happened to jobs and workers", Args: exactly("a place"),
		Long: `Show what happened, by a history: a line for each event of a job or of a worker, by the
server's clock. The queue's server is not needed, and the history may be recorded
meanwhile. The whole history is read, whatever is shown of it.

` + placesHelp + `

Workers are known, logged in, online, away, changed (other tags or kinds), draining, logged
out or vanished: of one that has vanished the time is that at which its lease ended, and
others may have noticed later.
Jobs are known, enqueued, offered, running, done, retried, dead, canceled, deleted, crashed
(its worker was lost) or returned (its worker has not done it).

With --at it shows who was there at a time, and what each of them ran or was offered.

A time is 2006-01-02T15:04:05Z07:00, or in local time '2006-01-02 15:04:05'.

JSON: a line for each event, {entry, at, what, worker, job, reason}; worker has {id, name,
host, pid, state, kinds, tags, capacities, offer_for_ns}, job has {id, kind, key, attempt}.
With --at a list of workers, each with since and jobs.`,
		Example: `  signalbox queue history show /var/lib/app/history --at '2026-03-01 02:40:00'
  signalbox queue history show postgres://db/app --worker anna --since '2026-03-01 00:00:00'
  signalbox queue history show history --job 7HK2 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var then time.Time
			for text, to := range map[*string]*time.Time{&since: &filter.since, &until: &filter.until, &at: &then} {
				if *text != "" {
					var err error
					if *to, err = timeOf(*text); err != nil {
						return err
					}
				}
			}
			if at != "" && filter != (toldFilter{}) {
				return usage("--at shows everybody at one time: it goes without --since, --until, --worker and --job")
			}
			return a.readHistory(cmd.Context(), args[0], func(h *keptHistory) error {
				if at != "" {
					return a.showPresent(cmd.Context(), h, then)
				}
				return a.showTold(cmd.Context(), h, &filter)
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "from this time on")
	cmd.Flags().StringVar(&until, "until", "", "up to this time")
	cmd.Flags().StringVar(&filter.worker, "worker", "", "what happened to the workers of this name, and to their jobs")
	cmd.Flags().StringVar(&filter.job, "job", "", "what happened to this job")
	cmd.Flags().StringVar(&at, "at", "", "who was there at this time")
	return cmd
}

func (f *toldFilter) has(e *queue.HistoryEvent) bool {
	return !e.At.Before(f.since) && (f.until.IsZero() || !e.At.After(f.until)) &&
		(f.worker == "" || e.Worker != nil && (e.Worker.Name == f.worker || e.Worker.ID == f.worker)) &&
		(f.job == "" || e.Job != nil && e.Job.ID == f.job)
}

func (a *app) showTold(ctx context.Context, sink history.Sink, filter *toldFilter) error {
	lines := json.NewEncoder(a.stdout)
	lines.SetEscapeHTML(false)
	for e, err := range queue.NewHistoryReader(sink).Events(ctx) {
		if err != nil {
			return err
		}
		if !filter.has(&e) {
			continue
		}
		if a.json {
			err = lines.Encode(e)
		} else {
			_, err = fmt.Fprintf(a.stdout, "%s  %-10s  %s\n", e.At.Local().Format("2006-01-02 15:04:05.000"), e.What, eventText(&e))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eventText is whom it happened to.
func eventText(e *queue.HistoryEvent) string {
	var words []string
	if j := e.Job; j != nil {
		words = append(words, printable(j.Kind), printable(j.ID))
		if j.Key != "" {
			words = append(words, "key "+printable(j.Key))
		}
		if j.Attempt > 1 {
			words = append(words, fmt.Sprintf("attempt %d", j.Attempt))
		}
	}
	switch w := e.Worker; {
	case w != nil && e.Job != nil:
		words = append(words, "worker "+nameOf(w))
	case w != nil:
		words = append(words, nameOf(w))
	}
	if w := e.Worker; e.What == queue.WorkerLoggedIn || e.What == queue.WorkerKnown || e.What == queue.WorkerChanged {
		if w.State != queue.Online {
			words = append(words, string(w.State))
		}
		words = append(words, canDo(w))
	}
	if e.Reason != "" {
		words = append(words, printable(e.Reason))
	}
	return strings.Join(words, "  ")
}

func nameOf(w *queue.HistoryWorker) string { return printable(cmp.Or(w.Name, w.ID)) }

// canDo is what a worker said that it could do.
func canDo(w *queue.HistoryWorker) string {
	words := make([]string, 0, len(w.Capacities)+len(w.Tags))
	for _, name := range sortedKeys(w.Capacities) {
		words = append(words, fmt.Sprintf("%s %d", printable(name), w.Capacities[name]))
	}
	for _, tag := range w.Tags {
		words = append(words, printable(tag))
	}
	return strings.Join(words, ", ")
}

// presentAt is who was there at a time, by name, with the jobs that they had. An event that was noticed later counts by its time.
func presentAt(ctx context.Context, sink history.Sink, at time.Time) ([]*presentJSON, error) {
	present := map[string]*presentJSON{}
	holder := map[string]string{} // job -> worker
	jobs := map[string]*queue.HistoryJob{}
	for e, err := range queue.NewHistoryReader(sink).Events(ctx) {
		switch {
		case err != nil:
			return nil, err
		case e.At.After(at):
		case e.Job != nil && (e.What == queue.JobOffered || e.What == queue.JobRunning):
			holder[e.Job.ID], jobs[e.Job.ID] = e.Worker.ID, e.Job
		case e.Job != nil:
			delete(holder, e.Job.ID)
			delete(jobs, e.Job.ID)
		case e.What == queue.WorkerLoggedOut || e.What == queue.WorkerVanished:
			delete(present, e.Worker.ID)
		case present[e.Worker.ID] == nil:
			present[e.Worker.ID] = &presentJSON{*e.Worker, e.At, []*queue.HistoryJob{}}
		default:
			present[e.Worker.ID].HistoryWorker = *e.Worker
		}
	}
	for _, id := range sortedKeys(holder) {
		if w := present[holder[id]]; w != nil {
			w.Jobs = append(w.Jobs, jobs[id])
		}
	}
	list := make([]*presentJSON, 0, len(present))
	for _, w := range present {
		list = append(list, w)
	}
	slices.SortFunc(list, func(x, y *presentJSON) int { return strings.Compare(x.Name+"\t"+x.ID, y.Name+"\t"+y.ID) })
	return list, nil
}

func (a *app) showPresent(ctx context.Context, sink history.Sink, at time.Time) error {
	list, err := presentAt(ctx, sink, at)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintf(a.stdout, "Nobody was there at %s\n", at.Local().Format(time.DateTime))
		return err
	}
	t := newTable("WORKER", "STATE", "SINCE", "HOST", "CAN DO", "HAD")
	for _, w := range list {
		had := make([]string, len(w.Jobs))
		for i, j := range w.Jobs {
			had[i] = printable(j.Kind) + " " + printable(j.ID)
		}
		t.add(nameOf(&w.HistoryWorker), string(w.State), w.Since.Local().Format(time.DateTime), printable(w.Host), canDo(&w.HistoryWorker), strings.Join(had, ", "))
	}
	return t.print(a.stdout)
}
