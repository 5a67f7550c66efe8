package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-io/signalbox/queue"
)

const exitData = 65 // EX_DATAERR of a job's command: no use to try again

const workHelp = `Run a command for each job of some kinds, until it is interrupted. The command gets the
arguments of the job on standard input, as JSON, and in its environment
  SIGNALBOX_JOB_ID       the job
  SIGNALBOX_JOB_KIND     its kind
  SIGNALBOX_JOB_KEY      its key
  SIGNALBOX_JOB_ATTEMPT  1 for the first
  SIGNALBOX_TOKEN        the fencing token, larger with every start of any job;
                         stores that check it refuse who comes late
  SIGNALBOX_QUEUE        the queue
  SIGNALBOX_URL          the server, if one was given
  SIGNALBOX_SOCKET       the socket, if one was given

What it prints is the result of the job: as it is if that is JSON, and else as a text.
What it says on standard error goes to ours and to the log of the job (signalbox queue
show ID); the last line is kept as the error if it fails. Its exit status says what becomes of the job:
  0     it is done
  65    it is dead: to try again is no use (EX_DATAERR)
  else  it is tried again, later each time, as often as its --attempts say

A job that is canceled, runs into its --timeout or has not ended when the time to drain
is over gets SIGTERM, with all of its process group, and after --kill-after SIGKILL.
When the worker could not be heard by the server for as long as its --lease, others may
run its jobs: then they get SIGKILL at once. If signalbox itself is killed, Linux kills
the commands with it.

SIGTERM and SIGINT (Ctrl-C) drain: no new job begins, those that run have the time of
--drain to end, and the others go back to the queue. The second of them ends what runs
at once, and gives it back.

On standard error it says what it waits for, and at the end how many jobs it has run;
--quiet leaves that out.

JSON: one object a line for each job that has ended: {job, kind, outcome, error, took_ns};
outcome is done, retry, dead, cancelled, snooze or back.`

// workFlags are the flags of `queue work`.
type workFlags struct {
	name                    string
	slots                   int
	capacity                map[string]int
	tags                    []string
	lease, drain, killAfter time.Duration
	quiet                   bool
}

func (f *workFlags) define(flags *pflag.FlagSet) {
	flags.IntVar(&f.slots, "slots", 0, "how many jobs at once (default: one for each processor, unless --capacity is given)")
	flags.StringToIntVar(&f.capacity, "capacity", nil, "how much at once of what jobs may cost, as call=1,chat=3")
	flags.StringArrayVar(&f.tags, "tag", nil, "tag that jobs may ask for; may be repeated")
	flags.StringVar(&f.name, "name", "", "shown to others beside host and process id (default: the command's name)")
	flags.DurationVar(&f.lease, "lease", queue.DefaultLease, "for how long its jobs stay its own when the server does not hear of it")
	flags.DurationVar(&f.drain, "drain", 30*time.Second, "how long jobs may go on after SIGTERM or SIGINT")
	flags.DurationVar(&f.killAfter, "kill-after", 3*time.Second, "time between SIGTERM and SIGKILL of a job, at most 4s when it drains")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "do not say what is waited for, and at the end what was run")
}

func (a *app) queueWorkCommand() *cobra.Command {
	var f workFlags
	cmd := &cobra.Command{
		Use: "work [flags] KIND... -- COMMAND [ARGUMENT…]", Short: "Run a command for each job", Long: workHelp,
		Example: `  signalbox queue work crawl --slots 4 -- sh -c 'xargs wget -q'
  signalbox queue work call chat --capacity call=1,chat=3 --tag lang:de -- ./agent.py`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			switch {
			case dash < 0 || dash == len(args):
				return usage("which command shall run? %s KIND -- COMMAND", cmd.CommandPath())
			case dash == 0:
				return usage("the kind of the jobs is missing before --: %s KIND -- COMMAND", cmd.CommandPath())
			case f.slots < 0, cmd.Flags().Changed("slots") && f.slots == 0:
				return usage("--slots must be at least 1, not %d", f.slots)
			}
			return a.work(cmd.Context(), &f, args[:dash], args[dash:])
		},
	}
	f.define(cmd.Flags())
	return cmd
}

// jobRunner runs a command for each job.
type jobRunner struct {
	app   *app
	path  string
	argv  []string
	grace time.Duration
	hurry chan struct{} // closed by the second signal
}

