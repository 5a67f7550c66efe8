package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/queue"
)

// statsJSON is the output of `queue stats --json`.
type statsJSON struct {
	Queue    string          `json:"queue"`
	Stats    *queue.Stats    `json:"stats"`
	Settings *queue.Settings `json:"settings"`
}

func (a *app) queueStatsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "stats", Short: "Count what waits, runs and has ended, by kind", Args: exactly(),
		Long: `Count what waits, runs and has ended, by kind, and show the limits that are set. The
totals count since the queue was last quiet for a week: how many were pushed, have
ended well, were tried again, died, were canceled, and how often a worker died with one.
SINCE is for how long the job has been there that is next; it is empty if limits or
pauses hold back all.

JSON: {queue, stats: {now, waiting, running, offered, later, kept, kinds: [{kind, waiting,
running, oldest, enqueued, done, retried, dead, canceled, crashed, replayed, offered,
accepted, declined, missed, withdrawn}]},
settings: {turns, step_ns, crashes, placement, scopes: [{scope, paused, limit, every_ns,
burst}]}}; later are delayed or held by other jobs, kept are those that have ended.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.lookQueue(cmd.Context(), func(q *queue.Queue) error {
				out := statsJSON{a.queue, &queue.Stats{Now: time.Now(), Kinds: []queue.KindStats{}}, &queue.Settings{Scopes: []queue.ScopeSetting{}}}
				if q != nil {
					var err error
					if out.Stats, err = q.Stats(cmd.Context()); err != nil {
						return err
					}
					if out.Settings, err = q.Settings(cmd.Context()); err != nil {
						return err
					}
				}
				if a.json {
					return a.printJSON(out)
				}
				return a.printStats(&out)
			})
		},
	}
}

func (a *app) printStats(out *statsJSON) error {
	s, offered := out.Stats, ""
	if s.Offered > 0 {
		offered = fmt.Sprintf("%d offered, ", s.Offered)
	}
	if _, err := fmt.Fprintf(a.stdout, "%s: %d waiting, %s%d running, %d delayed or held, %d ended\n",
		bold(a.stdout, "queue "+printable(a.queue)), s.Waiting, offered, s.Running, s.Later, s.Kept); err != nil {
		return err
	}
	if len(s.Kinds) > 0 {
		t := newTable("KIND", ">WAIT", ">RUN", ">SINCE", ">PUSHED", ">DONE", ">RETRY", ">DEAD", ">CANCEL", ">CRASH")
		for _, k := range s.Kinds {
			oldest := ""
			if !k.Oldest.IsZero() {
				oldest = span(s.Now.Sub(k.Oldest))
			}
			t.add(printable(k.Kind), strconv.Itoa(k.Waiting), strconv.Itoa(k.Running), oldest, strconv.Itoa(k.Enqueued), strconv.Itoa(k.Done),
				strconv.Itoa(k.Retried), strconv.Itoa(k.Dead), strconv.Itoa(k.Canceled), strconv.Itoa(k.Crashed))
		}
		fmt.Fprintln(a.stdout)
		if err := t.fit(a.stdout, "KIND").print(a.stdout); err != nil {
			return err
		}
	}
	if len(out.Settings.Scopes) == 0 {
		return nil
	}
	fmt.Fprintln(a.stdout)
	return a.printScopes(out.Settings)
}

func (a *app) queueWorkersCommand() *cobra.Command {
	return &cobra.Command{
		Use: "workers", Short: "List the workers", Args: exactly(),
		Long: `List the workers that the queue knows, what they can run, and how much of their
capacities is used: "offered 1" is of that what it has not accepted yet. A worker whose
lease is over is gone; its jobs go to the next worker that comes.

JSON: a list of {id, name, host, pid, state, kinds, tags, capacities: {NAME: {used,
limit}}, offer_for_ns, offered, heard, now}, without what is empty.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.lookQueue(cmd.Context(), func(q *queue.Queue) error {
				workers := []queue.WorkerInfo{}
				if q != nil {
					found, err := q.Workers(cmd.Context())
					if err != nil {
						return err
					}
					workers = append(workers, found...)
				}
				if a.json {
					return a.printJSON(workers)
				}
				return a.printWorkers(workers)
			})
		},
	}
}

func (a *app) printWorkers(workers []queue.WorkerInfo) error {
	if len(workers) == 0 {
		_, err := fmt.Fprintf(a.stdout, "No workers for queue %s. To start one: signalbox queue work KIND -- COMMAND\n", printable(a.queue))
		return err
	}
	t := newTable("WORKER", "PROCESS", "STATE", "USED", "KINDS", "TAGS", ">HEARD")
	for i := range workers {
		w := &workers[i]
		var used []string
		for _, name := range sortedKeys(w.Capacities) {
			used = append(used, fmt.Sprintf("%s %d/%d", name, w.Capacities[name].Used, w.Capacities[name].Limit))
		}
		if w.Offered > 0 {
			used = append(used, fmt.Sprintf("offered %d", w.Offered))
		}
		t.add(printable(cmp.Or(w.Name, w.ID)), printable(fmt.Sprintf("%s:%d", w.Host, w.PID)), string(w.State), strings.Join(used, ", "),
			printable(strings.Join(w.Kinds, ", ")), printable(strings.Join(w.Tags, ", ")), span(w.Now.Sub(w.Heard)))
	}
	return t.fit(a.stdout, "TAGS", "KINDS", "USED", "PROCESS").print(a.stdout)
}
