package metrics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/queue"
)

// Queue registers the metrics of what this process does with queues, and returns the setting that has a Queue feed them:
//
//	measured, err := metrics.Queue(prometheus.DefaultRegisterer)
//	…
//	q, err := queue.Open(ctx, url, "app", measured)
//
// The labels are the queue's name and the kind, of which there are at most MaxClasses in all; keys are no labels. Several
// Queues may be given what one call returned, or each its own. The error is the registerer's.
func Queue(registerer prometheus.Registerer) (queue.Setting, error) {
	if registerer == nil {
		return nil, fmt.Errorf("metrics: %w: the registerer is nil", signalbox.ErrInvalid)
	}
	c := newQueueCollector()
	err := registerer.Register(c)
	var registered prometheus.AlreadyRegisteredError
	if errors.As(err, &registered) {
		if existing, ours := registered.ExistingCollector.(*queueCollector); ours {
			c, err = existing, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return func(q *queue.Queue) error {
		for _, what := range workerEvents {
			c.worker.WithLabelValues(valid(q.Name()), label(what))
		}
		return queue.Observer(c.observe)(q)
	}, nil
}

// valid is a text as the value of a label must be.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// queueCollector owns the metrics of one registerer, as collector does.
type queueCollector struct {
	added, ended, offers, worker *prometheus.CounterVec
	running                      *prometheus.GaugeVec
	wait, run                    *prometheus.HistogramVec
	mu                           sync.RWMutex
	kinds                        map[[2]string]bool // queue and kind
}

// Seconds. A job that an idle worker is handed begins within a millisecond; one may run for hours.
var (
	jobWaitBuckets = []float64{.001, .0025, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 1800, 3600, 21600, 86400}
	jobRunBuckets  = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 1800, 3600, 21600}
)

func newQueueCollector() *queueCollector {
	labels := []string{"queue", "kind"}
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"queue", "kind", label})
	}
	return &queueCollector{
		added:  counter("signalbox_queue_added_total", "Jobs that this process enqueued, by what became of the call.", "outcome"),
		ended:  counter("signalbox_queue_attempts_total", "Attempts of jobs that ended in this process, by how.", "outcome"),
		offers: counter("signalbox_queue_offers_total", "Offers to the workers of this process, by what became of them.", "outcome"),
		worker: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_queue_worker_events_total", Help: "What happened to the workers of this process.",
		}, []string{"queue", "event"}),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "signalbox_queue_running", Help: "Jobs that this process runs.",
		}, labels),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "signalbox_queue_wait_seconds", Buckets: jobWaitBuckets,
			Help: "Time from when a job was ready until its first attempt was claimed, by the server's clock.",
		}, labels),
		run: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "signalbox_queue_run_seconds", Help: "Time that attempts of jobs took.", Buckets: jobRunBuckets,
		}, labels),
		kinds: map[[2]string]bool{},
	}
}

func (c *queueCollector) vectors() []prometheus.Collector {
	return []prometheus.Collector{c.added, c.ended, c.offers, c.worker, c.running, c.wait, c.run}
}

// Describe is called by the registerer.
func (c *queueCollector) Describe(out chan<- *prometheus.Desc) {
	for _, vector := range c.vectors() {
		vector.Describe(out)
	}
}

// Collect is called when the metrics are scraped.
func (c *queueCollector) Collect(out chan<- prometheus.Metric) {
	for _, vector := range c.vectors() {
		vector.Collect(out)
	}
}

// Values of labels, so that rates see the first of each.
var (
	addedOutcomes = []string{"new", "duplicate", "refused", "unknown"}
	endedOutcomes = []string{"done", "retry", "dead", "snooze", "back", "cancelled"}
	offerOutcomes = []string{"accepted", "declined", "missed", "withdrawn"}
	workerEvents  = []queue.Happening{queue.ReportedLate, queue.Failing, queue.LeaseLost, queue.BadLine}
)

func (c *queueCollector) observe(seen queue.Event) {
	name := valid(seen.Queue)
	switch seen.What {
	case queue.Added:
		c.added.WithLabelValues(name, c.kind(name, seen.Kind), seen.Verb).Inc()
	case queue.Started:
		kind := c.kind(name, seen.Kind)
		c.running.WithLabelValues(name, kind).Inc()
		if seen.Attempt == 1 {
			c.wait.WithLabelValues(name, kind).Observe(seen.Waited.Seconds())
		}
	case queue.Ended:
		kind := c.kind(name, seen.Kind)
		c.running.WithLabelValues(name, kind).Dec()
		c.ended.WithLabelValues(name, kind, seen.Verb).Inc()
		c.run.WithLabelValues(name, kind).Observe(seen.Took.Seconds())
	case queue.OfferEnded:
		c.offers.WithLabelValues(name, c.kind(name, seen.Kind), seen.Verb).Inc()
	case queue.ReportedLate, queue.Failing, queue.LeaseLost, queue.BadLine:
		c.worker.WithLabelValues(name, label(seen.What)).Inc()
	case queue.Draining, queue.OfferMade:
	}
}

