package metrics

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// A collector owns the metrics of one registerer and the classes that they have, so that Boxes that share the metrics share
// the bound on classes too. The series of a class are looked up once and kept.

type collector struct {
	wait, hold, lag     *prometheus.HistogramVec
	acquisitions, lost  *prometheus.CounterVec
	heldVec, waitingVec *prometheus.GaugeVec
	mu                  sync.RWMutex
	classes             map[string]*class // of MaxClasses at most, and Other
}

// class is the series of one value of the label class.
type class struct {
	wait, hold, lag  prometheus.Observer
	outcomes, causes map[string]prometheus.Counter
	held, waiting    prometheus.Gauge
}

// Seconds. A wait may be a round trip or a queue of minutes, a hold a moment or a day's work; a lag matters as a part of a
// third of the ttl, which is 10 s unless somebody sets it.
var (
	waitBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	holdBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 1800, 3600, 21600}
	lagBuckets  = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20}
)

func newCollector() *collector {
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"class"})
	}
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"class", label})
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"class"})
	}
	return &collector{
		wait: histogram("signalbox_wait_seconds",
			"Time from the beginning of an acquisition until it was granted or failed; refusals are left out.", waitBuckets),
		hold: histogram("signalbox_hold_seconds", "Time from the grant of a lease until it was released or lost.", holdBuckets),
		lag: histogram("signalbox_renew_lag_seconds",
			"Time from when a lease's renewal was due until it succeeded.", lagBuckets),
		acquisitions: counter("signalbox_acquisitions_total", "Acquisitions that ended, by how.", "outcome"),
		lost:         counter("signalbox_lost_total", "Leases that ended without being released, by why.", "cause"),
		heldVec:      gauge("signalbox_held", "Leases that this process holds."),
		waitingVec:   gauge("signalbox_waiting", "Acquisitions of this process that have begun and not ended."),
		classes:      make(map[string]*class),
	}
}

func (c *collector) vectors() []prometheus.Collector {
	return []prometheus.Collector{c.wait, c.hold, c.lag, c.acquisitions, c.lost, c.heldVec, c.waitingVec}
}

// Describe is called by the registerer.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, vector := range c.vectors() {
		vector.Describe(out)
	}
}

// Collect is called when the metrics are scraped.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	for _, vector := range c.vectors() {
		vector.Collect(out)
	}
}

// class returns the series of a class, or of Other if there are too many classes already.
func (c *collector) class(name string) *class {
	if name == "" {
		name = Other
	}
	name = strings.ToValidUTF8(name, "\uFFFD") // as a label's value must be
	c.mu.RLock()
	known := c.classes[name]
	if known == nil && c.full() {
		known = c.classes[Other]
	}
	c.mu.RUnlock()
	if known != nil {
		return known
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.classes[name] == nil && c.full() {
		name = Other
	}
	if c.classes[name] == nil {
		name = strings.Clone(name) // it may be a piece of a long one
		c.classes[name] = c.newClass(name)
	}
	return c.classes[name]
}

// full says whether there is no room for a class but Other. Called with c.mu held.
func (c *collector) full() bool {
	others := 0
	if c.classes[Other] != nil {
		others = 1
	}
	return len(c.classes)-others >= MaxClasses
}

func (c *collector) newClass(name string) *class {
	made := &class{
		wait: c.wait.WithLabelValues(name), hold: c.hold.WithLabelValues(name), lag: c.lag.WithLabelValues(name),
		held: c.heldVec.WithLabelValues(name), waiting: c.waitingVec.WithLabelValues(name),
		outcomes: make(map[string]prometheus.Counter), causes: make(map[string]prometheus.Counter),
	}
	for _, outcome := range outcomes {
		made.outcomes[outcome] = c.acquisitions.WithLabelValues(name, outcome)
	}
	for _, cause := range causes {
		made.causes[cause] = c.lost.WithLabelValues(name, cause)
	}
	return made
}
