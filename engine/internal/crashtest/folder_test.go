package crashtest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// folder is the data of one engine after the other, and what is known of it.
type folder struct {
	policy            policy
	home, dir, socket string
	writers           [writers]*writer
	off               bool // the append-only file was turned off, and is not in force again
	looked            int
}

// round starts an engine, looks at its data, has it written to, and kills it: or kills it before that.
func (f *folder) round(t *testing.T, r *rand.Rand) {
	t.Helper()
	c := start(t, f.dir, f.socket, f.policy.settings)
	if r.IntN(5) == 0 { // at the start, or while it loads
		time.Sleep(time.Duration(r.IntN(40000)) * time.Microsecond)
		c.kill(t)
		return
	}
	conn := f.look(t, c)
	f.mark(t, conn)
	var busy sync.WaitGroup
	errs := make(chan error, writers)
	for _, w := range f.writers {
		own := rand.New(rand.NewPCG(r.Uint64(), 0))
		busy.Go(func() { errs <- w.write(c.dial, own) })
	}
	f.trouble(t, c, conn, r)
	ended := c.kill(t)
	busy.Wait()
	for range writers {
		if err := <-errs; err != nil {
			t.Fatalf("%v\n%s", err, c.output.String())
		}
	}
	if ended && !f.off {
		f.note() // it has saved everything before it ended
	}
	_ = conn.Close() // the other end is gone
}

// note notes that what was acknowledged so far is on disk.
func (f *folder) note() {
	for _, w := range f.writers {
		w.kept = int(w.acked.Load())
	}
}

// mark writes how many units there are, for each writer to go on from.
func (f *folder) mark(t *testing.T, conn *difftest.Conn) {
	t.Helper()
	for _, w := range f.writers {
		for _, request := range mark(w.number, w.model.count) {
			if _, err := conn.Do(request...); err != nil {
				t.Fatal(err)
			}
		}
		w.marked = w.model.count
	}
}

// trouble waits for the moment of the kill, and perhaps for what it is to be in the middle of.
func (f *folder) trouble(t *testing.T, c *child, conn *difftest.Conn, r *rand.Rand) {
	t.Helper()
	moment := func(mostMs int) { time.Sleep(time.Duration(r.IntN(mostMs*1000)) * time.Microsecond) }
	moment(30)
	if f.policy.switching {
		f.switches(t, conn, r, moment)
		return
	}
	switch r.IntN(9) {
	case 0, 1:
		ask(t, conn, "BGREWRITEAOF")
		moment(15)
	case 2, 3:
		ask(t, conn, "BGSAVE")
		moment(15)
	case 4:
		f.saves(t, conn)
		moment(5)
	case 5: // a shutdown, which writes a snapshot
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		moment(60)
	case 6: // long enough for what the engine does by itself
		moment(400)
	case 7:
		if r.IntN(4) == 0 { // and for the snapshot that it makes after a second
			time.Sleep(time.Second)
		}
		moment(200)
	default:
	}
}

// ask sends a request that may be refused, but only for a reason that is in order.
func ask(t *testing.T, conn *difftest.Conn, words ...string) difftest.Value {
	t.Helper()
	answer, err := conn.Do(words...)
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	inOrder := strings.Contains(answer.Text, "in progress") || strings.Contains(answer.Text, "is off") || strings.Contains(answer.Text, "Another child")
	if answer.Kind == difftest.Error && !inOrder {
		t.Errorf("%q is answered %v", words, answer)
	}
	return answer
}

// saves writes a snapshot: what was there before can be relied upon.
func (f *folder) saves(t *testing.T, conn *difftest.Conn) {
	t.Helper()
	var acked [writers]int
	for i, w := range f.writers {
		acked[i] = int(w.acked.Load())
	}
	if ask(t, conn, "SAVE").Text != "OK" {
		return
	}
	for i, w := range f.writers {
		w.kept = acked[i]
	}
}

// switches turns the append-only file off, and perhaps on again. What is acknowledged counts from
// when it is in force again.
func (f *folder) switches(t *testing.T, conn *difftest.Conn, r *rand.Rand, moment func(mostMs int)) {
	t.Helper()
	if r.IntN(4) == 0 {
		return
	}
	f.note()
	f.off = true
	ask(t, conn, "CONFIG", "SET", "appendonly", "no")
	moment(10)
	if r.IntN(3) == 0 {
		return
	}
	ask(t, conn, "CONFIG", "SET", "appendonly", "yes")
	if r.IntN(2) == 0 {
		moment(20)
		return
	}
	for info := ""; !strings.Contains(info, "aof_rewrite_in_progress:0") || !strings.Contains(info, "aof_rewrite_scheduled:0"); {
		if info = ask(t, conn, "INFO", "persistence").Text; strings.Contains(info, "aof_last_bgrewrite_status:err") {
			t.Fatal("the rewrite has failed")
		}
	}
	f.off = false
	moment(20)
}

// last looks at what the last round has left, and at what is there after an end in good order.
func (f *folder) last(t *testing.T) {
	t.Helper()
	for range 2 {
		c := start(t, f.dir, f.socket, f.policy.settings)
		conn := f.look(t, c)
		_ = conn.Close()
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := c.cmd.Wait(); err != nil {
			t.Fatalf("shutting down: %v\n%s", err, c.output.String())
		}
		f.note()
	}
	f.checkFiles(t)
}

// checkFiles looks for files that belong to nothing. Empty ones may be there: a crash that comes before the
// first manifest leaves one.
func (f *folder) checkFiles(t *testing.T) {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(f.dir, "appendonlydir", "appendonly.aof.manifest"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	known := string(manifest) + " dump.rdb signalbox.lock appendonly.aof.manifest "
	for _, pattern := range []string{"*", filepath.Join("appendonlydir", "*")} {
		names, err := filepath.Glob(filepath.Join(f.dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if !info.IsDir() && info.Size() > 0 && !strings.Contains(known, " "+info.Name()+" ") {
				t.Fatalf("%s is left over; the manifest:\n%s", name, manifest)
			}
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
	ask("SELECT", sharedDB)
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
	if wrong != "" {
		c.kill(t)
		t.Fatalf("%s\nthe folder: %s\n%s", wrong, f.dir, c.output.String())
	}
	f.looked++
	f.off = false
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
		if wrong := f.checkWriter(w, there[w.number], at); wrong != "" {
			return wrong
		}
	}
	return ""
}

// checkWriter checks a writer of whom n units are there, at those places.
func (f *folder) checkWriter(w *writer, n int, at map[string]int) string {
	least, lasting := w.kept, f.policy.lasting && !f.off
	if lasting {
		least = int(w.acked.Load())
	}
	switch {
	case n < least:
		return fmt.Sprintf("writer %d: unit %d was acknowledged; there are %d", w.number, least, n)
	case n > w.sent:
		return fmt.Sprintf("writer %d: there are %d units, and only %d were sent", w.number, n, w.sent)
	}
	for number, place := range w.places {
		if got := at[label(w.number, number)]; number <= n && got != place {
			return fmt.Sprintf("unit %s was told place %d and is at %d", label(w.number, number), place, got)
		}
	}
	w.goOn(n, lasting)
	return ""
}
