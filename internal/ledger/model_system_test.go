package ledger_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"pgregory.net/rapid"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// forever reaches from 1970, where deadlines are put that have passed, to long after this day.
const forever = 200 * 365 * 24 * time.Hour

// part is one resource: on the server, in the model, and as the events tell it.
type part struct {
	resource *ledger.Resource
	model    model
	token    int64
	tokens   map[string]int64 // of the leases that inspect showed last
	retold   *retold          // nil if nobody watches
}

// system is the ledger under test with its model: three resources, of which transitions want one or several.
type system struct {
	*part  // the one that the transition is about
	t      *rapid.T
	ctx    context.Context
	client *redis.Client
	inbox  *redis.PubSub
	ledger *ledger.Ledger
	parts  []*part
	ids    [5]int // generations: an id is used once
	groups [3]int
}

func (s *system) agree(what string, got, want any, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
	if got != want {
		s.t.Fatalf("%s: got %v, the model says %v", what, got, want)
	}
}

// choose draws the resource that the next transition is about.
func (s *system) choose() { s.part = s.parts[rapid.IntRange(0, len(s.parts)-1).Draw(s.t, "resource")] }

// drawSingle draws an id of those that are never part of a group. Once its permits rest it is not used any more.
func (s *system) drawSingle() string {
	n := rapid.IntRange(0, len(s.ids)-1).Draw(s.t, "id")
	at := slices.Index(s.parts, s.part)
	id := fmt.Sprintf("process%d:%d-%d", n, s.ids[n], at)
	if find(s.model.leases, "!"+id) >= 0 {
		s.ids[n]++
		id = fmt.Sprintf("process%d:%d-%d", n, s.ids[n], at)
	}
	return id
}

// drawID draws any id.
func (s *system) drawID() string {
	if rapid.IntRange(0, 3).Draw(s.t, "of a group") == 0 {
		n := rapid.IntRange(0, len(s.groups)-1).Draw(s.t, "group")
		return groupID(n, s.groups[n], slices.Index(s.parts, s.part))
	}
	return s.drawSingle()
}

func groupID(n, generation, at int) string { return fmt.Sprintf("group%d:%d-%d", n, generation, at) }

// drawTerms draws what an acquisition wants besides permits.
func (s *system) drawTerms(asks *entry) (terms ledger.Terms) {
	t := s.t
	if rapid.IntRange(0, 2).Draw(t, "with terms") > 0 {
		return terms
	}
	if asks.cool = rapid.Bool().Draw(t, "cool"); asks.cool {
		terms.Cool = forever
	}
	if asks.hold = rapid.Bool().Draw(t, "hold"); asks.hold {
		terms.Hold = forever
	}
	if asks.burst = rapid.IntRange(0, 3).Draw(t, "burst"); asks.burst > 0 {
		terms.Pace, terms.Burst = time.Hour, asks.burst
	}
	terms.Block = rapid.IntRange(0, 2).Draw(t, "block")
	asks.notice = rapid.Bool().Draw(t, "notice")
	terms.Notice = asks.notice
	return terms
}

func (s *system) acquire(t *rapid.T) {
	s.choose()
	asks := entry{
		id: s.drawSingle(), limit: rapid.IntRange(1, 4).Draw(t, "limit"), weight: rapid.IntRange(1, 3).Draw(t, "weight"),
	}
	request := ledger.AcquireRequest{
		Resource: s.resource, ID: asks.id, Weight: asks.weight, Limit: asks.limit, TTL: time.Minute, Claim: time.Minute,
		Terms: s.drawTerms(&asks), Owner: "me",
	}
	wait := rapid.Bool().Draw(t, "wait")
	if wait || find(s.model.queue, asks.id) >= 0 { // whoever waits never says that he does not
		wait, request.Wait = true, time.Minute
	}
	held := find(s.model.leases, asks.id) >= 0 && !s.model.leases[find(s.model.leases, asks.id)].over
	answer, err := s.ledger.Acquire(s.ctx, &request)
	s.agree("acquire", answer.Outcome, s.model.acquire(asks, wait), err)
	switch {
	case answer.Outcome == ledger.Waiting:
		s.agree("waiters ahead", answer.Ahead, find(s.model.queue, asks.id), nil)
	case answer.Outcome == ledger.Granted && held:
		s.agree("L2: token of a lease that is held", answer.Token, s.tokens[asks.id], nil)
	case answer.Outcome == ledger.Granted && answer.Token <= s.token:
		t.Fatalf("L2: token %d after %d, with what was reserved behind it", answer.Token, s.token)
	}
}

