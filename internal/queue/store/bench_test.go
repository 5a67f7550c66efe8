package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// BenchmarkCall says what calls cost a redis-server: its processor time, what of it the scripts took, and commands in them.
func BenchmarkCall(b *testing.B) {
	for _, c := range []struct {
		name string
		do   func(b *testing.B, r *rig)
	}{
		{"enqueue 1", func(b *testing.B, r *rig) { r.enqueue(b, b.N, 1) }},
		{"enqueue 10", func(b *testing.B, r *rig) { r.enqueue(b, b.N, 10) }},
		{"enqueue 100", func(b *testing.B, r *rig) { r.enqueue(b, b.N, 100) }},
		{"work 1", func(b *testing.B, r *rig) { r.work(b, 1) }},
		{"work 50", func(b *testing.B, r *rig) { r.work(b, 50) }},
		{"work 100", func(b *testing.B, r *rig) { r.work(b, 100) }},
		{"work 50, 1000 keys limited to 2", func(b *testing.B, r *rig) {
			must(b, r.Configure(b.Context(), "limit\te", "2"))
			r.keys = 1000
			r.work(b, 50)
		}},
		{"heartbeat", func(b *testing.B, r *rig) { r.work(b, 0) }},
		{"log in", func(b *testing.B, r *rig) { r.logInTogether(b, 1) }},
		{"log in, 32 together", func(b *testing.B, r *rig) { r.logInTogether(b, 32) }},
		{"100 due", func(b *testing.B, r *rig) { r.due(b) }},
		{"enqueue to idle, and done", func(b *testing.B, r *rig) { r.handOver(b) }},
	} {
		b.Run(c.name, func(b *testing.B) { c.do(b, newRig(b)) })
		b.Run("with a history, "+c.name, func(b *testing.B) {
			r := newRig(b)
			_, err := r.BeginHistory(b.Context(), 1000)
			must(b, err)
			c.do(b, r)
		})
	}
}

// rig is a queue on a server of its own, with one producer and one worker.
type rig struct {
	*Store
	client   *redis.Client
	calls    int64
	produced int
	keys     int // of jobs; 0: they have none
	report   Report
	wall     time.Time
	cpu      float64
	ran      map[string][2]float64 // calls and µs, by command
}

