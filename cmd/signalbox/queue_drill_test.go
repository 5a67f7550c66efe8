//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// The drill of the queue, as people would do it: one shell pushes a thousand jobs for fifty keys limited to two each, three
// shells work them with different capacities, one of them is killed. What ls, why and stats say all the while is held against
// what the jobs themselves write down: "+ id key worker" when one begins, "- id key worker" when it ends.

const (
	drillKeys, drillEach = 50, 20
	drillJobs            = drillKeys * drillEach
	drillLimit           = 2
)

var drillSlots = map[string]int{"doomed": 5, "small": 2, "big": 8}

const (
	drillPush = `for k in $(seq 50); do signalbox queue push crawl '{"page":1}' --key k$k --count 20 || exit; done`
	drillJob  = `echo "+ $SIGNALBOX_JOB_ID $SIGNALBOX_JOB_KEY $1" >>log
while ! test -e gate; do sleep 0.05; done
echo "- $SIGNALBOX_JOB_ID $SIGNALBOX_JOB_KEY $1" >>log`
)

func TestTheDrillOfTheQueue(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"private engine": "", "redis": "redis://" + difftest.Redis(t).Addr} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDrill(t, url)
			d.run("limit", "2", "--each-key")
			ids := strings.Fields(d.shell(drillPush))
			if len(ids) != drillJobs {
				t.Fatalf("%d jobs were pushed", len(ids))
			}
			d.look(ids[64])
			if text := d.run("why", ids[64]); !strings.Contains(text, "no worker is online") {
				t.Errorf("without a worker: %s", text)
			}
			doomed, small := d.work("doomed"), d.work("small")
			d.until("seven run", func(s *drillSight) bool { return s.running == 7 })
			d.look(ids[0], ids[1], ids[2], ids[drillJobs-1])
			d.kill(doomed)
			big := d.work("big")
			d.until("those of the killed worker are given back", func(s *drillSight) bool { return s.crashed == 5 && s.running == 10 })
			d.look(ids[0], ids[5], ids[drillJobs-1])
			if workers := d.run("workers"); strings.Contains(workers, "doomed") {
				t.Errorf("the killed worker is among\n%s", workers)
			}
			must(t, os.WriteFile(filepath.Join(d.dir, "gate"), nil, 0o600))
			for n := 0; d.look(ids[n%drillJobs]).done < drillJobs; n += 37 {
				d.inTime()
			}
			d.end(small, big)
			d.judge()
		})
	}
}

type drill struct {
	t     *testing.T
	dir   string
	env   []string
	limit time.Time
	dead  bool // the doomed worker was killed
}

func newDrill(t *testing.T, url string) *drill {
	t.Helper()
	d := &drill{t: t, dir: t.TempDir(), limit: time.Now().Add(5 * patience)} // a race detector makes thousands of processes slow
	d.env = append(os.Environ(), "SIGNALBOX_STATE="+filepath.Join(d.dir, "state"), "SIGNALBOX_URL="+url, "SIGNALBOX_SOCKET=")
	must(t, os.WriteFile(filepath.Join(d.dir, "log"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(d.dir, "job.sh"), []byte(drillJob), 0o600))
	t.Cleanup(func() { d.command("signalbox", "serve", "--stop") })
	return d
}

func (d *drill) inTime() {
	d.t.Helper()
	if time.Now().After(d.limit) {
		d.t.Fatal("it takes too long")
	}
}

// cmd is a command of one of the shells.
func (d *drill) cmd(words ...string) *exec.Cmd {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env, cmd.Dir = d.env, d.dir
	return cmd
}

func (d *drill) command(words ...string) string {
	d.t.Helper()
	var said bytes.Buffer
	cmd := d.cmd(words...)
	cmd.Stderr = &said
	output, err := cmd.Output()
	if err != nil {
		d.t.Fatalf("%q: %v: %s", words, err, said.Bytes())
	}
	return string(output)
}

func (d *drill) run(words ...string) string {
	d.t.Helper()
	return d.command(append([]string{"signalbox", "queue"}, words...)...)
}

func (d *drill) shell(script string) string {
	d.t.Helper()
	return d.command("sh", "-c", script)
}

func (d *drill) work(name string) *exec.Cmd {
	d.t.Helper()
	cmd := d.cmd("signalbox", "queue", "work", "crawl", "--slots", strconv.Itoa(drillSlots[name]), "--lease", "2s", "--name", name,
		"--", "sh", "job.sh", name)
	must(d.t, cmd.Start())
	d.t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test has failed
	return cmd
}

func (d *drill) kill(worker *exec.Cmd) {
	d.t.Helper()
	must(d.t, worker.Process.Kill())
	_ = worker.Wait() // it says that it was killed
	d.dead = true
	d.note("killed - - -")
}

func (d *drill) note(line string) {
	d.t.Helper()
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_APPEND|os.O_WRONLY, 0)
	must(d.t, err)
	_, err = fmt.Fprintln(log, line)
	must(d.t, err)
	must(d.t, log.Close())
}

