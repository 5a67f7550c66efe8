package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

const peersTest = "peers"

func queueTests(b *queueBench) []*queueTest {
	return []*queueTest{
		drainTest(b), squadTest(b), keysTest(b), parkedTest(b), enqueueTest(b), batchTest(b), beginTest(b), idleWorkersTest(b),
		backlogTest(b), delayedTest(b), historyTest(b), centreTest(b), outboxTest(b), peersOf(b),
	}
}

func (b *queueBench) section() *section {
	out := &section{
		Title: "Jobs that do nothing",
		Note: "Medians of rounds, one after the other, in turn; ratio is ours to the other's, round by round. µs CPU are the " +
			"server's, user and system, for a job that is run, or in rows about enqueues enqueued. Calls are those that clients send. 100 slots a worker " +
			"process; River looks for jobs every millisecond where it would every 100.",
		Columns: []string{"what", "unit", "signalbox", "beside", "", "ratio", "lowest..highest", "rounds", "wanted", ""},
		InRows:  true,
	}
	if b.postgres != nil {
		out.Note += " PostgreSQL is " + b.postgres.version + ", as it comes."
	}
	if b.bull != nil {
		out.Note += " BullMQ is " + b.bull.version + "."
	}
	return out
}

// fill enqueues.
func (b *queueBench) fill(ctx context.Context, kind string, jobs, keys int) error {
	t := queueTask{Do: "produce", Kind: kind, Count: jobs, Batch: 100, Keys: keys}
	if kind == asynqQueue {
		t.Batch, t.Goroutines = 10, 10
	}
	_, err := b.play(ctx, t, 1)
	return err
}

// drain enqueues and has workers run what they can in a window.
func (b *queueBench) drain(ctx context.Context, kind string, keys, processes int, settings ...queue.Change) (played, error) {
	jobs := b.plan.Jobs
	if kind != signalboxQueue {
		jobs = b.plan.PeerJobs
	}
	if processes > 1 {
		jobs *= 2
	}
	if err := b.flush(ctx); err != nil {
		return played{}, err
	}
	if err := b.configure(ctx, settings); err != nil {
		return played{}, err
	}
	if err := b.fill(ctx, kind, jobs, keys); err != nil {
		return played{}, err
	}
	t := queueTask{Do: "work", Kind: kind, Slots: 100, Window: b.plan.Window}
	if processes == 1 {
		t.Count, t.Window = jobs, 10*b.plan.Window
	}
	return b.play(ctx, t, processes)
}

func (b *queueBench) configure(ctx context.Context, settings []queue.Change) error {
	if len(settings) == 0 {
		return nil
	}
	q, err := openSignalboxQueue(b.redis.addr)
	if err != nil {
		return err
	}
	return errors.Join(q.Configure(ctx, settings...), q.Close())
}

// besideAsynq drains with both.
func (b *queueBench) besideAsynq(ctx context.Context, reversed bool, processes int) (ours, theirs played, err error) {
	return pair(reversed, func() (played, error) { return b.drain(ctx, signalboxQueue, 0, processes) },
		func() (played, error) { return b.drain(ctx, asynqQueue, 0, processes) })
}

func drainTest(b *queueBench) *queueTest {
	t := &queueTest{name: "one worker process"}
	rate := t.row(t.name, "jobs/s", asynqQueue, 0, ratioAtLeast(8))
	sent := t.row(t.name, "calls a job", asynqQueue, 3, ownAtMost(0.1, ""))
	cpu := t.row(t.name, "µs CPU a job", asynqQueue, 1, ratioAtMost(0.25))
	own := t.row(t.name, "µs CPU a job, the worker", asynqQueue, 1, justKnow)
	t.measure = func(ctx context.Context, reversed bool) error {
		ours, theirs, err := b.besideAsynq(ctx, reversed, 1)
		if err != nil {
			return err
		}
		rate.add(ours.rate(), theirs.rate())
		sent.add(ours.callsPerJob(), theirs.callsPerJob())
		own.add(ours.ownPerJob(), theirs.ownPerJob())
		cpu.add(ours.cpuPerJob(), theirs.cpuPerJob())
		return nil
	}
	return t
}

func squadTest(b *queueBench) *queueTest {
	t := &queueTest{name: "ten worker processes"}
	rate := t.row(t.name, "jobs/s", asynqQueue, 0, ratioAtLeast(5))
	share := t.row(t.name, "largest share/smallest", asynqQueue, 2, ownAtMost(1.2, ""))
	cpu := t.row(t.name, "µs CPU a job", asynqQueue, 1, justKnow)
	t.measure = func(ctx context.Context, reversed bool) error {
		ours, theirs, err := b.besideAsynq(ctx, reversed, 10)
		if err != nil {
			return err
		}
		rate.add(ours.rate(), theirs.rate())
		share.add(ours.spread(), theirs.spread())
		cpu.add(ours.cpuPerJob(), theirs.cpuPerJob())
		return nil
	}
	return t
}

