package replication

// Pieces are a part of the stream on its way to a replica: where its bytes are, in order. They are shared, and not to be
// written to. The zero value is empty.
type Pieces struct {
	list  [][]byte
	head  int // those before it are gone
	bytes int
}

// Len is how many bytes there are.
func (p *Pieces) Len() int { return p.bytes }

// Add adds bytes at the end, without copying them.
func (p *Pieces) Add(piece []byte) {
	if len(piece) == 0 {
		return
	}
	p.bytes += len(piece)
	if last := len(p.list) - 1; last >= p.head && follows(p.list[last], piece) {
		p.list[last] = p.list[last][:len(p.list[last])+len(piece)]
		return
	}
	if p.head > len(p.list)/2 {
		n := copy(p.list, p.list[p.head:])
		clear(p.list[n:])
		p.list, p.head = p.list[:n], 0
	}
	p.list = append(p.list, piece)
}

// follows reports whether a piece is in memory what comes directly after another one.
func follows(before, piece []byte) bool {
	n := len(before)
	return cap(before) >= n+len(piece) && &before[:n+1][n] == &piece[0]
}

// Join adds all of others.
func (p *Pieces) Join(others *Pieces) {
	for _, piece := range others.list[others.head:] {
		p.Add(piece)
	}
}

// First is the first piece; nil if there is none.
func (p *Pieces) First() []byte {
	if p.head == len(p.list) {
		return nil
	}
	return p.list[p.head]
}

// Drop removes the first n bytes of the first piece.
func (p *Pieces) Drop(n int) {
	p.bytes -= n
	first := &p.list[p.head]
	if *first = (*first)[n:]; len(*first) > 0 {
		return
	}
	*first = nil
	if p.head++; p.head == len(p.list) {
		p.list, p.head = p.list[:0], 0
	}
}

// Clear removes all.
func (p *Pieces) Clear() {
	clear(p.list)
	p.list, p.head, p.bytes = p.list[:0], 0, 0
}
