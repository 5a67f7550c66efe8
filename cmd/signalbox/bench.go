package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/cmd/signalbox/internal/benchmark"
)

// benchFlags are the flags of `bench` and what is below it.
type benchFlags struct {
	duration time.Duration
	full     bool
	rounds   int
	svg      string
	skew     time.Duration
	settings benchmark.Settings
}

// fullDuration is how long the book measured.
const fullDuration = 10 * time.Second

// What is more makes no sense on one machine, or takes its memory.
const (
	mostBenchClients  = 1000
	mostPipeline      = 10_000
	mostRandomKeys    = 1_000_000
	mostBytesOnTheWay = 256 << 20
)

func (a *app) benchCommand() *cobra.Command {
	f := &benchFlags{settings: benchmark.DefaultSettings()}
	f.duration, f.rounds = f.settings.Duration, f.settings.Rounds
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure a server, the book's algorithms on it, and ours beside them", Args: noBenchArgs,
		Long: `Measure what a server can do, by the tables of Redis in Action: locks (table 11.2),
pipelining over links of different length (table 4.4), commands as redis-benchmark
does, and how often semaphores let too many in. Without the name of a part all of
them, which takes about a minute.

Without --url it measures the engine, in a process of its own that ends with the
measuring. On a server every key has signalbox-bench: in its name and is removed
at the end, also after Ctrl-C; nothing else is touched.

JSON: {started, server, machine, duration_ns, rounds, locks, pipelining, commands,
semaphores, notes}; docs/bench.md has the fields.`,
		Example: `  signalbox bench
  signalbox bench --url redis://localhost:6379 --full --svg bench.svg
  signalbox bench locks --clients 1,2,5,10,20 --rounds 5
  signalbox bench commands -t set,get -P 16 -c 50`,
		RunE: a.benchParts(f, benchmark.Locks, benchmark.Pipelining, benchmark.Commands, benchmark.Semaphores),
	}
	flags := cmd.PersistentFlags()
	flags.DurationVar(&f.duration, "duration", f.duration, "how long each cell of a table is measured")
	flags.BoolVar(&f.full, "full", false, "measure each cell for 10s, as the book did")
	flags.IntVar(&f.rounds, "rounds", f.rounds, "measure everything so many times; tables have medians")
	flags.StringVar(&f.svg, "svg", "", "draw a chart of each part into a file, as SVG")
	cmd.AddCommand(a.benchLocksCommand(f), a.benchPipeliningCommand(f), a.benchCommandsCommand(f), a.benchSemaphoresCommand(f))
	return cmd
}

// noBenchArgs refuses what is no part.
func noBenchArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("there is nothing called %q to measure: give locks, pipelining, commands or semaphores, or nothing for all", args[0])
	}
	return nil
}

func (a *app) benchLocksCommand(f *benchFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "locks", Short: "The book's lock, its Lua lock and ours under contention (table 11.2)", Args: exactly(),
		RunE: a.benchParts(f, benchmark.Locks),
	}
	cmd.Flags().IntSliceVar(&f.settings.Locks.Clients, "clients", f.settings.Locks.Clients, "numbers of clients")
	return cmd
}

func (a *app) benchPipeliningCommand(f *benchFlags) *cobra.Command {
	return &cobra.Command{
		Use: "pipelining", Short: "update_token over short and long links, pipelined or not (table 4.4)", Args: exactly(),
		RunE: a.benchParts(f, benchmark.Pipelining),
	}
}

func (a *app) benchCommandsCommand(f *benchFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "commands", Short: "One command by many connections, as redis-benchmark does", Args: exactly(),
		Long: "One command by many connections, as redis-benchmark does. Tests are\n\n  " +
			strings.ToLower(strings.Join(benchmark.CommandTests()[:9], " ")) + "\n  " +
			strings.ToLower(strings.Join(benchmark.CommandTests()[9:], " ")) +
			"\n\nThe latency is of a batch of --pipeline requests. Pops find what the pushes before\nthem have left.",
		RunE: a.benchParts(f, benchmark.Commands),
	}
	s, flags := &f.settings.Commands, cmd.Flags()
	flags.StringSliceVarP(&s.Tests, "tests", "t", nil, "only these, such as set,get,lrange")
	flags.IntVarP(&s.Clients, "clients", "c", s.Clients, "connections")
	flags.IntVarP(&s.Pipeline, "pipeline", "P", s.Pipeline, "requests that are sent at once")
	flags.Int64VarP(&s.Requests, "requests", "n", 0, "requests of each test, instead of --duration")
	flags.IntVarP(&s.RandomKeys, "random-keys", "r", 0, "draw keys, members and fields from so many, instead of one")
	flags.IntVarP(&s.ValueBytes, "data-size", "d", s.ValueBytes, "bytes of a value")
	return cmd
}

func (a *app) benchSemaphoresCommand(f *benchFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "semaphores", Short: "How often semaphores let too many in, by how much clocks differ", Args: exactly(),
		RunE: a.benchParts(f, benchmark.Semaphores),
	}
	s, flags := &f.settings.Semaphores, cmd.Flags()
	flags.IntVar(&s.Clients, "clients", s.Clients, "clients of a semaphore")
	flags.IntVar(&s.Limit, "limit", s.Limit, "permits of a semaphore")
	flags.DurationVar(&f.skew, "skew", 0, "only by so much between the slowest clock and the fastest (default 0s, 10ms and 12s in turn)")
	return cmd
}