func (a *app) work(ctx context.Context, f *workFlags, kinds, argv []string) error {
	path, err := findCommand(argv[0])
	if err != nil {
		return err
	}
	if f.name == "" {
		f.name = filepath.Base(argv[0])
	}
	r := &jobRunner{app: a, path: path, argv: argv, grace: f.killAfter, hurry: make(chan struct{})}
	ctx, release := r.heedSignals(ctx)
	defer release()
	ran := &workCount{}
	return a.withQueue(ctx, func(q *queue.Queue) error {
		options := []queue.WorkerOption{
			queue.With(f.capacity), queue.Tags(f.tags...), queue.DrainTimeout(f.drain), queue.Observe(ran.observe), queue.Observe(a.tellWork()),
		}
		if f.slots > 0 {
			options = append(options, queue.Slots(f.slots))
		}
		w := q.Worker(f.name, options...)
		for _, kind := range kinds {
			queue.Define[json.RawMessage, json.RawMessage](kind).Handle(w, r.run)
		}
		if f.quiet {
			return w.Run(ctx)
		}
		fmt.Fprintf(a.stderr, "signalbox: waiting for jobs of queue %s: %s; %s; on %s\n", printable(a.queue), listed(kinds), f.room(), a.place())
		err := w.Run(ctx)
		fmt.Fprintf(a.stderr, "signalbox: %s\n", ran)
		return err
	}, queue.Lease(f.lease))
}

// room is what can run at once.
func (f *workFlags) room() string {
	var parts []string
	if f.slots > 0 {
		parts = append(parts, count(f.slots, "slot"))
	}
	if len(f.capacity) > 0 {
		parts = append(parts, capacities(f.capacity))
	}
	if len(parts) == 0 {
		return count(runtime.GOMAXPROCS(0), "slot")
	}
	return strings.Join(parts, ", ")
}

// workCount counts what became of the jobs that were run.
type workCount struct {
	mu    sync.Mutex
	verbs map[string]int
}

func (c *workCount) observe(e queue.Event) {
	if e.What != queue.Ended {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.verbs == nil {
		c.verbs = make(map[string]int)
	}
	c.verbs[e.Verb]++
}

// String is "ended; 3 jobs were run: 2 done, 1 retry".
func (c *workCount) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, parts := 0, []string(nil)
	for _, verb := range sortedKeys(c.verbs) {
		all += c.verbs[verb]
		parts = append(parts, fmt.Sprintf("%d %s", c.verbs[verb], verb))
	}
	switch all {
	case 0:
		return "ended; no job was run"
	case 1:
		return "ended; 1 job was run: " + strings.Join(parts, ", ")
	}
	return fmt.Sprintf("ended; %d jobs were run: %s", all, strings.Join(parts, ", "))
}

// heedSignals ends the context with the first signal, and hurries with the second.
func (r *jobRunner) heedSignals(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, terminationSignals...)
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-signals:
			case <-ended:
				return
			}
			switch n {
			case 1:
				cancel()
			case 2:
				close(r.hurry)
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(ended)
		watching.Wait()
		cancel()
	}
}

// run is the handler of every job.
func (r *jobRunner) run(ctx context.Context, j *queue.Job[json.RawMessage]) (json.RawMessage, error) {
	// The kernel ends the command with the thread that started it, if signalbox is killed.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var output capped
	said := &lastLine{to: r.app.stderr, log: j.Logf}
	defer said.flush()
	cmd := &exec.Cmd{
		Path: r.path, Args: r.argv, Stdin: bytes.NewReader(append(j.Args, '\n')), Stdout: &output, Stderr: said,
		WaitDelay: time.Second, // for what it leaves behind with the same output
		Env: append(append(os.Environ(), r.app.whereabouts()...), "SIGNALBOX_QUEUE="+r.app.queue, "SIGNALBOX_JOB_ID="+j.ID,
			"SIGNALBOX_JOB_KIND="+j.Kind, "SIGNALBOX_JOB_KEY="+j.Key, "SIGNALBOX_JOB_ATTEMPT="+strconv.Itoa(j.Attempt),
			"SIGNALBOX_TOKEN="+strconv.FormatInt(j.Token, 10)),
	}
	inGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, cannotRun(r.argv[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	err, hurried := r.await(ctx, cmd, ended)
	switch {
	case hurried && err != nil:
		return nil, queue.Snooze(0)
	case ctx.Err() != nil && err != nil:
		return nil, ctx.Err()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, failure(cmd, err, said.text())
	case output.full:
		return nil, queue.Fail(fmt.Errorf("the command printed more than %d bytes", queue.MaxPayload))
	}
	return output.result(), nil
}

// await waits for the end of a command, and ends it if the job is over.
func (r *jobRunner) await(ctx context.Context, cmd *exec.Cmd, ended <-chan error) (err error, hurried bool) {
	select {
	case err := <-ended:
		return err, false
	case <-r.hurry:
		killGroup(cmd)
		return <-ended, true
	case <-ctx.Done():
	}
	defer killGroup(cmd) // and what it has left
	grace := r.grace
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, queue.ErrLeaseLost): // others may run it
		grace = 0
	case errors.Is(cause, queue.ErrStopped):
		grace = min(grace, 4*time.Second)
	}
	if grace > 0 {
		terminateGroup(cmd)
	}
	kill := time.NewTimer(grace)
	defer kill.Stop()
	select {
	case err := <-ended:
		return err, false
	case <-r.hurry:
	case <-kill.C:
	}
	killGroup(cmd)
	return <-ended, false
}

