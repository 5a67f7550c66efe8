package queue_test

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/cases"
	"github.com/signalbox-io/signalbox/queue"
)

// A day of a contact centre in virtual time, by a seed. Agents have skills, one call and three chats at a time; they accept,
// decline, let pass, go away, log out and in again; their programs are cut off from the server, ten agents at once. Tasks come by
// Poisson, with priorities, some for one agent. What must hold:
//
//   - no agent has more than its capacities at any instant;
//   - no task is run by two at once, and each is done once (but for those whose agent was cut off, which are begun again);
//   - no task goes before one like it that has waited for longer, by age and priority, but for as long as an offer takes.
//
// `make simulate-centre` has more agents and tasks: SIGNALBOX_CENTRE="1000 200000 1" is agents, tasks and the seed.

const (
	offerLasts = 20 * time.Second
	centreDay  = 8 * time.Hour
)

var chat = queue.Define[int, int]("chat", queue.Cost("chat", 1))

var phone = queue.Define[int, int]("phone", queue.Cost("call", 1))

type centre struct {
	t      *testing.T
	tasks  int
	mu     sync.Mutex
	runs   map[string]string         // task -> who runs it
	ended  map[string]int            // task -> how often it was done
	first  map[string]*firstOffer    // task -> when it was offered first
	using  map[string]map[string]int // agent -> capacity -> used
	offers int
	lasts  time.Duration // a task, on average
	terms  map[string]taskTerms
}

type taskTerms struct {
	priority int
	reserved bool
}

// firstOffer is what decides who goes first.
type firstOffer struct {
	class           string
	order, enqueued int64 // ms
	claimed         int64
}

func TestADayInTheCentre(t *testing.T) {
	if text := os.Getenv("SIGNALBOX_CENTRE"); text != "" {
		var agents, tasks int
		var seed uint64
		if n, err := fmt.Sscan(text, &agents, &tasks, &seed); n != 3 {
			t.Fatal("SIGNALBOX_CENTRE is agents, tasks and a seed: ", err)
		}
		aDayInTheCentre(t, agents, tasks, seed)
		return
	}
	for seed := range uint64(cases.Count(4)) { //nolint:gosec // a small number
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { aDayInTheCentre(t, 20, 1000, seed) })
	}
}

func aDayInTheCentre(t *testing.T, agents, tasks int, seed uint64) {
	t.Helper()
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		s := &centre{
			t: t, tasks: tasks, runs: map[string]string{}, ended: map[string]int{}, first: map[string]*firstOffer{}, using: map[string]map[string]int{},
			terms: map[string]taskTerms{}, lasts: centreDay * time.Duration(agents) / time.Duration(tasks) * 6 / 5, // six in ten have a call
		}
		s.day(server, agents, seed)
	})
}

func (s *centre) day(server redis.UniversalClient, agents int, seed uint64) {
	t := s.t
	chance := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // it is to be the same every time
	ctx, cancel := context.WithTimeout(t.Context(), 3*centreDay)
	defer cancel()
	q := open(t, server)
	must(t, q.Configure(ctx, queue.Placement(queue.LongestIdle), queue.Crashes(1000)))
	working, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for from := 0; from < agents; from += 10 {
		cut := &atomic.Bool{}
		program := open(t, &deaf{server, cut}, queue.Lease(5*time.Minute))
		for i := from; i < min(from+10, agents); i++ {
			own := rand.New(rand.NewPCG(seed, uint64(i)+2)) //nolint:gosec // as above
			all.Go(func() { s.agent(working, program, i, own) })
		}
		all.Go(func() { outages(working, cut, rand.New(rand.NewPCG(seed, uint64(from)+1e6))) }) //nolint:gosec // as above
	}
	all.Go(func() { s.watch(working, q) })
	begun := time.Now()
	s.customers(ctx, q, agents, chance)
	for ; ; time.Sleep(time.Minute) {
		stats, err := q.Stats(ctx)
		must(t, err)
		if stats.Waiting+stats.Running+stats.Offered+stats.Later == 0 {
			break
		}
	}
	t.Logf("%d agents, %d tasks, %d offers, %v until the last was done", agents, s.tasks, s.offers, time.Since(begun))
	findings, err := q.Check(ctx, false)
	must(t, err)
	if len(findings) > 0 {
		t.Errorf("check: %v", findings)
	}
	stop()
	all.Wait()
	s.nothingLost()
	s.inTurn()
}

