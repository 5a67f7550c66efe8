package logging

import (
	"context"
	"log/slog"

	"github.com/signalbox-io/signalbox/queue"
)

// Queue returns the setting that has a Queue log what happens to jobs and workers of this process; nil is slog.Default(). Levels
// that are not in levels are the defaults: Added, OfferMade, OfferEnded, Started and Ended are Debug, but a retry is Warn and a dead job Error;
// Draining is Info, LeaseLost is Error, and ReportedLate, Failing and BadLine are Warn. Keys are written in full, arguments
// never. Records carry the context of the job, or of who enqueued.
func Queue(logger *slog.Logger, levels map[queue.Happening]slog.Level) queue.Setting {
	if logger == nil {
		logger = slog.Default()
	}
	return queue.Observer(func(seen queue.Event) {
		level, set := levels[seen.What]
		if !set {
			level = queueLevel(&seen)
		}
		if level >= Off || !logger.Enabled(seen.Context, level) {
			return
		}
		logger.LogAttrs(context.WithoutCancel(seen.Context), level, queueText(&seen), queueAttributes(&seen)...)
	})
}

func queueLevel(seen *queue.Event) slog.Level {
	switch seen.What {
	case queue.LeaseLost:
		return slog.LevelError
	case queue.ReportedLate, queue.Failing, queue.BadLine:
		return slog.LevelWarn
	case queue.Draining:
		return slog.LevelInfo
	case queue.Added, queue.Started, queue.Ended, queue.OfferMade, queue.OfferEnded:
	}
	switch seen.Verb {
	case "dead":
		return slog.LevelError
	case "retry", "refused", "unknown":
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

func queueText(seen *queue.Event) string {
	switch seen.What {
	case queue.Added:
		return "job enqueued"
	case queue.Started:
		return "job started"
	case queue.Ended:
		return "job ended"
	case queue.OfferMade:
		return "job offered"
	case queue.OfferEnded:
		return "offer ended"
	case queue.ReportedLate:
		return "job reported late"
	case queue.Failing:
		return "queue's server out of reach"
	case queue.LeaseLost:
		return "worker's lease lost"
	case queue.Draining:
		return "worker draining"
	case queue.BadLine:
		return "line that is no job"
	}
	return string(seen.What)
}

// queueAttributes are those that are set.
func queueAttributes(seen *queue.Event) []slog.Attr {
	all := []slog.Attr{slog.String("queue", seen.Queue)}
	for _, a := range []struct{ name, value string }{
		{"worker", seen.Worker}, {"job", seen.Job}, {"kind", seen.Kind}, {"key", seen.Key}, {"outcome", seen.Verb},
	} {
		if a.value != "" {
			all = append(all, slog.String(a.name, a.value))
		}
	}
	if seen.Attempt > 0 {
		all = append(all, slog.Int("attempt", seen.Attempt))
	}
	switch seen.What {
	case queue.Started, queue.OfferMade:
		all = append(all, slog.Duration("waited", seen.Waited))
	case queue.Added, queue.Ended, queue.OfferEnded:
		all = append(all, slog.Duration("took", seen.Took))
	case queue.ReportedLate, queue.Failing, queue.LeaseLost, queue.Draining, queue.BadLine:
	}
	if seen.Err != nil {
		all = append(all, slog.String("error", seen.Err.Error()))
	}
	return all
}
