package crashtest_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// writer sends units one after the other, some at a time.
type writer struct {
	number int // which writer it is
	model  *model
	acked  atomic.Int64 // units that were acknowledged
	kept   int          // units that were acknowledged before they were all written to disk
	sent   int          // units that may have come to the engine
	marked int          // the last mark that was acknowledged
	places map[int]int  // in the list, from 1, of the units acknowledged since the last look
}

func newWriter(number int) *writer {
	return &writer{number: number, model: newModel(number), places: map[int]int{}}
}

// goOn makes a writer go on after n units. lasting is whether all that was acknowledged had to be there.
func (w *writer) goOn(n int, lasting bool) {
	if n < w.model.count {
		w.model = newModel(w.number)
	}
	for w.model.count < n {
		w.model.apply()
	}
	if w.marked = min(w.marked, n); !lasting {
		w.marked = max(0, n-1) // of the units that are there the last one's may be gone
	}
	w.model.leastMark = w.marked
	w.acked.Store(int64(n))
	w.sent, w.kept = n, n
	clear(w.places)
}

// write writes until the engine is gone. The error is of an answer that should not be.
func (w *writer) write(dial difftest.Dial, r *rand.Rand) error {
	const mostAtOnce = 6
	conn, err := difftest.Connect(dial)
	if err != nil {
		return nil // the engine is gone already
	}
	defer func() { _ = conn.Close() }() // the other end is gone
	if err := conn.Send("SELECT", sharedDB); err != nil {
		return nil
	}
	if _, err := conn.Receive(); err != nil {
		return nil
	}
	for {
		first, several := w.sent+1, 1+r.IntN(mostAtOnce)
		w.sent += several
		for number := first; number <= w.sent; number++ {
			for _, request := range append(unit(w.number, number), mark(w.number, number)...) {
				if err := conn.Send(request...); err != nil {
					return nil
				}
			}
		}
		for number := first; number <= w.sent; number++ {
			gone, err := w.receive(conn, number)
			if gone || err != nil {
				return err
			}
		}
	}
}

// receive receives the answers to a unit and to its mark, the last of which acknowledges it.
func (w *writer) receive(conn *difftest.Conn, number int) (gone bool, err error) {
	requests := unit(w.number, number)
	var answer difftest.Value
	for range requests {
		if answer, err = conn.Receive(); err != nil {
			return true, nil
		}
	}
	if answer.Kind != difftest.Array || len(answer.Elems) != len(requests)-2 {
		return false, fmt.Errorf("unit %s is answered %v", label(w.number, number), answer)
	}
	counted := answer.Elems[0].Text
	if kind(w.number, number) != script {
		w.places[number] = place(answer.Elems[0].Text)
		counted = answer.Elems[1].Text
	}
	if counted != fmt.Sprint(number) {
		return false, fmt.Errorf("unit %s is counted as %s", label(w.number, number), counted)
	}
	for range mark(w.number, number) {
		if answer, err = conn.Receive(); err != nil {
			return true, nil
		}
		if answer.Text != "OK" {
			return false, fmt.Errorf("the mark of unit %s is answered %v", label(w.number, number), answer)
		}
	}
	w.marked = number
	w.acked.Store(int64(number))
	return false, nil
}

func place(text string) (n int) {
	_, _ = fmt.Sscan(text, &n) // 0 is no place, and will be found wrong
	return n
}
