package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"time"
)

// The subcommand queue: every aim for the speed of the task queue in one table, beside asynq on the same redis-server, River
// on PostgreSQL and BullMQ on Node.
//
// A test has rows, and measures them once in each round: ours and the other right after each other, in the next round the
// other way about. A new aim is a function like those in queue_rows.go, and a line in queueTests.

// queuePlan is how much is measured.
type queuePlan struct {
	Rounds          int
	Jobs, PeerJobs  int           // of a round, ours and those of others
	Window          time.Duration // of a worker
	Enqueue         time.Duration // of a producer
	Begins, Polled  int           // jobs on an idle worker, ours and asynq's
	Idle            time.Duration
	Backlog         int
	Claims, Delayed int
}

var (
	fullQueue = queuePlan{
		Rounds: 5, Jobs: 120_000, PeerJobs: 15_000, Window: 2 * time.Second, Enqueue: time.Second, Begins: 500, Polled: 8,
		Idle: 20 * time.Second, Backlog: 1_000_000, Claims: 10, Delayed: 100_000,
	}
	quickQueue = queuePlan{
		Rounds: 1, Jobs: 40_000, PeerJobs: 8000, Window: time.Second, Enqueue: 400 * time.Millisecond, Begins: 200, Polled: 3,
		Idle: 10 * time.Second, Backlog: 200_000, Claims: 5, Delayed: 100_000,
	}
)

// queueBench is one run.
type queueBench struct {
	plan     queuePlan
	cores    cores
	begin    time.Time
	folder   string
	redis    *server
	postgres *postgres
	bull     *bull
	missing  map[string]string // peers that are not to be had, and why
}

type queueTest struct {
	name    string
	rows    []*queueRow
	most    int                                            // rounds, of what takes long; 0: as many as planned
	measure func(ctx context.Context, reversed bool) error // a round
}

// queueRow is one number of ours and of somebody else's, round by round, and what is wanted of it.
type queueRow struct {
	what, unit, whom string
	digits           int
	want             wish
	ours, theirs     []float64
	fault            string
}

func (t *queueTest) row(what, unit, whom string, digits int, want wish) *queueRow {
	r := &queueRow{what: what, unit: unit, whom: whom, digits: digits, want: want}
	t.rows = append(t.rows, r)
	return r
}

func (r *queueRow) add(ours, theirs float64) {
	r.ours, r.theirs = append(r.ours, ours), append(r.theirs, theirs)
}

func (r *queueRow) alone(ours float64) { r.ours = append(r.ours, ours) }

// tell adds the row to the table, and what was wanted to the aims.
func (r *queueRow) tell(out *section) {
	if len(r.ours) == 0 {
		out.row(r.what, r.unit, "-", r.whom, "-", "-", "-", "0", r.want.text, "not measured: "+r.fault)
		if r.want.text != "" {
			out.aim(r.what+": "+r.unit, r.want.text, nil, r.want.met)
		}
		return
	}
	judged, theirs, ratio := r.ours, "-", "-"
	span := number(slices.Min(r.ours), r.digits) + ".." + number(slices.Max(r.ours), r.digits)
	if len(r.theirs) > 0 {
		ratios := ratiosOf(r.ours, r.theirs)
		theirs, ratio = number(median(r.theirs), r.digits), number(median(ratios), 2)
		span = number(slices.Min(ratios), 2) + ".." + number(slices.Max(ratios), 2)
		if !r.want.own {
			judged = ratios
		}
	}
	verdict := ""
	if r.want.text != "" {
		out.aim(r.what+": "+r.unit, r.want.text, judged, r.want.met)
		verdict = "MISS"
		if out.Aims[len(out.Aims)-1].Pass {
			verdict = "pass"
		}
	}
	out.row(r.what, r.unit, number(median(r.ours), r.digits), r.whom, theirs, ratio, span, strconv.Itoa(len(r.ours)), r.want.text,
		verdict)
}

func runQueue(ctx context.Context, args []string) error {
	flags := newRunFlags("queue", queuePage, "one short round without River and BullMQ, less than a minute")
	flags.chosen("tests")
	flags.profiled("every child process")
	pattern, err := flags.parse(args)
	if err != nil {
		return err
	}
	b := &queueBench{plan: fullQueue, cores: availableCores(), begin: time.Now(), missing: map[string]string{}}
	if flags.quick {
		b.plan = quickQueue
		b.missing[riverQueue], b.missing[bullQueue] = "not in a quick run", "not in a quick run"
	}
	tests := slices.DeleteFunc(queueTests(b), func(t *queueTest) bool { return !pattern.MatchString(t.name) })
	if len(tests) == 0 {
		return fmt.Errorf("no test has a name like %q; -list lists them", pattern)
	}
	if flags.onlyList {
		for _, t := range tests {
			fmt.Println(t.name)
		}
		return nil
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt)
	defer cancel()
	r, err := b.run(ctx, tests)
	if err != nil {
		return err
	}
	return flags.deliver(r, "make bench-queue", args, "The task queue, measured")
}

