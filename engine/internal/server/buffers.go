package server

import (
	"slices"
	"sync"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// Most connections are quiet at any moment, and only as many are busy as there
// are cores. So the memory in which requests are read and replies are built
// belongs to the server, and is lent:
//
//   - a parser with its buffer and tables, from when a socket has something to
//     read until all of it has been run. A connection keeps it only while it has
//     sent half a request, or waits with requests behind the one that blocks.
//   - the memory of a large argument, which may become a value; what that has overwritten
//     comes back.
//   - an output buffer, for the length of a batch. What is small is then copied to
//     the connection; what is large goes with the connection until it is written.
//
// A quiet connection has neither, whatever it has sent and been sent before. What
// is lent next is what came back last, which is still in the processor's cache.

const (
	// keepBytes is how large an output buffer a connection keeps for itself. It holds
	// the replies of most batches, and messages.
	keepBytes = 2 << 10
	// firstOutput is the size of an output buffer that is made to be lent. It grows
	// with the replies.
	firstOutput = 16 << 10
	// mostSpareOutput bounds one output buffer that is kept for the next batch, and
	// mostSpareOutputs all of them.
	mostSpareOutput  = 1 << 20
	mostSpareOutputs = 4 << 20
	// mostSpareParsers is more than are busy at once, mostly.
	mostSpareParsers = 16
	// mostSpareLarge bounds the memory of one large argument that is kept for another
	// one, and mostSpareLarges all of them.
	mostSpareLarge  = 1 << 20
	mostSpareLarges = 8 << 20
)

// spares is what is not lent out just now. It has a lock of its own, which is
// never held for long, since memory comes back after the engine's has been given
// back.
type spares struct {
	mu      sync.Mutex
	parsers []*resp.Requests
	outputs [][]byte
	bytes   int // of outputs
	larges  [][]byte
	large   int // bytes of larges
}

// parser lends a parser that has read nothing.
func (s *spares) parser() *resp.Requests {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.parsers) - 1; last >= 0 {
		p := s.parsers[last]
		s.parsers[last] = nil
		s.parsers = s.parsers[:last]
		return p
	}
	return &resp.Requests{Memory: s}
}

// returnParser takes back a parser all of whose requests have been run.
func (s *spares) returnParser(p *resp.Requests) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parsers) < mostSpareParsers {
		s.parsers = append(s.parsers, p)
	}
}

// output lends an empty output buffer.
func (s *spares) output() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.outputs) - 1
	if last < 0 {
		return make([]byte, 0, firstOutput)
	}
	b := s.outputs[last]
	s.outputs[last] = nil
	s.outputs = s.outputs[:last]
	s.bytes -= cap(b)
	return b
}

// returnOutput takes back an output buffer. One of another size than is lent is let go.
func (s *spares) returnOutput(b []byte) {
	if cap(b) < firstOutput || cap(b) > mostSpareOutput {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes+cap(b) <= mostSpareOutputs {
		s.outputs = append(s.outputs, b[:0])
		s.bytes += cap(b)
	}
}

// TakeLarge is resp.Memory's: the memory of large values that were overwritten, and of large
// arguments that nobody has kept.
func (s *spares) TakeLarge(size int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.larges) - 1; i >= 0; i-- {
		if b := s.larges[i]; cap(b) >= size && cap(b) <= size+size/4 {
			s.larges = slices.Delete(s.larges, i, i+1)
			s.large -= cap(b)
			return b
		}
	}
	return nil
}

// ReturnLarge is resp.Memory's. What has not been of use for longest is let go.
func (s *spares) ReturnLarge(b []byte) {
	if cap(b) > mostSpareLarge {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.larges = append(s.larges, b)
	s.large += cap(b)
	for ; s.large > mostSpareLarges; s.larges = slices.Delete(s.larges, 0, 1) {
		s.large -= cap(s.larges[0])
	}
}

// lend makes a session write into an output buffer that is lent, and returns its own.
// The engine's lock is held.
func (s *spares) lend(out *resp.Writer) (own []byte) {
	if out.Len() > 0 { // what has been told to it is not taken yet
		return nil
	}
	return out.Swap(s.output())
}

// end ends what lend has begun. The output has been taken.
func (s *spares) end(out *resp.Writer, own []byte) { s.returnOutput(out.Swap(own)) }

// empty makes ready for the next replies, without the memory of large ones.
func (s *spares) empty(out *resp.Writer) {
	if out.Len() > keepBytes {
		s.returnOutput(out.Swap(nil))
		return
	}
	out.Reset()
}
