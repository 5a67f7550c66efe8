package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-io/signalbox/queue"
)

// What a job's handler says, as it comes.

func progressText(p *queue.Progress) string {
	if p == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%.4g %% %s", p.Percent, printable(p.What)))
}

func (a *app) printLog(lines []queue.LogLine) error {
	for _, line := range lines {
		if _, err := fmt.Fprintf(a.stdout, "%s  %d  %s\n", line.At.Local().Format("15:04:05.000"), line.Attempt, printable(line.Text)); err != nil {
			return err
		}
	}
	return nil
}

// followJob shows what a job's handler says until the job has ended.
func (a *app) followJob(ctx context.Context, q *queue.Queue, id string) error {
	var before queue.JobInfo
	shown := a.newProgress()
	defer shown.clear()
	lines := json.NewEncoder(a.stdout)
	for job, err := range q.Watch(ctx, id) {
		if err != nil {
			return err
		}
		if a.json {
			if err := lines.Encode(job); err != nil {
				return err
			}
			before = job
			continue
		}
		shown.clear()
		if err := a.printLog(newLines(before.Log, job.Log)); err != nil {
			return err
		}
		if text := a.newState(&before, &job); text != "" {
			fmt.Fprintln(a.stdout, text)
		}
		if job.State == queue.Running && job.Progress != nil {
			shown.say(func() string { return progressText(job.Progress) })
		}
		before = job
	}
	if before.State != queue.Done {
		return &exitError{exitFailure, fmt.Errorf("job %s: it is %s: %s", printable(id), before.State, printable(before.Error))}
	}
	return nil
}

// newLines are those of a log that were not there before. The oldest may have gone.
func newLines(before, now []queue.LogLine) []queue.LogLine {
	if len(before) == 0 {
		return now
	}
	last := before[len(before)-1]
	for i, line := range slices.Backward(now) {
		if line == last {
			return now[i+1:]
		}
	}
	return now
}

// newState tells of another state.
func (a *app) newState(before, job *queue.JobInfo) string {
	switch {
	case before.State == job.State && before.Attempts == job.Attempts:
		return ""
	case job.State == queue.Running:
		return "it runs on " + printable(job.By)
	case job.State == queue.Done:
		return strings.TrimSpace("it is done " + printable(string(job.Result)))
	}
	return "it is " + string(job.State)
}
