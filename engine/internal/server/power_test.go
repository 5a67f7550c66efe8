package server_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/aof"
	"github.com/signalbox-io/signalbox/engine/internal/disk/disktest"
	"github.com/signalbox-io/signalbox/engine/internal/server"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// The engine on a disk that fails and loses power, in virtual time: what crashtest does
// with kill, which only takes what is in memory.
//
// A history is several lives of one folder. In each of them writers send numbered units while a
// nemesis makes the disk fail and mends it. Then the power goes: at a moment, or after some
// step of the disk. What was not synced is lost, torn, or kept out of order. The next life
// checks what is there.

const (
	powerWriters = 3
	powerLives   = 4
	// mayMiss is how long ago something was acknowledged, at most, that a power cut takes with everysec: a sync
	// each second, and the time that it takes.
	mayMiss = 2 * time.Second
	// mendsIn is how long it may take after the disk works again until writes are taken again.
	mendsIn = 10 * time.Second
)

// history is what happened to a folder.
type history struct {
	t         *testing.T
	policy    string
	r         *rand.Rand
	lives     int
	refusals  int // times that the file could not be loaded before its end had been cut off
	mu        sync.Mutex
	writers   [powerWriters]*powerWriter
	hurtSince time.Time         // since when the disk may not have kept what it was to keep; zero if it has
	sound     [powerWriters]int // the units that were acknowledged when that began
	faulty    bool              // the disk was made to fail, and not mended
	over      bool
}

type powerWriter struct {
	number int
	acks   []ack // of this life
	before int   // units that were there when it began, on disk
	sent   int
	places map[int]int
}

type ack struct {
	at     time.Time
	number int
}

