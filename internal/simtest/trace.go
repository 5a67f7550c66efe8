package simtest

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// traceKeeps is how many events are printed with a failure.
const traceKeeps = 100

// trace remembers the last events of a run.
type trace struct {
	origin time.Time

	mu     sync.Mutex
	events []string // a ring
	next   int
}

// note adds an event at this virtual moment.
func (t *trace) note(format string, args ...any) {
	event := fmt.Sprintf("%12.6fs  ", time.Since(t.origin).Seconds()) + fmt.Sprintf(format, args...)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.events) < traceKeeps {
		t.events = append(t.events, event)
		return
	}
	t.events[t.next] = event
	t.next = (t.next + 1) % traceKeeps
}

func (t *trace) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(append(append([]string(nil), t.events[t.next:]...), t.events[:t.next]...), "\n")
}
