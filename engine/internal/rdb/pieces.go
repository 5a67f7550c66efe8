package rdb

import (
	"errors"
	"iter"
)

// A large value written in pieces: whoever holds a lock for it gives that back between
// them. The encoder of a value is a handful of plain loops, and stays so: it runs as a
// coroutine (iter.Pull), which rests at the places where it passes its bytes on. There is
// no concurrency in that: it runs only while somebody is in More.

// busyMost is how many elements, or about that, a piece has. A node of a list or of a stream
// counts as so many as nodeBusy says.
const (
	busyMost = 128
	nodeBusy = busyMost / 4
)

var errGivenUp = errors.New("rdb: given up")

// Pieces is a key that is being written. Until it is done its Writer is not to be used
// for anything else, and the value must not change. It must be taken to its end, or be
// given up.
type Pieces struct {
	next func() (struct{}, bool)
	stop func()
	err  error
}

// WritePieces is WriteKey that has not begun yet. The key is kept until the end.
func (w *Writer) WritePieces(key Key) *Pieces {
	p := &Pieces{}
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		w.e.pause = func() bool { return yield(struct{}{}) }
		p.err = w.WriteKey(&key)
		w.e.pause = nil
	})
	return p
}

// More writes one piece, and says whether there are more.
func (p *Pieces) More() (more bool, err error) {
	if _, more = p.next(); more {
		return true, nil
	}
	return false, p.err
}

// GiveUp ends it without writing the rest: the file is of no use.
func (p *Pieces) GiveUp() { p.stop() }

// rest pauses when it is time.
func (s *sink) rest() {
	if s.busy++; s.busy < busyMost {
		return
	}
	s.busy = 0
	if !s.pause() {
		s.pause = nil
		s.err = errGivenUp
	}
}