func (s *system) group(t *rapid.T) {
	n := rapid.IntRange(0, len(s.groups)-1).Draw(t, "group")
	order := rapid.Permutation([]int{0, 1, 2}).Draw(t, "order")[:rapid.IntRange(2, 3).Draw(t, "places")]
	request := ledger.GroupRequest{TTL: time.Minute, Claim: time.Minute, Owner: "me"}
	var places []place
	waits, held := false, 0
	for _, at := range order {
		p := s.parts[at]
		asks := entry{id: groupID(n, s.groups[n], at), weight: 1 + n%2, limit: 2, group: true}
		places = append(places, place{&p.model, asks})
		request.Places = append(request.Places, ledger.Place{Resource: p.resource, ID: asks.id, Weight: asks.weight, Limit: 2})
		waits = waits || find(p.model.queue, asks.id) >= 0
		if i := find(p.model.leases, asks.id); i >= 0 && !p.model.leases[i].over {
			held++
		}
	}
	wait := rapid.Bool().Draw(t, "wait") || waits
	if wait {
		request.Wait = time.Minute
	}
	answer, err := s.ledger.AcquireGroup(s.ctx, &request)
	outcome, which := acquireGroup(places, wait)
	s.agree("acquire a group", answer.Outcome, outcome, err)
	s.agree("which of the group", answer.Which, which, nil)
	for i, at := range order {
		p := s.parts[at]
		switch {
		case outcome == ledger.Granted && held == len(order):
			s.agree("L2: token of a lease that is held", answer.Tokens[i], p.tokens[places[i].asks.id], nil)
		case outcome == ledger.Granted && answer.Tokens[i] <= p.token:
			t.Fatalf("L2: token %d of a group after %d", answer.Tokens[i], p.token)
		}
	}
	if outcome == ledger.Barred {
		s.groups[n]++ // nobody uses its ids any more; what it holds expires or is cancelled by whoever draws it
		for _, p := range places {
			s.heard()
			s.part = s.parts[slices.IndexFunc(s.parts, func(q *part) bool { return &q.model == p.of })]
			s.cancelID(p.asks.id)
		}
	}
}

func (s *system) release(*rapid.T) {
	s.choose()
	id := s.drawID()
	result := s.ledger.ReleaseAll(s.ctx, []ledger.ReleaseRequest{{Resource: s.resource, ID: id}})[0]
	s.agree("release", result.Hold, s.model.release(id), result.Err)
}

func (s *system) cancel(*rapid.T) {
	s.choose()
	s.cancelID(s.drawID())
}

func (s *system) cancelID(id string) {
	result := s.ledger.CancelAll(s.ctx, []ledger.CancelRequest{{s.resource, id, time.Minute}})[0]
	s.agree("cancel", result.Was, s.model.remove(id, false), result.Err)
	s.model.barred[id] = true
}

func (s *system) giveBack(*rapid.T) {
	s.choose()
	id := s.drawID()
	result := s.ledger.ReleaseAll(s.ctx, []ledger.ReleaseRequest{{s.resource, id, time.Minute}})[0]
	want := ledger.Lost
	if s.model.remove(id, true) == ledger.WasHeld {
		want = ledger.Held
	}
	s.agree("give back", result.Hold, want, result.Err)
	s.model.barred[id] = true
}

func (s *system) force(*rapid.T) {
	s.choose()
	id := s.drawID()
	ended, err := s.ledger.Force(s.ctx, s.resource, id, time.Minute)
	want := 0
	if s.model.remove(id, false) != ledger.WasUnknown {
		want, s.model.barred[id] = 1, true
		s.model.told = append(s.model.told, "force "+id)
	}
	s.agree("force", ended, want, err)
}

func (s *system) renew(*rapid.T) {
	s.choose()
	ids := []string{s.drawID(), s.drawID()}
	s.model.call()
	var want []ledger.Hold
	var renewals []ledger.Renewal
	for _, id := range ids {
		hold := s.model.hold(id)
		if hold == ledger.Held && len(s.model.queue) > 0 {
			hold = ledger.Wanted
		}
		want = append(want, hold)
		renewal := ledger.Renewal{ID: id, TTL: time.Minute}
		if at := find(s.model.leases, id); at >= 0 && s.model.leases[at].cool {
			renewal.Cool = forever
		}
		renewals = append(renewals, renewal)
	}
	s.model.finish("")
	result := s.ledger.RenewAll(s.ctx, []ledger.RenewRequest{{Resource: s.resource, Leases: renewals}})[0]
	s.agree("renew", fmt.Sprint(result.Holds), fmt.Sprint(want), result.Err)
}