func (d *drill) end(workers ...*exec.Cmd) {
	d.t.Helper()
	for _, w := range workers {
		must(d.t, w.Process.Signal(syscall.SIGTERM))
		must(d.t, w.Wait())
	}
	if text := d.run("workers"); !strings.HasPrefix(text, "No workers") {
		d.t.Errorf("at the end there are workers:\n%s", text)
	}
}

// entry is a line that a job has written.
type entry struct{ what, id, key, worker string }

func (d *drill) log() (entries []entry) {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, "log"))
	must(d.t, err)
	for line := range strings.Lines(string(text)) {
		var e entry
		if n, _ := fmt.Sscan(line, &e.what, &e.id, &e.key, &e.worker); n != 4 {
			d.t.Fatalf("a line of the log: %q", line)
		}
		entries = append(entries, e)
	}
	return entries
}

func ended(entries []entry) map[string]bool {
	ids := map[string]bool{}
	for _, e := range entries {
		if e.what == "-" {
			ids[e.id] = true
		}
	}
	return ids
}

// drillSight is what stats says.
type drillSight struct{ waiting, running, done, crashed int }

func (d *drill) stats() *drillSight {
	d.t.Helper()
	var found struct {
		Stats struct {
			Waiting, Running, Later, Kept int
			Kinds                         []struct{ Enqueued, Done, Crashed int }
		}
	}
	must(d.t, json.Unmarshal([]byte(d.run("stats", "--json")), &found))
	s, k := &found.Stats, &found.Stats.Kinds[0]
	if s.Waiting+s.Running+s.Kept != drillJobs || s.Later != 0 || k.Enqueued != drillJobs || k.Done != s.Kept {
		d.t.Errorf("stats do not add up: %+v", s)
	}
	return &drillSight{s.Waiting, s.Running, k.Done, k.Crashed}
}

func (d *drill) until(what string, holds func(*drillSight) bool) {
	d.t.Helper()
	for !holds(d.stats()) {
		if time.Now().After(d.limit) {
			d.t.Fatalf("%s: %+v", what, d.stats())
		}
	}
}

// look holds against each other what the program says, and what the jobs have written before and after.
func (d *drill) look(ids ...string) *drillSight {
	d.t.Helper()
	s := d.stats()
	if after := len(ended(d.log())); s.done > after {
		d.t.Errorf("%d jobs are done, of which %d have ended", s.done, after)
	}
	if most := drillSlots["small"] + drillSlots["big"] + drillSlots["doomed"]; s.running > most {
		d.t.Errorf("%d jobs run in %d slots", s.running, most)
	}
	d.lookAtRunning()
	for _, id := range ids {
		d.lookWhy(id)
	}
	return s
}

type drillJobInfo struct{ ID, Key, State, By string }

