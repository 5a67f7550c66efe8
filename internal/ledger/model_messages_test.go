package ledger_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// What the transitions publish: messages to processes, which the model knows, and events for those who watch, which must
// explain by themselves how the state came to be.

// published is one message.
type published struct{ channel, payload string }

// drain returns what has been published so far: up to a mark of its own, which comes last.
func (s *system) drain() (messages []published) {
	const mark = "signalbox:mark"
	if err := s.client.Publish(s.ctx, mark, "here").Err(); err != nil {
		s.t.Fatal(err)
	}
	for {
		message, err := s.inbox.ReceiveMessage(s.ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		if message.Channel == mark {
			return messages
		}
		messages = append(messages, published{message.Channel, message.Payload})
	}
}

// checkMessages compares the messages of the last transition, in no order, with the model's. "ask" is left out: it may be
// said more often than needed, and who must hear it is a matter of time (internal/simtest).
func (s *system) checkMessages(messages []published) {
	var got []string
	want := slices.Clone(s.model.told)
	for _, m := range messages {
		if m.channel == s.resource.Events() && s.retold != nil {
			s.retold.replay(s, m.payload)
		}
		part := strings.Fields(m.payload)
		if !strings.HasPrefix(m.channel, ledger.InboxPrefix) || part[0] == "ask" || !s.ours(part[1]) {
			continue
		}
		if process, _, _ := strings.Cut(part[1], ":"); m.channel != ledger.InboxPrefix+process {
			s.t.Fatalf("%q went to %s", m.payload, m.channel)
		}
		got = append(got, part[0]+" "+part[1])
	}
	for _, m := range s.model.told {
		if !s.ours(strings.Fields(m)[1]) {
			s.t.Fatalf("the model tells %q of another resource", m)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Fatalf("messages (-model +ledger):\n%s", diff)
	}
}

// ours reports whether a message about an id is one of this resource.
func (s *system) ours(id string) bool {
	return strings.HasSuffix(id, fmt.Sprint("-", slices.Index(s.parts, s.part)))
}

// retold is a resource as the events tell it.
type retold struct {
	holders map[string]int
	queue   []string
	token   int64
}

func (s *system) newRetold() *retold {
	r := &retold{holders: make(map[string]int), token: s.token}
	state, err := s.ledger.Inspect(s.ctx, s.resource, 100)
	if err != nil {
		s.t.Fatal(err)
	}
	s.drain()
	for _, e := range state.Holders {
		if !e.Resting {
			r.holders[e.ID] = e.Weight
		}
	}
	for _, e := range state.Queue {
		r.queue = append(r.queue, e.ID)
	}
	return r
}

// replay follows one event. Each must be possible where it comes.
func (r *retold) replay(s *system, payload string) {
	change, ok := ledger.ParseChange(payload)
	if !ok {
		s.t.Fatalf("no event: %q", payload)
	}
	weight, held := r.holders[change.ID]
	at := slices.Index(r.queue, change.ID)
	resting := strings.HasPrefix(change.ID, "!")
	possible := false
	switch change.Kind {
	case "wait":
		possible = !held && at < 0
		r.queue = append(r.queue, change.ID)
	case "grant":
		possible = !held && change.Token > r.token
		r.queue = slices.DeleteFunc(r.queue, func(id string) bool { return id == change.ID })
		r.holders[change.ID], r.token = change.Weight, change.Token
	case "leave":
		possible = at >= 0
		r.queue = slices.DeleteFunc(r.queue, func(id string) bool { return id == change.ID })
	case "release", "expire", "force":
		possible = resting || (held && weight == change.Weight)
		delete(r.holders, change.ID)
	case "reweigh":
		possible = held && weight != change.Weight && (change.Weight < weight || change.Token > r.token)
		r.holders[change.ID], r.token = change.Weight, max(r.token, change.Token)
	case "resize":
		possible = true
	}
	if !possible {
		s.t.Fatalf("event %q cannot follow: holders %v, queue %v, token %d", payload, r.holders, r.queue, r.token)
	}
}

// explain compares what the events told with what is.
func (r *retold) explain(s *system, state ledger.State) {
	want, queue := make(map[string]int), []string(nil)
	for _, e := range state.Holders {
		if !e.Resting {
			want[e.ID] = e.Weight
		}
	}
	for _, e := range state.Queue {
		queue = append(queue, e.ID)
	}
	if diff := cmp.Diff(want, r.holders); diff != "" {
		s.t.Fatalf("holders (-inspect +events):\n%s", diff)
	}
	if diff := cmp.Diff(queue, r.queue, cmp.Transformer("empty", func(list []string) []string { return append([]string{}, list...) })); diff != "" {
		s.t.Fatalf("queue (-inspect +events):\n%s", diff)
	}
}
