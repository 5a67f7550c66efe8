package queue

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// What a handler says of its job while it runs: how far it is, and lines of a log. They are kept with the job on the server
// for as long as the job is, over all attempts. They cost no command of their own: what is new goes with the worker's next
// call, which is its heartbeat if nothing else happens, or with the one that says that the job has ended. Each time all that
// is kept of a job is said, so that a call may be repeated; it is bounded (notesMost), and at most once a second for a job.

// Progress is how far a job is, as its handler said last, by its worker's clock.
type Progress struct {
	Percent float64   `json:"percent"`
	What    string    `json:"what,omitempty"`
	At      time.Time `json:"at"`
}

// LogLine is a line that a handler wrote, by its worker's clock.
type LogLine struct {
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"` // 1 for the first
	Text    string    `json:"text"`
}

// notes are what is kept of a job.
type notes struct {
	Progress *Progress `json:"progress,omitempty"`
	Log      []LogLine `json:"log,omitempty"`
}

const (
	notesMost   = 8 << 10 // bytes of a job's log, with 60 for each line
	lineMost    = 1000
	callMost    = 256 << 10 // bytes of the notes in one call
	lineHas     = 60
	noteAtEvery = time.Second
)

// Progress says how far the job is, in percent, and what it is doing. Who looks at the job sees it within a third of the
// queue's lease: see JobInfo and Queue.Watch.
func (j *Job[A]) Progress(percent float64, what string) {
	if math.IsNaN(percent) {
		percent = 0
	}
	j.book.write(func(n *notes, _ int) {
		n.Progress = &Progress{Percent: min(max(percent, 0), 100), What: oneLine(what), At: now()}
	})
}

// Logf adds a line to the log of the job. The last 8 KiB are kept, over all attempts.
func (j *Job[A]) Logf(format string, args ...any) {
	j.book.write(func(n *notes, attempt int) {
		n.Log = append(n.Log, LogLine{At: now(), Attempt: attempt, Text: oneLine(fmt.Sprintf(format, args...))})
		n.forget()
	})
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// oneLine is a text without control characters, and not too long.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	return strings.ToValidUTF8(text[:min(len(text), lineMost)], "")
}

// forget leaves out the oldest lines if there are too many.
func (n *notes) forget() {
	bytes := 0
	for i, line := range slices.Backward(n.Log) {
		if bytes += lineHas + len(line.Text); bytes > notesMost {
			n.Log = slices.Clone(n.Log[i+1:])
			return
		}
	}
}

// notebook is the notes of a job that runs. A nil one forgets all.
type notebook struct {
	attempt int
	tell    func() // that there is something to send

	mu                   sync.Mutex
	notes                notes
	version, sent, heard int // what was written, what is on its way, and what the server knows
	sentAt               time.Time
}

func newNotebook(text string, attempt int, tell func()) *notebook {
	b := &notebook{attempt: attempt, tell: tell}
	b.notes = parseNotes(text)
	b.notes.Progress = nil // of the attempt before
	return b
}

func parseNotes(text string) (n notes) {
	if text != "" && json.Unmarshal([]byte(text), &n) != nil { // somebody else wrote it
		return notes{}
	}
	return n
}

func (b *notebook) write(change func(n *notes, attempt int)) {
	if b == nil {
		return
	}
	b.mu.Lock()
	change(&b.notes, b.attempt)
	first := b.version == b.sent
	b.version++
	b.mu.Unlock()
	if first {
		b.tell()
	}
}

// page is all that is kept, if there is something to send.
func (b *notebook) page() (text string, version int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.version == b.sent || time.Since(b.sentAt) < noteAtEvery {
		return "", 0
	}
	b.sent, b.sentAt = b.version, time.Now()
	return b.notes.encode(), b.sent
}

// lastPage is all that is kept, if the server may not know it.
func (b *notebook) lastPage() (text string, fresh bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.version == b.heard {
		return "", false
	}
	return b.notes.encode(), true
}

// answered takes note of what has become of a page.
func (b *notebook) answered(version int, known bool) {
	b.mu.Lock()
	again := !known && b.version == b.sent
	if known {
		b.heard = version
	} else {
		b.sent = b.heard
	}
	b.mu.Unlock()
	if again {
		b.tell()
	}
}

func (n *notes) encode() string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(n); err != nil {
		return "{}" // it cannot be: these are texts and numbers
	}
	return strings.TrimSpace(text.String())
}

// note remembers an execution that has something to say.
func (w *Worker) note(e *execution) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted = append(w.noted, e)
}

// page is a note on its way.
type page struct {
	from    *execution
	version int
	note    store.Done
}

func (e *execution) noteOf(text string) store.Done {
	return store.Done{ID: e.claim.ID, Token: e.claim.Token, Verb: "note", Text: text}
}

// takeNotes returns the notes for a call. What does not go into it, or was told just now, stays for the next.
func (w *Worker) takeNotes() (pages []page) {
	w.mu.Lock()
	defer w.mu.Unlock()
	bytes := 0
	left := w.noted[:0]
	for _, e := range w.noted {
		if w.jobs[e.claim.ID] != e {
			continue // its end has said it
		}
		text, version := "", 0
		if bytes < callMost {
			text, version = e.book.page()
		}
		if version == 0 {
			left = append(left, e)
			continue
		}
		bytes += len(text)
		pages = append(pages, page{e, version, e.noteOf(text)})
	}
	clear(w.noted[len(left):])
	w.noted = left
	return pages
}

func answered(pages []page, known bool) {
	for _, p := range pages {
		p.from.book.answered(p.version, known)
	}
}