// spread is the largest number of jobs of a child, divided by the smallest.
func (p played) spread() float64 {
	var jobs []float64
	for _, f := range p.found {
		jobs = append(jobs, float64(f.Jobs))
	}
	return slices.Max(jobs) / max(slices.Min(jobs), 1)
}

func keysTest(b *queueBench) *queueTest {
	t := &queueTest{name: "1,000 keys limited to two"}
	rate := t.row(t.name, "jobs/s", "without keys", 0, ratioAtLeast(0.5))
	cpu := t.row(t.name, "µs CPU a job", "without keys", 1, justKnow)
	t.measure = func(ctx context.Context, reversed bool) error {
		limited, free, err := pair(reversed, func() (played, error) {
			return b.drain(ctx, signalboxQueue, 1000, 1, queue.Limit(queue.EachKey, 2))
		}, func() (played, error) { return b.drain(ctx, signalboxQueue, 0, 1) })
		if err != nil {
			return err
		}
		rate.add(limited.rate(), free.rate())
		cpu.add(limited.cpuPerJob(), free.cpuPerJob())
		return nil
	}
	return t
}

const parkedLanes = 10_000

// parkedTest has keys that may not run at all, and jobs without a key.
func parkedTest(b *queueBench) *queueTest {
	t := &queueTest{name: "10,000 parked lanes beside a busy one"}
	rate := t.row(t.name, "jobs/s", "no others", 0, ratioAtLeast(0.9))
	busy := func(ctx context.Context, parked bool) (played, error) {
		if err := b.flush(ctx); err != nil {
			return played{}, err
		}
		if err := b.configure(ctx, []queue.Change{queue.Limit(queue.EachKey, 0)}); err != nil {
			return played{}, err
		}
		if parked {
			if err := b.fill(ctx, signalboxQueue, parkedLanes, parkedLanes); err != nil {
				return played{}, err
			}
			// A worker that finds nothing it may run has parked them all when it is idle.
			if _, err := b.play(ctx, queueTask{Do: "work", Kind: signalboxQueue, Slots: 1, Window: time.Second}, 1); err != nil {
				return played{}, err
			}
		}
		if err := b.fill(ctx, signalboxQueue, b.plan.Jobs, 0); err != nil {
			return played{}, err
		}
		t := queueTask{Do: "work", Kind: signalboxQueue, Slots: 100, Count: b.plan.Jobs, Window: 10 * b.plan.Window}
		return b.play(ctx, t, 1)
	}
	t.measure = func(ctx context.Context, reversed bool) error {
		beside, alone, err := pair(reversed, func() (played, error) { return busy(ctx, true) },
			func() (played, error) { return busy(ctx, false) })
		if err != nil {
			return err
		}
		rate.add(beside.rate(), alone.rate())
		return nil
	}
	return t
}

// produce has so many goroutines enqueue what they can in a window.
func (b *queueBench) produce(ctx context.Context, kind string, goroutines, batch int) func() (played, error) {
	return func() (played, error) {
		if err := b.flush(ctx); err != nil {
			return played{}, err
		}
		return b.play(ctx, queueTask{Do: "produce", Kind: kind, Goroutines: goroutines, Batch: batch, Window: b.plan.Enqueue}, 1)
	}
}

// rates are a row of how many a second, and one of the server's time for each.
type rates struct{ rate, cpu *queueRow }

func (t *queueTest) rates(what, whom string, want wish) rates {
	return rates{t.row(what, "jobs/s", whom, 0, want), t.row(what, "µs CPU a job", whom, 1, justKnow)}
}

func (r rates) add(ours, theirs played) {
	r.rate.add(ours.rate(), theirs.rate())
	r.cpu.add(ours.cpuPerJob(), theirs.cpuPerJob())
}

// enqueueTest is about jobs one by one.
func enqueueTest(b *queueBench) *queueTest {
	t := &queueTest{name: "enqueue, one by one"}
	floor := t.rates(t.name+", a producer", bareQueue, ratioAtLeast(0.9))
	one := t.rates(t.name+", a producer", asynqQueue, ratioAtLeast(1))
	ten := t.rates(t.name+", ten goroutines", asynqQueue, ratioAtLeast(1))
	t.measure = func(ctx context.Context, reversed bool) error {
		for _, c := range []struct {
			rows  rates
			whom  string
			times int
		}{{floor, bareQueue, 1}, {one, asynqQueue, 1}, {ten, asynqQueue, 10}} {
			ours, theirs, err := pair(reversed, b.produce(ctx, signalboxQueue, c.times, 1), b.produce(ctx, c.whom, c.times, 1))
			if err != nil {
				return err
			}
			c.rows.add(ours, theirs)
		}
		return nil
	}
	return t
}