// watch looks at all agents as the server sees them, now and then.
func (s *centre) watch(ctx context.Context, q *queue.Queue) {
	for pause(ctx, 10*time.Minute) {
		workers, err := q.Workers(ctx)
		if err != nil && ctx.Err() == nil {
			s.t.Error(err)
		}
		for _, w := range workers {
			for name, c := range w.Capacities {
				if c.Used > c.Limit && c.Limit > 0 { // a handler that runs on while its job is another's makes it less
					s.t.Errorf("%s has %d of %d %ss on the server", w.Name, c.Used, c.Limit, name)
				}
			}
		}
	}
}

// outages cut a program off now and then, some for longer than its lease.
func outages(ctx context.Context, cut *atomic.Bool, chance *rand.Rand) {
	for pause(ctx, time.Duration(chance.ExpFloat64()*float64(3*time.Hour))) {
		cut.Store(true)
		pause(ctx, time.Duration(chance.IntN(600))*time.Second)
		cut.Store(false)
	}
	cut.Store(false)
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func languageOf(i int) string { return "lang:" + []string{"de", "en", "fr"}[i%3] }

// customers come evenly over the day, as Poisson has it.
func (s *centre) customers(ctx context.Context, q *queue.Queue, agents int, chance *rand.Rand) {
	begun, told := time.Now(), time.Duration(0)
	for i := range s.tasks {
		time.Sleep(time.Duration(chance.ExpFloat64() * float64(centreDay) / float64(s.tasks)))
		if hour := time.Since(begun).Truncate(time.Hour); hour > told {
			told = hour
			s.t.Logf("after %v: %d tasks have come, %d were offered", hour, i, s.offersSoFar())
		}
		id, its := fmt.Sprint("task ", i), taskTerms{chance.IntN(4), chance.IntN(20) == 0}
		options := []queue.Option{queue.Priority(its.priority), queue.ID(id)}
		if n := chance.IntN(6); n < 3 {
			options = append(options, queue.Require(languageOf(n)))
		}
		if its.reserved {
			options = append(options, queue.ForWithin(fmt.Sprint("agent ", chance.IntN(agents)), time.Duration(1+chance.IntN(300))*time.Second))
		}
		s.mu.Lock()
		s.terms[id] = its
		s.mu.Unlock()
		kind := phone
		if chance.IntN(2) == 0 {
			kind = chat
		}
		if _, err := kind.Enqueue(ctx, q, i, options...); err != nil {
			s.t.Error(err)
			return
		}
	}
}

// agent logs in and out until the day is over.
func (s *centre) agent(ctx context.Context, q *queue.Queue, i int, chance *rand.Rand) {
	name := fmt.Sprint("agent ", i)
	for ctx.Err() == nil {
		w := q.Worker(name, queue.With(queue.Capacity{"call": 1, "chat": 3}), queue.Tags(languageOf(i)), queue.OfferFor(offerLasts))
		s.handle(w, phone, "call", 1, name)
		s.handle(w, chat, "chat", 3, name)
		shift, logOut := context.WithTimeout(ctx, time.Duration(1+chance.IntN(5))*time.Hour)
		ended := make(chan error, 1)
		go func() { ended <- w.Run(shift) }()
		var answers sync.WaitGroup
		for o := range w.Offers() {
			s.offered(o)
			think, mood := time.Duration(chance.IntN(10000))*time.Millisecond, chance.IntN(100)
			answers.Go(func() { decide(shift, w, o, think, mood) })
		}
		answers.Wait()
		logOut()
		if err := <-ended; err != nil && ctx.Err() == nil {
			s.t.Logf("%s: %v", name, err) // its last call got nowhere: its name is its own until its lease is over
		}
		pause(ctx, time.Duration(chance.IntN(900))*time.Second)
	}
}

func (s *centre) offersSoFar() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offers
}

