package examples

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// promises are what every client keeps, whatever it is written in. The numbers are those of docs/invariants.md.
var promises = map[string]func(*site, language){
	"L5 a killed holder is replaced":      killedHolder,
	"L7 giving up leaves nothing":         givingUp,
	"a lease is renewed while it is held": renewed,
	"a forced lease ends":                 forced,
	"a lost message costs a heartbeat":    withoutMessages,
	"what is refused":                     refusals,
}

func TestLanguages(t *testing.T) {
	all := languages(t)
	for where, addr := range servers(t) {
		t.Run(where, func(t *testing.T) {
			t.Run("L1 never more than the limit", func(t *testing.T) { together(newSite(t, addr), all) })
			t.Run("L3 in the order of arrival", func(t *testing.T) { inOrder(newSite(t, addr), all) })
			for _, l := range all {
				for what, promise := range promises {
					t.Run(what+", "+l.name, func(t *testing.T) {
						t.Parallel()
						promise(newSite(t, addr), l)
					})
				}
			}
		})
	}
}

var insideLine = regexp.MustCompile(`^(\S+) is inside with token (\d+)$`)

// together has processes of all languages take turns, and counts how many are inside by what they write.
func together(w *site, all []language) {
	const limit, turns, processes = 2, 5, 2
	var started []*worker
	for range processes {
		for _, l := range all {
			started = append(started, w.start(l, "--limit", strconv.Itoa(limit), "--turns", strconv.Itoa(turns), "--hold", "0.02"))
		}
	}
	var goers sync.WaitGroup
	for n := range processes {
		goers.Go(func() {
			for range turns {
				lease, err := w.box.Semaphore(w.name, limit).Acquire(w.ctx)
				if err != nil {
					w.Error(err)
					return
				}
				fmt.Fprintf(w.log, "go:%d is inside with token %d\n", n, lease.Token())
				fmt.Fprintf(w.log, "go:%d goes\n", n)
				if err := lease.Release(w.ctx); err != nil {
					w.Error(err)
				}
			}
		})
	}
	goers.Wait()
	for _, worker := range started {
		worker.ends(0)
	}
	inside, tokens := map[string]bool{}, map[string]bool{}
	for _, line := range w.lines() {
		if match := insideLine.FindStringSubmatch(line); match != nil {
			inside[match[1]], tokens[match[2]] = true, true
		} else if who, is := strings.CutSuffix(line, " goes"); is {
			delete(inside, who)
		}
		if len(inside) > limit {
			w.Fatalf("%d are inside, the limit is %d", len(inside), limit)
		}
	}
	if want := turns * processes * (len(all) + 1); len(tokens) != want {
		w.Errorf("%d turns with a token of their own, want %d", len(tokens), want)
	}
	if state := w.inspect(); state.Held+state.Waiters != 0 {
		w.Errorf("left behind: %+v", state)
	}
}

// inOrder has everybody come while the permits are held, one after the other.
func inOrder(w *site, all []language) {
	const limit = 2
	held := w.acquire(limit, signalbox.Weight(limit))
	var order []string
	var started []*worker
	for range 2 {
		for _, l := range all {
			worker := w.start(l, "--limit", strconv.Itoa(limit), "--hold", "0.02")
			started, order = append(started, worker), append(order, worker.who)
			w.queue(len(order))
		}
	}
	w.release(held)
	for _, worker := range started {
		worker.ends(0)
	}
	type entry struct{ who, token string }
	var entries []entry
	for _, line := range w.lines() {
		if match := insideLine.FindStringSubmatch(line); match != nil {
			entries = append(entries, entry{match[1], match[2]})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.token, b.token) })
	var got []string
	for _, e := range entries {
		got = append(got, e.who)
	}
	if !slices.Equal(got, order) {
		w.Errorf("inside in the order %v, they came as %v", got, order)
	}
}

func killedHolder(w *site, l language) {
	holder := w.inside(l, "--limit", "1", "--ttl", "3", "--hold", "60")
	token := w.holder().Token
	holder.signal(syscall.SIGKILL)
	lease := w.acquire(1) // not before the lease is over, and not long after: the context would end
	if lease.Token() <= token {
		w.Errorf("L2: token %d after %d", lease.Token(), token)
	}
	w.release(lease)
	holder.ends(-1)
}