func newRig(b *testing.B) *rig {
	client := redis.NewClient(&redis.Options{
		Addr: difftest.Redis(b).Addr, MaxRetries: -1, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	b.Cleanup(func() { must(b, client.Close()) })
	s, err := New(goredis.New(client), "app", "producer", time.Minute)
	must(b, err)
	return &rig{Store: s, client: client, report: Report{
		Worker: "process/1", Lease: 15 * time.Second, State: "online", Kinds: "note", Info: "{}", Register: true, Want: MostClaims,
	}}
}

func (r *rig) begin(b *testing.B) {
	r.cpu, r.ran = r.spent(b)
	r.wall = time.Now()
	b.ResetTimer()
}

// tell reports what was spent since begin, for each of n.
func (r *rig) tell(b *testing.B, unit string, n int) {
	b.StopTimer()
	cpu, ran := r.spent(b)
	commands := 0.0
	for name, c := range ran {
		if name != "info" && name != "evalsha" {
			commands += c[0] - r.ran[name][0]
		}
	}
	b.ReportMetric((cpu-r.cpu)*1e6/float64(n), "server-µs/"+unit)
	b.ReportMetric((ran["evalsha"][1]-r.ran["evalsha"][1])/float64(n), "script-µs/"+unit)
	b.ReportMetric(commands/float64(b.N), "commands/call")
}

func (r *rig) spent(b *testing.B) (cpu float64, ran map[string][2]float64) {
	info := r.client.InfoMap(b.Context(), "cpu", "commandstats").Val()
	for _, field := range []string{"used_cpu_sys_main_thread", "used_cpu_user_main_thread"} {
		seconds, err := strconv.ParseFloat(info["CPU"][field], 64)
		must(b, err)
		cpu += seconds
	}
	ran = map[string][2]float64{}
	for name, text := range info["Commandstats"] {
		var calls, us float64
		_, err := fmt.Sscanf(text, "calls=%f,usec=%f", &calls, &us)
		must(b, err)
		ran[strings.TrimPrefix(name, "cmdstat_")] = [2]float64{calls, us}
	}
	return cpu, ran
}

func (r *rig) add(b *testing.B, n int) {
	r.calls++
	items := make([]Item, n)
	for i := range items {
		r.produced++
		items[i] = Item{ID: "producer12" + strconv.Itoa(r.produced), Lane: Lane{Kind: "note"}, Rest: `{"codec":"json"} ""`}
		if r.keys > 0 {
			items[i].Lane.Key = strconv.Itoa(r.produced % r.keys)
		}
	}
	_, err := r.Enqueue(b.Context(), r.calls, items)
	must(b, err)
}

func (r *rig) enqueue(b *testing.B, calls, n int) {
	r.add(b, 1)
	r.begin(b)
	for range calls {
		r.add(b, n)
	}
	r.tell(b, "job", b.N*n)
}

// worker makes the worker's next call, and says that what it claimed is done with the one after.
func (r *rig) call(b *testing.B, room int) []Claim {
	r.report.Call++
	r.report.Room = "slot:" + strconv.Itoa(room)
	answer, err := r.Work(context.Background(), &r.report)
	must(b, err)
	r.report.Register = false
	r.done(answer.Claims)
	return answer.Claims
}

func (r *rig) done(claims []Claim) {
	r.report.Done = r.report.Done[:0]
	for _, c := range claims {
		r.report.Done = append(r.report.Done, Done{ID: c.ID, Token: c.Token, Verb: "done"})
	}
}

// work has a worker with n slots claim n in each call, of 100,000 that wait, and more if it needs them.
func (r *rig) work(b *testing.B, n int) {
	for waiting := 0; n > 0 && waiting < min(b.N*n+1000, 100_000); waiting += 500 {
		r.add(b, 500)
	}
	r.call(b, n)
	r.call(b, n)
	r.begin(b)
	left := 100_000
	for range b.N {
		if left -= n; left < n {
			b.StopTimer()
			cpu, ran := r.spent(b)
			for ; left < 100_000; left += 500 {
				r.add(b, 500)
			}
			cpuNow, ranNow := r.spent(b)
			r.cpu += cpuNow - cpu
			for name, c := range ranNow {
				r.ran[name] = [2]float64{r.ran[name][0] + c[0] - ran[name][0], r.ran[name][1] + c[1] - ran[name][1]}
			}
			b.StartTimer()
		}
		if got := len(r.call(b, n)); got != n {
			b.Fatalf("%d jobs claimed, want %d", got, n)
		}
	}
	r.tell(b, "job", b.N*max(n, 1))
}

// logInTogether has agents log in, n at a time: with their second call they are idle.
func (r *rig) logInTogether(b *testing.B, n int) {
	must(b, r.Configure(b.Context(), "placement", "longest"))
	r.begin(b)
	for i := range b.N {
		for call := range int64(2) {
			reports := make([]*Report, n)
			for j := range reports {
				reports[j] = anAgent(fmt.Sprint("process/", i*n+j), call+1)
			}
			var err error
			if n == 1 {
				_, err = r.Work(b.Context(), reports[0])
			} else {
				_, err = r.WorkTogether(b.Context(), reports)
			}
			must(b, err)
		}
	}
	r.tell(b, "log-in", b.N*n)
}

// due has 100 delayed jobs come to their turn in each call of a worker that has no room.
func (r *rig) due(b *testing.B) {
	r.call(b, 0)
	for range b.N {
		r.calls++
		items := make([]Item, 100)
		for i := range items {
			r.produced++
			items[i] = Item{ID: strconv.Itoa(r.produced), Lane: Lane{Kind: "note"}, Rest: `{}`, Delay: 2 * time.Second}
		}
		_, err := r.Enqueue(b.Context(), r.calls, items)
		must(b, err)
	}
	time.Sleep(2 * time.Second)
	r.begin(b)
	for range b.N {
		r.call(b, 0)
	}
	r.tell(b, "job", b.N*100)
}

// handOver has an idle worker be handed each job.
func (r *rig) handOver(b *testing.B) {
	r.call(b, 10)
	r.call(b, 10)
	inbox := r.client.Subscribe(b.Context(), Inbox("app", "process"))
	defer func() { must(b, inbox.Close()) }()
	_, err := inbox.Receive(b.Context())
	must(b, err)
	messages := inbox.Channel()
	r.begin(b)
	for range b.N {
		r.add(b, 1)
		words, ok := ParseMessage((<-messages).Payload)
		claims, read := ParseClaims(words[2:])
		if !ok || !read || len(claims) != 1 {
			b.Fatalf("a message of %q", words)
		}
		r.done(claims)
		r.call(b, 10)
	}
	r.tell(b, "job", b.N)
}
