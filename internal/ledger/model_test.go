package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// The model is the ledger as one would write it without a server: slices and loops. Random commands go to both; every
// answer and, after each, everything inspect shows must agree. Time is moved by hand: the deadlines on the server are
// minutes away, and a deadline is passed by writing one that lies in the past.

type entry struct {
	id            string
	weight, limit int
	over          bool // its deadline has passed
}

type model struct {
	operator int
	leases   []entry
	queue    []entry
	barred   map[string]bool
}

func find(list []entry, id string) int {
	return slices.IndexFunc(list, func(e entry) bool { return e.id == id })
}

func without(list []entry, id string) []entry {
	return slices.DeleteFunc(list, func(e entry) bool { return e.id == id })
}

func (m *model) held() (sum int) {
	for _, lease := range m.leases {
		sum += lease.weight
	}
	return sum
}

func (m *model) effective(stated int) int {
	if m.operator > 0 {
		return m.operator
	}
	return stated
}

func (m *model) settle() {
	over := func(e entry) bool { return e.over }
	m.leases = slices.DeleteFunc(m.leases, over)
	m.queue = slices.DeleteFunc(m.queue, over)
}

func (m *model) promote() {
	for len(m.queue) > 0 {
		head := m.queue[0]
		limit := m.effective(head.limit)
		if head.weight <= limit && m.held()+head.weight > limit {
			return
		}
		m.queue = m.queue[1:]
		if head.weight <= limit {
			m.leases = append(m.leases, head)
		}
	}
}

func (m *model) acquire(id string, weight, stated int, wait bool) ledger.Outcome {
	m.settle()
	defer m.promote()
	if find(m.leases, id) >= 0 {
		return ledger.Granted
	}
	if m.barred[id] {
		return ledger.Barred
	}
	at := find(m.queue, id)
	if at >= 0 {
		weight, stated = m.queue[at].weight, m.queue[at].limit
	}
	if weight > m.effective(stated) {
		m.queue = without(m.queue, id)
		return ledger.Heavy
	}
	if at < 0 {
		m.promote()
		if len(m.queue) == 0 && m.held()+weight <= m.effective(stated) {
			m.leases = append(m.leases, entry{id: id, weight: weight})
			return ledger.Granted
		}
		if !wait {
			return ledger.Refused
		}
		m.queue = append(m.queue, entry{id: id, weight: weight, limit: stated})
	}
	m.promote()
	if find(m.leases, id) >= 0 {
		return ledger.Granted
	}
	return ledger.Waiting
}

func (m *model) release(id string) ledger.Hold {
	m.settle()
	defer m.promote()
	switch {
	case find(m.leases, id) >= 0:
		m.leases = without(m.leases, id)
		return ledger.Held
	case m.barred[id]:
		return ledger.Forced
	}
	return ledger.Lost
}

func (m *model) remove(id string) ledger.Cancelled {
	m.settle()
	defer m.promote()
	switch {
	case find(m.leases, id) >= 0:
		m.leases = without(m.leases, id)
		return ledger.WasHeld
	case find(m.queue, id) >= 0:
		m.queue = without(m.queue, id)
		return ledger.WasWaiting
	}
	return ledger.WasUnknown
}

// system is the ledger under test with its model.
type system struct {
	t        *rapid.T
	ctx      context.Context
	client   *redis.Client
	ledger   *ledger.Ledger
	resource *ledger.Resource
	model    model
	token    int64
	tokens   map[string]int64 // of the leases that inspect showed last
}

func (s *system) agree(what string, got, want any, err error) {
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
	if got != want {
		s.t.Fatalf("%s: got %v, the model says %v", what, got, want)
	}
}

func (s *system) drawID() string {
	return fmt.Sprintf("process%d:1", rapid.IntRange(1, 7).Draw(s.t, "id"))
}

func (s *system) acquire(t *rapid.T) {
	id, limit := s.drawID(), rapid.IntRange(1, 4).Draw(t, "limit")
	weight, wait := rapid.IntRange(1, 3).Draw(t, "weight"), rapid.Bool().Draw(t, "wait")
	request := ledger.AcquireRequest{
		Resource: s.resource, ID: id, Weight: weight, Limit: limit, TTL: time.Minute, Claim: time.Minute, Owner: "me",
	}
	if wait || find(s.model.queue, id) >= 0 { // whoever waits never says that he does not
		wait, request.Wait = true, time.Minute
	}
	held := find(s.model.leases, id) >= 0 && !s.model.leases[find(s.model.leases, id)].over
	answer, err := s.ledger.Acquire(s.ctx, &request)
	s.agree("acquire", answer.Outcome, s.model.acquire(id, weight, limit, wait), err)
	switch {
	case answer.Outcome == ledger.Waiting:
		s.agree("waiters ahead", answer.Ahead, find(s.model.queue, id), nil)
	case answer.Outcome == ledger.Granted && held:
		s.agree("L2: token of a lease that is held", answer.Token, s.tokens[id], nil)
	}
}

func (s *system) release(*rapid.T) {
	id := s.drawID()
	hold, err := s.ledger.Release(s.ctx, s.resource, id)
	s.agree("release", hold, s.model.release(id), err)
}

func (s *system) cancel(*rapid.T) {
	id := s.drawID()
	was, err := s.ledger.Cancel(s.ctx, s.resource, id, time.Minute)
	s.agree("cancel", was, s.model.remove(id), err)
	s.model.barred[id] = true
}

