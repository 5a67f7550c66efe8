package examples

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/queue"
)

// patience is how long anything may take that happens soon: a program in another language may take long to start.
const patience = time.Minute

// language is one that has a demo.
type language struct {
	name string
	argv []string
}

// languages finds what runs the demos, or fails with what to install.
func languages(t *testing.T) []language {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal("node is not on PATH: install Node.js 18.18 or newer (Debian: apt-get install nodejs npm)")
	}
	if _, err := os.Stat("../clients/node/node_modules/ioredis"); err != nil {
		t.Fatal("ioredis is not installed: npm ci --prefix clients/node")
	}
	php, err := exec.LookPath("php")
	if err != nil {
		t.Fatal("php is not on PATH: install PHP 8.2 or newer (Debian: apt-get install php-cli)")
	}
	return []language{
		{"python", []string{python(t), "python/demo.py"}}, {"node", []string{node, "node/demo.js"}}, {"php", []string{php, "php/demo.php"}},
	}
}

func python(t *testing.T) string {
	t.Helper()
	// Debian's packages belong to its own Python, which need not be the first on PATH.
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.CommandContext(t.Context(), python, "-c", "import redis").Run() == nil {
			return python
		}
	}
	t.Fatal("Python's redis is not installed: apt-get install python3-redis, or pip install redis")
	return ""
}

// site is one test's place of work: a server with the functions, a resource, and the file that all workers write to. A
// worker writes when it is inside, and again before it goes, so what the file says of who is inside was true.
type site struct {
	*testing.T
	ctx  context.Context
	url  string
	box  *signalbox.Box
	name string
	log  *os.File
}

func newSite(t *testing.T, addr string) *site {
	t.Helper()
	ctx, done := context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(done)
	// A name with everything in it that must be encoded.
	w := &site{T: t, ctx: ctx, url: "redis://" + addr, name: t.Name() + " }%7D{größe}{x}"}
	var err error
	w.box, err = signalbox.Open(ctx, w.url)
	w.must(err)
	t.Cleanup(func() {
		if err := w.box.Close(); err != nil {
			t.Error(err)
		}
	})
	w.log, err = os.OpenFile(filepath.Join(t.TempDir(), "log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	w.must(err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the workers wrote:\n%s", strings.Join(w.lines(), "\n"))
		}
		w.log.Close()
	})
	return w
}

func (w *site) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// lines is what the workers have written.
func (w *site) lines() []string {
	text, err := os.ReadFile(w.log.Name())
	w.must(err)
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// says waits until a worker has written a text.
func (w *site) says(who, text string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%s says %q", who, text), func() bool {
		return slices.ContainsFunc(w.lines(), func(line string) bool {
			return strings.HasPrefix(line, who+" ") && strings.Contains(line, text)
		})
	})
}

func (w *site) eventually(what string, ok func() bool) {
	w.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(end) {
			w.Fatalf("not in %v: %s", patience, what)
		}
	}
}

func (w *site) inspect() signalbox.State {
	w.Helper()
	state, err := w.box.Inspect(w.ctx, w.name)
	w.must(err)
	return state
}

// holder is the one lease that is held.
func (w *site) holder() signalbox.Holder {
	w.Helper()
	state := w.inspect()
	if len(state.Holders) != 1 {
		w.Fatalf("one holds %q, the server says %+v", w.name, state)
	}
	return state.Holders[0]
}

// queue waits until so many wait.
func (w *site) queue(n int) {
	w.Helper()
	w.eventually(fmt.Sprintf("%d wait", n), func() bool { return w.inspect().Waiters == n })
}

// acquire takes permits for this process.
func (w *site) acquire(limit int, options ...signalbox.AcquireOption) *signalbox.Lease {
	w.Helper()
	lease, err := w.box.Semaphore(w.name, limit).Acquire(w.ctx, options...)
	w.must(err)
	return lease
}

func (w *site) release(lease *signalbox.Lease) {
	w.Helper()
	w.must(lease.Release(w.ctx))
}

// worker is a process that runs a demo.
type worker struct {
	site    *site
	who     string // as it calls itself
	process *os.Process
	ended   chan int // its exit status
}

// start runs a demo with the flags given.
func (w *site) start(l language, flags ...string) *worker {
	w.Helper()
	argv := append(slices.Clone(l.argv), w.name, "--url", w.url)
	return w.run(l, append(argv, flags...))
}

// run starts a program that writes to the site's file.
func (w *site) run(l language, argv []string) *worker {
	w.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = w.log, &stderr
	w.must(cmd.Start())
	started := &worker{w, l.name + ":" + strconv.Itoa(cmd.Process.Pid), cmd.Process, make(chan int, 1)}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = cmd.Wait() // the exit status says it
		started.ended <- cmd.ProcessState.ExitCode()
	}()
	w.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-gone
		if w.Failed() && stderr.Len() > 0 {
			w.Logf("%s wrote to stderr:\n%s", started.who, stderr.String())
		}
	})
	return started
}

// inside starts a demo and waits until it is inside.
func (w *site) inside(l language, flags ...string) *worker {
	w.Helper()
	started := w.start(l, flags...)
	w.says(started.who, "is inside")
	return started
}

// ends waits for the end of a worker, and checks how it ended.
func (r *worker) ends(status int) {
	r.site.Helper()
	select {
	case got := <-r.ended:
		if got != status {
			r.site.Fatalf("%s ended with %d, want %d", r.who, got, status)
		}
	case <-time.After(patience):
		r.site.Fatalf("%s does not end", r.who)
	}
}

func (r *worker) signal(s syscall.Signal) {
	r.site.Helper()
	r.site.must(r.process.Signal(s))
}

// servers returns the addresses of what the tests run on, with the functions installed: a real redis-server, and the
// engine if it has functions.
func servers(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{"redis": difftest.Redis(t).Addr}
	if addr := serveEngine(t); knowsFunctions(t, addr) {
		found["engine"] = addr
	}
	for _, addr := range found {
		install(t, addr)
	}
	return found
}

func serveEngine(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- e.Serve(listener) }()
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func install(t *testing.T, addr string) {
	t.Helper()
	box, err := signalbox.Open(t.Context(), "redis://"+addr)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	if _, err := box.InstallFunctions(t.Context()); err != nil {
		t.Fatal(err)
	}
	q, err := queue.Open(t.Context(), "redis://"+addr, "any")
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if _, err := q.InstallFunctions(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func knowsFunctions(t *testing.T, addr string) bool {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	known, err := client.Do(t.Context(), "command", "list").StringSlice()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(known, "fcall")
}
