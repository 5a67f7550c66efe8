// Package queue is a task queue on Redis, Valkey or the embedded engine: typed jobs, workers with capacities, limits per
// key, and priorities that age.
//
// A kind is a value that producers and workers share:
//
//	var SendMail = queue.Define[Mail, Receipt]("mail.send", queue.MaxAttempts(5), queue.Timeout(time.Minute))
//
//	q, err := queue.Open(ctx, "redis://localhost:6379", "app")
//	job, err := SendMail.Enqueue(ctx, q, Mail{To: "x@y"}, queue.Key("tenant:42"), queue.Priority(3))
//	receipt, err := job.Wait(ctx)
//
//	w := q.Worker("mailer", queue.Slots(20))
//	SendMail.Handle(w, func(ctx context.Context, j *queue.Job[Mail]) (Receipt, error) { … })
//	err = w.Run(ctx)
//
// What it promises is in docs/queue/promises.md, by number. In short: a job that was acknowledged to its producer runs at
// least once and, as long as its worker lives, once; what runs under a limit never exceeds it; a job waits behind higher
// priorities for a bounded time; nobody polls.
//
// Inside: internal/queue/store is the queue on the server, one script for each transition. This package is what a process
// adds: a producer that makes one call at a time and batches what comes meanwhile (producer.go), workers (worker.go, the
// loop that talks to the server; execution.go, a job that runs), and one subscription for the messages to both (inbox.go).
package queue
