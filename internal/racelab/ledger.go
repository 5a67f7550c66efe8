package racelab

import (
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// The permit ledger: its scripts, the Go that calls them, and the life of an
// acquisition, which decides what is called when, all unchanged. What is told
// again here is the shell around a life: life.go leads it, and this file makes
// its calls. Package simtest runs the library itself.

const (
	ledgerTTL      = 3 * time.Second
	ledgerClaim    = 6 * time.Second
	ledgerPatience = ledgerTTL + time.Second // of a caller who waits
)

var ledgerFaults = []Fault{Crash, LoseRequest, LoseReply, LoseMessage, Pause, Skew, Haste}

var ledgerMutex = ledgerOf("ledger", "the permit ledger of Signalbox as a mutex", 1, 1)

// More clients, and so fewer misfortunes.
var ledgerSemaphore = ledgerOf("ledger-semaphore", "the permit ledger of Signalbox with two permits", 2, 0)

func ledgerOf(name, summary string, permits, faults int) *Algorithm {
	return &Algorithm{
		Name: name, Summary: summary, Permits: permits, Timeout: ledgerTTL, Clients: permits + 1, FaultsMax: faults,
		Promises:    []Promise{Limit, Kept, Truth, Timed, Freed, Order, Fenced, Tidy, Sense},
		AlwaysTimed: true, Timeless: true, Listens: true,
		Faults: ledgerFaults, Pauses: []time.Duration{ledgerClaim + time.Second, ledgerTTL + time.Second},
		Skews: []time.Duration{ledgerTTL + time.Second},
		Life:  func(c *Client) { newParty(c, permits).live() }, Line: ledgerLine,
	}
}

// party is one client of the ledger.
type party struct {
	ledger   *ledger.Ledger
	resource *ledger.Resource
	id       string
	permits  int
}

func newParty(c *Client, permits int) *life {
	resource, _ := ledger.NewResource("x") // a name that is none too long
	p := &party{ledger: ledger.New(goredis.New(c.Redis)), resource: resource, id: c.Name + ":1", permits: permits}
	return newLife(c, p.id, p.call, permits > 1 && c.Name == "A")
}

// call is a call of the library, and its answer in the words of a life.
func (p *party) call(a *acquisition.Action) (acquisition.Answer, error) {
	switch a.Call {
	case acquisition.CallAcquire:
		return p.acquire(a.Wait)
	case acquisition.CallHeartbeat:
		return p.heartbeat()
	case acquisition.CallRenew:
		lease := ledger.Renewal{ID: p.id, TTL: ledgerTTL}
		r := p.ledger.RenewAll(background, []ledger.RenewRequest{{Resource: p.resource, Leases: []ledger.Renewal{lease}}})[0]
		if r.Err != nil {
			return acquisition.Answer{}, r.Err
		}
		return acquisition.Answer{Outcome: ledgerHolds[r.Holds[0]]}, nil
	case acquisition.CallRelease:
		r := p.ledger.ReleaseAll(background, []ledger.ReleaseRequest{{Resource: p.resource, ID: p.id, Bar: a.Bar}})[0]
		return acquisition.Answer{Outcome: ledgerHolds[r.Hold]}, r.Err
	case acquisition.CallCancel:
		r := p.ledger.CancelAll(background, []ledger.CancelRequest{{Resource: p.resource, ID: p.id, Bar: a.Bar}})[0]
		return acquisition.Answer{Outcome: acquisition.Kept}, r.Err
	default:
		return p.reweigh(a)
	}
}

func (p *party) acquire(wait time.Duration) (acquisition.Answer, error) {
	a, err := p.ledger.Acquire(background, &ledger.AcquireRequest{
		Resource: p.resource, ID: p.id, Weight: 1, Limit: p.permits, TTL: ledgerTTL, Wait: wait, Claim: ledgerClaim, Owner: p.id[:1],
	})
	return acquisition.Answer{
		Outcome: ledgerOutcomes[a.Outcome], Token: a.Token, Ahead: a.Ahead, Next: a.Next, NowMs: a.NowMs, InUse: a.Held, Limit: a.Limit,
	}, err
}

func (p *party) heartbeat() (acquisition.Answer, error) {
	r := p.ledger.HeartbeatAll(background, []ledger.HeartbeatRequest{{Resource: p.resource, IDs: []string{p.id}, Claim: ledgerClaim}})[0]
	a := acquisition.Answer{Outcome: acquisition.Waiting, Ahead: acquisition.Unknown, NowMs: r.NowMs, Next: r.Next}
	if r.Head == 0 {
		a.Ahead = 0
	}
	if len(r.Gone) > 0 {
		a.Outcome = acquisition.Astray
	}
	return a, r.Err
}

func (p *party) reweigh(a *acquisition.Action) (acquisition.Answer, error) {
	r, err := p.ledger.Reweigh(background, p.resource, p.id, a.Number, a.Weight, p.permits)
	answer := acquisition.Answer{Outcome: ledgerHolds[r.Hold], Token: r.Token, InUse: r.InUse, Limit: r.Limit}
	switch {
	case r.Busy:
		answer.Outcome = acquisition.Refused
	case r.Stale:
		answer.Outcome = acquisition.Gone
	}
	return answer, err
}

var ledgerOutcomes = map[ledger.Outcome]acquisition.Outcome{
	ledger.Granted: acquisition.Granted, ledger.Waiting: acquisition.Waiting, ledger.Refused: acquisition.Refused,
	ledger.Barred: acquisition.Barred, ledger.Heavy: acquisition.Heavy,
}

var ledgerHolds = map[ledger.Hold]acquisition.Outcome{
	ledger.Held: acquisition.Kept, ledger.Wanted: acquisition.KeptWanted, ledger.Lost: acquisition.Gone, ledger.Forced: acquisition.Expelled,
}

// ledgerLine is who holds and who waits, in order, as the server has it.
func ledgerLine(w *world) (l line) {
	reply, _ := parseReply(w.engine.Do("EVAL", ledger.Probe, "4", "signalbox:{x}", "signalbox:{x}:leases", "signalbox:{x}:queue",
		"signalbox:{x}:seen", "read"))
	stored, err := ledger.ReadStored(reply.plain())
	if err != nil {
		panic(err) // the laboratory's own script
	}
	l.token, l.tokens = stored[0].Token, map[string]int64{}
	for _, e := range stored[0].Leases {
		l.holders = append(l.holders, e.ID)
		if part := strings.Fields(e.Record); len(part) > 2 { // "L weight token …"
			l.tokens[e.ID] = atoi(part[2])
		}
	}
	for _, e := range stored[0].Queue {
		l.waiting = append(l.waiting, e.ID)
	}
	return l
}

func atoi(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // the ledger's own numbers
	return n
}