// decide is what an agent does about an offer. What comes of it is for the end of the day to see.
func decide(ctx context.Context, w *queue.Worker, o *queue.Offer, think time.Duration, mood int) {
	switch {
	case mood < 4: // it does not hear it
		<-o.Done()
		pause(ctx, think*6)
		_ = w.Online(ctx)
		return
	case mood < 8:
		pause(ctx, think)
		_ = o.Decline(ctx)
		return
	case mood < 10:
		pause(ctx, think)
		_ = w.Away(ctx)
		pause(ctx, think*60)
		_ = w.Online(ctx)
		return
	}
	pause(ctx, think)
	_ = o.Accept(ctx)
}

func (s *centre) offered(o *queue.Offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offers++
	its := s.terms[o.ID]
	if s.first[o.ID] != nil || its.reserved {
		return
	}
	s.first[o.ID] = &firstOffer{
		class: o.Kind + " " + strings.Join(o.Tags, ","), enqueued: o.Enqueued.UnixMilli(),
		order: o.Enqueued.Add(-time.Duration(its.priority) * time.Minute).UnixMilli(), claimed: o.Token / 1000,
	}
}

func (s *centre) handle(w *queue.Worker, kind queue.Kind[int, int], capacity string, most int, name string) {
	kind.Handle(w, func(ctx context.Context, j *queue.Job[int]) (int, error) {
		s.begin(j.ID, name, capacity, most)
		defer s.end(j.ID, name, capacity)
		chance := rand.New(rand.NewPCG(uint64(j.Token), 7)) //nolint:gosec // any will do
		if !pause(ctx, time.Duration(chance.ExpFloat64()*float64(s.lasts))) {
			return 0, queue.Retry(context.Cause(ctx), 0)
		}
		s.mu.Lock()
		s.ended[j.ID]++
		s.mu.Unlock()
		return j.Args, nil
	})
}

func (s *centre) begin(task, name, capacity string, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.runs[task]; other != "" {
		s.t.Errorf("%s is run by %s and %s", task, other, name)
	}
	s.runs[task] = name
	if s.using[name] == nil {
		s.using[name] = map[string]int{}
	}
	if s.using[name][capacity]++; s.using[name][capacity] > most {
		s.t.Errorf("%s has %d of %d %ss", name, s.using[name][capacity], most, capacity)
	}
}

func (s *centre) end(task, name, capacity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, task)
	s.using[name][capacity]--
}

// nothingLost wants every task to be done. One whose agent was cut off when it had done it is done again.
func (s *centre) nothingLost() {
	again := 0
	for i := range s.tasks {
		switch n := s.ended[fmt.Sprint("task ", i)]; {
		case n == 0:
			s.t.Errorf("task %d is lost", i)
		case n > 1:
			again++
		}
	}
	if again > s.tasks/20 {
		s.t.Errorf("%d of %d tasks were done more than once", again, s.tasks)
	}
}

// inTurn wants no task to be offered while one of the same terms waits that is older, and goes on to wait for longer than an
// offer takes: at the time at which a task is offered, those that do so have no lower order.
func (s *centre) inTurn() {
	classes := map[string][]*firstOffer{}
	for _, f := range s.first {
		classes[f.class] = append(classes[f.class], f)
	}
	for class, offered := range classes {
		slices.SortFunc(offered, func(a, b *firstOffer) int { return cmp.Compare(a.claimed, b.claimed) })
		coming := slices.SortedFunc(slices.Values(offered), func(a, b *firstOffer) int { return cmp.Compare(a.enqueued, b.enqueued) })
		waiting := &byOrder{}
		for _, a := range offered {
			for len(coming) > 0 && coming[0].enqueued+2 < a.claimed {
				heap.Push(waiting, coming[0])
				coming = coming[1:]
			}
			for len(*waiting) > 0 && (*waiting)[0].claimed <= a.claimed+offerLasts.Milliseconds()+1000 {
				heap.Pop(waiting)
			}
			if len(*waiting) > 0 && (*waiting)[0].order+2 < a.order {
				s.t.Fatalf("%s: %+v goes before %+v", class, a, (*waiting)[0])
			}
		}
	}
}

// byOrder is a heap.
type byOrder []*firstOffer

func (h byOrder) Len() int           { return len(h) }
func (h byOrder) Less(i, j int) bool { return h[i].order < h[j].order }
func (h byOrder) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byOrder) Push(x any)        { *h = append(*h, x.(*firstOffer)) } //nolint:forcetypeassert // there is nothing else in it
func (h *byOrder) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
