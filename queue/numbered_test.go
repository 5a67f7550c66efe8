package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// kept encodes a request and reads it again.
func kept(t *testing.T, r queue.Request) (string, queue.Request) {
	t.Helper()
	id, data, err := r.Encode()
	must(t, err)
	again, err := queue.DecodeRequest(data, 0)
	must(t, err)
	return id, again
}

func TestANumberedCallCountsOnce(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		ctx := within(t)
		q := open(t, server)
		kind := queue.Define[string, queue.None]("k")
		w := q.Worker("w")
		ran := make(chan string, 10)
		kind.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			ran <- j.Args
			return queue.None{}, nil
		})
		start(t, w)
		id, a := kept(t, kind.With("a"))
		_, b := kept(t, kind.With("b"))
		call := func(number int64, requests ...queue.Request) error {
			// Each call is another process.
			_, err := open(t, server).EnqueueNumbered(ctx, "s", number, requests...)
			return err
		}
		must(t, call(1, a))
		if got := <-ran; got != "a" {
			t.Fatal(got)
		}
		if _, err := kind.Job(q, id).Wait(ctx); err != nil && !errors.Is(err, queue.ErrUnknownJob) {
			t.Fatal(err)
		} // it has ended, and is not kept
		must(t, call(1, a))
		must(t, call(3, b))
		if got := <-ran; got != "b" {
			t.Fatalf("%q ran again", got)
		}
		var past *queue.PastError
		for number, r := range map[int64]queue.Request{1: a, 2: a, 3: a} {
			if err := call(number, r); !errors.As(err, &past) || past.Last != 3 {
				t.Errorf("call %d: got %v", number, err)
			}
		}
		must(t, call(5)) // there is nothing that could count twice
		must(t, call(5))
		must(t, call(4, b))
		if ttl := server.PTTL(ctx, "signalbox:queue:{app}:producer:sequence:s").Val(); ttl != -1 {
			t.Errorf("the sequence is forgotten in %v", ttl)
		}
	})
}

// Its fingerprint is free again as soon as it runs; its id is still the job's.
func TestAKeptUniqueJobThatRunsIsKnown(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		ctx := within(t)
		q := open(t, server)
		kind := queue.Define[string, queue.None]("k")
		w := q.Worker("w")
		runs, end := make(chan struct{}, 10), make(chan struct{})
		kind.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) {
			runs <- struct{}{}
			<-end
			return queue.None{}, nil
		})
		start(t, w)
		id, r := kept(t, kind.With("a", queue.Unique("f", queue.Waiting), queue.Retain(time.Hour)))
		number := int64(0)
		repeat := func() {
			t.Helper()
			number++
			numbered, err := q.EnqueueNumbered(ctx, "s", number, r)
			must(t, err)
			many, err := q.EnqueueMany(ctx, r)
			must(t, err)
			for _, o := range append(many, numbered...) {
				if o.Err != nil || o.ID != id || !o.Duplicate && number > 1 {
					t.Errorf("call %d: %+v", number, o)
				}
			}
			findings, err := q.Check(ctx, false)
			must(t, err)
			if len(findings) > 0 {
				t.Error(findings)
			}
		}
		repeat()
		<-runs
		repeat()
		close(end)
		_, err := kind.Job(q, id).Wait(ctx)
		must(t, err)
		repeat()
	})
}

func TestKeptRequestsSayAllThatOptionsSaid(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		ctx := within(t)
		q := open(t, server)
		kind := queue.Define[mail, receipt]("k", queue.Cost("call", 2), queue.Timeout(time.Second), queue.MaxAttempts(3))
		options := []queue.Option{
			queue.Key("tenant:\"7\"\u2028<>"), queue.Require("b", "a"), queue.Priority(-3), queue.Retain(time.Hour),
			queue.In(time.Hour), queue.Unique("f", queue.Alive), queue.ForWithin("an,na", 2*time.Hour),
		}
		plain, err := kind.Enqueue(ctx, q, mail{To: "\x00\xff"}, options...)
		must(t, err)
		want, err := q.Look(ctx, plain.ID())
		must(t, err)
		must(t, q.Delete(ctx, plain.ID()))
		id, r := kept(t, kind.With(mail{To: "\x00\xff"}, options...))
		outcomes, err := q.EnqueueNumbered(ctx, "s", 1, r)
		must(t, err)
		if outcomes[0].ID != id || outcomes[0].Err != nil || outcomes[0].Duplicate {
			t.Fatal(outcomes)
		}
		got, err := q.Look(ctx, id)
		must(t, err)
		want.ID = id
		if w, g := fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got); w != g {
			t.Errorf("want %s\ngot  %s", w, g)
		}
		_, again := kept(t, kind.With(mail{}, options...))
		if outcomes, err = q.EnqueueNumbered(ctx, "s", 2, again); err != nil || outcomes[0].ID != id || !outcomes[0].Duplicate {
			t.Error("the fingerprint did not hold", outcomes, err)
		}
	})
}

