package simtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/signalbox-io/signalbox"
)

// client is one goroutine of a box that acquires and releases until the run ends or its box has crashed.
type client struct {
	world  *world
	box    *box
	name   string
	random *rand.Rand
	calls  int
}

func newClient(w *world, b *box, number int) *client {
	name := fmt.Sprintf("%s/%d", b.host.name, number)
	return &client{world: w, box: b, name: name, random: w.plan.random("client " + name)}
}

func resourceName(i int) string { return fmt.Sprintf("r%d", i) }

func (c *client) upTo(most time.Duration) time.Duration {
	return time.Duration(c.random.Int64N(int64(most) + 1))
}

func (c *client) run() {
	for time.Now().Before(c.world.ends) && !c.box.host.isDead() {
		time.Sleep(c.upTo(c.world.plan.HoldMost))
		c.once()
	}
}

// once is one acquisition from its call to its release.
func (c *client) once() {
	plan := c.world.plan
	resource := c.random.IntN(len(plan.Limits))
	limit := plan.Limits[resource]
	weight := 1
	if c.random.IntN(2) == 0 {
		weight += c.random.IntN(limit)
	}
	c.calls++
	a := &acquisition{
		label: fmt.Sprintf("%s#%d", c.name, c.calls), resource: resourceName(resource), host: c.box.host,
		weight: weight, ttl: plan.TTLs[c.random.IntN(len(plan.TTLs))], try: c.random.IntN(5) == 0, called: time.Now(),
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch c.random.IntN(4) {
	case 0:
		ctx, cancel = context.WithTimeout(ctx, c.upTo(4*plan.HoldMost))
		defer cancel()
	case 1:
		stop := time.AfterFunc(c.upTo(2*plan.HoldMost), cancel)
		defer stop.Stop()
	}
	lease, err := c.acquire(ctx, a, limit)
	if err == nil {
		c.hold(a, lease)
	}
}

func (c *client) acquire(ctx context.Context, a *acquisition, limit int) (*signalbox.Lease, error) {
	c.world.check.calls(a)
	semaphore := c.box.Semaphore(a.resource, limit)
	acquire := semaphore.Acquire
	if a.try {
		acquire = semaphore.TryAcquire
	}
	lease, err := acquire(ctx, signalbox.Weight(a.weight), signalbox.TTL(a.ttl), signalbox.Label(a.label))
	if err != nil {
		c.world.check.refused(a, ctx, err)
		return nil, err
	}
	c.world.check.granted(a, lease)
	return lease, nil
}

// hold works for a while, mostly shorter than the ttl and sometimes much longer, and releases. One in eight ignores
// that its lease has ended. Nobody releases on a host that has crashed.
func (c *client) hold(a *acquisition, lease *signalbox.Lease) {
	d := c.upTo(c.world.plan.HoldMost)
	if c.random.IntN(8) == 0 {
		d += 2 * a.ttl
	}
	work := time.NewTimer(d)
	defer work.Stop()
	if c.random.IntN(8) == 0 {
		<-work.C
	} else {
		select {
		case <-work.C:
		case <-lease.Done():
		}
	}
	if c.box.host.isDead() {
		return
	}
	c.world.check.releases(a)
	wasAlive := lease.Err() == nil
	c.world.check.released(a, wasAlive, lease.Release(context.Background()))
}
