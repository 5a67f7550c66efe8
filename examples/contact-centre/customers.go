package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/queue"
)

// customers come to the centre by all channels, until they are told to stop.
type customers struct {
	q       *queue.Queue
	pace    pace
	account *account
	seed    uint64
	perMin  map[string]float64
	run     string // begins their ids: those of another run are others

	mu       sync.Mutex
	regulars []regular // who was served lately

	wait    sync.WaitGroup // one for each customer who has not heard of the end
	arrival sync.WaitGroup // of those, who have not been acknowledged yet
}

// come has customers arrive until ctx ends: at random, each independent of the others, which makes the time between two of
// them exponential. They stay until staying ends.
func (c *customers) come(ctx, staying context.Context, through *channel) {
	perMin := c.perMin[through.name]
	if perMin <= 0 {
		return
	}
	random := rand.New(rand.NewPCG(c.seed, uint64(len(through.name))))
	for n := 1; ; n++ {
		gap := time.Duration(random.ExpFloat64() * float64(time.Minute) / perMin)
		if !pause(ctx, c.pace.real(gap)) {
			return
		}
		id := fmt.Sprintf("%s-%s-%d", c.run, through.name, n)
		who, patience := draw(random, through)
		c.wait.Add(1)
		c.arrival.Add(1)
		go func() {
			defer c.wait.Done()
			c.one(staying, through, id, who, patience)
		}()
	}
}

// draw makes up a customer.
func draw(random *rand.Rand, through *channel) (Contact, time.Duration) {
	who := Contact{
		Customer: names[random.IntN(len(names))],
		Skill:    skills[[...]int{0, 0, 0, 0, 0, 0, 1, 1, 1, 2}[random.IntN(10)]],
		VIP:      random.IntN(10) == 0,
		Regular:  random.IntN(8) == 0,
		Takes:    time.Duration(float64(through.takes) * (0.3 + 0.7*random.ExpFloat64())),
	}
	return who, time.Duration(float64(through.patience) * (0.2 + 0.8*random.ExpFloat64()))
}

// regular is a customer who knows an agent.
type regular struct{ customer, agent string }

const mostRegulars = 50

// knows returns whom a customer asks for: one in eight was here before, and has the agent of then for himself for a minute.
func (c *customers) knows(who *Contact) (agent string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !who.Regular || len(c.regulars) == 0 {
		return ""
	}
	known := c.regulars[0]
	c.regulars = c.regulars[1:]
	who.Customer, who.Asks = known.customer, known.agent
	return known.agent
}

func (c *customers) remember(who regular) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if who.agent != "" && len(c.regulars) < mostRegulars {
		c.regulars = append(c.regulars, who)
	}
}

// one is a customer: comes, waits, is served or hangs up. The queue tries again while its server is away, with the same id:
// so nobody comes twice, however often it is asked.
func (c *customers) one(ctx context.Context, through *channel, id string, who Contact, patience time.Duration) {
	options := []queue.Option{queue.ID(id), queue.Require(who.Skill)}
	if who.VIP {
		options = append(options, queue.Priority(5))
	}
	if agent := c.knows(&who); agent != "" {
		options = append(options, queue.ForWithin(agent, c.pace.real(time.Minute)))
	}
	job, err := through.kind.Enqueue(ctx, c.q, who, options...)
	for errors.Is(err, queue.ErrUnavailable) && ctx.Err() == nil {
		job, err = through.kind.Enqueue(ctx, c.q, who, options...)
	}
	if err == nil {
		c.account.came(through, id)
	}
	c.arrival.Done()
	if err == nil {
		c.stay(ctx, through, job, who, patience)
	}
}

// stay waits for the end of a contact, and hangs up when the patience is over and nobody has answered.
func (c *customers) stay(ctx context.Context, through *channel, job queue.Enqueued[Served], who Contact, patience time.Duration) {
	var hangUp <-chan time.Time
	if through.patience > 0 {
		hangUp = time.After(c.pace.real(patience))
	}
	type end struct {
		served Served
		err    error
	}
	ended := make(chan end, 1)
	go func() {
		served, err := job.Wait(ctx)
		ended <- end{served, err}
	}()
	for {
		select {
		case e := <-ended:
			if ctx.Err() == nil || e.err == nil {
				c.remember(regular{who.Customer, e.served.Agent})
				c.account.left(job.ID(), c.pace.centre(e.served.Waited), e.err)
			}
			return
		case <-hangUp:
			hangUp = nil
			if seen, err := c.q.Look(ctx, job.ID()); err == nil && seen.State != queue.Running {
				// An error means that it has just ended, or that the server is away: Wait tells.
				_ = c.q.Cancel(ctx, "the customer hung up", job.ID())
			}
		}
	}
}

// adopt takes over who was in the queue when the centre opened: they came in an earlier run.
func (c *customers) adopt(ctx, staying context.Context) (int, error) {
	adopted := 0
	for seen, err := range c.q.Jobs(ctx, queue.Filter{}) {
		if err != nil {
			return adopted, err
		}
		through := channelOf(seen.Kind)
		if through == nil || seen.State == queue.Done || seen.State == queue.Canceled || seen.State == queue.Dead {
			continue
		}
		adopted++
		c.account.came(through, seen.ID)
		c.wait.Go(func() { c.stay(staying, through, through.kind.Job(c.q, seen.ID), contactOf(&seen), through.patience) })
	}
	return adopted, nil
}

// pause waits, unless ctx ends before: then it says false.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

var names = []string{
	"Ada", "Bruno", "Clara", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jakub", "Kaja", "Lars", "Mira", "Nils",
	"Olga", "Pavel", "Quentin", "Rosa", "Sami", "Tereza", "Ulla", "Viktor", "Wanda", "Xenia", "Yusuf", "Zofia",
}
