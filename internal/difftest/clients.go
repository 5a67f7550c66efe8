package difftest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The clients of the fuzzer. Most requests come from client 0. Client 1 is there
// to disturb it: WATCH, MULTI and SELECT are a connection's own. The clients from
// firstBlocker on each send one request that may block, and stay until they are
// released, which is where both servers have to agree on who was served what.
// A burst is several requests in one piece on a connection of its own, read until
// the server hangs up, so that a request may have no reply.

const (
	firstBlocker = 2
	blockers     = 3
)

// side is one of the two servers, and the connections to it.
type side struct {
	dial    Dial
	conns   map[int]*Conn
	control *Conn
	waiting map[int]waiter // those that are blocked
}

// waiter is a client that is blocked: its ID, and the request that blocks it.
type waiter struct {
	id    string
	words []string
}

// newSide connects to a server and empties it.
func newSide(dial Dial) (*side, error) {
	control, err := Connect(dial)
	if err != nil {
		return nil, err
	}
	s := &side{dial: dial, conns: map[int]*Conn{}, control: control, waiting: map[int]waiter{}}
	for _, words := range [][]string{{"FLUSHALL"}, {"FUNCTION", "FLUSH"}, {"SCRIPT", "FLUSH"}, append([]string{"CONFIG", "SET"}, defaults...)} {
		reply, err := control.Do(words...)
		if err == nil && reply.Kind == Error {
			err = fmt.Errorf("%q: %s", words, reply.Text)
		}
		if err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *side) close() {
	for _, conn := range s.conns {
		conn.Close()
	}
	s.control.Close()
}

// do carries out a query and returns what the client sees of it.
func (s *side) do(q query) (Value, error) {
	switch {
	case q.burst != nil:
		return s.burst(q.burst)
	case q.release:
		return s.release()
	case q.client >= firstBlocker:
		return s.block(q)
	}
	conn, err := s.client(q.client)
	if err != nil {
		return Value{}, err
	}
	return conn.Do(q.words...)
}

func (s *side) client(number int) (*Conn, error) {
	if conn, ok := s.conns[number]; ok {
		return conn, nil
	}
	conn, err := Connect(s.dial)
	if err == nil {
		s.conns[number] = conn
	}
	return conn, err
}

// burst sends requests in one piece and QUIT after them. The replies are as many
// as came.
func (s *side) burst(requests [][]string) (Value, error) {
	conn, err := Connect(s.dial)
	if err != nil {
		return Value{}, err
	}
	defer conn.Close()
	var piece []byte
	for _, words := range append(slices.Clone(requests), []string{"QUIT"}) {
		piece = appendRequest(piece, words)
	}
	if err := conn.SendRaw(piece); err != nil {
		return Value{}, err
	}
	replies := Value{Kind: Push}
	for {
		reply, err := conn.Receive()
		if errors.Is(err, io.EOF) {
			return replies, nil
		}
		if err != nil {
			return Value{}, err
		}
		replies.Elems = append(replies.Elems, reply)
	}
}

var (
	lastCommand = regexp.MustCompile(` cmd=(\S+)`)
	isBlocked   = regexp.MustCompile(` flags=\w*b`)
)

// block sends a request that may block from a client that is not blocked. It
// returns the reply, or that there is none yet.
func (s *side) block(q query) (Value, error) {
	if _, ok := s.waiting[q.client]; ok {
		return Value{Kind: SimpleString, Text: "blocked already"}, nil
	}
	conn, err := s.client(q.client)
	if err != nil {
		return Value{}, err
	}
	id, err := conn.Do("CLIENT", "ID")
	if err != nil {
		return Value{}, err
	}
	if err := conn.Send(q.words...); err != nil {
		return Value{}, err
	}
	blocked, err := s.hasBlocked(id.Text)
	if err != nil {
		return Value{}, err
	}
	if blocked {
		s.waiting[q.client] = waiter{id.Text, q.words}
		return Value{Kind: SimpleString, Text: "blocked"}, nil
	}
	return conn.Receive()
}

// hasBlocked waits until the server has seen a client's request, and reports
// whether the client is blocked by it.
func (s *side) hasBlocked(id string) (bool, error) {
	for deadline := time.Now().Add(replyPatience); time.Now().Before(deadline); {
		list, err := s.control.Do("CLIENT", "LIST", "ID", id)
		if err != nil {
			return false, err
		}
		if command := lastCommand.FindStringSubmatch(list.Text); command != nil && command[1] != "client|id" {
			return isBlocked.MatchString(list.Text), nil
		}
	}
	return false, fmt.Errorf("the server does not see a request of client %s", id)
}

// release ends what waits of the blocked clients, and returns for each whether
// it was still blocked, and its reply.
func (s *side) release() (Value, error) {
	all := Value{Kind: Push}
	for _, number := range slices.Sorted(maps.Keys(s.waiting)) {
		still, err := s.control.Do("CLIENT", "UNBLOCK", s.waiting[number].id)
		if err != nil {
			return Value{}, err
		}
		reply, err := s.conns[number].Receive()
		if err != nil {
			return Value{}, fmt.Errorf("client %d, which UNBLOCK says %s of: %w", number, still.Text, err)
		}
		all.Elems = append(all.Elems, Value{Kind: Integer, Text: strconv.Itoa(number)}, still, reply)
		delete(s.waiting, number)
	}
	return all, nil
}

// waitedFor returns how many keys the blocked clients name, together.
func (s *side) waitedFor() int {
	keys := map[string]bool{}
	for _, w := range s.waiting {
		for _, word := range w.words {
			if group, _, ok := strings.Cut(word, ":"); ok && slices.Contains(groups, group) {
				keys[word] = true
			}
		}
	}
	return len(keys)
}

// swaps reports whether a query exchanges databases, or may do so when it is run by
// EXEC.
func (q query) swaps() bool {
	isSwap := func(word string) bool { return strings.EqualFold(word, "SWAPDB") }
	return slices.ContainsFunc(q.words, isSwap) ||
		slices.ContainsFunc(q.burst, func(words []string) bool { return slices.ContainsFunc(words, isSwap) })
}

// String writes a query as lines of a transcript, as far as it is one.
func (q query) String() string {
	var text strings.Builder
	line := func(client string, words []string) {
		text.WriteString(client + ">")
		for _, word := range words {
			text.WriteString(" " + quote(word))
		}
		text.WriteString("\n")
	}
	switch {
	case q.release:
		return "(blocked clients are released)\n"
	case q.burst != nil:
		for _, words := range q.burst {
			line("(in one piece) ", words)
		}
	case q.client > 0:
		line("c"+strconv.Itoa(q.client+1), q.words)
	default:
		line("", q.words)
	}
	return text.String()
}
