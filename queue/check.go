package queue

import "context"

// Finding is something in a queue that no call of Signalbox leaves behind.
type Finding struct {
	What  string // such as "claim without a worker"
	Where string // the job, the lane or the worker
}

// Findings are what Check has found.
type Findings []Finding

// Check looks for torn state: a server that was told to stop a script on its way, or lost some of its data, or was written
// to by others. It walks over all of the queue in short steps, while the queue goes on. If mend is true, what is torn is
// mended towards "runs again": a job that is in doubt may run a second time, and none is lost.
func (q *Queue) Check(ctx context.Context, mend bool) (Findings, error) {
	found, err := q.store.Check(ctx, mend, q.lease)
	var findings Findings
	for _, f := range found {
		findings = append(findings, Finding(f))
	}
	return findings, err
}
