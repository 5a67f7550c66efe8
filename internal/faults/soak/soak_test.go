//go:build unix

package soak_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faultproxy"
	"github.com/signalbox-io/signalbox/internal/faults"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(planVariable); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, "failed:", err)
			os.Exit(1)
		}
		return
	}
	faults.Main(m)
}

// lengthOf is how long a test of this package works, and whether somebody asked for it.
func lengthOf(t *testing.T, variable string, usual time.Duration) (length time.Duration, asked bool) {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual, false
	}
	length, err := time.ParseDuration(text)
	if err != nil || length <= 0 {
		t.Fatalf("%s is %q, must be a time such as 10m", variable, text)
	}
	return length, true
}

func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("SEED")
	if text == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("SEED is %q, must be a number", text)
	}
	return seed
}

// fleet is a server behind a proxy, a witness, and the processes that work on them.
type fleet struct {
	t        *testing.T
	server   *redis.Client // past the proxy
	proxy    *faultproxy.Proxy
	plan     plan
	children []*faults.Child
	started  int
}

func newFleet(t *testing.T, p plan) *fleet {
	t.Helper()
	server, notary := difftest.Redis(t), difftest.Redis(t)
	f := &fleet{t: t, proxy: faultproxy.Start(t, server.Addr), plan: p}
	f.server = redis.NewClient(&redis.Options{
		Addr: server.Addr, MaxRetries: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() {
		if err := f.server.Close(); err != nil {
			t.Error(err)
		}
	})
	f.plan.Witness = notary.Addr
	if f.plan.URL = "redis://" + server.Addr; !p.NoFailure {
		f.plan.URL = faults.WithOption("redis://"+f.proxy.Addr(), "read_timeout=1s")
	}
	return f
}

// start adds a process, which says when it is ready.
func (f *fleet) start() *faults.Child {
	f.t.Helper()
	text, err := json.Marshal(f.plan)
	if err != nil {
		f.t.Fatal(err)
	}
	f.started++
	f.plan.Seed++
	return faults.StartChild(f.t, planVariable+"="+string(text))
}

// begin has a process begin.
func (f *fleet) begin(children ...*faults.Child) {
	f.t.Helper()
	for _, c := range children {
		f.hear(c, new(string))
	}
	for _, c := range children {
		c.Tell(f.t, "go")
	}
	f.children = append(f.children, children...)
}

func (f *fleet) hear(c *faults.Child, into any) {
	f.t.Helper()
	line := c.Line(f.t)
	if err := json.Unmarshal([]byte(line), into); err != nil {
		f.t.Fatalf("a process said %q: %v", line, err)
	}
}

// finish dismisses all processes, looks at what they have to say, and waits until the server is as if they had never been.
func (f *fleet) finish() (all []account) {
	f.t.Helper()
	for _, c := range f.children {
		c.Dismiss(f.t)
	}
	var sum account
	for _, c := range f.children {
		var a account
		f.hear(c, &a)
		all = append(all, a)
		for _, fault := range a.Faults {
			f.t.Error(fault)
		}
		if a.Leaked != "" {
			f.t.Errorf("a process leaves goroutines: %s", a.Leaked)
		}
		sum.Turns, sum.Failed, sum.Renewed = sum.Turns+a.Turns, sum.Failed+a.Failed, sum.Renewed+a.Renewed
	}
	f.t.Logf("%d processes, of which %d lived to the end: %d turns, %d leases renewed, %d calls failed",
		f.started, len(f.children), sum.Turns, sum.Renewed, sum.Failed)
	if sum.Turns == 0 {
		f.t.Error("nobody was granted anything: this test looks at nothing")
	}
	faults.Await(f.t, "a server without keys", func() bool {
		n, err := f.server.DBSize(f.t.Context()).Result()
		return err == nil && n == 0
	})
	return all
}

// pass lets time pass while others work.
func pass(length time.Duration) { <-time.NewTimer(length).C }

// TestSoak: SOAK_FOR is how long, SEED at which moments what breaks.
func TestSoak(t *testing.T) {
	length, asked := lengthOf(t, "SOAK_FOR", 6*time.Second)
	faults.BeginFor(t, length)
	seed := seedOf(t)
	t.Logf("SEED=%d", seed)
	p := plan{Seed: seed, Boxes: 2, Workers: 20, TTL: faults.TTL, Claim: faults.Claim, Think: 100 * time.Millisecond}
	const processes = 5
	if asked { // 5,000 goroutines, which want time for themselves
		p.Workers, p.TTL, p.Claim, p.Think = 500, 5*time.Second, 2*time.Second, 2*time.Second
	}
	f := newFleet(t, p)
	var children []*faults.Child
	for range processes {
		children = append(children, f.start())
	}
	f.begin(children...)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // can be repeated
	happened := make(map[string]int)
	var deck []int
	for end := time.Now().Add(length); time.Now().Before(end); {
		if len(deck) == 0 {
			deck = random.Perm(len(troubles))
		}
		trouble := troubles[deck[0]]
		deck = deck[1:]
		happened[trouble.name]++
		trouble.begin(f, random)
		pass(time.Duration(300+random.IntN(700)) * time.Millisecond)
		f.proxy.Restore()
		pass(time.Duration(random.IntN(700)) * time.Millisecond)
	}
	t.Logf("what happened: %v", happened)
	f.finish()
}

// troubles end with proxy.Restore, if they do not by themselves.
var troubles = []struct {
	name  string
	begin func(f *fleet, random *rand.Rand)
}{
	{"none", func(*fleet, *rand.Rand) {}},
	{"slow", func(f *fleet, random *rand.Rand) {
		late := faultproxy.Direction{
			Delay: time.Duration(random.IntN(20)) * time.Millisecond, Jitter: time.Duration(1+random.IntN(100)) * time.Millisecond,
		}
		f.proxy.Set(faultproxy.Fault{Requests: late, Replies: late})
	}},
	{"held", func(f *fleet, _ *rand.Rand) {
		hold := faultproxy.Direction{Hold: true}
		f.proxy.Set(faultproxy.Fault{Requests: hold, Replies: hold})
	}},
	{"replies lost", func(f *fleet, _ *rand.Rand) {
		f.proxy.Set(faultproxy.Fault{Replies: faultproxy.Direction{Drop: true}})
	}},
	{"requests lost", func(f *fleet, _ *rand.Rand) {
		f.proxy.Set(faultproxy.Fault{Requests: faultproxy.Direction{Drop: true}})
	}},
	{"messages lost", func(f *fleet, _ *rand.Rand) {
		nothing := faultproxy.Direction{Drop: true}
		f.proxy.Set(faultproxy.Fault{Requests: nothing, Replies: nothing, Only: "subscribe"})
	}},
	{"cut", func(f *fleet, _ *rand.Rand) { f.proxy.Cut() }},
	{"cut inside", func(f *fleet, random *rand.Rand) {
		f.proxy.Set(faultproxy.Fault{Replies: faultproxy.Direction{CutAfter: 200 + random.Int64N(5000)}})
	}},
	{"killed", func(f *fleet, random *rand.Rand) {
		i := random.IntN(len(f.children))
		f.children[i].Kill(f.t)
		f.children = append(f.children[:i], f.children[i+1:]...)
		f.begin(f.start())
	}},
}
