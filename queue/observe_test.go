package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

type events struct {
	mu   sync.Mutex
	seen []queue.Event
}

func (e *events) tell(event queue.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, event)
}

// lines are what happened to jobs, each as "what verb attempt waited".
func (e *events) lines() (lines []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.seen {
		if event.Kind != "" {
			lines = append(lines, fmt.Sprintf("%s %s %d %v", event.What, event.Verb, event.Attempt, event.Waited.Round(time.Second)))
		}
	}
	return lines
}

func TestObserversSeeProducersAndWorkers(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		var seen events
		q := open(t, server, queue.Observer(seen.tell))
		enqueue(t, q, "fails once", queue.ID("a"), queue.In(time.Minute), queue.Key("k"))
		_, err := note.Enqueue(within(t), q, "", queue.ID("a"))
		must(t, err)
		_, err = note.Enqueue(within(t), q, "", queue.Priority(1<<30))
		wantErr(t, err, queue.ErrInvalid)
		time.Sleep(2 * time.Minute) // one of them it is ready
		w := q.Worker("w")
		note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			time.Sleep(time.Second)
			if j.Attempt == 1 {
				return queue.None{}, errors.New("not yet")
			}
			return queue.None{}, nil
		})
		stop := start(t, w)
		time.Sleep(time.Minute)
		synctest.Wait()
		stop()
		want := []string{
			"added new 0 0s", "added duplicate 0 0s",
			"started  1 1m0s", "ended retry 1 0s", "started  2 0s", "ended done 2 0s",
		}
		if diff := cmp.Diff(want, seen.lines()); diff != "" {
			t.Error(diff)
		}
		for _, e := range seen.seen {
			if e.Queue != "app" || e.Context == nil || e.What == queue.Ended && (e.Took != time.Second || e.Key != "k" || e.Worker != "w") {
				t.Errorf("an event without what belongs to it: %+v", e)
			}
		}
	})
}

// Whatever becomes of an offer is told, and counted.
func TestObserversSeeOffers(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		var seen events
		q := open(t, server, queue.Observer(seen.tell))
		w := agent(t, q, "anna", queue.Stay())
		stop := start(t, w)
		offer := func(id string) *queue.Offer {
			_, err := call.Enqueue(within(t), q, "", queue.ID(id))
			must(t, err)
			return rings(t, w)
		}
		must(t, offer("accepted").Accept(within(t)))
		time.Sleep(time.Second)
		must(t, offer("declined").Decline(within(t)))
		time.Sleep(time.Second)
		must(t, q.Delete(within(t), "declined"))
		<-offer("missed").Done()
		must(t, q.Delete(within(t), "missed"))
		canceled := offer("withdrawn")
		time.Sleep(time.Second)
		must(t, q.Delete(within(t), "withdrawn"))
		<-canceled.Done()
		stop()
		want := []string{
			"offered  1 0s", "offer ended accepted 1 0s", "started  1 0s", "ended done 1 0s",
			"offered  1 0s", "offer ended declined 1 0s",
			"offered  1 0s", "offer ended missed 1 0s",
			"offered  1 0s", "offer ended withdrawn 1 0s",
		}
		of := slices.DeleteFunc(seen.lines(), func(line string) bool { return strings.HasPrefix(line, "added") }) // who enqueues tells it any time
		if diff := cmp.Diff(want, of); diff != "" {
			t.Error(diff)
		}
		for _, e := range seen.seen {
			if e.What == queue.OfferEnded && (e.Verb == "missed") != (e.Took == 20*time.Second) || (e.Verb == "withdrawn") != (e.Err != nil) {
				t.Errorf("an event that does not say it: %+v", e)
			}
		}
		stats, err := q.Stats(within(t))
		must(t, err)
		if k := stats.Kinds[0]; k.Offered != 4 || k.Accepted != 1 || k.Declined != 1 || k.Missed != 1 || k.Withdrawn != 1 {
			t.Errorf("counted %+v", k)
		}
	})
}

type said struct{}