func (s *system) force(*rapid.T) {
	id := s.drawID()
	ended, err := s.ledger.Force(s.ctx, s.resource, id, time.Minute)
	want := 0
	if s.model.remove(id) != ledger.WasUnknown {
		want, s.model.barred[id] = 1, true
	}
	s.agree("force", ended, want, err)
}

func (s *system) renew(*rapid.T) {
	ids := []string{s.drawID(), s.drawID()}
	s.model.settle()
	var want []ledger.Hold
	for _, id := range ids {
		switch {
		case find(s.model.leases, id) >= 0 && len(s.model.queue) > 0:
			want = append(want, ledger.Wanted)
		case find(s.model.leases, id) >= 0:
			want = append(want, ledger.Held)
		case s.model.barred[id]:
			want = append(want, ledger.Forced)
		default:
			want = append(want, ledger.Lost)
		}
	}
	s.model.promote()
	result := s.ledger.RenewAll(s.ctx, []ledger.RenewRequest{{
		Resource: s.resource, Leases: []ledger.Renewal{{ID: ids[0], TTL: time.Minute}, {ID: ids[1], TTL: time.Minute}},
	}})[0]
	s.agree("renew", fmt.Sprint(result.Holds), fmt.Sprint(want), result.Err)
}

func (s *system) resize(t *rapid.T) {
	limit := rapid.IntRange(0, 5).Draw(t, "operator")
	before, err := s.ledger.Resize(s.ctx, s.resource, limit)
	s.agree("resize", before, s.model.operator, err)
	s.model.settle()
	s.model.operator = limit
	s.model.promote()
}

// pass lets the deadline of whatever an id has go by.
func (s *system) pass(*rapid.T) {
	id, keys := s.drawID(), s.resource.Keys()
	past := redis.Z{Score: 1, Member: id}
	s.client.ZAddXX(s.ctx, keys[1], past)
	s.client.ZAddXX(s.ctx, keys[3], past, redis.Z{Score: 1, Member: "-" + id})
	delete(s.model.barred, id)
	for _, list := range [][]entry{s.model.leases, s.model.queue} {
		if at := find(list, id); at >= 0 {
			list[at].over = true
		}
	}
}

// check compares everything inspect shows, which is a transition itself, and asserts the invariants by number.
func (s *system) check(*rapid.T) {
	s.model.settle()
	s.model.promote()
	state, err := s.ledger.Inspect(s.ctx, s.resource, 100)
	s.agree("L8: held", state.Held, s.model.held(), err)
	s.agree("operator", state.Operator, s.model.operator, nil)
	var queue, want []string
	for _, e := range state.Queue {
		queue = append(queue, fmt.Sprint(e.ID, e.Weight))
	}
	for _, e := range s.model.queue {
		want = append(want, fmt.Sprint(e.id, e.weight))
	}
	if diff := cmp.Diff(want, queue); diff != "" {
		s.t.Fatalf("L3: queue (-model +ledger):\n%s", diff)
	}
	holders := make(map[string]int)
	clear(s.tokens)
	for _, e := range state.Holders {
		holders[e.ID], s.tokens[e.ID] = e.Weight, e.Token
	}
	for _, e := range s.model.leases {
		s.agree("L1: weight of "+e.id, holders[e.id], e.weight, nil)
	}
	s.agree("L1: leases", len(holders), len(s.model.leases), nil)
	if state.Token < s.token {
		s.t.Fatalf("L2: the last token went from %d back to %d", s.token, state.Token)
	}
	s.token = state.Token
}

func TestLedgerAgreesWithModel(t *testing.T) {
	server := difftest.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	scripts := goredis.New(client)
	t.Run("scripts", func(t *testing.T) { agreesWithModel(t, client, ledger.New(scripts), "model") })
	t.Run("functions", func(t *testing.T) {
		if _, err := ledger.New(scripts).InstallFunctions(t.Context()); err != nil {
			t.Fatal(err)
		}
		// A script would be met with NOPERM.
		if err := client.Do(t.Context(), "acl", "setuser", "default", "-evalsha", "-eval").Err(); err != nil {
			t.Fatal(err)
		}
		agreesWithModel(t, client, ledger.New(asFunctions{scripts}), "model of functions")
	})
}

// asFunctions is a transport that has transitions run as functions of the library.
type asFunctions struct{ transport.Transport }

func (f asFunctions) Do(ctx context.Context, c transport.Command) (any, error) {
	return f.Transport.Do(ctx, asFunction(c))
}

func (f asFunctions) Pipeline(ctx context.Context, commands []transport.Command) []transport.Reply {
	for i, c := range commands {
		commands[i] = asFunction(c)
	}
	return f.Transport.Pipeline(ctx, commands)
}

func asFunction(c transport.Command) transport.Command {
	if c.Words[0] == "evalsha" {
		c.Words[0], c.Words[1] = "fcall", ledger.FunctionOf(c.Words[1].(string))
	}
	return c
}

func agreesWithModel(t *testing.T, client *redis.Client, l *ledger.Ledger, names string) {
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		resource, err := ledger.NewResource(fmt.Sprint(names, " ", run))
		if err != nil {
			t.Fatal(err)
		}
		s := &system{
			t: t, ctx: context.Background(), client: client, ledger: l, resource: resource,
			model: model{barred: map[string]bool{}}, tokens: map[string]int64{},
		}
		t.Repeat(map[string]func(*rapid.T){
			"acquire": s.acquire, "acquire again": s.acquire, "release": s.release, "cancel": s.cancel, "force": s.force,
			"renew": s.renew, "resize": s.resize, "pass": s.pass, "": s.check,
		})
	})
}
