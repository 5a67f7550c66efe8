package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	api "go.opentelemetry.io/otel/trace"

	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/tracing"
)

var note = queue.Define[string, string]("note")

func ExampleQueue() {
	spans := tracetest.NewInMemoryExporter() // where a program has one to a collector
	provider := trace.NewTracerProvider(trace.WithSyncer(spans))
	box, err := embedded.Open("")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close()
	q, err := box.Queue("app", tracing.Queue(provider))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()
	w := q.Worker("w")
	note.Handle(w, func(context.Context, *queue.Job[string]) (string, error) { return "", nil })
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.Run(running) }()

	ctx, request := provider.Tracer("example").Start(context.Background(), "request")
	job, err := note.Enqueue(ctx, q, "hello")
	if err == nil {
		_, err = job.Wait(ctx)
	}
	request.End()
	stop()
	fmt.Println(err, <-ended)
	for _, span := range spans.GetSpans() {
		fmt.Println(span.Name, span.SpanContext.TraceID() == request.SpanContext().TraceID())
	}
	// Unordered output:
	// <nil> <nil>
	// signalbox.job true
	// request true
}

// A job's attempts are spans below the one in whose context it was enqueued, and what a handler does is below them; whatever
// else is in the queue, and in whatever process.
// A job that is kept elsewhere before somebody enqueues it, as in an outbox, has the trace of who made it.
func TestATraceIsCarriedByAJobThatIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := trace.NewTracerProvider()
		box, err := embedded.Open("")
		must(t, err)
		q, err := box.Queue("app", tracing.Queue(nil))
		must(t, err)
		ctx, order := provider.Tracer("").Start(t.Context(), "order")
		_, kept, err := note.With("hello", tracing.Carry(ctx)).Encode()
		must(t, err)
		request, err := queue.DecodeRequest(kept, time.Hour)
		must(t, err)
		relaying, _ := provider.Tracer("").Start(t.Context(), "relay")
		_, err = q.EnqueueNumbered(relaying, "outbox", 1, request)
		must(t, err)
		seen := make(chan api.SpanContext, 1)
		w := q.Worker("w")
		note.Handle(w, func(ctx context.Context, _ *queue.Job[string]) (string, error) {
			seen <- api.SpanContextFromContext(ctx)
			return "", nil
		})
		running, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(running) }()
		if got := <-seen; got.TraceID() != order.SpanContext().TraceID() {
			t.Errorf("the handler is in trace %v, want that of the order, %v", got.TraceID(), order.SpanContext().TraceID())
		}
		stop()
		must(t, errors.Join(<-ended, q.Close(), box.Close()))
	})
}

func TestATraceGoesOnFromTheProducerToTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exporter := tracetest.NewInMemoryExporter()
		provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
		box, err := embedded.Open("")
		must(t, err)
		producer, err := box.Queue("app", tracing.Queue(nil)) // it has no spans of its own
		must(t, err)
		q, err := box.Queue("app", tracing.Queue(provider, tracing.FullNames()))
		must(t, err)
		ctx, request := provider.Tracer("test").Start(t.Context(), "request")
		_, err = note.Enqueue(ctx, producer, "traced", queue.Key("k"))
		must(t, err)
		request.End()
		_, err = note.Enqueue(t.Context(), producer, "not traced")
		must(t, err)

		inner := map[string]api.SpanContext{}
		w := q.Worker("w", queue.Slots(1))
		note.Handle(w, func(ctx context.Context, j *queue.Job[string]) (string, error) {
			inner[fmt.Sprint(j.Args, j.Attempt)] = api.SpanContextFromContext(ctx)
			switch {
			case j.Args == "not traced":
				return "", queue.Snooze(24 * time.Hour)
			case j.Attempt == 1:
				return "", queue.Retry(errors.New("what nobody is to know"), time.Hour)
			}
			return "", nil
		})
		running, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(running) }()
		time.Sleep(2 * time.Hour)
		stop()
		must(t, <-ended)
		must(t, producer.Close())
		must(t, q.Close())
		must(t, box.Close())
		spans := exporter.GetSpans()
		must(t, provider.Shutdown(t.Context()))
		if len(spans) != 4 {
			t.Fatalf("there are %d spans", len(spans))
		}
		for attempt, span := range []tracetest.SpanStub{spans[1], spans[3]} {
			if span.Name != tracing.JobSpan || span.Parent.SpanID() != request.SpanContext().SpanID() ||
				span.SpanContext.TraceID() != request.SpanContext().TraceID() {
				t.Errorf("attempt %d is no child of the request: %+v", attempt+1, span)
			}
			if got := inner[fmt.Sprint("traced", attempt+1)]; got.SpanID() != span.SpanContext.SpanID() {
				t.Errorf("the handler's context has the span %v", got)
			}
			if attribute(span, "signalbox.job.key") != "k" || attribute(span, "signalbox.queue.name") != "app" {
				t.Errorf("attributes: %v", span.Attributes)
			}
		}
		if s := spans[1].Status; s.Code != codes.Error || s.Description != "failed" {
			t.Errorf("the status of an attempt that failed: %+v", s)
		}
		if alone := spans[2]; alone.Parent.IsValid() || alone.Status.Code == codes.Error || attribute(alone, "signalbox.job.key") != "" {
			t.Errorf("the span of a job that nobody traced, and that snoozed: %+v", alone)
		}
	})
}