// failure is what a command's end means.
func failure(cmd *exec.Cmd, err error, said string) error {
	if said != "" {
		err = fmt.Errorf("%s (%w)", said, err)
	}
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == exitData {
		return queue.Fail(err)
	}
	return err
}

// capped keeps what a command prints, up to what a result may have.
type capped struct {
	text bytes.Buffer
	full bool
}

func (c *capped) Write(p []byte) (int, error) {
	if room := queue.MaxPayload - c.text.Len(); len(p) > room {
		c.full = true
		c.text.Write(p[:room])
		return len(p), nil
	}
	return c.text.Write(p)
}

// result is what was printed, as JSON.
func (c *capped) result() json.RawMessage {
	text := bytes.TrimSpace(c.text.Bytes())
	if len(text) == 0 {
		return json.RawMessage("null")
	}
	if json.Valid(text) {
		return text
	}
	quoted, err := json.Marshal(strings.TrimRight(c.text.String(), "\r\n"))
	if err != nil {
		return json.RawMessage("null") // it cannot be: it is a text
	}
	return quoted
}

// lastLine passes on what a command says, logs it line by line, and keeps the end of it.
type lastLine struct {
	to   io.Writer
	log  func(format string, args ...any)
	line []byte // that is not over yet
	end  []byte
}

func (l *lastLine) Write(p []byte) (int, error) {
	const most = 2000
	l.end = append(l.end, p...)
	l.end = l.end[max(0, len(l.end)-most):]
	for text := range bytes.Lines(p) {
		if l.line = append(l.line, text...); bytes.HasSuffix(text, []byte("\n")) || len(l.line) > most {
			l.flush()
		}
	}
	return l.to.Write(p)
}

// flush logs the line that has begun.
func (l *lastLine) flush() {
	if text := bytes.TrimRight(l.line, "\r\n"); len(text) > 0 {
		l.log("%s", text)
	}
	l.line = nil
}

func (l *lastLine) text() string {
	lines := strings.Split(strings.TrimSpace(string(l.end)), "\n")
	return strings.ToValidUTF8(strings.TrimSpace(lines[len(lines)-1]), "?")
}

// endedJSON is a line of `queue work --json`.
type endedJSON struct {
	Job     string        `json:"job"`
	Kind    string        `json:"kind"`
	Outcome string        `json:"outcome"`
	Error   string        `json:"error,omitempty"`
	Took    time.Duration `json:"took_ns"`
}

// tellWork says what happens to the worker and what fails.
func (a *app) tellWork() func(queue.Event) {
	var mu sync.Mutex
	failing := a.tellFailing()
	lines := json.NewEncoder(a.stdout)
	return func(e queue.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case e.What == queue.Ended && a.json:
			line := endedJSON{Job: e.Job, Kind: e.Kind, Outcome: e.Verb, Took: e.Took}
			if e.Err != nil {
				line.Error = e.Err.Error()
			}
			_ = lines.Encode(line) // nobody reads it any more
		case e.What == queue.Ended && (e.Verb == "retry" || e.Verb == "dead"):
			then := map[string]string{"retry": "it is tried again", "dead": "it is dead"}[e.Verb]
			fmt.Fprintf(a.stderr, "signalbox: job %s (%s) failed, %s: %s\n", printable(e.Job), printable(e.Kind), then, printable(e.Err.Error()))
		case e.What == queue.ReportedLate:
			fmt.Fprintf(a.stderr, "signalbox: job %s ended too late: it was another worker's by then\n", printable(e.Job))
		case e.What == queue.LeaseLost:
			fmt.Fprintln(a.stderr, "signalbox: the lease was lost, and the jobs that ran were ended; others may run them")
		case e.What == queue.Ignoring:
			fmt.Fprintf(a.stderr, "signalbox: the command of job %s (%s) goes on although it was to end: %v\n", printable(e.Job), printable(e.Kind), e.Err)
		default:
			failing(e)
		}
	}
}

// tellFailing says now and then what is wrong with the server.
func (a *app) tellFailing() func(queue.Event) {
	var mu sync.Mutex
	var complained time.Time
	return func(e queue.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.What == queue.Failing && time.Since(complained) > quietFor {
			complained = time.Now()
			fmt.Fprintln(a.stderr, "signalbox:", e.Err)
		}
	}
}