// benchParts is what runs parts.
func (a *app) benchParts(f *benchFlags, parts ...benchmark.Part) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if err := f.check(cmd.Flags()); err != nil {
			return err
		}
		chart, err := openChart(f.svg)
		if err != nil {
			return err
		}
		report, err := a.bench(cmd.Context(), f.settings, parts)
		if err != nil {
			return errors.Join(err, chart.abandon())
		}
		if err := chart.draw(report); err != nil {
			return err
		}
		if a.json {
			return a.printJSON(report)
		}
		return a.printReport(report)
	}
}

// check refuses what cannot be measured, and completes the settings.
func (f *benchFlags) check(flags *pflag.FlagSet) error {
	s := &f.settings
	if f.full {
		if flags.Changed("duration") {
			return usage("--full is --duration 10s: give one of them")
		}
		f.duration = fullDuration
	}
	s.Duration, s.Rounds = f.duration, f.rounds
	if flags.Changed("skew") {
		s.Semaphores.Skews = []time.Duration{f.skew}
	}
	switch {
	case s.Duration < 10*time.Millisecond || s.Duration > time.Hour:
		return usage("--duration must be 10ms to 1h, not %v", s.Duration)
	case s.Rounds < 1 || s.Rounds > 1000:
		return usage("--rounds must be 1 to 1000, not %d", s.Rounds)
	case f.skew < 0 || f.skew > 24*time.Hour:
		return usage("--skew must be 0 to 24h, not %v", f.skew)
	case s.Semaphores.Limit < 1:
		return usage("--limit must be at least 1, not %d", s.Semaphores.Limit)
	case len(s.Locks.Clients) == 0:
		return usage("--clients: give at least one number")
	}
	for _, n := range slices.Concat(s.Locks.Clients, []int{s.Semaphores.Clients, s.Commands.Clients}) {
		if n < 1 || n > mostBenchClients {
			return usage("--clients must be 1 to %d, not %d", mostBenchClients, n)
		}
	}
	return checkCommandSettings(&s.Commands)
}

func checkCommandSettings(s *benchmark.CommandSettings) error {
	for _, name := range s.Tests {
		if !benchmark.IsCommandTest(name) {
			return usage("there is no test %q; signalbox bench commands --help lists them", name)
		}
	}
	switch {
	case s.Pipeline < 1 || s.Pipeline > mostPipeline:
		return usage("--pipeline must be 1 to %d, not %d", mostPipeline, s.Pipeline)
	case s.Requests < 0:
		return usage("--requests must not be negative")
	case s.RandomKeys < 0 || s.RandomKeys > mostRandomKeys:
		return usage("--random-keys must be 0 to %d, not %d", mostRandomKeys, s.RandomKeys)
	case s.ValueBytes < 1 || s.ValueBytes > mostBytesOnTheWay/s.Clients/s.Pipeline:
		return usage("--data-size must be 1 to %d with these --clients and --pipeline, not %d", mostBytesOnTheWay/s.Clients/s.Pipeline, s.ValueBytes)
	}
	return nil
}

// bench measures parts of the server that was asked for, or of an engine of its own.
func (a *app) bench(ctx context.Context, settings benchmark.Settings, parts []benchmark.Part) (_ *benchmark.Report, err error) {
	ctx, restore := a.untilInterrupted(ctx)
	defer restore()
	url := a.server()
	if url == "" {
		engine, err := startBenchEngine(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, engine.stop()) }()
		url = engine.url
	}
	server, err := connectBench(ctx, url)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	progress := &benchProgress{progress: a.newProgress()}
	settings.Progress = progress.show
	report, err := benchmark.Run(ctx, server, settings, parts...)
	progress.clear()
	return report, err
}

// untilInterrupted ends a context at a signal, so that what was made can be removed. A second signal ends the program.
func (a *app) untilInterrupted(ctx context.Context) (_ context.Context, restore func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, terminationSignals...)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		select {
		case s := <-signals:
			signal.Stop(signals)
			number, _ := s.(syscall.Signal)
			cancel(&exitError{exitSignal + int(number), errors.New("interrupted")})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
		<-heard
	}
}

// connectBench says what is wrong with a server as all commands do, and then connects for measuring.
func connectBench(ctx context.Context, url string) (*benchmark.Server, error) {
	box, err := signalbox.Open(ctx, url)
	if err != nil {
		return nil, unavailable(err)
	}
	if err := box.Close(); err != nil {
		return nil, err
	}
	server, err := benchmark.Connect(ctx, url)
	if errors.Is(err, benchmark.ErrURL) {
		return nil, usage("bench: %w", err)
	}
	return server, unavailable(err)
}

// benchProgress shows where a run stands, and elsewhere than on a terminal each part.
type benchProgress struct {
	*progress
	part benchmark.Part
}

func (p *benchProgress) show(now benchmark.Progress) {
	left := ""
	if now.Left > 0 {
		left = ", about " + span(now.Left.Round(time.Second)) + " left"
	}
	if p.part != now.Part {
		p.part = now.Part
		p.line(fmt.Sprintf("measuring %s%s", now.Part, left))
	}
	if p.live {
		p.say(func() string { return fmt.Sprintf("%s: %s %d/%d%s", now.Part, now.Cell, now.Done+1, now.All, left) })
	}
}