func label(what queue.Happening) string { return strings.ReplaceAll(string(what), " ", "_") }

// kind returns the label of a kind, which has all its series from its first happening on, or Other if there are too many.
func (c *queueCollector) kind(name, kind string) string {
	kind = valid(kind)
	if kind == "" {
		kind = Other
	}
	id := [2]string{name, kind}
	c.mu.RLock()
	known := c.kinds[id]
	c.mu.RUnlock()
	if known {
		return kind
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.kinds[id] && len(c.kinds) >= MaxClasses {
		return Other
	}
	for _, outcome := range addedOutcomes {
		c.added.WithLabelValues(name, kind, outcome)
	}
	for _, outcome := range endedOutcomes {
		c.ended.WithLabelValues(name, kind, outcome)
	}
	for _, outcome := range offerOutcomes {
		c.offers.WithLabelValues(name, kind, outcome)
	}
	c.kinds[[2]string{strings.Clone(name), strings.Clone(kind)}] = true // they may be pieces of long texts
	return kind
}

// Backlog registers what there is in a queue, for all processes together, as its server counts it: one call at each scrape,
// whose work does not grow with the backlog. One process that does so is enough. Of the kinds it has the first MaxClasses by
// name.
func Backlog(registerer prometheus.Registerer, q *queue.Queue) error {
	if registerer == nil || q == nil {
		return fmt.Errorf("metrics: %w: the registerer or the queue is nil", signalbox.ErrInvalid)
	}
	if err := registerer.Register(newBacklog(q)); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// scrapeWithin is for how long a scrape waits for the server.
const scrapeWithin = 3 * time.Second

type backlog struct {
	queue                                      *queue.Queue
	waiting, running, oldest, later, kept, all *prometheus.Desc
	offered                                    *prometheus.Desc
}

func newBacklog(q *queue.Queue) *backlog {
	of := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("signalbox_queue_backlog_"+name, help, labels, prometheus.Labels{"queue": valid(q.Name())})
	}
	return &backlog{
		queue:   q,
		waiting: of("waiting", "Jobs that may run when their turn comes.", "kind"),
		running: of("running", "Jobs that run.", "kind"),
		offered: of("offered", "Jobs that are offered to workers that have not accepted yet."),
		oldest:  of("oldest_seconds", "Age of the job that is next; 0 if none may run.", "kind"),
		later:   of("later", "Jobs that are delayed, or held by others."),
		kept:    of("kept", "Jobs that have ended and are kept: dead, canceled, or with a result."),
		all:     of("jobs_total", "Jobs, by what became of them, since the queue was last idle for a day.", "kind", "outcome"),
	}
}

// Describe is called by the registerer.
func (b *backlog) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{b.waiting, b.running, b.offered, b.oldest, b.later, b.kept, b.all} {
		out <- d
	}
}

// Collect is called when the metrics are scraped. A server that is out of reach fails the scrape; of a queue that is closed
// there is nothing to tell.
func (b *backlog) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeWithin)
	defer cancel()
	s, err := b.queue.Stats(ctx)
	if errors.Is(err, queue.ErrClosed) {
		return
	}
	if err != nil {
		out <- prometheus.NewInvalidMetric(b.waiting, err)
		return
	}
	gauge := func(of *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, labels...)
	}
	gauge(b.later, float64(s.Later))
	gauge(b.kept, float64(s.Kept))
	gauge(b.offered, float64(s.Offered))
	for _, k := range s.Kinds[:min(len(s.Kinds), MaxClasses)] {
		kind := valid(k.Kind)
		gauge(b.waiting, float64(k.Waiting), kind)
		gauge(b.running, float64(k.Running), kind)
		age := 0.0
		if !k.Oldest.IsZero() {
			age = max(s.Now.Sub(k.Oldest).Seconds(), 0)
		}
		gauge(b.oldest, age, kind)
		for outcome, n := range map[string]int{
			"enqueued": k.Enqueued, "done": k.Done, "retried": k.Retried, "dead": k.Dead, "canceled": k.Canceled,
			"crashed": k.Crashed, "replayed": k.Replayed, "offered": k.Offered, "accepted": k.Accepted, "declined": k.Declined,
			"missed": k.Missed, "withdrawn": k.Withdrawn,
		} {
			out <- prometheus.MustNewConstMetric(b.all, prometheus.CounterValue, float64(n), kind, outcome)
		}
	}
}
