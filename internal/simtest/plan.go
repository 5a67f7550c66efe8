package simtest

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Plan is what a seed draws. Rates are per packet, gaps are mean times between two acts of the nemesis; zero turns a
// fault off.
type Plan struct {
	Seed     uint64
	Workload string        // what the clients use, if it is not plain semaphores
	Length   time.Duration // of the part with faults; a calm of calmFor follows
	Boxes    int
	Clients  int   // of each box
	Limits   []int // of each resource
	Claim    time.Duration
	TTLs     []time.Duration // a client draws from these
	HoldMost time.Duration
	Timeout  time.Duration // of the Redis client: dial, read and write
	Dir      string        // where the engine keeps its data; "" is in memory only

	// Fates of packets, in thousandths.
	CutRequest int // the connection is cut, and the request lost
	CutReply   int // the request arrives, and the reply is lost
	Tear       int // a part of the request arrives, and the connection is cut
	Stall      int // the packet arrives late, by at most a third of the claim time
	DropPush   int // a published message vanishes

	Gap        time.Duration // between two acts of the nemesis
	Partitions bool
	Crashes    bool
	Restarts   bool // with empty data, or with what is in Dir
	Evictions  bool // one key of a resource, once
	Kills      bool // CLIENT KILL and SCRIPT FLUSH
	Forces     bool
	Resizes    bool
	Ancient    bool // packets held up by a partition arrive however old they are
}

const calmFor = 15 * time.Second

// Draw returns the plan of a seed. Each fault is off in half of the plans, so that every one is seen alone too.
func Draw(seed uint64) Plan {
	r := rand.New(rand.NewPCG(seed, 0x51)) //nolint:gosec // a seed must give the same plan each time
	coin := func() bool { return r.IntN(2) == 0 }
	rate := func(most int) int { return r.IntN(2) * (1 + r.IntN(most)) }
	p := Plan{
		Seed: seed, Length: time.Duration(20+r.IntN(20)) * time.Second,
		Boxes: 2 + r.IntN(3), Clients: 1 + r.IntN(4),
		Claim:    time.Duration(150+r.IntN(1350)) * time.Millisecond,
		HoldMost: time.Duration(20+r.IntN(1500)) * time.Millisecond,
		Timeout:  time.Duration(100+r.IntN(3000)) * time.Millisecond,

		CutRequest: rate(15), CutReply: rate(15), Tear: rate(10), Stall: rate(10), DropPush: rate(500),

		Gap:        time.Duration(300+r.IntN(3000)) * time.Millisecond,
		Partitions: coin(), Crashes: coin(), Restarts: r.IntN(4) == 0, Evictions: coin(), Kills: coin(),
		Forces: r.IntN(4) == 0, Resizes: r.IntN(3) == 0, Ancient: r.IntN(4) == 0,
	}
	for range 1 + r.IntN(2) {
		p.Limits = append(p.Limits, []int{1, 1, 1, 2, 3, 5, 10}[r.IntN(7)])
	}
	for range 1 + r.IntN(3) {
		p.TTLs = append(p.TTLs, time.Duration(150+r.IntN(3000))*time.Millisecond)
	}
	return p
}

func (p Plan) longestTTL() (most time.Duration) {
	for _, ttl := range p.TTLs {
		most = max(most, ttl)
	}
	return most
}

func (p Plan) String() string { return fmt.Sprintf("%+v", struct{ Plan plain }{plain(p)}) }

// plain is a Plan without the method String.
type plain Plan