// reweigh asks with a number that is new, late, or was used before.
func (s *system) reweigh(t *rapid.T) {
	s.choose()
	id, weight, limit := s.drawID(), rapid.IntRange(1, 4).Draw(t, "weight"), rapid.IntRange(1, 4).Draw(t, "limit")
	number := int64(1)
	at, more := find(s.model.leases, id), false
	if at >= 0 {
		lease := s.model.leases[at]
		number = max(1, lease.reweighed+int64(rapid.IntRange(-1, 2).Draw(t, "number")))
		more = weight > lease.weight && number > lease.reweighed
	}
	answer, err := s.ledger.Reweigh(s.ctx, s.resource, id, number, weight, limit)
	hold, against := s.model.reweigh(id, number, weight, limit)
	got := map[bool]string{answer.Busy: "busy", answer.Stale: "stale"}[true]
	s.agree("reweigh", fmt.Sprint(answer.Hold, got), fmt.Sprint(hold, against), err)
	if hold != ledger.Held || against == "busy" {
		return
	}
	s.agree("weight", answer.Weight, s.model.leases[find(s.model.leases, id)].weight, nil)
	switch {
	case against != "":
	case more && answer.Token <= s.token:
		t.Fatalf("L2: a lease that grew has token %d after %d", answer.Token, s.token)
	case !more:
		s.agree("L2: token of a lease that did not grow", answer.Token, s.tokens[id], nil)
	}
}

func (s *system) heartbeat(t *rapid.T) {
	s.choose()
	request := ledger.HeartbeatRequest{Resource: s.resource, Claim: time.Minute}
	for range rapid.IntRange(1, 4).Draw(t, "ids") {
		request.IDs = append(request.IDs, s.drawID())
	}
	result := s.ledger.HeartbeatAll(s.ctx, []ledger.HeartbeatRequest{request})[0]
	head, gone := s.model.heartbeat(request.IDs)
	s.agree("heartbeat", fmt.Sprint(result.Head, result.Gone), fmt.Sprint(head, gone), result.Err)
}

// raise lifts the token as a quorum does, mostly by what a clock may be ahead.
func (s *system) raise(t *rapid.T) {
	s.choose()
	id, token := s.drawID(), s.token+int64(rapid.IntRange(-5, 5).Draw(t, "more"))*60_000_000
	hold, err := s.ledger.Raise(s.ctx, s.resource, id, token)
	s.model.call()
	want := s.model.hold(id)
	s.model.finish("")
	s.agree("raise", hold, want, err)
	if hold == ledger.Held {
		s.token = max(s.token, token)
	}
}

func (s *system) resize(t *rapid.T) {
	s.choose()
	limit := rapid.IntRange(0, 5).Draw(t, "operator")
	before, err := s.ledger.Resize(s.ctx, s.resource, limit)
	s.agree("resize", before, s.model.operator, err)
	s.model.call()
	s.model.operator = limit
	s.model.finish("")
}

// pass lets the deadline of whatever an id has go by, of its resting permits too.
func (s *system) pass(t *rapid.T) {
	s.choose()
	s.model.told = nil
	id, keys := s.drawID(), s.resource.Keys()
	if rapid.Bool().Draw(t, "of what rests") {
		id = "!" + id
	}
	s.probe(keys, "overdue", id)
	delete(s.model.barred, id)
	for _, list := range [][]entry{s.model.leases, s.model.queue} {
		if at := find(list, id); at >= 0 {
			list[at].over = true
		}
	}
}

// anHour lets the pace wear off by one grant.
func (s *system) anHour(*rapid.T) {
	s.choose()
	s.model.told = nil
	s.client.HIncrBy(s.ctx, s.resource.Keys()[0], "pace", -time.Hour.Microseconds())
	s.model.paced = max(0, s.model.paced-1)
}

// clockGoesBack puts all times an hour later, which is what an hour less on the server's clock makes of them. The model does
// not notice; the ledger loses less than a second each time, which a pace would show.
func (s *system) clockGoesBack(*rapid.T) {
	s.choose()
	s.model.told = nil
	keys := s.resource.Keys()
	if !s.client.HExists(s.ctx, keys[0], "clock").Val() {
		return
	}
	s.probe(keys, "later", 3_600_000)
	for field, hour := range map[string]int64{"watched": 3600e3, "pace": 3598e6} {
		if s.client.HExists(s.ctx, keys[0], field).Val() {
			s.client.HIncrBy(s.ctx, keys[0], field, hour)
		}
	}
}