// What the producer's context says comes to the handler, at every attempt, and middleware of the queue is around all.
func TestWhatAProducerSaysComesToTheHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		inject := func(ctx context.Context, meta map[string]string) {
			if text, ok := ctx.Value(said{}).(string); ok {
				meta["said"] = text
			}
		}
		extract := func(ctx context.Context, meta map[string]string) context.Context {
			return context.WithValue(ctx, said{}, meta["said"])
		}
		var r recorder
		wrap := func(next queue.Runner) queue.Runner {
			return func(ctx context.Context, task *queue.Task) ([]byte, error) {
				r.add("wrap")
				return next(ctx, task)
			}
		}
		q := open(t, server, queue.Propagate(inject, extract), queue.Wrap(wrap))
		_, err := note.Enqueue(context.WithValue(within(t), said{}, `hello "you"`), q, "a")
		must(t, err)
		_, err = note.Enqueue(within(t), q, "b") // says nothing
		must(t, err)
		w := q.Worker("w", queue.Slots(1))
		note.Handle(w, func(ctx context.Context, j *queue.Job[string]) (queue.None, error) {
			r.add(fmt.Sprint(j.Args, j.Attempt, " ", ctx.Value(said{})))
			if j.Attempt == 1 {
				return queue.None{}, queue.Retry(errors.New("again"), time.Hour)
			}
			return queue.None{}, nil
		})
		start(t, w)
		time.Sleep(2 * time.Hour)
		want := []string{"wrap", `a1 hello "you"`, "wrap", "b1 ", "wrap", `a2 hello "you"`, "wrap", "b2 "}
		if got := r.all(); !slices.Equal(got, want) {
			t.Error(cmp.Diff(want, got))
		}
	})
}

// Middleware of producers is around every call: it may see it, give it another context, refuse it, or some of its jobs.
func TestMiddlewareOfProducers(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		var calls []string
		seeing := func(name string) queue.EnqueueMiddleware {
			return func(next queue.Enqueuer) queue.Enqueuer {
				return func(ctx context.Context, requests []queue.Request) ([]queue.ManyOutcome, error) {
					for i := range requests {
						calls = append(calls, name+" "+requests[i].Kind()+" "+requests[i].Key())
					}
					return next(context.WithValue(ctx, said{}, "by "+name), requests)
				}
			}
		}
		errFull := errors.New("tenant full")
		refusing := func(next queue.Enqueuer) queue.Enqueuer {
			return func(ctx context.Context, requests []queue.Request) ([]queue.ManyOutcome, error) {
				switch requests[0].Key() {
				case "full":
					return []queue.ManyOutcome{{Err: errFull}}, nil
				case "wrong":
					return nil, nil
				}
				return next(ctx, requests)
			}
		}
		var seen events
		q := open(t, server, queue.WrapEnqueue(seeing("outer"), seeing("inner")), queue.WrapEnqueue(refusing), queue.Observer(seen.tell),
			queue.Propagate(func(ctx context.Context, meta map[string]string) { meta["said"] = ctx.Value(said{}).(string) },
				func(ctx context.Context, meta map[string]string) context.Context {
					return context.WithValue(ctx, said{}, meta["said"])
				}))
		_, err := note.Enqueue(within(t), q, "a", queue.Key("full"))
		wantErr(t, err, errFull)
		_, err = note.Enqueue(within(t), q, "a", queue.Key("wrong"))
		wantErr(t, err, queue.ErrInvalid)
		if keys := server.Keys(within(t), "*").Val(); len(keys) > 0 {
			t.Errorf("left: %q", keys)
		}
		_, err = note.Enqueue(within(t), q, "a")
		must(t, err)
		_, request := kept(t, note.With("b"))
		_, err = q.EnqueueNumbered(within(t), "s", 1, request)
		must(t, err)
		if want := []string{"outer note full", "inner note full"}; len(calls) != 8 || !slices.Equal(calls[:2], want) {
			t.Errorf("called: %q", calls)
		}
		if diff := cmp.Diff([]string{"added refused", "added unknown", "added new", "added new"}, verbs(&seen)); diff != "" {
			t.Error(diff)
		}
		ran := make(chan any, 2)
		w := q.Worker("w")
		note.Handle(w, func(ctx context.Context, _ *queue.Job[string]) (queue.None, error) {
			ran <- ctx.Value(said{})
			return queue.None{}, nil
		})
		start(t, w)
		if a, b := <-ran, <-ran; a != "by inner" || b != "by inner" {
			t.Errorf("the handlers were told %q, %q", a, b)
		}
	})
}

func verbs(seen *events) (list []string) {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for _, e := range seen.seen {
		list = append(list, string(e.What)+" "+e.Verb)
	}
	return list
}

// An observer hears of a job of which nobody knows whether it was taken in, too.
func TestObserversHearOfWhatIsUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		var cut atomic.Bool
		var seen events
		q, err := queue.New(&deaf{server, &cut}, "app", queue.Observer(func(e queue.Event) {
			if e.What == queue.Added {
				seen.tell(e)
			}
		}))
		must(t, err)
		cut.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = note.Enqueue(ctx, q, "a")
		wantErr(t, err, context.DeadlineExceeded)
		if diff := cmp.Diff([]string{"added unknown"}, verbs(&seen)); diff != "" {
			t.Error(diff)
		}
		must(t, q.Close())
	})
}
