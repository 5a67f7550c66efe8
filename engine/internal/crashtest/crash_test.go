package crashtest_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

const (
	defaultRounds = 60
	// roundsOfAFolder is how many crashes a folder goes through.
	roundsOfAFolder = 40
)

// What was acknowledged survives a kill at any moment, and what is there is a prefix of
// what happened. CRASH_ROUNDS is how many kills, SEED at which moments.
func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	rounds, seed := number(t, "CRASH_ROUNDS", defaultRounds), number(t, "SEED", 1)
	policies := map[string][]string{
		"always":   {"appendonly=yes", "appendfsync=always"},
		"everysec": {"appendonly=yes", "appendfsync=everysec"},
		"no":       {"appendonly=yes", "appendfsync=no"},
		"snapshot": {"appendonly=no"},
	}
	for name, settings := range policies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings = append(settings, "save=1 1", "auto-aof-rewrite-min-size=1kb", "auto-aof-rewrite-percentage=10")
			r := rand.New(rand.NewPCG(uint64(seed), uint64(len(name))))
			began, looked := time.Now(), 0
			for done := 0; done < rounds/len(policies); {
				f := &folder{dir: t.TempDir(), settings: settings, snapshots: name == "snapshot"}
				f.socket = socketName(t)
				f.empty()
				for range min(roundsOfAFolder, rounds/len(policies)-done) {
					f.round(t, r)
					done++
				}
				f.last(t)
				looked += f.looked
				if done%(5*roundsOfAFolder) == 0 {
					fmt.Printf("%s: %d rounds, %d looks, %v\n", name, done, looked, time.Since(began).Round(time.Second))
				}
			}
			t.Logf("seed %d: the data of %d rounds was looked at, %v each", seed, looked, time.Since(began)/time.Duration(max(looked, 1)))
		})
	}
}

func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// socketName is a path that is short enough for a socket.
func socketName(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "crash")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "s")
}

// folder is the data of one engine after the other.
type folder struct {
	dir, socket string
	settings    []string
	snapshots   bool // there is no append-only file: what was acknowledged since the last SAVE may be gone
	writers     [writers]*writer
	log         []string // what the list must begin with
	looked      int
}

func (f *folder) empty() {
	for i := range f.writers {
		f.writers[i] = newWriter(i)
	}
}

// round starts an engine, looks at its data, has it written to, and kills it: or kills it before that.
func (f *folder) round(t *testing.T, r *rand.Rand) {
	t.Helper()
	c := start(t, f.dir, f.socket, f.settings)
	if r.IntN(5) == 0 { // at the start, or while it loads
		time.Sleep(time.Duration(r.IntN(40000)) * time.Microsecond)
		c.kill(t)
		return
	}
	conn := f.look(t, c)
	var busy sync.WaitGroup
	errs := make(chan error, writers)
	for _, w := range f.writers {
		own := rand.New(rand.NewPCG(r.Uint64(), 0))
		busy.Go(func() { errs <- w.write(c.dial, own) })
	}
	f.trouble(t, c, conn, r)
	c.kill(t)
	busy.Wait()
	for range writers {
		if err := <-errs; err != nil {
			t.Fatalf("%v\n%s", err, c.output.String())
		}
	}
	_ = conn.Close() // the other end is gone
}

// trouble waits for the moment of the kill, and perhaps for what it is to be in the middle of.
func (f *folder) trouble(t *testing.T, c *child, conn *difftest.Conn, r *rand.Rand) {
	t.Helper()
	moment := func(mostMs int) { time.Sleep(time.Duration(r.IntN(mostMs*1000)) * time.Microsecond) }
	ask := func(words ...string) {
		if answer, err := conn.Do(words...); err == nil && answer.Kind == difftest.Error && !strings.Contains(answer.Text, "in progress") &&
			!strings.Contains(answer.Text, "off") && !strings.Contains(answer.Text, "Another child") {
			t.Errorf("%q is answered %v", words, answer)
		}
	}
	moment(30)
	switch r.IntN(8) {
	case 0, 1:
		ask("BGREWRITEAOF")
		moment(15)
	case 2, 3:
		ask("BGSAVE")
		moment(15)
	case 4:
		f.saved(conn)
		moment(5)
	case 5: // a shutdown, which writes a snapshot
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		moment(20)
	case 6: // long enough for what the engine does by itself
		moment(400)
	default:
	}
}

// saved writes a snapshot, and what was there before can be relied upon.
func (f *folder) saved(conn *difftest.Conn) {
	_, _ = conn.Do("SAVE") // what it does is seen in the data
}

// last looks at what the last round has left, and at what is there after an end in good order.
func (f *folder) last(t *testing.T) {
	t.Helper()
	for range 2 {
		c := start(t, f.dir, f.socket, f.settings)
		conn := f.look(t, c)
		_ = conn.Close()
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := c.cmd.Wait(); err != nil {
			t.Fatalf("shutting down: %v\n%s", err, c.output.String())
		}
	}
}

// look waits until the data is loaded and compares it with what must be there.
func (f *folder) look(t *testing.T, c *child) *difftest.Conn {
	t.Helper()
	conn, err := difftest.Connect(c.dial)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(words ...string) difftest.Value {
		answer, err := conn.Do(words...)
		if err != nil {
			c.kill(t)
			t.Fatalf("%q: %v\n%s", words, err, c.output.String())
		}
		return answer
	}
	log := ask("LRANGE", "log", "0", "-1")
	for strings.HasPrefix(log.Text, "LOADING") {
		log = ask("LRANGE", "log", "0", "-1")
	}
	wrong := f.checkLog(texts(log.Elems))
	for _, w := range f.writers {
		var answers []difftest.Value
		for _, request := range w.model.look() {
			answers = append(answers, ask(request...))
		}
		if wrong == "" {
			wrong = w.model.compare(answers)
		}
	}
	if left := c.leftovers(t, f.dir); len(left) > 0 {
		wrong += fmt.Sprintf("\nleft over: %q", left)
	}
	if wrong != "" {
		c.kill(t)
		t.Fatalf("%s\nthe folder: %s\n%s", wrong, f.dir, c.output.String())
	}
	f.looked++
	return conn
}

// checkLog checks the list of units, and brings the models to where it ends.
func (f *folder) checkLog(log []string) string {
	var there [writers]int
	at := map[string]int{}
	for i, entry := range log {
		var number, n int
		if _, err := fmt.Sscanf(entry, "%d:%d", &number, &n); err != nil || number < 0 || number >= writers {
			return fmt.Sprintf("place %d of the list has %q", i+1, entry)
		}
		if there[number]++; there[number] != n {
			return fmt.Sprintf("place %d of the list has %q, where unit %d should come", i+1, entry, there[number])
		}
		at[entry] = i + 1
	}
	for _, w := range f.writers {
		n := there[w.number]
		switch {
		case n < w.acked && !f.snapshots:
			return fmt.Sprintf("writer %d: unit %d was acknowledged; there are %d", w.number, w.acked, n)
		case n > w.sent:
			return fmt.Sprintf("writer %d: there are %d units, and only %d were sent", w.number, n, w.sent)
		}
		for number, place := range w.places {
			if got := at[label(w.number, number)]; number <= n && got != place {
				return fmt.Sprintf("unit %s was told place %d and is at %d", label(w.number, number), place, got)
			}
		}
		if n < w.model.count {
			w.model = newModel(w.number)
		}
		for w.model.count < n {
			w.model.apply()
		}
		w.acked, w.sent = n, n
		clear(w.places)
	}
	return ""
}