func givingUp(w *site, l language) {
	held := w.acquire(1)
	w.start(l, "--limit", "1", "--timeout", "0.2").ends(1)
	waiter := w.start(l, "--limit", "1")
	w.says(waiter.who, "waits with 0 ahead")
	waiter.signal(syscall.SIGINT)
	waiter.ends(130)
	if state := w.inspect(); state.Waiters != 0 {
		w.Errorf("waiters were left behind: %+v", state.Queue)
	}
	w.release(held)
	holder := w.inside(l, "--limit", "1", "--hold", "60")
	holder.signal(syscall.SIGINT)
	holder.ends(130)
	if state := w.inspect(); state.Held != 0 {
		w.Errorf("leases were left behind: %+v", state.Holders)
	}
}

func renewed(w *site, l language) {
	holder := w.inside(l, "--limit", "1", "--ttl", "4", "--hold", "6") // the ttl is longer than a busy machine stalls
	lease := w.acquire(1)
	if !slices.Contains(w.lines(), holder.who+" goes") {
		w.Error("granted while the holder was inside")
	}
	w.release(lease)
	holder.ends(0)
}

func forced(w *site, l language) {
	holder := w.inside(l, "--limit", "1", "--hold", "60")
	ended, err := w.box.Force(w.ctx, w.name, w.holder().ID)
	w.must(err)
	if !ended {
		w.Fatal("there was nothing to force")
	}
	w.says(holder.who, "Forced: ")
	holder.ends(1)

	held := w.acquire(1)
	waiter := w.start(l, "--limit", "1")
	w.says(waiter.who, "waits with")
	_, err = w.box.Force(w.ctx, w.name, w.inspect().Queue[0].ID)
	w.must(err)
	w.says(waiter.who, "Forced: ")
	waiter.ends(1)
	w.release(held)
}

// withoutMessages cuts the connections on which messages come.
func withoutMessages(w *site, l language) {
	client := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(w.url, "redis://")})
	defer client.Close()
	held := w.acquire(1)
	waiter := w.start(l, "--limit", "1", "--hold", "0")
	w.says(waiter.who, "waits with")
	w.must(client.Do(w.ctx, "client", "kill", "type", "pubsub").Err())
	w.release(held)
	waiter.ends(0)
}

func refusals(w *site, l language) {
	held := w.acquire(2, signalbox.Weight(2))
	busy := w.start(l, "--try")
	w.says(busy.who, "Busy: ")
	busy.ends(1)
	heavy := w.start(l, "--weight", "3")
	w.says(heavy.who, "TooHeavy: ")
	heavy.ends(1)
	waiter := w.start(l, "--weight", "2")
	w.says(waiter.who, "waits with")
	_, err := w.box.Resize(w.ctx, w.name, 1)
	w.must(err)
	w.says(waiter.who, "TooHeavy: ")
	waiter.ends(1)
	w.release(held)
	if state := w.inspect(); state.Held+state.Waiters != 0 {
		w.Errorf("left behind: %+v", state)
	}
}

// The server stops: nobody can tell the holder that its lease is lost.
func TestLanguagesH1HolderKnowsByItself(t *testing.T) {
	for _, l := range languages(t) {
		t.Run(l.name, func(t *testing.T) {
			real := difftest.Redis(t)
			install(t, real.Addr)
			w := newSite(t, real.Addr)
			holder := w.inside(l, "--limit", "1", "--ttl", "1", "--hold", "60")
			real.Pause()
			defer real.Resume()
			w.says(holder.who, "LeaseLost: ")
			holder.ends(1)
		})
	}
}

// A server without the functions: the client says what to do.
func TestLanguagesWithoutFunctions(t *testing.T) {
	addr := difftest.Redis(t).Addr
	for _, l := range languages(t) {
		w := newSite(t, addr)
		started := w.start(l)
		w.says(started.who, "run signalbox functions install")
		started.ends(1)
	}
}