func (d *drill) lookAtRunning() {
	d.t.Helper()
	before := ended(d.log())
	var jobs []drillJobInfo
	must(d.t, json.Unmarshal([]byte(d.run("ls", "--state", "running", "--json")), &jobs))
	// ls takes steps, so that a job may end after the first one, and another begin: they are compared with no one moment.
	of := map[string]int{}
	for _, j := range jobs {
		name, _, _ := strings.Cut(j.By, " ")
		of[name]++
		if j.State != "running" || drillSlots[name] == 0 {
			d.t.Errorf("ls --state running says %+v", j)
		}
		if before[j.ID] && name == "doomed" {
			d.t.Errorf("%s has ended, and runs on the worker that was killed before", j.ID)
		}
	}
	if d.quiet() {
		for name, n := range of {
			if n > drillSlots[name] {
				d.t.Errorf("%d jobs run on %s, which has %d slots", n, name, drillSlots[name])
			}
		}
	}
}

// quiet says whether nothing moves: no job ends as long as the gate is shut.
func (d *drill) quiet() bool {
	_, err := os.Stat(filepath.Join(d.dir, "gate"))
	return err != nil
}

func (d *drill) lookWhy(id string) {
	d.t.Helper()
	before := ended(d.log())[id]
	var why struct {
		Job    drillJobInfo
		Reason string
		Used   int
		Most   int
		Text   string
	}
	must(d.t, json.Unmarshal([]byte(d.run("why", id, "--json")), &why))
	entries := d.log()
	begun := slices.ContainsFunc(entries, func(e entry) bool { return e.what == "+" && e.id == id })
	name, _, _ := strings.Cut(why.Job.By, " ")
	switch {
	case why.Job.State == "done" && !ended(entries)[id], why.Job.State == "waiting" && before:
		d.t.Errorf("%s is %s; had ended %v, has ended %v", id, why.Job.State, before, ended(entries)[id])
	case why.Job.State == "waiting" && begun && !d.dead:
		d.t.Errorf("%s waits, and has begun: %s", id, why.Text)
	case why.Job.State == "running" && drillSlots[name] == 0:
		d.t.Errorf("%s runs on %q", id, why.Job.By)
	case why.Reason == "limit" && (why.Used != drillLimit || why.Most != drillLimit || !strings.Contains(why.Text, why.Job.Key)):
		d.t.Errorf("%s is held up by a limit: %+v", id, why)
	}
}

// judge reads what the jobs have written from first to last.
func (d *drill) judge() {
	d.t.Helper()
	begun, over, of := map[string][]string{}, map[string]int{}, map[string]map[string]string{}
	for _, e := range d.log() {
		switch e.what {
		case "+":
			begun[e.id] = append(begun[e.id], e.worker)
			if of[e.key] == nil {
				of[e.key] = map[string]string{}
			}
			if of[e.key][e.id] = e.worker; len(of[e.key]) > drillLimit {
				d.t.Errorf("%d jobs of %s run", len(of[e.key]), e.key)
			}
		case "-":
			over[e.id]++
			delete(of[e.key], e.id)
		case "killed": // and what it ran with it
			for _, running := range of {
				for id, worker := range running {
					if worker == "doomed" {
						delete(running, id)
					}
				}
			}
		}
	}
	if len(begun) != drillJobs || len(over) != drillJobs {
		d.t.Errorf("%d jobs have begun, and %d have ended", len(begun), len(over))
	}
	again := 0
	for id, workers := range begun {
		if len(workers) > 1 {
			again++
		}
		if len(workers) > 2 || len(workers) == 2 && workers[0] != "doomed" || over[id] > 1 {
			d.t.Errorf("%s ran on %s, and ended %d times", id, workers, over[id])
		}
	}
	if again != drillSlots["doomed"] {
		d.t.Errorf("%d jobs ran again, of the killed worker's %d", again, drillSlots["doomed"])
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
