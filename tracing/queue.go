package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/signalbox-io/signalbox/queue"
)

// Names of the queue's span and attributes.
const (
	// JobSpan is the name of the span of an attempt.
	JobSpan = "signalbox.job"

	// QueueKey is the name of the queue.
	QueueKey = attribute.Key("signalbox.queue.name")
	// KindKey is the kind of the job.
	KindKey = attribute.Key("signalbox.job.kind")
	// JobKey is the id of the job.
	JobKey = attribute.Key("signalbox.job.id")
	// AttemptKey is which attempt it is, 1 for the first.
	AttemptKey = attribute.Key("signalbox.job.attempt")
	// JobKeyKey is the key of the job, set with FullNames alone.
	JobKeyKey = attribute.Key("signalbox.job.key")
)

// Queue returns the setting that has a trace go on from who enqueues to the handler: the span in the context of Enqueue is
// the parent of a span "signalbox.job" for each attempt, which is in the context of the handler. It comes with the job, as
// W3C traceparent and tracestate; baggage does not. A nil provider is one that makes no spans: the trace goes on all the same.
// Of the options, FullNames puts the job's key on the span.
func Queue(provider trace.TracerProvider, options ...Option) queue.Setting {
	if provider == nil {
		provider = noop.NewTracerProvider()
	}
	o := &observer{tracer: provider.Tracer(scope)}
	for _, option := range options {
		option(o)
	}
	var format propagation.TraceContext
	inject := func(ctx context.Context, meta map[string]string) { format.Inject(ctx, propagation.MapCarrier(meta)) }
	extract := func(ctx context.Context, meta map[string]string) context.Context {
		return format.Extract(ctx, propagation.MapCarrier(meta))
	}
	return func(q *queue.Queue) error {
		return errors.Join(queue.Propagate(inject, extract)(q), queue.Wrap(o.jobsOf(q.Name()))(q))
	}
}

// Carry has a trace go on from ctx to the handler of a job that is enqueued where there is no Queue to do so: in a transaction, with
// package queue/outbox. The Queue that the worker runs on has to have the setting of Queue.
//
//	_, err := outbox.Enqueue(ctx, tx, SendMail, mail, tracing.Carry(ctx))
func Carry(ctx context.Context) queue.Option {
	meta := map[string]string{}
	propagation.TraceContext{}.Inject(ctx, propagation.MapCarrier(meta))
	return queue.Meta(meta)
}

// jobsOf makes the span of each attempt. A snooze is a decision, and no error of the span.
func (o *observer) jobsOf(name string) queue.Middleware {
	return func(next queue.Runner) queue.Runner {
		return func(ctx context.Context, t *queue.Task) ([]byte, error) {
			attributes := []attribute.KeyValue{
				QueueKey.String(name), KindKey.String(t.Kind), JobKey.String(t.ID), AttemptKey.Int(t.Attempt),
			}
			if o.fullNames && t.Key != "" {
				attributes = append(attributes, JobKeyKey.String(t.Key))
			}
			ctx, span := o.tracer.Start(ctx, JobSpan, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attributes...))
			why := "panic"
			defer func() {
				if why != "" {
					span.SetStatus(codes.Error, why)
				}
				span.End()
			}()
			result, err := next(ctx, t)
			why = jobFailure(ctx, err)
			return result, err
		}
	}
}

// jobFailure is why an attempt failed, "" if it did not. It leaves out the text of the error, which may hold what should not
// leave the program.
func jobFailure(ctx context.Context, err error) string {
	if err == nil || errors.Is(err, queue.ErrSnoozed) {
		return ""
	}
	for _, known := range []error{queue.ErrCanceled, queue.ErrLeaseLost, queue.ErrTimeout, queue.ErrStopped} {
		if errors.Is(err, known) || errors.Is(context.Cause(ctx), known) {
			return known.Error()
		}
	}
	return "failed"
}