func TestKeptRequestsThatNobodyWrote(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, text := range []string{
		``, `null`, `[]`, `{}`, `{"v":3,"id":"i","kind":"k","job":{}}`, `{"v":1,"id":"i","kind":"k"}`,
		`{"v":1,"id":"i","kind":"k","job":[]}`, `{"v":1,"id":"i","kind":"k","job":null}`, `{"v":1,"kind":"k","job":{}}`,
		`{"v":1,"id":"i","kind":"a,b","job":{}}`, `{"v":1,"id":"` + long + `","kind":"k","job":{}}`,
		`{"v":1,"id":"i","kind":"k","job":{},"key":"\u0001"}`, `{"v":1,"id":"i","kind":"k","job":{},"tags":["a\tb"]}`,
		`{"v":1,"id":"i","kind":"k","job":{},"cost":{"a=":1}}`, `{"v":1,"id":"i","kind":"k","job":{},"cost":{"a":-1}}`,
		`{"v":1,"id":"i","kind":"k","job":{},"priority":99999999}`, `{"v":1,"id":"i","kind":"k","job":{},"unique":"f"}`,
		`{"v":1,"id":"i","kind":"k","job":{},"unique":"f","unique_in":"xyz"}`,
		`{"v":1,"id":"i","kind":"k","job":{},"after":{"mode":"all","failure":"x","ids":["a"]}}`,
		`{"v":1,"id":"i","kind":"k","job":{},"after":{"mode":"all","failure":"go"}}`,
		`{"v":1,"id":"i","kind":"k","job":{"args":"` + strings.Repeat("x", 3<<20) + `"}}`,
	} {
		if _, err := queue.DecodeRequest([]byte(text), 0); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%.100s: got %v", text, err)
		}
	}
}

func TestADelayCountsFromWhenTheRequestWasEncoded(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		ctx := within(t)
		q := open(t, server)
		_, data, err := queue.Define[string, queue.None]("k").With("", queue.In(time.Hour)).Encode()
		must(t, err)
		for age, want := range map[time.Duration]queue.State{time.Minute: queue.Delayed, 2 * time.Hour: queue.Pending} {
			r, err := queue.DecodeRequest(data, age)
			must(t, err)
			outcomes, err := q.EnqueueNumbered(ctx, age.String(), 1, r)
			must(t, err)
			job, err := q.Look(ctx, outcomes[0].ID)
			must(t, err)
			if job.State != want {
				t.Errorf("after %v: %s", age, job.State)
			}
			must(t, q.Delete(ctx, outcomes[0].ID))
		}
	})
}

func TestPartitionsEnqueueNumberedByKey(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		ctx := within(t)
		p, err := queue.NewPartitions(server, "large", 3)
		must(t, err)
		t.Cleanup(func() { must(t, p.Close()) })
		kind := queue.Define[int, queue.None]("k")
		var requests []queue.Request
		for i := range 20 {
			_, r := kept(t, kind.With(i, queue.Key(fmt.Sprint("key", i))))
			requests = append(requests, r)
		}
		for range 2 {
			outcomes, err := p.EnqueueNumbered(ctx, "s", 1, requests...)
			must(t, err)
			for i, o := range outcomes {
				if _, err := p.Of(fmt.Sprint("key", i)).Look(ctx, o.ID); err != nil {
					t.Error(err)
				}
			}
		}
		stats, err := p.Stats(ctx)
		must(t, err)
		if len(stats.Kinds) != 1 || stats.Kinds[0].Waiting != 20 {
			t.Errorf("%+v", stats)
		}
	})
}
