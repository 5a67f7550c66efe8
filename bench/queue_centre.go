package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// A contact centre: agents that are offered calls. They log in all at once, and whose call ends is offered the next.

const (
	loggingIn = 10_000
	online    = 1000
)

var phone = queue.Define[string, queue.None]("phone", queue.Cost("call", 1))

func centreTest(b *queueBench) *queueTest {
	t := &queueTest{name: "contact centre", most: 2}
	login := t.row("10,000 agents log in", "s", "", 2, ownAtMost(1, ""))
	cpu := t.row("10,000 agents log in", "µs CPU a log-in", "", 1, justKnow)
	own := t.row("10,000 agents log in", "µs CPU a log-in, their program", "", 1, justKnow)
	freed := t.row("call ended to the next one offered, 1,000 agents online, p50", "ms", "PING", 3, ratioAtMost(3))
	most := t.row("call ended to the next one offered, 1,000 agents online, p99", "ms", "PING", 3, justKnow)
	t.measure = func(ctx context.Context, _ bool) error {
		p, err := b.play(ctx, queueTask{Do: "log in", Kind: signalboxQueue, Workers: loggingIn, Window: time.Minute}, 1)
		if err != nil {
			return err
		}
		login.alone(p.found[0].Seconds)
		cpu.alone(p.cpuPerJob())
		own.alone(p.ownPerJob())
		if err := b.flush(ctx); err != nil {
			return err
		}
		p, err = b.play(ctx, queueTask{Do: "talk", Kind: signalboxQueue, Workers: online, Count: b.plan.Begins, Window: time.Minute}, 1)
		if err != nil {
			return err
		}
		freed.add(quantileOf(p.found[0].Latencies, 0.5), quantileOf(p.found[0].Ping, 0.5))
		most.add(quantileOf(p.found[0].Latencies, 0.99), quantileOf(p.found[0].Ping, 0.99))
		return nil
	}
	return t
}

// agent is a worker that takes a call at a time, and three chats.
func (q *signalboxQueuer) agent(i int, talk func(ctx context.Context)) *queue.Worker {
	w := q.Worker(fmt.Sprint("agent ", i), queue.With(queue.Capacity{"call": 1, "chat": 3}), queue.Tags("de", "en"), queue.OfferFor(time.Minute))
	phone.Handle(w, func(ctx context.Context, _ *queue.Job[string]) (queue.None, error) {
		talk(ctx)
		return queue.None{}, nil
	})
	return w
}

// answered is a hook that counts the calls of workers that were answered, some of them together. It says when there were so many.
type answered struct {
	left atomic.Int64
	all  chan struct{}
}

func (a *answered) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *answered) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a *answered) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if reply, ok := cmd.(interface{ Val() any }); ok && err == nil && (cmd.Name() == "evalsha" || cmd.Name() == "eval") {
			n := int64(1)
			if answers, _ := reply.Val().([]any); len(answers) > 0 {
				if _, together := answers[0].([]any); together {
					n = int64(len(answers))
				}
			}
			if left := a.left.Add(-n); left <= 0 && left+n > 0 {
				close(a.all)
			}
		}
		return err
	}
}

// loginTask has agents log in all at once, of one program: the first call of each makes it known, the second enters it among those
// that are idle. The agents log out when the queue is closed.
func loginTask(ctx context.Context, q queuer, t *queueTask) (found queueFound, err error) {
	ours := q.(*signalboxQueuer)
	if err := ours.Configure(ctx, queue.Placement(queue.LongestIdle)); err != nil {
		return found, err
	}
	calls := &answered{all: make(chan struct{})}
	calls.left.Store(2 * int64(t.Workers))
	ours.client.AddHook(calls)
	failed := make(chan error, t.Workers)
	begun := time.Now()
	for i := range t.Workers {
		go func() {
			if err := ours.agent(i, func(context.Context) {}).Run(ctx); err != nil {
				failed <- err
			}
		}()
	}
	select {
	case <-calls.all:
	case err = <-failed:
	case <-time.After(t.Window):
		err = fmt.Errorf("%d answers were missing after %v", calls.left.Load(), t.Window)
	}
	return queueFound{Jobs: t.Workers, Seconds: time.Since(begun).Seconds()}, err
}

// talks are the agents of a talkTask, by number.
type talks struct {
	began   chan int
	offered chan time.Time
	free    []chan struct{}
	failed  chan error
}

// talkTask has every agent be in a call while more calls wait, and ends one after the other: it measures until the agent is offered
// the next. Between them it measures the round trip of a PING.
func talkTask(ctx context.Context, q queuer, t *queueTask) (found queueFound, err error) {
	ours := q.(*signalboxQueuer)
	ctx, cancel := context.WithTimeout(ctx, t.Window)
	defer cancel()
	client := backend{Addr: t.Addr}.client()
	defer shut(client)
	if err := ours.Configure(ctx, queue.Placement(queue.LongestIdle)); err != nil {
		return found, err
	}
	for from := 0; from < t.Workers+t.Count; from += 100 {
		requests := make([]queue.Request, 100)
		for i := range requests {
			requests[i] = phone.With(strconv.Itoa(from + i))
		}
		if _, err := ours.EnqueueMany(ctx, requests...); err != nil {
			return found, err
		}
	}
	all := &talks{began: make(chan int, t.Workers), offered: make(chan time.Time, t.Workers), failed: make(chan error, t.Workers)}
	for i := range t.Workers {
		all.free = append(all.free, make(chan struct{}))
		go all.agent(ctx, ours, i)
	}
	for range t.Workers {
		if _, _, err := all.next(); err != nil {
			return found, err
		}
	}
	for i := range t.Count {
		for range 3 {
			sent := time.Now()
			if err := client.Ping(ctx).Err(); err != nil {
				return found, err
			}
			found.Ping = append(found.Ping, time.Since(sent).Seconds()*1e3)
		}
		sent := time.Now()
		all.free[i%t.Workers] <- struct{}{}
		at, who, err := all.next()
		if err != nil || who != i%t.Workers {
			return found, errors.Join(err, fmt.Errorf("agent %d was offered the call of agent %d", who, i%t.Workers))
		}
		found.Latencies = append(found.Latencies, at.Sub(sent).Seconds()*1e3)
	}
	return queueFound{Jobs: t.Count, Latencies: found.Latencies, Ping: found.Ping}, nil
}

// agent accepts what it is offered.
func (a *talks) agent(ctx context.Context, q *signalboxQueuer, i int) {
	w := q.agent(i, func(ctx context.Context) {
		a.began <- i
		select {
		case <-a.free[i]:
		case <-ctx.Done():
		}
	})
	go func() {
		if err := w.Run(ctx); err != nil {
			a.failed <- err
		}
	}()
	for o := range w.Offers() {
		a.offered <- time.Now()
		if err := o.Accept(ctx); err != nil {
			a.failed <- err
		}
	}
}

// next waits for a call to be offered and to begin.
func (a *talks) next() (at time.Time, who int, err error) {
	patience := time.After(30 * time.Second)
	select {
	case at = <-a.offered:
	case err = <-a.failed:
		return at, 0, err
	case <-patience:
		return at, 0, errors.New("no call was offered within 30 s")
	}
	select {
	case who = <-a.began:
	case err = <-a.failed:
	case <-patience:
		err = errors.New("no call began within 30 s")
	}
	return at, who, err
}
