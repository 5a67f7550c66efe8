package simulation

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/engine/stepped"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// server is the real ledger, its Go and its scripts, on an engine that does what it is told at the time that it is told. The
// engine serves one history after another.
type server struct {
	*ledger.Ledger
	engine  *stepped.Engine
	world   *world
	ahead   time.Duration // of its clock
	down    bool
	monitor *stepped.Conn // that hears all messages
	memory  int           // how often it has lost it
}

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func newServer() *server {
	s := &server{engine: stepped.New(epoch)}
	s.Ledger = ledger.New(direct{s.engine})
	return s
}

func (s *server) begin(w *world) {
	s.world, s.ahead, s.down, s.memory = w, 0, false, 0
	s.engine.Reset(epoch.Add(w.now))
	s.monitor = s.engine.Connect()
	s.monitor.Send([][]byte{[]byte("PSUBSCRIBE"), []byte(ledger.InboxPrefix + "*")})
	s.monitor.Received()
}

// look brings the server's clock up to now.
func (s *server) look() {
	s.engine.Advance(epoch.Add(s.world.now + s.ahead).Sub(s.engine.Now()))
}

// serve runs a request, and lets the messages go that it brings about.
func (s *server) serve(r *request) outcome {
	s.look()
	before := s.world.snapshots(r.life)
	o := r.run(s)
	s.world.judgeServer(r.life, before)
	s.world.noteAnswer(r.life, r.call, &o)
	s.overhear()
	for _, c := range s.world.clients {
		if c.inbox != nil && c.inbox.Pending() {
			s.publish(c)
		}
	}
	s.world.judgeTokens(r.life)
	return o
}

// order is the number of a change of weight, or what a mutant takes for one: each that arrives is the newest.
func (s *server) order(r *request) int64 {
	if s.world.wrong == numbersNothing {
		s.world.ids++
		return int64(s.world.ids)
	}
	return r.number
}

// overhear notes the messages to all inboxes, whether anybody listens or not.
func (s *server) overhear() {
	for rest := s.monitor.Received(); len(rest) > 0; {
		var message any
		message, rest, _ = parse(rest)
		if words, _ := message.([]any); len(words) == 4 {
			s.world.noteMessage(words[3].(string))
		}
	}
}

// publish sends a client the messages in its inbox.
func (s *server) publish(c *client) {
	for rest := c.inbox.Received(); len(rest) > 0; {
		var message any
		if message, rest, _ = parse(rest); message == nil {
			return
		}
		words, _ := message.([]any)
		if len(words) == 3 && words[0] == "message" {
			c.post(words[2].(string))
		}
	}
}

func (s *server) do(args ...string) any {
	value, _, _ := parse(s.engine.Do(args...))
	return value
}

// direct carries commands to the engine at once.
type direct struct{ engine *stepped.Engine }

func (d direct) Do(_ context.Context, command transport.Command) (any, error) {
	words := make([]string, len(command.Words))
	for i, word := range command.Words {
		switch word := word.(type) {
		case string:
			words[i] = word
		case int:
			words[i] = strconv.Itoa(word)
		case int64:
			words[i] = strconv.FormatInt(word, 10)
		}
	}
	value, _, err := parse(d.engine.Do(words...))
	return value, err
}

func (d direct) Pipeline(ctx context.Context, commands []transport.Command) []transport.Reply {
	replies := make([]transport.Reply, len(commands))
	for i, command := range commands {
		replies[i].Value, replies[i].Err = d.Do(ctx, command)
	}
	return replies
}

func (d direct) Together(ctx context.Context, commands []transport.Command) []transport.Reply {
	return d.Pipeline(ctx, commands)
}

func (direct) Server(string) string { return "" }

var errNotHere = errors.New("nobody asks for this here")

func (direct) Listen(context.Context, []string, func(transport.Event)) error { return errNotHere }

func (direct) EachPrimary(context.Context, func(context.Context, transport.Doer) error) error {
	return errNotHere
}

// parse reads one reply, and returns what is behind it.
func parse(reply []byte) (value any, rest []byte, err error) {
	line, rest, _ := bytes.Cut(reply, []byte("\r\n"))
	if len(line) == 0 {
		return nil, nil, errors.New("no reply")
	}
	text := string(line[1:])
	switch line[0] {
	case '+':
		return text, rest, nil
	case '-':
		return nil, rest, &transport.ServerError{Text: text}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, rest, err
	}
	switch {
	case line[0] == ':':
		return n, rest, nil
	case n < 0:
		return nil, rest, nil
	case line[0] == '$':
		return string(rest[:n]), rest[n+2:], nil
	}
	all := make([]any, n)
	for i := range all {
		if all[i], rest, err = parse(rest); err != nil {
			return nil, rest, err
		}
	}
	return all, rest, nil
}

// snapshot is who stands where at a resource, the dead left out.
type snapshot struct{ leases, queue []string }

func (s *server) snapshot(r *resource) snapshot {
	living := func(entries []ledger.StoredEntry) (ids []string) {
		for _, e := range entries {
			if e.UntilMs > s.engine.Now().UnixMilli() {
				ids = append(ids, e.ID)
			}
		}
		return ids
	}
	stored := s.stored(r)
	return snapshot{living(stored.Leases), living(stored.Queue)}
}

func (s *server) stored(r *resource) ledger.Stored {
	key := "signalbox:{" + r.name + "}"
	all, err := ledger.ReadStored(s.do("EVAL", ledger.Probe, "4", key, key+":leases", key+":queue", key+":seen", "read"))
	if err != nil {
		panic(err)
	}
	return all[0]
}

// knows says whether an id has a lease or a place that is in force.
func (s *server) knows(p place) bool {
	s.look()
	all := s.snapshot(p.resource)
	return slices.Contains(all.leases, p.id) || slices.Contains(all.queue, p.id)
}

func texts(reply any) []string {
	elements, _ := reply.([]any)
	all := make([]string, len(elements))
	for i, element := range elements {
		all[i], _ = element.(string)
	}
	return all
}

// numbers reads the numbers of a message behind its verb and id.
func numbers(words []string) []int64 {
	all := make([]int64, len(words))
	for i, word := range words {
		all[i], _ = strconv.ParseInt(word, 10, 64)
	}
	return all
}

func fields(message string) (verb, id string, rest []int64) {
	words := strings.Fields(message)
	return words[0], words[1], numbers(words[2:])
}
