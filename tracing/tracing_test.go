package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/tracing"
)

func Example() {
	spans := tracetest.NewInMemoryExporter() // where a program has one to a collector
	provider := trace.NewTracerProvider(trace.WithSyncer(spans))
	box, err := embedded.Open("", tracing.Observer(provider))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close()
	ctx, request := provider.Tracer("example").Start(context.Background(), "request")
	if err := box.Mutex("invoice:42").Do(ctx, func(context.Context) error { return nil }); err != nil {
		fmt.Println(err)
	}
	request.End()
	for _, span := range spans.GetSpans() {
		fmt.Println(span.Name, span.Parent.SpanID() == request.SpanContext().SpanID())
	}
	// Output:
	// signalbox.wait true
	// signalbox.hold true
	// request false
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bubble runs test in virtual time and returns the spans, in the order of their ends.
func bubble(
	t *testing.T, test func(t *testing.T, box *embedded.Box, provider *trace.TracerProvider), options ...tracing.Option,
) (spans tracetest.SpanStubs) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		exporter := tracetest.NewInMemoryExporter()
		provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
		box, err := embedded.Open("", tracing.Observer(provider, options...))
		must(t, err)
		test(t, box, provider)
		must(t, box.Close())
		spans = exporter.GetSpans()
		must(t, provider.Shutdown(t.Context()))
	})
	return spans
}

func attribute(span tracetest.SpanStub, key string) string {
	for _, a := range span.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// A lease waited for three seconds and held for five is two spans below the request's, even if the request is over before.
func TestWaitAndHoldAreSpansOfTheRequest(t *testing.T) {
	spans := bubble(t, func(t *testing.T, box *embedded.Box, provider *trace.TracerProvider) {
		first, err := box.Mutex("invoice:42").Acquire(t.Context())
		must(t, err)
		var other sync.WaitGroup
		other.Go(func() {
			time.Sleep(3 * time.Second)
			if err := first.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
		ctx, request := provider.Tracer("test").Start(t.Context(), "request")
		lease, err := box.Mutex("invoice:42").Acquire(ctx)
		must(t, err)
		other.Wait()
		request.End()
		time.Sleep(5 * time.Second)
		must(t, lease.Release(t.Context()))
	})
	var names []string
	by := map[string]tracetest.SpanStub{}
	for _, span := range spans {
		names = append(names, span.Name)
		by[span.Name] = span // the last is the request's
	}
	if len(spans) != 5 {
		t.Fatalf("spans %v, want a wait and a hold of two leases, and the request", names)
	}
	wait, hold, request := by[tracing.WaitSpan], by[tracing.HoldSpan], by["request"]
	for name, want := range map[string]struct {
		span    tracetest.SpanStub
		took    time.Duration
		outcome string
	}{"wait": {wait, 3 * time.Second, "granted"}, "hold": {hold, 5 * time.Second, "released"}} {
		took := want.span.EndTime.Sub(want.span.StartTime)
		if took != want.took || want.span.Parent.SpanID() != request.SpanContext.SpanID() ||
			attribute(want.span, "signalbox.outcome") != want.outcome || want.span.Status.Code == codes.Error {
			t.Errorf("%s took %v, of %v, %v, %v", name, took, want.span.Parent.SpanID(), want.span.Attributes, want.span.Status)
		}
	}
	if len(hold.Links) != 1 || hold.Links[0].SpanContext.SpanID() != wait.SpanContext.SpanID() {
		t.Errorf("the hold is linked to %v, want its wait", hold.Links)
	}
}

func TestNamesAreShownOnlyIfAskedFor(t *testing.T) {
	work := func(t *testing.T, box *embedded.Box, _ *trace.TracerProvider) {
		_, err := box.Mutex("customer:jane").Acquire(t.Context())
		must(t, err)
		_, err = box.ForceAll(t.Context(), "customer:jane")
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		lease, err := box.Mutex("customer:jane").Acquire(ctx)
		must(t, err)
		if _, err := box.Mutex("customer:jane").Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want DeadlineExceeded", err)
		}
		must(t, lease.Release(t.Context()))
	}
	shown := func(spans tracetest.SpanStubs) bool { return strings.Contains(fmt.Sprintf("%+v", spans), "jane") }
	hidden := bubble(t, work)
	if shown(hidden) {
		t.Errorf("the name is shown: %+v", hidden)
	}
	if len(hidden) == 0 || attribute(hidden[0], "signalbox.resource.class") != "customer" {
		t.Errorf("the class is missing: %+v", hidden)
	}
	if !shown(bubble(t, work, tracing.FullNames())) {
		t.Error("the name was asked for and is not shown")
	}
}

func TestALossIsAnError(t *testing.T) {
	spans := bubble(t, func(t *testing.T, box *embedded.Box, _ *trace.TracerProvider) {
		lease, err := box.Mutex("m").Acquire(t.Context())
		must(t, err)
		_, err = box.ForceAll(t.Context(), "m")
		must(t, err)
		<-lease.Done()
	})
	if len(spans) != 2 {
		t.Fatalf("spans %v, want a wait and a hold", spans)
	}
	for _, span := range spans {
		lost := span.Name == tracing.HoldSpan
		if (span.Status.Code == codes.Error) != lost || lost && span.Status.Description != signalbox.ErrForced.Error() {
			t.Errorf("%s has status %v", span.Name, span.Status)
		}
	}
}

func TestSpansThatAreNotSampledAreNotMade(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(exporter), trace.WithSampler(trace.NeverSample()))
	box, err := embedded.Open("", tracing.Observer(provider))
	must(t, err)
	must(t, box.Mutex("m").Do(t.Context(), func(context.Context) error { return nil }))
	must(t, box.Close())
	if spans := exporter.GetSpans(); len(spans) != 0 {
		t.Errorf("made %v", spans)
	}
}