// probe does to the keys what only time and accidents do.
func (s *system) probe(keys []string, what string, how any) {
	s.t.Helper()
	if err := s.client.Eval(s.ctx, ledger.Probe, keys, what, how).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// watch begins to watch, or goes on.
func (s *system) watch(*rapid.T) {
	s.choose()
	_, err := s.ledger.Watch(s.ctx, s.resource, time.Hour)
	s.model.call()
	s.model.finish("")
	s.agree("watch", nil, nil, err)
	if s.retold == nil {
		// What is published before is not: from here on every change is told.
		s.retold = s.newRetold()
	}
}

// check compares everything inspect shows, which is a transition itself, and asserts the invariants by number.
func (s *system) check(*rapid.T) {
	s.heard()
	states := make([]ledger.State, len(s.parts))
	for i, p := range s.parts {
		p.model.call()
		p.model.finish("")
		var err error
		states[i], err = s.ledger.Inspect(s.ctx, p.resource, 100)
		s.agree("inspect", nil, nil, err)
	}
	s.heard()
	for i, p := range s.parts {
		s.part = p
		s.compare(states[i])
	}
}

// heard compares what has been published.
func (s *system) heard() {
	messages := s.drain()
	for _, p := range s.parts {
		s.part = p
		s.checkMessages(messages)
		p.model.told = nil
	}
}

func (s *system) compare(state ledger.State) {
	s.agree("L8: held", state.Held, s.model.held(), nil)
	s.agree("operator", state.Operator, s.model.operator, nil)
	if diff := cmp.Diff(weights(s.model.queue), listed(state.Queue)); diff != "" {
		s.t.Fatalf("L3: queue (-model +ledger):\n%s", diff)
	}
	want, got := weights(s.model.leases), listed(state.Holders)
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Fatalf("L1: holders (-model +ledger):\n%s", diff)
	}
	clear(s.tokens)
	for _, e := range state.Holders {
		s.tokens[e.ID] = e.Token
		if e.Resting != strings.HasPrefix(e.ID, "!") {
			s.t.Fatalf("%s rests: %v", e.ID, e.Resting)
		}
	}
	if state.Token < s.token {
		s.t.Fatalf("L2: the last token went from %d back to %d", s.token, state.Token)
	}
	s.token = state.Token
	if s.retold != nil {
		s.retold.explain(s, state)
	}
}

func weights(list []entry) (all []string) {
	for _, e := range list {
		all = append(all, fmt.Sprint(e.id, " weighs ", e.weight))
	}
	return all
}

func listed(list []ledger.Entry) (all []string) {
	for _, e := range list {
		all = append(all, fmt.Sprint(e.ID, " weighs ", e.Weight))
	}
	return all
}

// servers are what the ledger runs on, by name.
func servers(t *testing.T) map[string]*redis.Options {
	t.Helper()
	e, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	off := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return map[string]*redis.Options{
		"redis": {Addr: difftest.Redis(t).Addr, MaintNotificationsConfig: off},
		"engine": {
			Dialer:                   func(context.Context, string, string) (net.Conn, error) { return e.Dial() },
			MaintNotificationsConfig: off,
		},
	}
}

func TestLedgerAgreesWithModel(t *testing.T) {
	t.Parallel()
	for name, options := range servers(t) {
		t.Run(name, func(t *testing.T) {
			client := redis.NewClient(options)
			t.Cleanup(func() { client.Close() })
			agreesWithModel(t, options, ledger.New(goredis.New(client)), "model")
		})
	}
}

func agreesWithModel(t *testing.T, options *redis.Options, l *ledger.Ledger, names string) {
	client := redis.NewClient(options)
	defer client.Close()
	inbox := client.PSubscribe(t.Context(), "signalbox:*")
	defer inbox.Close()
	if _, err := inbox.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		s := &system{
			t: t, ctx: context.Background(), client: client, inbox: inbox, ledger: l,
		}
		for i := range 3 {
			resource, err := ledger.NewResource(fmt.Sprintf("%s {%d} %d", names, run, i))
			if err != nil {
				t.Fatal(err)
			}
			s.parts = append(s.parts, &part{
				resource: resource, model: model{barred: map[string]bool{}}, tokens: map[string]int64{},
			})
		}
		t.Repeat(map[string]func(*rapid.T){
			"acquire": s.acquire, "acquire again": s.acquire, "acquire more": s.acquire, "group": s.group,
			"group again": s.group, "release": s.release, "cancel": s.cancel, "give back": s.giveBack, "force": s.force,
			"renew": s.renew, "reweigh": s.reweigh, "heartbeat": s.heartbeat, "raise": s.raise, "resize": s.resize, "pass": s.pass,
			"an hour": s.anHour, "clock goes back": s.clockGoesBack, "watch": s.watch, "": s.check,
		})
	})
}
