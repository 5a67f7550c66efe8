package store

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/engine/stepped"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// lab is a queue on an engine that stands still: time passes when a test says so, and messages are kept to be read.
type lab struct {
	t      testing.TB
	engine *stepped.Engine
	inbox  *stepped.Conn
	calls  map[string]int64
	called map[string]int // of the functions, if transitions run as such
	*Store
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newLab(t testing.TB) *lab {
	t.Helper()
	l := &lab{t: t, engine: stepped.New(epoch), calls: map[string]int64{}}
	t.Cleanup(l.engine.Close)
	l.inbox = l.engine.Connect()
	l.inbox.Send([][]byte{[]byte("PSUBSCRIBE"), []byte(InboxPrefix + "*")})
	l.inbox.Received()
	s, err := New(l, "app", "producer", time.Second)
	must(t, err)
	l.Store = s
	return l
}

// The rest of a transport is not used by a Store.
func (l *lab) Pipeline(context.Context, []transport.Command) []transport.Reply { panic("unused") }
func (l *lab) Together(context.Context, []transport.Command) []transport.Reply { panic("unused") }
func (l *lab) Server(string) string                                            { return "" }

func (l *lab) Listen(context.Context, []string, func(transport.Event)) error { panic("unused") }

func (l *lab) EachPrimary(ctx context.Context, visit func(context.Context, transport.Doer) error) error {
	return visit(ctx, l)
}

func (l *lab) Do(_ context.Context, command transport.Command) (any, error) {
	words := make([]string, len(command.Words))
	for i, word := range command.Words {
		words[i] = fmt.Sprint(word)
	}
	if l.called != nil {
		l.asFunction(words)
	}
	l.engine.Advance(time.Microsecond) // no two calls at once
	return parseReply(l.engine.Do(words...))
}

// raw runs a command of the test's own.
func (l *lab) raw(words ...string) any {
	l.t.Helper()
	value, err := parseReply(l.engine.Do(words...))
	must(l.t, err)
	return value
}

func (l *lab) key(name string) string { return Prefix("app") + name }

func (l *lab) pass(d time.Duration) { l.engine.Advance(d) }

// work makes a worker's next call.
func (l *lab) work(id string, change ...func(*Report)) *Answer {
	l.t.Helper()
	l.calls[id]++
	r := &Report{
		Worker: id, Call: l.calls[id], Lease: 15 * time.Second, State: "online", Room: "slot:1", Kinds: "note", Info: "{}",
		Want: MostClaims, Register: l.calls[id] == 1,
	}
	for _, c := range change {
		c(r)
	}
	answer, err := l.Work(l.t.Context(), r)
	must(l.t, err)
	return answer
}

// begin is a worker's first two calls: the first makes it known, and the second claims.
func (l *lab) begin(id string, change ...func(*Report)) []Claim {
	l.t.Helper()
	return append(l.work(id, change...).Claims, l.work(id, change...).Claims...)
}

func room(text string) func(*Report)  { return func(r *Report) { r.Room = text } }
func tags(text string) func(*Report)  { return func(r *Report) { r.Tags = text } }
func state(text string) func(*Report) { return func(r *Report) { r.State = text } }

func report(done ...Done) func(*Report) {
	return func(r *Report) { r.Done = append(r.Done, done...) }
}

func over(c Claim, verb string) func(*Report) {
	return report(Done{ID: c.ID, Token: c.Token, Verb: verb})
}

// enqueue takes items in, and wants them to be new.
func (l *lab) enqueue(items ...Item) []Outcome {
	l.t.Helper()
	l.calls[""]++
	for i := range items {
		if items[i].Lane.Kind == "" {
			items[i].Lane.Kind = "note"
		}
		items[i].Rest = "{}"
	}
	outcomes, err := l.Enqueue(l.t.Context(), l.calls[""], items)
	must(l.t, err)
	return outcomes
}

func (l *lab) configure(fields ...string) {
	l.t.Helper()
	must(l.t, l.Configure(l.t.Context(), fields...))
}

// messages are the words of what was published since the last time.
func (l *lab) messages() (list [][]string) {
	l.t.Helper()
	in := bufio.NewReader(bytes.NewReader(l.inbox.Received()))
	for {
		value, err := readReply(in)
		if errors.Is(err, io.EOF) {
			return list
		}
		must(l.t, err)
		text, _ := value.([]any)[3].(string)
		words, ok := ParseMessage(text)
		if !ok {
			l.t.Fatalf("a message that does not parse: %q", text)
		}
		list = append(list, words)
	}
}

// handed are the jobs that messages handed over, each as "worker job", and the workers that were told to call.
func (l *lab) handed() (list []string) {
	l.t.Helper()
	for _, words := range l.messages() {
		switch words[0] {
		case "jobs":
			claims, ok := ParseClaims(words[2:])
			if !ok {
				l.t.Fatalf("claims that do not parse: %q", words)
			}
			for _, c := range claims {
				list = append(list, words[1]+" "+c.ID)
			}
		case "wake", "look":
			list = append(list, words[0]+" "+words[1])
		}
	}
	return list
}

func ids(claims []Claim) string {
	var list []string
	for _, c := range claims {
		list = append(list, c.ID)
	}
	return strings.Join(list, " ")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func parseReply(reply []byte) (any, error) { return readReply(bufio.NewReader(bytes.NewReader(reply))) }

// readReply reads a reply in the form in which a transport gives it.
func readReply(in *bufio.Reader) (any, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	n, err := strconv.ParseInt(line[1:], 10, 64)
	switch line[0] {
	case '+':
		return line[1:], nil
	case '-':
		return nil, &transport.ServerError{Text: line[1:]}
	case ':':
		return n, err
	case '$':
		if n < 0 {
			return nil, err
		}
		text := make([]byte, n+2)
		_, err = io.ReadFull(in, text)
		return string(text[:n]), err
	case '*':
		list := make([]any, n)
		for i := range list {
			if list[i], err = readReply(in); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("a reply that begins with %q", line)
}
