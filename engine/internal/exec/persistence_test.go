package exec_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/conf"
	"github.com/signalbox-io/signalbox/engine/internal/exec"
)

// clerk notes which jobs the machine asks for. They end when the test says so.
type clerk struct {
	begun []exec.Job
	state exec.LogState
}

// kept is a machine with a clerk.
func kept(t *testing.T, settings ...string) (*lab, *clerk) {
	t.Helper()
	s := conf.New()
	for i := 0; i+1 < len(settings); i += 2 {
		s.Overrule(settings[i], settings[i+1])
	}
	l := &lab{m: exec.New(exec.Options{Settings: s}, labStartUs), nowUs: labStartUs}
	t.Cleanup(l.m.Close)
	c := &clerk{}
	l.m.Keep(l.nowUs, func() exec.LogState { return c.state })
	l.s = l.m.ConnectLocal(l.nowUs)
	return l, c
}

// ask sends a request, which may wait.
func (l *lab) ask(s *exec.Session, words ...string) string {
	args := make([][]byte, len(words))
	for i, word := range words {
		args[i] = []byte(word)
	}
	s.Out.Reset()
	l.m.Step(l.nowUs, s, args)
	return string(s.Out.Bytes())
}

// note takes down what was begun.
func (c *clerk) note(l *lab) (shutdown bool) {
	effects := l.m.TakeEffects()
	if effects.Begin != exec.NoJob {
		c.begun = append(c.begun, effects.Begin)
	}
	return effects.Shutdown
}

// take is what the lab's session has been answered since.
func (l *lab) take() string {
	defer l.s.Out.Reset()
	return string(l.s.Out.Bytes())
}

// tick lets time go on to so many seconds after the start, and counts the jobs begun by that.
func (c *clerk) tick(l *lab, sec int64) int {
	before := len(c.begun)
	l.nowUs = labStartUs + sec*1e6
	l.m.Tick(l.nowUs)
	c.note(l)
	return len(c.begun) - before
}

// The rules of the parameter save: enough changes, and long enough ago.
func TestSaveRules(t *testing.T) {
	l, c := kept(t, "save", "100 2 10 1000")
	if c.tick(l, 1000) != 0 || l.m.NeedsTick() {
		t.Error("a save without a change")
	}
	l, c = kept(t, "save", "100 2 10 1000")
	l.do("SET", "a", "1")
	if c.tick(l, 1000) != 0 {
		t.Error("a save after one change of two")
	}
	l, c = kept(t, "save", "100 2 10 1000")
	l.do("MSET", "a", "1", "b", "1")
	l.do("SET", "b", "1")
	if c.tick(l, 100) != 0 || c.tick(l, 101) != 1 || c.tick(l, 102) != 0 {
		t.Error("a save too early, or too late, or twice")
	}
	l.do("SET", "c", "1")
	l.do("SET", "d", "1")
	l.m.JobEnded(l.nowUs, 0, errors.New("disk full"))
	if c.tick(l, 104) != 0 || c.tick(l, 107) != 1 {
		t.Error("a save is not tried again after five seconds")
	}
	if got := l.do("SET", "e", "1"); !strings.HasPrefix(got, "-MISCONF Redis is configured to save RDB") {
		t.Errorf("a write that is not going to be saved is answered %q", got)
	}
	l.m.JobEnded(l.nowUs, 0, nil)
	if got := l.do("SET", "e", "1"); got != "+OK\r\n" {
		t.Errorf("a write after the disk has recovered is answered %q", got)
	}
	if c.tick(l, 207) != 0 || c.tick(l, 209) != 0 {
		t.Error("what a save has saved counts for the next")
	}
}

// One job at a time: the second waits for the first, or is refused.
func TestJobsFollowOneAnother(t *testing.T) {
	l, c := kept(t, "appendonly", "yes")
	for _, step := range []struct {
		request, reply string
		begun          int
	}{
		{"BGSAVE", "+Background saving started\r\n", 1},
		{"BGSAVE", "-ERR Background save already in progress\r\n", 1},
		{"SAVE", "-ERR Background save already in progress\r\n", 1},
		{"BGREWRITEAOF", "+Background append only file rewriting scheduled\r\n", 1},
		{"done", "", 2},
		{"BGREWRITEAOF", "-ERR Background append only file rewriting already in progress\r\n", 2},
		{"BGSAVE SCHEDULE", "+Background saving scheduled\r\n", 2},
		{"done", "", 3},
		{"done", "", 3},
	} {
		if step.request == "done" {
			l.m.JobEnded(l.nowUs, 0, nil)
		} else if got := l.ask(l.s, strings.Fields(step.request)...); got != step.reply {
			t.Errorf("%s is answered %q", step.request, got)
		}
		c.note(l)
		if len(c.begun) != step.begun {
			t.Fatalf("after %s %d jobs have begun, not %d", step.request, len(c.begun), step.begun)
		}
	}
}

// The append-only file is written anew when it has grown enough, and less eagerly when
// that keeps failing.
func TestTheFileIsWrittenAnewWhenItHasGrown(t *testing.T) {
	l, c := kept(t, "appendonly", "yes")
	for _, early := range []exec.LogState{{Bytes: 102<<20 - 1, BaseBytes: 51 << 20}, {Bytes: 64 << 20}} {
		if c.state = early; c.tick(l, 1) != 0 {
			t.Error("too early")
		}
	}
	c.state = exec.LogState{Bytes: 102 << 20, BaseBytes: 51 << 20}
	if c.tick(l, 2) != 1 || c.begun[0] != exec.JobRewrite {
		t.Fatal("not begun")
	}
	for range 3 {
		l.m.JobEnded(l.nowUs, 0, errors.New("disk full"))
		c.tick(l, (l.nowUs-labStartUs)/1e6+61)
	}
	l.m.JobEnded(l.nowUs, 0, errors.New("disk full"))
	at := (l.nowUs - labStartUs) / 1e6
	if c.tick(l, at+100) != 0 || c.tick(l, at+121) != 1 {
		t.Error("the fourth failure is followed by a try too early, or by none")
	}
}

// SAVE answers when the data is on disk, SHUTDOWN ends then, and serves nobody meanwhile.
func TestShutdownSavesFirst(t *testing.T) {
	l, c := kept(t, "save", "100 2")
	other := l.m.ConnectLocal(l.nowUs)
	if got := l.ask(l.s, "SAVE"); got != "" {
		t.Fatalf("SAVE is answered at once: %q", got)
	}
	c.note(l)
	l.m.JobEnded(l.nowUs, 0, nil)
	if got := l.take(); got != "+OK\r\n" {
		t.Errorf("SAVE is answered %q", got)
	}
	for _, failed := range []error{errors.New("disk full"), nil} {
		if got := l.ask(l.s, "SHUTDOWN"); got != "" {
			t.Fatalf("SHUTDOWN is answered at once: %q", got)
		}
		if got := l.ask(other, "GET", "k"); got != "" {
			t.Errorf("another client is served: %q", got)
		}
		c.note(l)
		l.m.JobEnded(l.nowUs, 0, failed)
		if failed == nil {
			break
		}
		if got := l.take(); !strings.HasPrefix(got, "-ERR Errors trying to SHUTDOWN") {
			t.Errorf("a failed SHUTDOWN is answered %q", got)
		}
		if got := string(other.Out.Bytes()); got != "$-1\r\n" {
			t.Errorf("the other client is answered %q", got)
		}
	}
	if !c.note(l) || len(c.begun) != 3 {
		t.Error("the engine does not end")
	}
}
