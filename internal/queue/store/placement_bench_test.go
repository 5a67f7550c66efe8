package store

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkPlacement says what it costs to offer a job to the agent that has been idle for longest, who accepts it, and ends
// it, in one call: whatever number of agents is idle the commands are the same. It tells how long logging in took, too.
func BenchmarkPlacement(b *testing.B) {
	for _, agents := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprint(agents, " agents"), func(b *testing.B) {
			r := newRig(b)
			must(b, r.Configure(b.Context(), "placement", "longest"))
			begun := time.Now()
			r.logIn(b, agents)
			loggedIn := time.Since(begun)
			calls := map[string]int64{}
			r.begin(b)
			for range b.N {
				r.add(b, 1)
				id := "producer12" + strconv.Itoa(r.produced)
				claim, err := r.client.HGet(b.Context(), Prefix("app")+"claims", id).Result()
				must(b, err)
				f := strings.Split(claim, "\t")
				calls[f[0]]++
				report := anAgent(f[0], 1+calls[f[0]])
				report.Done = []Done{{ID: id, Token: f[1], Verb: "accept"}, {ID: id, Token: f[1], Verb: "done"}}
				_, err = r.Work(b.Context(), report)
				must(b, err)
			}
			r.tell(b, "job", b.N)
			b.ReportMetric(loggedIn.Seconds(), "s-to-log-in")
		})
	}
}

func anAgent(id string, call int64) *Report {
	return &Report{
		Worker: id, Call: call, Lease: 10 * time.Minute, State: "online", Kinds: "chat,email,note", Tags: "de,en", Info: "{}", Name: id,
		OfferFor: 20 * time.Second, Room: "slot:1", Register: call == 1, Want: MostClaims,
	}
}

// logIn has agents log in, fifty at a time: with their second call they are idle.
func (r *rig) logIn(b *testing.B, agents int) {
	var all sync.WaitGroup
	for from := range 50 {
		all.Go(func() {
			for i := from; i < agents; i += 50 {
				for call := range int64(2) {
					if _, err := r.Work(b.Context(), anAgent(fmt.Sprint("process", i, "/1"), call+1)); err != nil {
						b.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
}
