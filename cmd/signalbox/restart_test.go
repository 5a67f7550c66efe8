//go:build unix

package main

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/conformance"
	"github.com/signalbox-io/signalbox/internal/cases"
)

// The conformance suite on an engine that is killed (SIGKILL) and started again at random moments while it runs. With
// appendfsync=always a kill is an interruption, and no more: every promise of the library is kept across it, but for
// those below.

// moment is when an engine may be killed in the course of a promise.
type moment int

const (
	anytime moment = iota // also while a request is under way
	between               // while no request of the promise is under way; connections and subscriptions are lost
	never
)

// Why a restart may touch a promise.
const (
	once    = "it calls what asks once and tells ErrUnavailable if the answer is lost: "
	silent  = "it counts every command, and a connection that breaks costs some more"
	nothing = "it sends no command, so that there is no moment to be killed at"
	unheard = "it wants every single event; those that come while a subscription is lost are told by the next Snapshot only"
)

// touched are the promises that a restart may touch, and why. All others are kept with the engine killed anytime.
var touched = map[string]struct {
	killed moment
	why    string
}{
	"AcquireAll: all or nothing":              {between, once + "TryAcquireAll"},
	"Deadlocks: two that wait for each other": {between, once + "Deadlocks"},
	"Election: observe":                       {between, once + "the first look of Observe"},
	"Election: terms follow one another":      {between, once + "Leader"},
	"Fence: command and reply":                {between, once + "Fence.Do"},
	"Fence: refuses a stale token":            {between, once + "Fence.Do"},
	"L1 held at least":                        {between, once + "TryAcquire, ForceAll"},
	"L1 held at least after a lost reply":     {between, once + "TryAcquire, ForceAll"},
	"L6 nothing but what is in use":           {between, once + "Allow, CountDown, Check"},
	"L7 context ended before":                 {never, nothing},
	"L7 lost reply of a try":                  {between, once + "TryAcquire"},
	"Latch: opens once":                       {between, once + "CountDown"},
	"Latch: party counts once":                {between, once + "CountDown"},
	"Limiter: bad input":                      {never, nothing},
	"Limiter: gives back":                     {between, once + "Allow"},
	"Limiter: rate and burst":                 {between, once + "Allow"},
	"Limiter: wait":                           {between, once + "the request of Limiter.Wait"},
	"RWMutex: a writer is not starved":        {between, once + "TryAcquire"},
	"RWMutex: downgrade":                      {between, once + "Downgrade, Upgrade, TryAcquire"},
	"RWMutex: upgrade fails fast":             {between, once + "Upgrade"},
	"close while renewals are under way":      {between, "its own fault holds up every request that is sent a second time"},
	"do":                                      {between, once + "ForceAll"},
	"force reaches the holder":                {between, once + "Force"},
	"force reaches the waiter":                {between, once + "Force"},
	"heavy is told":                           {between, once + "Resize"},
	"list":                                    {between, once + "List"},
	"observations":                            {between, once + "TryAcquire"},
	"try":                                     {between, once + "TryAcquire"},
	"Watch: expiry":                           {never, unheard},
	"Watch: what happens":                     {never, unheard},
	"waiting is silent":                       {never, silent},
}

// apart is asked when all others are done: it puts a key of another type in the way, and List and Deadlocks, which look at
// all resources there are, then tell that.
const apart = "wrong type stops before work"

// atOnce is how many promises are asked of the engine at the same time.
const atOnce = 12

// RESTART_ROUNDS is how often the suite is run, SEED at which moments the engine is killed.
func TestThePromisesSurviveRestarts(t *testing.T) {
	cases.NotUnderRace(t)
	t.Parallel()
	promises := conformance.Promises()
	for name := range touched {
		if promises[name] == nil {
			t.Errorf("touched names %q, which the suite does not have", name)
		}
	}
	rounds, seed := setting(t, "RESTART_ROUNDS", 1), setting(t, "SEED", 1)
	engine := newMortal(t, rand.New(rand.NewPCG(seed, 0)))
	began, hits := time.Now(), make(map[string]int64)
	for round := range rounds {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) { ask(t, engine, promises, seed+round, hits) })
		if t.Failed() {
			t.Fatalf("the promises above are broken with SEED=%d", seed+round)
		}
	}
	var unhit []string
	for name := range promises {
		if touched[name].killed != never && hits[name] == 0 {
			unhit = append(unhit, name)
		}
	}
	slices.Sort(unhit)
	t.Logf("%d rounds in %v, %d restarts of at most %v; never hit: %q",
		rounds, time.Since(began).Round(time.Second), engine.lives.Load()-1, engine.longest.Round(time.Millisecond), unhit)
}

// ask asks for all promises, several at once, and counts the restarts that each has seen.
func ask(t *testing.T, engine *mortal, promises map[string]conformance.Promise, seed uint64, hits map[string]int64) {
	t.Helper()
	names := make(chan string)
	var mu sync.Mutex
	run := func(name string) {
		t.Run(name, func(t *testing.T) {
			before := engine.lives.Load()
			one(t, engine, promises[name], name, seed)
			mu.Lock()
			defer mu.Unlock()
			hits[name] += engine.lives.Load() - before
		})
	}
	var asking sync.WaitGroup
	for range atOnce {
		asking.Go(func() {
			for name := range names {
				run(name)
			}
		})
	}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(promises))) { // that way, those that take long come first
		if name != apart {
			names <- name
		}
	}
	close(names)
	asking.Wait()
	run(apart)
}

func one(t *testing.T, engine *mortal, promise conformance.Promise, name string, seed uint64) {
	t.Helper()
	const kills = 2
	digest := fnv.New64a()
	fmt.Fprint(digest, name)
	k := newKiller(engine, rand.New(rand.NewPCG(seed, digest.Sum64())), kills)
	t.Cleanup(k.busy.Wait)
	server := conformance.Server{Dial: k.dial, Open: k.open, Restarts: &conformance.Restarts{Steady: k.steady, Away: mostAway}}
	switch touched[name].killed {
	case never:
		t.Skip(touched[name].why)
	case between:
		server.Open = k.steady
	case anytime:
	}
	promise(t, server)
}

func setting(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}
