package replication

import (
	"fmt"
	"strconv"
	"strings"
)

// What a replica says until the stream flows:
//
//	PING                                       is anybody there
//	AUTH, REPLCONF listening-port, capa, ...   who am I; sent together, answered in order
//	REPLCONF ancestors ?                       whom do you follow? OK, and run IDs; any other server refuses that
//	READONLY                                   are you a node of a Cluster? Any other server refuses that
//	PSYNC id offset                            what I have, or ? -1
//
// The answer to PSYNC is a Continue, a Full, or why neither is possible just now. Empty lines may come
// before it: the primary is at work.

// Terms are what a replica has to say for itself.
type Terms struct {
	User, Password string // Password "": no AUTH
	Port           int    // where it listens
	Address        string // where it is to be found; "": where it connects from
	// ID and Offset are of the stream that it has heard; ID "" for none.
	ID     string
	Offset int64
	// Ancestors asks whom the primary follows.
	Ancestors bool
	// TakeOver tells the one that is asked to become the primary: FAILOVER.
	TakeOver bool
}

// Handshake is a conversation under way.
type Handshake struct {
	terms   Terms
	waiting []string // the questions that were not answered yet
	asked   bool     // PSYNC is among them
	sent    []byte

	ancestors []string
}

// Answer is what the conversation has come to.
type Answer struct {
	Done bool
	// Full is whether a snapshot comes, after which the stream goes on at Offset. Otherwise
	// it goes on where the terms have said.
	Full   bool
	ID     string // of the stream from now on
	Offset int64
}

// Begin begins a conversation, and says what to send first.
func Begin(terms Terms) (h *Handshake, send []byte) {
	h = &Handshake{terms: terms}
	h.ask("PING")
	return h, h.take()
}

func (h *Handshake) ask(words ...string) {
	h.waiting = append(h.waiting, words[0])
	h.sent = AppendRequest(h.sent, words...)
}

func (h *Handshake) take() []byte {
	sent := h.sent
	h.sent = nil
	return sent
}

// AppendRequest appends a request as the protocol has it.
func AppendRequest(to []byte, words ...string) []byte {
	to = fmt.Appendf(to, "*%d\r\n", len(words))
	for _, word := range words {
		to = fmt.Appendf(to, "$%d\r\n%s\r\n", len(word), word)
	}
	return to
}

// Hear takes a line of the primary, without its end, and says what to send then, and what it has
// come to. The error says why nothing comes of it.
func (h *Handshake) Hear(line string) (send []byte, answer Answer, err error) {
	if line == "" {
		return nil, answer, nil
	}
	if len(h.waiting) == 0 {
		return nil, answer, fmt.Errorf("the primary says %q, and was not asked", clip(line))
	}
	question := h.waiting[0]
	h.waiting = h.waiting[1:]
	switch failed := line[0] != '+'; question {
	case "PING":
		if failed && !isAlive(line) {
			return nil, answer, fmt.Errorf("the primary answers PING with %q", clip(line))
		}
		h.introduce()
	case "AUTH":
		if failed {
			return nil, answer, fmt.Errorf("the primary refuses masteruser and masterauth: %q", clip(line))
		}
	case "PSYNC":
		answer, err = h.hearPSYNC(line)
		return nil, answer, err
	case "READONLY":
		if !failed {
			return nil, answer, ErrCluster
		}
	case askedAncestors:
		h.ancestors = []string{}
		if ids, ok := strings.CutPrefix(line, "+OK "); ok {
			h.ancestors = strings.Fields(ids)
		}
	case "REPLCONF": // who does not know one of them can be a primary all the same
	}
	if len(h.waiting) == 0 && !h.asked {
		h.askForStream()
	}
	return h.take(), answer, nil
}

// isAlive reports whether an error is one that the way in cures.
func isAlive(line string) bool {
	for _, why := range []string{"-NOAUTH", "-NOPERM", "-ERR operation not permitted"} {
		if strings.HasPrefix(line, why) {
			return true
		}
	}
	return false
}

func (h *Handshake) introduce() {
	t := &h.terms
	switch {
	case t.Password == "":
	case t.User == "":
		h.ask("AUTH", t.Password)
	default:
		h.ask("AUTH", t.User, t.Password)
	}
	h.ask("REPLCONF", "listening-port", strconv.Itoa(t.Port))
	if t.Address != "" {
		h.ask("REPLCONF", "ip-address", t.Address)
	}
	h.ask("REPLCONF", "capa", "eof", "capa", "psync2")
	if t.Ancestors {
		h.ask("REPLCONF", "ancestors", "?")
		h.waiting[len(h.waiting)-1] = askedAncestors
	}
	h.ask("READONLY")
}

// askedAncestors is what waits for the answer to the question whom the primary follows.
const askedAncestors = "REPLCONF ancestors"

// Ancestors are the run IDs of the primary, of whom it follows, and so on, as far as they tell; nil while the question was
// not answered.
func (h *Handshake) Ancestors() []string { return h.ancestors }

func (h *Handshake) askForStream() {
	h.asked = true
	id, from := "?", "-1"
	if h.terms.ID != "" {
		id, from = h.terms.ID, strconv.FormatInt(h.terms.Offset+1, 10)
	}
	if h.terms.TakeOver {
		h.ask("PSYNC", id, from, "FAILOVER")
		return
	}
	h.ask("PSYNC", id, from)
}

func clip(line string) string { return line[:min(len(line), 200)] }