func batchTest(b *queueBench) *queueTest {
	t := &queueTest{name: "enqueue, batches of 100 from one producer"}
	rate := t.rates(t.name, "asynq, ten goroutines", ratioAtLeast(3))
	t.measure = func(ctx context.Context, reversed bool) error {
		ours, theirs, err := pair(reversed, b.produce(ctx, signalboxQueue, 1, 100), b.produce(ctx, asynqQueue, 10, 1))
		if err == nil {
			rate.add(ours, theirs)
		}
		return err
	}
	return t
}

// quantileOf is of values that are not sorted.
func quantileOf(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func beginTest(b *queueBench) *queueTest {
	t := &queueTest{name: "enqueue to start, idle worker"}
	half := t.row(t.name+", p50", "ms", "PING", 3, ratioAtMost(3))
	most := t.row(t.name+", p99", "ms", "PING", 3, ratioAtMost(10))
	polled := t.row(t.name+", p50", "ms", asynqQueue, 3, justKnow)
	t.measure = func(ctx context.Context, _ bool) error {
		p, err := b.play(ctx, queueTask{Do: "begin", Kind: signalboxQueue, Count: b.plan.Begins}, 1)
		if err != nil {
			return err
		}
		ours := p.found[0]
		half.add(quantileOf(ours.Latencies, 0.5), quantileOf(ours.Ping, 0.5))
		most.add(quantileOf(ours.Latencies, 0.99), quantileOf(ours.Ping, 0.99))
		if p, err = b.play(ctx, queueTask{Do: "begin", Kind: asynqQueue, Count: b.plan.Polled}, 1); err == nil {
			polled.add(quantileOf(ours.Latencies, 0.5), quantileOf(p.found[0].Latencies, 0.5))
		}
		return err
	}
	return t
}

const idleWorkers = 1000

func idleWorkersTest(b *queueBench) *queueTest {
	t := &queueTest{name: "1,000 idle workers", most: 1}
	sent := t.row(t.name, "commands a worker in 5 s", "", 3, ownAtMost(1, ""))
	cpu := t.row(t.name, "% of a core, the server", "", 2, justKnow)
	t.measure = func(ctx context.Context, _ bool) error {
		ended := make(chan error, 1)
		go func() {
			t := queueTask{Do: "idle", Kind: signalboxQueue, Workers: idleWorkers, Window: b.plan.Idle + 8*time.Second}
			_, err := b.play(ctx, t, 1)
			ended <- err
		}()
		client := backend{Addr: b.redis.addr}.client()
		defer shut(client)
		time.Sleep(6 * time.Second) // they have come, and sent a heartbeat
		before, err := countCalls(ctx, client)
		if err != nil {
			return errors.Join(err, <-ended)
		}
		used := b.redis.process.ran()
		time.Sleep(b.plan.Idle)
		ran := b.redis.process.ran() - used
		after, err := countCalls(ctx, client)
		if err := errors.Join(err, <-ended); err != nil {
			return err
		}
		delta := after.since(before)
		sent.alone(float64(delta.sent("")) / idleWorkers / (b.plan.Idle.Seconds() / 5))
		cpu.alone(100 * ran.Seconds() / b.plan.Idle.Seconds())
		return nil
	}
	return t
}

// payloadBytes is what a client has to say of a job of this benchmark: its arguments.
const payloadBytes = 2

func backlogTest(b *queueBench) *queueTest {
	t := &queueTest{name: fmt.Sprintf("%d jobs waiting", b.plan.Backlog), most: 2}
	bytes := t.row(t.name, "bytes a job beside its payload", "", 0, ownAtMost(300, ""))
	half := t.row(t.name+", claim p50", "ms", "1,000 waiting", 2, justKnow)
	claim := t.row(t.name+", claim p99", "ms", "1,000 waiting", 2, ratioAtMost(1.1))
	t.measure = func(ctx context.Context, _ bool) error {
		client := backend{Addr: b.redis.addr}.client()
		defer shut(client)
		few, err := b.play(ctx, queueTask{Do: "claims", Kind: signalboxQueue, Count: b.plan.Claims}, 1)
		if err != nil {
			return err
		}
		before, err := usedMemory(ctx, client)
		if err != nil {
			return err
		}
		if err := b.fill(ctx, signalboxQueue, b.plan.Backlog, 0); err != nil {
			return err
		}
		after, err := usedMemory(ctx, client)
		if err != nil {
			return err
		}
		bytes.alone((after-before)/float64(b.plan.Backlog) - payloadBytes)
		many, err := b.play(ctx, queueTask{Do: "claims", Kind: signalboxQueue, Count: b.plan.Claims}, 1)
		if err != nil {
			return err
		}
		half.add(quantileOf(many.found[0].Latencies, 0.5), quantileOf(few.found[0].Latencies, 0.5))
		claim.add(quantileOf(many.found[0].Latencies, 0.99), quantileOf(few.found[0].Latencies, 0.99))
		return nil
	}
	return t
}

func usedMemory(ctx context.Context, client *redis.Client) (float64, error) {
	info, err := client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(infoField(info, "used_memory:"), 64)
}

// delayedTest has very many jobs due at the same moment, with a worker that runs them and a PING 100 times a second.
func delayedTest(b *queueBench) *queueTest {
	t := &queueTest{name: fmt.Sprintf("%d delayed jobs due at once", b.plan.Delayed), most: 2}
	ping := t.row(t.name+", longest PING", "ms", "", 1, ownAtMost(10, "ms"))
	slow := t.row(t.name+", longest command", "ms", "", 1, ownAtMost(10, "ms"))
	rate := t.row(t.name, "jobs/s", "", 0, justKnow)
	share := t.row(t.name+", who sends the PINGs", "% of its core", "", 0, justKnow)
	t.measure = func(ctx context.Context, _ bool) error {
		client := backend{Addr: b.redis.addr}.client()
		defer shut(client)
		due := time.Now().Add(time.Duration(b.plan.Delayed/20_000+2) * time.Second)
		p, err := b.play(ctx, queueTask{Do: "produce", Kind: signalboxQueue, Count: b.plan.Delayed, Batch: 100, Due: due.UnixMilli()}, 1)
		if err != nil {
			return err
		}
		if time.Now().After(due) {
			return fmt.Errorf("jobs were due before all %.0f were enqueued", p.jobs())
		}
		pacer, err := startPacer(b.cores.client, paceConfig{Addr: b.redis.addr, Connections: 4, Rate: 100})
		if err != nil {
			return err
		}
		defer pacer.process.stop()
		if err := errors.Join(client.ConfigSet(ctx, "slowlog-log-slower-than", "1000").Err(), client.SlowLogReset(ctx).Err()); err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() {
			var err error
			p, err = b.play(ctx, queueTask{Do: "work", Kind: signalboxQueue, Slots: 100, Count: b.plan.Delayed, Window: 30 * time.Second}, 1)
			ended <- err
		}()
		time.Sleep(time.Until(due.Add(-200 * time.Millisecond)))
		found, err := pacer.window(paceWindow{Seconds: 4, Command: []string{"PING"}})
		if err := errors.Join(err, <-ended); err != nil {
			return err
		}
		log, err := client.SlowLogGet(ctx, 128).Result()
		if err != nil {
			return err
		}
		longest := time.Millisecond // what is shorter is not in the log
		for _, entry := range log {
			longest = max(longest, entry.Duration)
		}
		ping.alone(found.Worst)
		slow.alone(longest.Seconds() * 1e3)
		rate.alone(p.rate())
		share.alone(100 * found.Share)
		return nil
	}
	return t
}

// peersOf is about those that need a server or a language of their own.
func peersOf(b *queueBench) *queueTest {
	t := &queueTest{name: peersTest, most: 2}
	type rows struct {
		whom            string
		drained, filled *queueRow
	}
	var all []rows
	for _, whom := range []string{riverQueue, bullQueue} {
		all = append(all, rows{
			whom, t.row("one worker process", "jobs/s", whom, 0, justKnow),
			t.row("enqueue, batches of 100 from one producer", "jobs/s", whom, 0, justKnow),
		})
	}
	t.measure = func(ctx context.Context, reversed bool) error {
		for _, r := range all {
			if why := b.missing[r.whom]; why != "" {
				r.drained.fault, r.filled.fault = why, why
				continue
			}
			if b.postgres != nil {
				if err := b.postgres.empty(ctx); err != nil && reversed { // River makes its tables when it first comes
					return err
				}
			}
			ours, theirs, err := pair(reversed, func() (played, error) { return b.drain(ctx, signalboxQueue, 0, 1) },
				func() (played, error) { return b.drain(ctx, r.whom, 0, 1) })
			if err != nil {
				return err
			}
			r.drained.add(ours.rate(), theirs.rate())
			filled, whose, err := pair(reversed, b.produce(ctx, signalboxQueue, 1, 100), b.produce(ctx, r.whom, 1, 100))
			if err != nil {
				return err
			}
			r.filled.add(filled.rate(), whose.rate())
		}
		return nil
	}
	return t
}
