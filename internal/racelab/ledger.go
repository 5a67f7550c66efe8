package racelab

import (
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/classic"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// The permit ledger: its scripts and the Go that calls them, unchanged. The
// library around it has goroutines and timers of its own; what it does with a
// permit is told again here in a straight line (waiter.go, keeper.go, lease.go):
// ask; in the queue, ask again as a heartbeat or when a message comes; count a
// grant from when the request was sent; renew; release; take back what nobody
// knows the fate of. Package simtest runs the library itself.

const (
	ledgerTTL   = 10 * time.Second
	ledgerClaim = 3 * time.Second
	ledgerAsks  = 3 // before a client gives up
)

var ledgerFaults = []Fault{Crash, LoseRequest, LoseReply, LoseMessage, Pause, Skew}

var ledgerMutex = ledgerOf("ledger", "the permit ledger of Signalbox as a mutex", 1, 1)

// More clients, and so fewer misfortunes.
var ledgerSemaphore = ledgerOf("ledger-semaphore", "the permit ledger of Signalbox with two permits", 2, 0)

func ledgerOf(name, summary string, permits, faults int) *Algorithm {
	return &Algorithm{
		Name: name, Summary: summary, Permits: permits, Timeout: ledgerTTL, Clients: permits + 1, FaultsMax: faults,
		Promises: []Promise{Limit, Kept, Truth, Timed, Freed, Order}, AlwaysTimed: true, Timeless: true, Listens: true,
		Faults: ledgerFaults, Pauses: []time.Duration{ledgerClaim + time.Second, ledgerTTL + time.Second},
		Skews: []time.Duration{ledgerTTL + time.Second},
		Life:  func(c *Client) { newParty(c, permits).live() }, Line: ledgerLine,
	}
}

// party is one client of the ledger.
type party struct {
	*Client
	ledger   *ledger.Ledger
	resource *ledger.Resource
	request  ledger.AcquireRequest
}

func newParty(c *Client, permits int) *party {
	resource, _ := ledger.NewResource("x") // a name that is none too long
	p := &party{Client: c, ledger: ledger.New(goredis.New(c.Redis)), resource: resource}
	p.request = ledger.AcquireRequest{
		Resource: resource, ID: c.Name + ":1", Weight: 1, Limit: permits, TTL: ledgerTTL, Wait: ledgerClaim, Claim: ledgerClaim, Owner: c.Name,
	}
	return p
}

func (p *party) live() {
	if !p.acquire() {
		if p.dead {
			return
		}
		p.again("cancel", func() error {
			_, err := p.ledger.Cancel(background, p.resource, p.request.ID, ledgerClaim)
			return err
		})
		return
	}
	if p.renew() {
		p.release()
	}
}

// acquire asks until it is granted, or has asked often enough.
func (p *party) acquire() bool {
	for range ledgerAsks {
		if !p.Begin("acquire") {
			return false
		}
		answer, err := p.ledger.Acquire(background, &p.request)
		switch {
		case err != nil:
			p.told("acquire", err)
		case answer.Outcome == ledger.Granted:
			p.Has(p.begun)
			return true
		case answer.Outcome != ledger.Waiting:
			p.told("acquire", classic.ErrBusy)
			return false
		default:
			p.world.believes(p.Client, "waits")
			if p.handed(answer) {
				return true
			}
		}
	}
	return false
}

// handed waits for a message, or until it is time to ask again. It is true if the
// message has brought the permit.
func (p *party) handed(answer ledger.AcquireAnswer) bool {
	sent := p.begun
	fields := strings.Fields(p.Wait(ledgerClaim / 3))
	if len(fields) < 5 || fields[0] != "grant" || fields[1] != p.request.ID {
		return false
	}
	now, claim := atoi(fields[3]), time.Duration(atoi(fields[4]))*time.Millisecond
	granted := sent.Add(min(0, time.Duration(now-answer.NowMs)*time.Millisecond))
	if p.world.engine.Now().After(granted.Add(claim / 2)) {
		return false // too little is left: asking confirms it with a full ttl
	}
	p.hold(granted, claim)
	p.holds("HOLDS")
	return true
}

func atoi(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // the ledger's own numbers
	return n
}

// renew is false if the lease is lost.
func (p *party) renew() bool {
	for range 2 {
		if !p.Begin("renew") {
			return false
		}
		lease := ledger.Renewal{ID: p.request.ID, TTL: ledgerTTL}
		result := p.ledger.RenewAll(background, []ledger.RenewRequest{{Resource: p.resource, Leases: []ledger.Renewal{lease}}})[0]
		switch {
		case result.Err != nil:
			p.told("renew", result.Err)
		case result.Holds[0] == ledger.Held, result.Holds[0] == ledger.Wanted:
			p.Refreshed(p.begun)
			return true
		default:
			p.told("renew", classic.ErrLost)
			return false
		}
	}
	return true
}

// release gives the lease back. After an error it is taken back, whatever it is.
func (p *party) release() {
	if !p.Begin("release") {
		return
	}
	p.gaveBack()
	hold, err := p.ledger.Release(background, p.resource, p.request.ID)
	if err == nil && hold != ledger.Held {
		err = classic.ErrLost
	}
	p.told("release", err)
	if err != nil && err != classic.ErrLost { //nolint:errorlint // set above
		p.again("take back", func() error {
			_, err := p.ledger.GiveBack(background, p.resource, p.request.ID, ledgerClaim)
			return err
		})
	}
}

// again calls until there is an answer, at most twice.
func (p *party) again(op string, call func() error) {
	for range 2 {
		if !p.Begin(op) || call() == nil {
			return
		}
	}
}

// ledgerLine is who holds and who waits, in order, as the server has it.
func ledgerLine(w *world) (holders, waiting []string) {
	return bulks(w.engine.Do("ZRANGE", "signalbox:{x}:leases", "0", "-1")),
		bulks(w.engine.Do("ZRANGE", "signalbox:{x}:queue", "0", "-1"))
}