func (b *queueBench) run(ctx context.Context, tests []*queueTest) (r *report, err error) {
	if b.folder, err = os.MkdirTemp("", "signalbox-bench-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.folder)) }()
	if b.redis, err = startRedis(ctx, b.cores.server, b.folder); err != nil {
		return nil, err
	}
	defer b.redis.process.kill()
	if slices.ContainsFunc(tests, func(t *queueTest) bool { return t.name == peersTest || t.name == outboxTestName }) {
		b.findPeers(ctx)
		defer func() {
			if b.postgres != nil {
				b.postgres.stop()
			}
		}()
	}
	r = &report{Machine: describeMachine(b.redis.version, b.cores)}
	out := b.section()
	for _, t := range tests {
		if err := b.measure(ctx, t); err != nil {
			return nil, err
		}
		for _, row := range t.rows {
			row.tell(out)
		}
	}
	r.Sections = []*section{out}
	r.explain(queueReasons)
	r.Seconds = time.Since(b.begin).Seconds()
	r.LoadAfter = loadAverage()
	return r, nil
}

// measure plays the rounds of a test. What fails shows in its rows; an interrupt ends all.
func (b *queueBench) measure(ctx context.Context, t *queueTest) error {
	rounds := b.plan.Rounds
	if t.most > 0 {
		rounds = min(rounds, t.most)
	}
	for round := range rounds {
		begun := time.Now()
		err := b.flush(ctx)
		if err == nil {
			err = t.measure(ctx, round%2 == 1)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		said := "done"
		if err != nil {
			said = "FAILED: " + err.Error()
			for _, row := range t.rows {
				row.fault = err.Error()
			}
		}
		fmt.Fprintf(os.Stderr, "%4.0fs %s, round %d of %d, %.1f s: %s\n", time.Since(b.begin).Seconds(), t.name, round+1, rounds,
			time.Since(begun).Seconds(), said)
	}
	return nil
}

func (b *queueBench) flush(ctx context.Context) error { return flush(ctx, b.redis) }

// findPeers starts what River and BullMQ need.
func (b *queueBench) findPeers(ctx context.Context) {
	var err error
	if b.missing[riverQueue] == "" {
		if b.postgres, err = startPostgres(ctx, b.cores.server, b.folder); err != nil {
			b.missing[riverQueue] = err.Error()
		}
	}
	if b.missing[bullQueue] == "" {
		if b.bull, err = installBull(ctx, b.folder); err != nil {
			b.missing[bullQueue] = err.Error()
		}
	}
}

// pair measures ours and another's one after the other.
func pair[T any](reversed bool, ours, theirs func() (T, error)) (a, b T, err error) {
	if reversed {
		if b, err = theirs(); err == nil {
			a, err = ours()
		}
		return a, b, err
	}
	if a, err = ours(); err == nil {
		b, err = theirs()
	}
	return a, b, err
}

// played is what a number of children did at once, and the server for them.
type played struct {
	found []queueFound
	cpu   time.Duration
	calls calls
}

// play has so many children do a task.
func (b *queueBench) play(ctx context.Context, t queueTask, processes int) (p played, err error) {
	switch t.Kind {
	case riverQueue, riverTxQueue:
		t.Addr = b.postgres.addr
	case outboxQueue:
		t.Addr = b.redis.addr + " " + b.postgres.addr
	default:
		t.Addr = b.redis.addr
	}
	children := make([]*process, processes)
	for i := range children {
		if t.Kind == bullQueue {
			children[i], err = b.bull.start(b.cores.client, &t)
		} else {
			children[i], err = startRole(b.cores.client, "queue", t)
		}
		if err != nil {
			return p, err
		}
		defer children[i].stop()
	}
	var word string
	for _, child := range children {
		if err := child.hear(&word); err != nil {
			return p, err
		}
	}
	client := backend{Addr: b.redis.addr}.client()
	defer shut(client)
	before, err := countCalls(ctx, client)
	if err != nil {
		return p, err
	}
	used := b.redis.process.ran()
	for _, child := range children {
		if err := child.tell("begin"); err != nil {
			return p, err
		}
	}
	p.found = make([]queueFound, processes)
	for i, child := range children {
		if err := child.hear(&p.found[i]); err != nil {
			return p, err
		}
		if p.found[i].Fault != "" {
			return p, fmt.Errorf("%s, %s: %s", t.Do, t.Kind, p.found[i].Fault)
		}
	}
	p.cpu = b.redis.process.ran() - used
	after, err := countCalls(ctx, client)
	p.calls = after.since(before)
	return p, err
}

func (p played) jobs() (n float64) {
	for _, f := range p.found {
		n += float64(f.Jobs)
	}
	return n
}

// rate is of all children, from the first job of any to the last.
func (p played) rate() float64 {
	begun, ended := p.found[0].Begun, p.found[0].Ended
	for _, f := range p.found {
		begun, ended = min(begun, f.Begun), max(ended, f.Ended)
	}
	if ended == begun {
		return p.jobs() / p.found[0].Seconds
	}
	return p.jobs() / (float64(ended-begun) / 1e9)
}

func (p played) cpuPerJob() float64 { return float64(p.cpu.Nanoseconds()) / 1e3 / p.jobs() }

// ownPerJob is the children's processor time.
func (p played) ownPerJob() float64 {
	var own time.Duration
	for _, f := range p.found {
		own += f.CPU
	}
	return float64(own.Nanoseconds()) / 1e3 / p.jobs()
}

func (p played) callsPerJob() float64 { return float64(p.calls.sent("")) / p.jobs() }
