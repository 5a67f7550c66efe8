// Package tracing makes OpenTelemetry spans of acquisitions and leases:
//
//	box, err := signalbox.Open(ctx, url, tracing.Observer(otel.GetTracerProvider()))
//
// Each acquisition is a span "signalbox.wait", each lease a span "signalbox.hold" from its grant to its end. Both are children
// of the span in the context of the acquisition, and the hold is linked to its wait, which is what joins the two where there
// is no such span. A span is made when what it is about is over, with the times at which it began and ended: so nothing is
// kept meanwhile but the link, and a tracer sees nothing of what still goes on. It follows that spans of work under a lease are
// siblings of the hold, not its children.
//
// It needs the trace API alone; the provider comes from the program's SDK. A new happening that is to be seen gets its case in
// observe.
package tracing

import (
	"context"
	"errors"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/signalbox-io/signalbox"
)

// Names of spans and attributes.
const (
	scope = "github.com/signalbox-io/signalbox/tracing"

	// WaitSpan is the name of an acquisition's span.
	WaitSpan = "signalbox.wait"
	// HoldSpan is the name of a lease's span.
	HoldSpan = "signalbox.hold"

	// ClassKey is the kind of resource.
	ClassKey = attribute.Key("signalbox.resource.class")
	// ResourceKey is the name of the resource, set with FullNames alone.
	ResourceKey = attribute.Key("signalbox.resource.name")
	// LeaseKey is the lease's id, on both of its spans.
	LeaseKey = attribute.Key("signalbox.lease.id")
	// TokenKey is the fencing token.
	TokenKey = attribute.Key("signalbox.lease.token")
	// WeightKey is how many permits were asked for.
	WeightKey = attribute.Key("signalbox.weight")
	// OutcomeKey is the Happening that ended the span.
	OutcomeKey = attribute.Key("signalbox.outcome")
)

// Option changes an Observer.
type Option func(*observer)

// FullNames puts the name of the resource on the spans. It is left out by default, since names may hold what should not leave
// the program, such as a customer's number.
func FullNames() Option {
	return func(o *observer) { o.fullNames = true }
}

// Class sets how the class of a resource is told from its name. The default is what stands before the first colon, or all of
// a name without one: names without a colon appear in full, unless Class is set. It is called by many goroutines.
func Class(of func(resource string) string) Option {
	return func(o *observer) {
		if of != nil {
			o.classOf = of
		}
	}
}

// Observer returns the option that has a Box make spans with a provider; nil is one that makes none.
func Observer(provider trace.TracerProvider, options ...Option) signalbox.Option {
	if provider == nil {
		provider = noop.NewTracerProvider()
	}
	o := &observer{tracer: provider.Tracer(scope), waits: make(map[string]trace.SpanContext), classOf: beforeColon}
	for _, option := range options {
		option(o)
	}
	return signalbox.Observe(o.observe)
}

func beforeColon(resource string) string {
	class, _, _ := strings.Cut(resource, ":")
	return class
}

type observer struct {
	tracer    trace.Tracer
	fullNames bool
	classOf   func(string) string

	mu    sync.Mutex
	waits map[string]trace.SpanContext // by the ids of the leases that are held and whose wait was sampled
}

func (o *observer) observe(seen signalbox.Observation) {
	switch seen.What {
	case signalbox.Granted:
		if wait := o.waited(&seen); wait.IsSampled() {
			o.mu.Lock()
			o.waits[seen.ID] = wait
			o.mu.Unlock()
		}
	case signalbox.Refused, signalbox.Failed:
		o.waited(&seen)
	case signalbox.Released, signalbox.Lost:
		o.held(&seen)
	case signalbox.Begun, signalbox.Renewed, signalbox.Warned:
	}
}

// waited makes the span of an acquisition that has ended. A refusal is an answer, and giving up a decision: neither is an
// error of the span.
func (o *observer) waited(seen *signalbox.Observation) trace.SpanContext {
	_, span := o.tracer.Start(parent(seen), WaitSpan, trace.WithTimestamp(seen.At.Add(-seen.Wait)),
		trace.WithAttributes(o.attributes(seen)...))
	if seen.What == signalbox.Failed && !errors.Is(seen.Err, context.Canceled) {
		fail(span, seen)
	}
	span.End(trace.WithTimestamp(seen.At))
	return span.SpanContext()
}

// held makes the span of a lease that has ended.
func (o *observer) held(seen *signalbox.Observation) {
	options := []trace.SpanStartOption{
		trace.WithTimestamp(seen.At.Add(-seen.Hold)), trace.WithAttributes(o.attributes(seen)...),
	}
	o.mu.Lock()
	wait, known := o.waits[seen.ID]
	delete(o.waits, seen.ID)
	o.mu.Unlock()
	if known {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: wait}))
	}
	_, span := o.tracer.Start(parent(seen), HoldSpan, options...)
	if seen.What == signalbox.Lost {
		fail(span, seen)
	}
	span.End(trace.WithTimestamp(seen.At))
}

// parent is the context of the acquisition, whose span is the parent's; it is over when a lease has ended.
func parent(seen *signalbox.Observation) context.Context { return context.WithoutCancel(seen.Context) }

// fail marks a span. The text of the error holds the name of the resource; what it is for is told by its kind alone, unless
// names may be shown.
func fail(span trace.Span, seen *signalbox.Observation) {
	span.SetStatus(codes.Error, kind(seen.Err))
}

// kind is the sentinel that an error wraps, as text without names.
func kind(err error) string {
	for _, known := range []error{
		signalbox.ErrForced, signalbox.ErrClosed, signalbox.ErrLeaseLost, signalbox.ErrTooHeavy, signalbox.ErrUnavailable,
		signalbox.ErrUnsupportedServer, signalbox.ErrWrongType, signalbox.ErrServer, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "the acquisition failed"
}

func (o *observer) attributes(seen *signalbox.Observation) []attribute.KeyValue {
	all := []attribute.KeyValue{
		ClassKey.String(o.classOf(seen.Resource)), WeightKey.Int(seen.Weight), OutcomeKey.String(string(seen.What)),
	}
	if seen.ID != "" {
		all = append(all, LeaseKey.String(seen.ID), TokenKey.Int64(seen.Token))
	}
	if o.fullNames {
		all = append(all, ResourceKey.String(seen.Resource))
	}
	return all
}
