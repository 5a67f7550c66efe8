// Package metrics counts and measures for Prometheus what happens to acquisitions and leases:
//
//	measured, err := metrics.New(prometheus.DefaultRegisterer)
//	…
//	box, err := signalbox.Open(ctx, url, measured)
//
// docs/observing.md explains each metric, and what to alert on. All have the label class: a kind of resource, never a single
// one, since a resource may be made for each order or host and a time series costs memory for ever. A class comes into being
// with all its series at zero, so that rates see the first loss. There are at most MaxClasses; what comes later counts as
// Other.
//
// A metric is described once, in collector.go, and is set in observe. To add one: a field of collector, a line in each of
// newCollector, vectors and class, and its paragraph in docs/observing.md.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-io/signalbox"
)

// MaxClasses is how many values the label class has at most, Other left out.
const MaxClasses = 100

// Other is the class of the resources whose own class would be one too many, or is empty.
const Other = "other"

// Option changes what New returns.
type Option func(*observer)

// Class sets how the class of a resource is told from its name. The default is what stands before the first colon, or all of
// a name without one. It is called for everything that is observed, by many goroutines, and should be quick.
func Class(of func(resource string) string) Option {
	return func(o *observer) { o.classOf = of }
}

// New registers the metrics and returns the option that has a Box feed them. Several Boxes may be given what one New
// returned, or each its own: with one registerer they share the metrics. The error is the registerer's.
func New(registerer prometheus.Registerer, options ...Option) (signalbox.Option, error) {
	if registerer == nil {
		return nil, fmt.Errorf("metrics: %w: the registerer is nil", signalbox.ErrInvalid)
	}
	o := &observer{collector: newCollector(), classOf: beforeColon}
	for _, option := range options {
		option(o)
	}
	if o.classOf == nil {
		return nil, fmt.Errorf("metrics: %w: Class of nil", signalbox.ErrInvalid)
	}
	err := registerer.Register(o.collector)
	var registered prometheus.AlreadyRegisteredError
	if errors.As(err, &registered) {
		if existing, ours := registered.ExistingCollector.(*collector); ours {
			o.collector, err = existing, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return signalbox.Observe(o.observe), nil
}

func beforeColon(resource string) string {
	class, _, _ := strings.Cut(resource, ":")
	return class
}

type observer struct {
	collector *collector
	classOf   func(string) string
}

func (o *observer) observe(seen signalbox.Observation) {
	if seen.What == signalbox.Warned { // of no resource
		return
	}
	c := o.collector.class(o.classOf(seen.Resource))
	switch seen.What {
	case signalbox.Begun:
		c.waiting.Inc()
	case signalbox.Granted:
		c.waiting.Dec()
		c.held.Inc()
		c.outcomes[granted].Inc()
		c.wait.Observe(seen.Wait.Seconds())
	case signalbox.Refused:
		c.waiting.Dec()
		c.outcomes[refused].Inc()
	case signalbox.Failed:
		c.waiting.Dec()
		c.outcomes[failure(seen.Err)].Inc()
		c.wait.Observe(seen.Wait.Seconds())
	case signalbox.Renewed:
		c.lag.Observe(seen.Lag.Seconds())
	case signalbox.Released:
		c.held.Dec()
		c.hold.Observe(seen.Hold.Seconds())
	case signalbox.Lost:
		c.held.Dec()
		c.causes[loss(seen.Err)].Inc()
		c.hold.Observe(seen.Hold.Seconds())
	}
}

// Values of the label outcome.
const (
	granted  = "granted"
	refused  = "refused"
	canceled = "canceled"
	timeout  = "timeout"
	forced   = "forced"
	closed   = "closed"
	failed   = "error"
)

// Values of the label cause, beside forced and closed.
const expired = "expired"

var (
	outcomes = []string{granted, refused, canceled, timeout, forced, closed, failed}
	causes   = []string{expired, forced, closed}
)

// failure is the outcome of an acquisition that failed.
func failure(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return timeout
	case errors.Is(err, context.Canceled):
		return canceled
	case errors.Is(err, signalbox.ErrForced):
		return forced
	case errors.Is(err, signalbox.ErrClosed):
		return closed
	}
	return failed
}

// loss is the cause of a lease's end that was not a release.
func loss(err error) string {
	switch {
	case errors.Is(err, signalbox.ErrForced):
		return forced
	case errors.Is(err, signalbox.ErrClosed):
		return closed
	}
	return expired
}
