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

// agents are simulated ones, several in a process: they log in, accept what they are offered after a moment, take as long
// as the contact takes, go away for a while, log out and come back.
type agents struct {
	q            *queue.Queue
	pace         pace
	offerFor     time.Duration
	seed         uint64
	first, count int // which of the centre's agents these are
}

// work has all of them work until ctx ends. The error is the first that was given more than he takes.
func (a *agents) work(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i := a.first; i < a.first+a.count; i++ {
		all.Go(func() {
			if err := a.one(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil && err != context.Canceled { //nolint:errorlint // only its own is no error
		return err
	}
	return nil
}

// one is an agent: shift after shift.
func (a *agents) one(ctx context.Context, i int) error {
	random := rand.New(rand.NewPCG(a.seed, uint64(i)))
	for ctx.Err() == nil {
		err := a.shift(ctx, i, random)
		if errors.Is(err, queue.ErrNameTaken) { // by himself, until the server no longer believes in who was killed
			pause(ctx, lease/4)
			continue
		}
		if err != nil {
			return err
		}
		pause(ctx, a.pace.real(time.Duration(random.ExpFloat64()*float64(5*time.Minute)))) // between shifts
	}
	return nil
}

// shift is from login to logout, with a break.
func (a *agents) shift(ctx context.Context, i int, random *rand.Rand) error {
	d := applicant(i)
	d.offerFor = a.offerFor
	d.offered = a.answers(ctx, d, random.Uint64())
	d, err := logIn(ctx, a.q, d)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		<-d.left // which may be earlier than he wants
		cancel()
	}()
	part := func() { pause(ctx, a.pace.real(time.Duration((0.5+random.ExpFloat64())*float64(time.Hour)))) }
	part()
	_ = d.setAway(ctx, true) // the server hears of it with the next call, if not with this one
	pause(ctx, a.pace.real(time.Duration(random.ExpFloat64()*float64(5*time.Minute))))
	_ = d.setAway(ctx, false)
	part()
	d.logOut()
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.err, d.over)
}

// answers is how an agent answers an offer: most are accepted within seconds, some declined, few overlooked.
func (a *agents) answers(ctx context.Context, d *desk, seed uint64) func(*task) {
	random := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	return func(t *task) {
		mu.Lock()
		thinks := time.Duration((1 + 3*random.Float64()) * float64(time.Second))
		mood := random.IntN(100)
		mu.Unlock()
		switch {
		case mood == 0: // he looks elsewhere until the offer is over, is away by that, and comes back
			<-t.offer.Done()
			pause(ctx, a.pace.real(time.Minute))
			_ = d.setAway(ctx, false)
		case !pause(ctx, a.pace.real(thinks)):
		case mood < 4:
			_ = d.Decline(ctx, t.ID) // or it is somebody else's by now: all the same
		case d.Accept(ctx, t.ID) == nil && pause(ctx, a.pace.real(t.Contact.Takes)):
			_ = d.Finish(t.ID, "")
		}
	}
}

// applicant is what the i-th agent can do: everybody speaks English or German, some Polish; most take calls.
func applicant(i int) *desk {
	d := &desk{name: agentNames[i%len(agentNames)], takes: capacities{}}
	if round := i / len(agentNames); round > 0 {
		d.name += fmt.Sprint(" ", round+1)
	}
	d.skills = [][]string{{"English"}, {"English", "German"}, {"English", "Polish"}, {"German", "Polish"}, {"English"}, {"English", "German"}}[i%6]
	for _, c := range channels {
		d.takes[c.name] = c.atOnce
	}
	switch i % 5 {
	case 3:
		d.takes["call"] = 0
	case 4:
		d.takes["email"] = 0
	}
	return d
}

var agentNames = []string{
	"Alma", "Ben", "Carla", "David", "Emma", "Felix", "Gina", "Henrik", "Ida", "Jonas", "Karin", "Leon", "Maja", "Noah",
	"Oskar", "Paula", "Rafael", "Stella", "Tomas", "Vera",
}
