package difftest

import "slices"

// Player sends the fuzzer's random requests to one server, for tests that compare it with another one that
// hears of it, such as its replica. What it answers does not matter.
type Player struct {
	side   *side
	source *source
	next   []query
}

// NewPlayer empties a server, and is about to send it the requests that follow from a seed.
func NewPlayer(seed uint64, dial Dial) (*Player, error) {
	side, err := newSide(dial)
	if err != nil {
		return nil, err
	}
	s := newSource(seed, grammar(), bitGrammar(), largeGrammar(), scriptGrammar(), placesGrammar())
	return &Player{side: side, source: s, next: s.prelude()}, nil
}

// Send sends so many requests. No client is blocked after it.
func (p *Player) Send(n int) error {
	for range n {
		if len(p.next) == 0 {
			p.next = append(p.next, p.source.next())
		}
		q := p.next[0]
		p.next = p.next[1:]
		if slices.Contains(q.words, "CONFIG") {
			continue // the other server keeps its own
		}
		if _, err := p.side.do(q); err != nil {
			return err
		}
	}
	_, err := p.side.release()
	return err
}

// Close hangs up.
func (p *Player) Close() { p.side.close() }
