package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/metrics"
	"github.com/signalbox-io/signalbox/queue"
)

func ExampleQueue() {
	registry := prometheus.NewRegistry()
	measured, err := metrics.Queue(registry)
	if err != nil {
		fmt.Println(err)
		return
	}
	box, err := embedded.Open("")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close()
	q, err := box.Queue("app", measured)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()
	if err := metrics.Backlog(registry, q); err != nil {
		fmt.Println(err)
		return
	}
	note := queue.Define[string, queue.None]("note")
	if _, err := note.Enqueue(context.Background(), q, "hello"); err != nil {
		fmt.Println(err)
	}
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
	}
	for _, family := range families {
		if family.GetName() == "signalbox_queue_backlog_waiting" {
			fmt.Println(family.GetMetric()[0].GetGauge().GetValue())
		}
	}
	// Output: 1
}

// runOneJob gives every metric of a queue something to tell.
func runOneJob(t *testing.T, box *embedded.Box, registry *prometheus.Registry) {
	t.Helper()
	measured, err := metrics.Queue(registry)
	must(t, err)
	q, err := box.Queue("app", measured)
	must(t, err)
	t.Cleanup(func() { must(t, q.Close()) })
	must(t, metrics.Backlog(registry, q))
	note := queue.Define[string, string]("note")
	w := q.Worker("w")
	note.Handle(w, func(context.Context, *queue.Job[string]) (string, error) { return "", nil })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	job, err := note.Enqueue(ctx, q, "")
	must(t, err)
	_, err = job.Wait(ctx)
	must(t, err)
	stop()
	must(t, <-ended)
}

// wantLines wants lines to be in a scrape, and nothing of a key.
func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("there is no line %s in\n%s", line, text)
		}
	}
	if strings.Contains(text, "tenant") {
		t.Errorf("a key is a label in\n%s", text)
	}
}

func TestOffersAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		measured, err := metrics.Queue(registry)
		must(t, err)
		box, err := embedded.Open("")
		must(t, err)
		q, err := box.Queue("app", measured)
		must(t, err)
		must(t, metrics.Backlog(registry, q))
		note := queue.Define[string, queue.None]("note")
		w := q.Worker("anna", queue.Slots(2), queue.OfferFor(time.Minute), queue.Stay())
		note.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) { return queue.None{}, nil })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		for range 2 {
			_, err = note.Enqueue(ctx, q, "")
			must(t, err)
		}
		must(t, (<-w.Offers()).Accept(ctx))
		late := <-w.Offers()
		wantLines(t, scrape(t, registry), `signalbox_queue_backlog_offered{queue="app"} 1`)
		<-late.Done()
		wantLines(t, scrape(t, registry),
			`signalbox_queue_offers_total{kind="note",outcome="accepted",queue="app"} 1`,
			`signalbox_queue_offers_total{kind="note",outcome="missed",queue="app"} 1`,
			`signalbox_queue_offers_total{kind="note",outcome="declined",queue="app"} 0`,
			`signalbox_queue_backlog_jobs_total{kind="note",outcome="offered",queue="app"} 2`)
		stop()
		must(t, errors.Join(<-ended, q.Close(), box.Close()))
	})
}

func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		measured, err := metrics.Queue(registry)
		must(t, err)
		again, err := metrics.Queue(registry) // the same metrics
		must(t, err)
		box, err := embedded.Open("")
		must(t, err)
		q, err := box.Queue("app", measured)
		must(t, err)
		other, err := box.Queue("app", again)
		must(t, err)
		must(t, metrics.Backlog(registry, q))
		note := queue.Define[string, queue.None]("note", queue.Backoff(func(int) time.Duration { return time.Minute }))
		for _, args := range []string{"well", "badly", "long"} {
			_, err := note.Enqueue(t.Context(), other, args, queue.Key("tenant:"+args), queue.ID(args))
			must(t, err)
		}
		_, err = note.Enqueue(t.Context(), other, "", queue.ID("long"))
		must(t, err)
		time.Sleep(7 * time.Second)
		wantLines(t, scrape(t, registry),
			`signalbox_queue_backlog_waiting{kind="note",queue="app"} 3`,
			`signalbox_queue_backlog_oldest_seconds{kind="note",queue="app"} 7`,
			`signalbox_queue_backlog_jobs_total{kind="note",outcome="enqueued",queue="app"} 3`,
			`signalbox_queue_added_total{kind="note",outcome="new",queue="app"} 3`,
			`signalbox_queue_added_total{kind="note",outcome="duplicate",queue="app"} 1`,
			`signalbox_queue_attempts_total{kind="note",outcome="dead",queue="app"} 0`)

		w := q.Worker("w", queue.Slots(3))
		note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			switch j.Args {
			case "badly":
				return queue.None{}, queue.Fail(errors.New("no"))
			case "long":
				time.Sleep(time.Minute)
			}
			return queue.None{}, nil
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		time.Sleep(30 * time.Second)
		text := scrape(t, registry)
		if !strings.Contains(text, `signalbox_queue_wait_seconds_sum{kind="note",queue="app"} 21`) { // and a few µs, since tokens differ
			t.Errorf("three jobs did not wait for seven seconds each:\n%s", text)
		}
		wantLines(t, text,
			`signalbox_queue_running{kind="note",queue="app"} 1`,
			`signalbox_queue_backlog_running{kind="note",queue="app"} 1`,
			`signalbox_queue_backlog_kept{queue="app"} 1`,
			`signalbox_queue_attempts_total{kind="note",outcome="done",queue="app"} 1`,
			`signalbox_queue_attempts_total{kind="note",outcome="dead",queue="app"} 1`)
		stop()
		must(t, <-ended)
		wantLines(t, scrape(t, registry),
			`signalbox_queue_running{kind="note",queue="app"} 0`,
			`signalbox_queue_run_seconds_count{kind="note",queue="app"} 3`)
		must(t, q.Close())
		must(t, other.Close())
		must(t, box.Close())
		if text := scrape(t, registry); strings.Contains(text, "backlog") {
			t.Errorf("a queue that is closed tells of itself:\n%s", text)
		}
	})
}

// Kinds beyond the bound count as other.
func TestManyKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		measured, err := metrics.Queue(registry)
		must(t, err)
		box, err := embedded.Open("")
		must(t, err)
		q, err := box.Queue("app", measured)
		must(t, err)
		var requests []queue.Request
		for i := range metrics.MaxClasses + 5 {
			requests = append(requests, queue.Define[string, queue.None](fmt.Sprint("kind", i)).With(""))
		}
		_, err = q.EnqueueMany(t.Context(), requests...)
		must(t, err)
		wantLines(t, scrape(t, registry), `signalbox_queue_added_total{kind="other",outcome="new",queue="app"} 5`)
		must(t, q.Close())
		must(t, box.Close())
	})
}

func TestQueueRefusesNothing(t *testing.T) {
	if _, err := metrics.Queue(nil); err == nil {
		t.Error("a nil registerer is taken")
	}
	if err := metrics.Backlog(prometheus.NewRegistry(), nil); err == nil {
		t.Error("a nil queue is taken")
	}
}