// With always, what was acknowledged is there after a power cut; with everysec, what is missing was
// acknowledged within the last two seconds, or since the disk had failed, which writes were refused for. What was
// acknowledged and written is there after the process was killed, and everything when it has closed without an error.
// In every policy the rest is a prefix of history in order, and the engine serves writes again when the
// disk does. SEEDS is how many histories.
func TestPowerCutsTakeNoMoreThanThePolicySays(t *testing.T) {
	seeds := 12
	if text := os.Getenv("SEEDS"); text != "" {
		var err error
		if seeds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, policy := range []string{"always", "everysec", "no"} {
		t.Run(policy, func(t *testing.T) {
			lives, refusals := 0, 0
			for seed := range seeds {
				synctest.Test(t, func(t *testing.T) {
					h := &history{t: t, policy: policy, r: rand.New(rand.NewPCG(uint64(seed), 7))}
					for i := range h.writers {
						h.writers[i] = &powerWriter{number: i, places: map[int]int{}}
					}
					d := disktest.New()
					for range powerLives {
						d = h.live(d)
					}
					lives, refusals = lives+h.lives, refusals+h.refusals
				})
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
			t.Logf("%d lives; %d times the end of the log had to be cut off by hand", lives, refusals)
		})
	}
}

// How a life ends.
type ending int

const (
	powerGoes      ending = iota // at a moment
	powerGoesAfter               // some steps of the disk
	killed                       // the process; the system stays
	closed                       // as it should be, and then the power goes
)

// live is a life, up to its end.
func (h *history) live(d *disktest.Disk) (next *disktest.Disk) {
	h.t.Helper()
	h.lives++
	s := h.start(d)
	h.look(s)
	h.over, h.faulty, h.hurtSince = false, false, time.Time{}
	var busy sync.WaitGroup
	for _, w := range h.writers {
		own := rand.New(rand.NewPCG(h.r.Uint64(), 0))
		busy.Go(func() { h.write(s, w, own) })
	}
	d.SlowSyncs(time.Duration(h.r.IntN(100)) * time.Millisecond)
	d.SlowWrites(max(0, time.Duration(h.r.IntN(4000)-2000)*time.Microsecond))
	steps, end := -1, []ending{powerGoes, powerGoes, powerGoesAfter, powerGoesAfter, powerGoesAfter, killed, killed, closed}[h.r.IntN(8)]
	if end == powerGoesAfter {
		steps = h.r.IntN(500)
	}
	h.nemesis(s, d, steps)
	next, atEnd := h.end(s, d, end, &busy)
	for i, w := range h.writers {
		w.acks = []ack{{number: atEnd[i]}}
	}
	return next
}

// end ends a life. It returns what the next one finds, and how many units of each writer must be there.
func (h *history) end(s *server.Server, d *disktest.Disk, how ending, busy *sync.WaitGroup) (next *disktest.Disk, least [powerWriters]int) {
	finish := func() {
		h.over = true
		h.mu.Unlock()
		d.ReadOnly(how != closed) // what the old engine does from here on comes to nothing
		err := s.Close()
		if err != nil {
			h.t.Logf("the engine ends: %v", err)
		}
		busy.Wait()
		if how == closed && err == nil {
			least = h.acknowledged()
		}
	}
	h.mu.Lock()
	least = h.least(how == killed)
	switch how {
	case killed:
		finish()
		next = d.Restart()
	case closed:
		finish()
		next = d.PowerCut(h.r.Uint64())
	default:
		next = d.PowerCut(h.r.Uint64())
		finish()
	}
	return next, least
}

// acknowledged is how many units of each writer were acknowledged.
func (h *history) acknowledged() (n [powerWriters]int) {
	for i, w := range h.writers {
		n[i] = w.before
		if last := len(w.acks) - 1; last >= 0 {
			n[i] = w.acks[last].number
		}
	}
	return n
}

// least is how many units of each writer must be there if the power goes now, or the process is killed: what
// was there at the start, and what was acknowledged and is not excused.
func (h *history) least(killed bool) (n [powerWriters]int) {
	hurt := !h.hurtSince.IsZero()
	switch {
	case h.policy == "always", killed && !hurt:
		return h.acknowledged()
	case killed: // not by the time: a fault and many units can share an instant of virtual time
		return h.sound
	}
	until := time.Now()
	if hurt {
		until = h.hurtSince
	}
	for i, w := range h.writers {
		n[i] = w.before
		for _, a := range w.acks {
			if h.policy == "everysec" && !a.at.After(until.Add(-mayMiss)) {
				n[i] = a.number
			}
		}
	}
	return n
}

// start opens an engine. If the power cut has left a hole in the log it is refused, and the log is cut off
// there, as check-aof does. With always there is none, since all but the last write was synced, unless a sync has
// failed and the disk was not mended: behind what that has lost are requests that came before writes were refused.
func (h *history) start(d *disktest.Disk) *server.Server {
	h.t.Helper()
	for {
		s := keep(h.t, d, append(withLog[h.policy], "auto-aof-rewrite-min-size", "4kb", "auto-aof-rewrite-percentage", "50")...)
		err := s.Load(nil)
		if err == nil {
			return s
		}
		if closeErr := s.Close(); closeErr != nil {
			h.t.Fatal(closeErr)
		}
		var damaged *aof.FormatError
		if !errors.As(err, &damaged) || h.policy == "always" && !h.faulty {
			h.t.Fatalf("life %d: %v", h.lives, err)
		}
		h.refusals++
		set, err := aof.Open(d, aof.DefaultNames)
		if err == nil {
			err = errors.Join(set.Trim(damaged.Offset), set.Close())
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// look compares what is there with what must be there, and makes the writers go on from it.
func (h *history) look(s *server.Server) {
	h.t.Helper()
	conn, err := difftest.Connect(s.Dial)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // it has been used to its end
	ask := func(words ...string) difftest.Value {
		answer, err := conn.Do(words...)
		if err != nil || answer.Kind == difftest.Error {
			h.t.Fatalf("%q: %v, %v", words, answer, err)
		}
		return answer
	}
	var there [powerWriters]int
	for i, entry := range ask("LRANGE", "log", "0", "-1").Elems {
		var number, n int
		if _, err := fmt.Sscanf(entry.Text, "%d:%d", &number, &n); err != nil || number < 0 || number >= powerWriters {
			h.t.Fatalf("place %d of the list has %q", i+1, entry.Text)
		}
		w := h.writers[number]
		if there[number]++; there[number] != n {
			h.t.Fatalf("place %d of the list has %q, where unit %d should come", i+1, entry.Text, there[number])
		}
		if told := w.places[n]; told != 0 && told != i+1 {
			h.t.Fatalf("unit %q was told place %d and is at %d", entry.Text, told, i+1)
		}
	}
	for i, w := range h.writers {
		count := ask("GET", fmt.Sprint("count:", i)).Text
		ask("SELECT", strconv.Itoa(i+1))
		marked, _ := strconv.Atoi(ask("GET", "mark").Text)
		if wrong := w.check(there[i], count, marked); wrong != "" {
			h.t.Fatalf("life %d: writer %d: %s", h.lives, i, wrong)
		}
		ask("SET", "mark", strconv.Itoa(there[i]))
		ask("SELECT", "0")
		w.acks, w.before, w.sent = nil, there[i], there[i]
		clear(w.places)
	}
}

// check says what is wrong with n units, their counter, and the mark of the last one.
func (w *powerWriter) check(n int, count string, marked int) string {
	least := 0
	for _, a := range w.acks {
		least = a.number
	}
	counted, err := strconv.Atoi(count)
	if count == "" {
		counted, err = 0, nil
	}
	switch {
	case n < least:
		return fmt.Sprintf("%d units must be there, and %d are", least, n)
	case n > w.sent:
		return fmt.Sprintf("%d units were sent, and %d are there", w.sent, n)
	case counted != n || err != nil:
		return fmt.Sprintf("there are %d units, and %q were counted", n, count)
	case marked != n && marked != n-1:
		return fmt.Sprintf("there are %d units, and the mark is %d", n, marked)
	}
	return ""
}

// write writes until the life is over. When a connection breaks it goes on from what the engine has.
func (h *history) write(s *server.Server, w *powerWriter, r *rand.Rand) {
	for !h.isOver() {
		conn, err := difftest.Connect(s.Dial)
		if err != nil {
			return // the engine has ended
		}
		next, ok := h.resume(conn, w)
		for ; ok && !h.isOver(); next++ {
			ok = h.unit(conn, w, next)
			time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		}
		_ = conn.Close() // it is broken, or the life is over
		time.Sleep(20 * time.Millisecond)
	}
}

func (h *history) isOver() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// resume finds out which unit is next, and mends the mark.
func (h *history) resume(conn *difftest.Conn, w *powerWriter) (next int, ok bool) {
	answer, err := conn.Do("GET", fmt.Sprint("count:", w.number))
	if err != nil || answer.Kind == difftest.Error {
		return 0, false
	}
	n, _ := strconv.Atoi(answer.Text)
	h.mu.Lock()
	w.sent = n
	h.mu.Unlock()
	return n + 1, h.mark(conn, w, n)
}

// mark writes the number of a unit, as soon as it is taken.
func (h *history) mark(conn *difftest.Conn, w *powerWriter, n int) bool {
	for !h.isOver() {
		_, err := conn.Do("SELECT", strconv.Itoa(w.number+1))
		if err != nil {
			return false
		}
		answer, err := conn.Do("SET", "mark", strconv.Itoa(n))
		if err != nil {
			return false
		}
		if _, err := conn.Do("SELECT", "0"); err != nil {
			return false
		}
		if answer.Text == "OK" {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

// unit writes a unit and its mark. A refused one is tried again.
func (h *history) unit(conn *difftest.Conn, w *powerWriter, n int) bool {
	h.mu.Lock()
	w.sent = n
	h.mu.Unlock()
	for _, request := range [][]string{{"MULTI"}, {"RPUSH", "log", fmt.Sprintf("%d:%d", w.number, n)}, {"INCR", fmt.Sprint("count:", w.number)}, {"EXEC"}} {
		if err := conn.Send(request...); err != nil {
			return false
		}
	}
	var answer difftest.Value
	for range 4 {
		var err error
		if answer, err = conn.Receive(); err != nil {
			return false
		}
	}
	if answer.Kind == difftest.Error {
		time.Sleep(50 * time.Millisecond)
		return false
	}
	place, _ := strconv.Atoi(answer.Elems[0].Text)
	h.mu.Lock()
	w.places[n] = place
	w.acks = append(w.acks, ack{time.Now(), n})
	h.mu.Unlock()
	return h.mark(conn, w, n)
}
