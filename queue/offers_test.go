package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

var call = queue.Define[string, string]("call", queue.Cost("call", 1))

// agent is a worker that takes offers, and answers calls with its name.
func agent(t *testing.T, q *queue.Queue, name string, options ...queue.WorkerOption) *queue.Worker {
	t.Helper()
	w := q.Worker(name, append([]queue.WorkerOption{queue.With(queue.Capacity{"call": 1}), queue.OfferFor(20 * time.Second)}, options...)...)
	call.Handle(w, func(context.Context, *queue.Job[string]) (string, error) { return name, nil })
	return w
}

// rings waits for an offer.
func rings(t *testing.T, w *queue.Worker) *queue.Offer {
	t.Helper()
	select {
	case o := <-w.Offers():
		return o
	case <-within(t).Done():
		t.Fatal("nothing is offered")
		return nil
	}
}

// seen waits until a worker is seen in a state.
func seen(t *testing.T, q *queue.Queue, name string, state queue.WorkerState) {
	t.Helper()
	for ctx := within(t); ; {
		workers, err := q.Workers(ctx)
		must(t, err)
		for i := range workers {
			if workers[i].Name == name && workers[i].State == state {
				return
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s is not %s", name, state)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestAnOfferThatIsAcceptedRuns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		w := agent(t, q, "anna")
		start(t, w)
		job, err := call.Enqueue(within(t), q, "hello")
		must(t, err)
		o := rings(t, w)
		info, err := q.Look(within(t), job.ID())
		must(t, err)
		if o.ID != job.ID() || info.State != queue.Offered || info.Until.IsZero() || !strings.HasPrefix(info.By, "anna ") {
			t.Fatalf("offered %s, seen %+v", o.ID, info)
		}
		stats, err := q.Stats(within(t))
		must(t, err)
		if stats.Offered != 1 || stats.Running != 0 {
			t.Errorf("stats %+v", stats)
		}
		why, err := q.Why(within(t), job.ID())
		must(t, err)
		if !strings.Contains(why.Text, "offered to anna") {
			t.Error(why.Text)
		}
		must(t, o.Accept(within(t)))
		if by, err := job.Wait(within(t)); by != "anna" || err != nil {
			t.Error(by, err)
		}
		wantErr(t, o.Decline(within(t)), queue.ErrOfferOver)
		clean(t, q)
	})
}

// clean wants the state on the server to be whole.
func clean(t *testing.T, q *queue.Queue) {
	t.Helper()
	findings, err := q.Check(within(t), false)
	must(t, err)
	if len(findings) > 0 {
		t.Errorf("check: %v", findings)
	}
}

func TestADeclinedOfferGoesToTheNext(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		must(t, q.Configure(within(t), queue.Placement(queue.LongestIdle)))
		anna := agent(t, q, "anna")
		start(t, anna)
		job, err := call.Enqueue(within(t), q, "hello")
		must(t, err)
		must(t, rings(t, anna).Decline(within(t)))
		clean(t, q)
		bob := agent(t, q, "bob")
		start(t, bob)
		must(t, rings(t, bob).Accept(within(t)))
		if by, err := job.Wait(within(t)); by != "bob" || err != nil {
			t.Error(by, err)
		}
		clean(t, q)
	})
}

func TestADeclinedOfferComesAgainIfThereIsNobodyElse(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		anna := agent(t, q, "anna")
		start(t, anna)
		begun := time.Now()
		job, err := call.Enqueue(within(t), q, "hello")
		must(t, err)
		must(t, rings(t, anna).Decline(within(t)))
		time.Sleep(time.Second) // of virtual time
		why, err := q.Why(within(t), job.ID())
		must(t, err)
		if !strings.Contains(why.Text, "not offered to anna until") {
			t.Error(why.Text)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		select {
		case o := <-anna.Offers():
			must(t, o.Accept(within(t)))
		case <-ctx.Done():
			t.Fatal("it is never offered again")
		}
		if waited := time.Since(begun); waited < 59*time.Second {
			t.Errorf("it is offered again after %v", waited)
		}
		_, err = job.Wait(within(t))
		must(t, err)
	})
}

func TestAMissedOfferSendsItsWorkerAway(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		must(t, q.Configure(within(t), queue.Placement(queue.LongestIdle)))
		anna, bob := agent(t, q, "anna"), agent(t, q, "bob", queue.Stay())
		start(t, anna)
		seen(t, q, "anna", queue.Online)
		time.Sleep(time.Second)
		start(t, bob)
		seen(t, q, "bob", queue.Online)
		job, err := call.Enqueue(within(t), q, "hello")
		must(t, err)
		missed := rings(t, anna)
		second := rings(t, bob)
		wantErr(t, missed.Accept(within(t)), queue.ErrOfferOver)
		seen(t, q, "anna", queue.Away)
		<-second.Done() // bob lets it pass too, and stays
		wantErr(t, second.Err(), queue.ErrOfferOver)
		seen(t, q, "bob", queue.Online)
		must(t, anna.Online(within(t)))
		must(t, rings(t, anna).Accept(within(t)))
		_, err = job.Wait(within(t))
		must(t, err)
		clean(t, q)
	})
}

func TestWhoLeavesDoesNotGetWhatItIsOffered(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		anna := agent(t, q, "anna")
		stop := start(t, anna)
		job, err := call.Enqueue(within(t), q, "hello")
		must(t, err)
		o := rings(t, anna)
		must(t, anna.Away(within(t)))
		wantErr(t, o.Accept(within(t)), queue.ErrOfferOver)
		info, err := q.Look(within(t), job.ID())
		must(t, err)
		if info.State != queue.Pending || info.Crashes+info.Attempts > 0 {
			t.Errorf("%+v", info)
		}
		must(t, anna.Online(within(t)))
		o = rings(t, anna)
		stop()
		wantErr(t, o.Accept(within(t)), queue.ErrOfferOver)
		bob := agent(t, q, "bob")
		start(t, bob)
		o = rings(t, bob)
		must(t, q.Cancel(within(t), "the caller hung up", job.ID()))
		<-o.Done()
		_, err = job.Wait(within(t))
		wantErr(t, err, queue.ErrCanceled)
		clean(t, q)
	})
}

func TestAReservedJob(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		bob, anna := agent(t, q, "bob"), agent(t, q, "anna, the first")
		start(t, bob)
		seen(t, q, "bob", queue.Online)
		mine, err := call.Enqueue(within(t), q, "for anna", queue.ForWithin("anna, the first", time.Minute))
		must(t, err)
		why, err := q.Why(within(t), mine.ID())
		must(t, err)
		if why.Reason != queue.Reserved || !strings.Contains(why.Text, "reserved for anna, the first until") {
			t.Errorf("%s: %s", why.Reason, why.Text)
		}
		start(t, anna)
		must(t, rings(t, anna).Accept(within(t)))
		if by, err := mine.Wait(within(t)); by != "anna, the first" || err != nil {
			t.Error(by, err)
		}
		must(t, anna.Away(within(t)))
		begun := time.Now()
		any, err := call.Enqueue(within(t), q, "for anna", queue.For("anna, the first", time.Now().Add(30*time.Second)))
		must(t, err)
		must(t, rings(t, bob).Accept(within(t)))
		if by, err := any.Wait(within(t)); by != "bob" || err != nil || time.Since(begun) < 30*time.Second {
			t.Error(by, err, time.Since(begun))
		}
		clean(t, q)
	})
}

func TestANameIsOneAgents(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		stop := start(t, agent(t, q, "anna"))
		seen(t, q, "anna", queue.Online)
		wantErr(t, agent(t, q, "anna").Run(within(t)), queue.ErrNameTaken)
		stop()
		start(t, agent(t, q, "anna"))
		seen(t, q, "anna", queue.Online)
		wantErr(t, q.Worker("x", queue.With(queue.Capacity{"call": -1})).Run(within(t)), queue.ErrInvalid)
	})
}

func TestPlacement(t *testing.T) {
	t.Parallel()
	for order, want := range map[queue.Order][]string{
		queue.LongestIdle: {"anna", "bob", "anna", "bob"},
		queue.LeastBusy:   {"anna", "bob", "bob", "anna"},
	} {
		t.Run(string(order), func(t *testing.T) {
			inBubble(t, func(t *testing.T, server redis.UniversalClient) {
				q := open(t, server)
				must(t, q.Configure(within(t), queue.Placement(order)))
				got := make(chan string, 10)
				for _, name := range []string{"anna", "bob"} {
					room := map[string]int{"anna": 2, "bob": 4}[name]
					w := q.Worker(name, queue.With(queue.Capacity{"call": room}))
					call.Handle(w, func(ctx context.Context, _ *queue.Job[string]) (string, error) {
						got <- name
						<-ctx.Done()
						return "", ctx.Err()
					})
					start(t, w)
					seen(t, q, name, queue.Online)
					time.Sleep(time.Second)
				}
				for i, name := range want {
					_, err := call.Enqueue(within(t), q, "hello")
					must(t, err)
					if by := <-got; by != name {
						t.Errorf("call %d goes to %s, not to %s", i+1, by, name)
					}
					time.Sleep(time.Second)
				}
				clean(t, q)
			})
		})
	}
}
