package exec_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/conf"
	"github.com/signalbox-io/signalbox/engine/internal/exec"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// Two machines, and between them bytes that the test carries: replication without a socket, and in virtual time.

const seconds = 1_000_000 // in µs

// replicated is a primary and its replica.
type replicated struct {
	t                *testing.T
	nowUs            int64
	primary, replica *exec.Machine
	client           *exec.Session // of the primary
	follower         *exec.Session // the replica, as the primary sees it
	heard            resp.Requests
}

func newReplicated(t *testing.T, settings ...conf.Pair) *replicated {
	t.Helper()
	s := conf.New()
	if err := s.Set(append(settings, conf.Pair{Name: "repl-diskless-sync-delay", Value: "0"})); err != nil {
		t.Fatal(err)
	}
	r := &replicated{t: t, nowUs: 1000 * seconds, heard: resp.Requests{Trusted: true}}
	r.primary = exec.New(exec.Options{Seed: 1, Settings: s}, r.nowUs)
	r.replica = exec.New(exec.Options{Seed: 2}, r.nowUs)
	t.Cleanup(r.primary.Close)
	t.Cleanup(r.replica.Close)
	r.client = r.primary.Connect(r.nowUs, "1.2.3.4:5", "")
	r.follower = r.primary.Connect(r.nowUs, "1.2.3.4:6", "")
	return r
}

// ask sends a request to the primary, and lets the replica hear of it.
func (r *replicated) ask(line string) string {
	r.t.Helper()
	r.client.Out.Reset()
	r.primary.Step(r.nowUs, r.client, argsOf(strings.Fields(line)...))
	r.primary.TakeEffects()
	return string(r.client.Out.Bytes())
}

// say has the replica say something to the primary.
func (r *replicated) say(line string) string {
	r.t.Helper()
	r.primary.Step(r.nowUs, r.follower, argsOf(strings.Fields(line)...))
	effects := r.primary.TakeEffects()
	if effects.Begin == exec.JobSync {
		r.sync()
	}
	return string(r.told())
}

// told is all that the primary has sent the replica, and forget forgets it.
func (r *replicated) told() []byte {
	for stream := &r.follower.Stream; stream.Len() > 0; {
		first := stream.First()
		r.follower.Out.Raw(first)
		stream.Drop(len(first))
	}
	return r.follower.Out.Bytes()
}

func (r *replicated) forget() {
	r.told()
	r.follower.Out.Reset()
}

// sync is a full synchronisation.
func (r *replicated) sync() {
	r.t.Helper()
	sync, err := r.primary.BeginSync(r.nowUs)
	if err != nil {
		r.t.Fatal(err)
	}
	var file bytes.Buffer
	seal := rdb.NewSeal(&file, true)
	for done := false; !done; {
		if done, err = sync.Snapshot.Step(1<<20, 100); err != nil {
			r.t.Fatal(err)
		}
		for _, part := range sync.Snapshot.Take(nil) {
			if _, err := seal.Write(part); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	if err := seal.Close(); err != nil {
		r.t.Fatal(err)
	}
	sync.Sent()
	r.primary.JobEnded(r.nowUs, 0, nil)
	head, _, _ := strings.Cut(string(r.told()), "\r\n")
	words := strings.Fields(head)
	if words[0] != "+FULLRESYNC" {
		r.t.Fatal(head)
	}
	r.forget()
	data := r.replica.BeginReplacement(&file)
	for err == nil {
		err = data.Read(r.nowUs / 1000)
	}
	if !errors.Is(err, io.EOF) {
		r.t.Fatal(err)
	}
	if err := r.replica.Link().Adopt(r.nowUs, data, words[1], 0, "1.2.3.4:1", ""); err != nil {
		r.t.Fatal(err)
	}
}

// follow makes the replica one.
func (r *replicated) follow() {
	r.t.Helper()
	ask(r.t, r.replica, r.nowUs, "REPLICAOF", "1.2.3.4", "1")
	r.say("REPLCONF capa eof capa psync2")
	r.forget()
	r.say("PSYNC ? -1")
	r.say("REPLCONF ACK 0")
}

// carry brings the stream over, in pieces of so many bytes.
func (r *replicated) carry(pieceBytes int) {
	r.t.Helper()
	stream := bytes.Clone(r.told())
	r.forget()
	for piece := range chunks(stream, pieceBytes) {
		r.heard.Advance(copy(r.heard.Space(), piece))
		for {
			args, ok, err := r.heard.Next()
			if err != nil {
				r.t.Fatal(err)
			}
			if !ok {
				break
			}
			if _, err := r.replica.Link().Apply(r.nowUs, args); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	r.replica.Link().Advance(r.nowUs, stream)
	r.replica.TakeEffects()
	r.same()
}

func chunks(b []byte, size int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for ; len(b) > 0; b = b[min(size, len(b)):] {
			if !yield(b[:min(size, len(b))]) {
				return
			}
		}
	}
}

func (r *replicated) same() {
	r.t.Helper()
	want, got := ask(r.t, r.primary, r.nowUs, "DEBUG", "DIGEST"), ask(r.t, r.replica, r.nowUs, "DEBUG", "DIGEST")
	if want != got {
		r.t.Fatalf("the data differ")
	}
}

// TestStreamMakesTheSameChange carries the stream in pieces of every size, transactions, scripts and databases
// included.
func TestStreamMakesTheSameChange(t *testing.T) {
	t.Parallel()
	for pieceBytes := 1; pieceBytes < 60; pieceBytes += 1 + pieceBytes/4 {
		r := newReplicated(t)
		r.ask("SET before 1")
		r.follow()
		for _, line := range []string{
			"SET a 1", "SELECT 3", "MULTI", "INCR a", "SPOP none", "INCR a", "EXEC", "SET b 1 EX 10", "SADD s a b c d", "SPOP s", "PUBLISH c m",
			"EVAL redis.call('set','x',1)redis.call('incr','x') 0", "SELECT 0", "XADD x * a b", "MOVE a 4", "SWAPDB 0 3", "INCRBYFLOAT f 0.1",
		} {
			r.ask(line)
		}
		r.carry(pieceBytes)
		if got := ask(t, r.replica, r.nowUs, "GET", "b"); !strings.Contains(got, "1") {
			t.Errorf("b is %s", got)
		}
	}
}

// TestReplicaHidesWhatHasExpired until its primary deletes it.
func TestReplicaHidesWhatHasExpired(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	r.follow()
	r.ask("SET k 1 PX 1000")
	r.carry(100)
	r.nowUs += 2 * seconds
	for range 3 {
		r.replica.Tick(r.nowUs)
	}
	if got := ask(t, r.replica, r.nowUs, "GET", "k"); !strings.Contains(got, "nil") {
		t.Errorf("k is %s on the replica", got)
	}
	if got := ask(t, r.replica, r.nowUs, "DBSIZE"); !strings.Contains(got, "1") {
		t.Errorf("the replica has deleted it: %s", got)
	}
	r.primary.Tick(r.nowUs)
	r.primary.TakeEffects()
	r.carry(100)
	if got := ask(t, r.replica, r.nowUs, "DBSIZE"); !strings.Contains(got, "0") {
		t.Errorf("the primary's DEL has not come: %s", got)
	}
}

// TestSilentReplicasAreCut after repl-timeout, and PINGs come each repl-ping-replica-period.
func TestSilentReplicasAreCut(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	r.follow()
	pings := 0
	for sec := range 70 {
		r.nowUs += seconds
		r.primary.Tick(r.nowUs)
		effects := r.primary.TakeEffects()
		pings += strings.Count(string(r.told()), "PING")
		r.forget()
		if len(effects.Close) > 0 {
			if sec < 60 || pings != 6 {
				t.Errorf("cut after %d s and %d PINGs", sec, pings)
			}
			return
		}
	}
	t.Error("never cut")
}

// TestBacklogIsGivenUp when nobody has followed for long, and with it the name of the stream: what is written then is
// in none.
func TestBacklogIsGivenUp(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	r.follow()
	r.ask("SET a 1")
	r.primary.Disconnect(r.follower)
	r.primary.TakeEffects()
	id := fieldOf(t, r.primary, r.nowUs, "master_replid")
	r.nowUs += 3599 * seconds
	r.primary.Tick(r.nowUs)
	if fieldOf(t, r.primary, r.nowUs, "master_replid") != id || fieldOf(t, r.primary, r.nowUs, "repl_backlog_active") != "1" {
		t.Error("given up too early")
	}
	r.nowUs += 2 * seconds
	r.primary.Tick(r.nowUs)
	if fieldOf(t, r.primary, r.nowUs, "master_replid") == id || fieldOf(t, r.primary, r.nowUs, "repl_backlog_active") != "0" {
		t.Error("not given up")
	}
	offset := fieldOf(t, r.primary, r.nowUs, "master_repl_offset")
	r.ask("SET a 2")
	if fieldOf(t, r.primary, r.nowUs, "master_repl_offset") != offset {
		t.Error("a stream without a reader")
	}
}

func fieldOf(t *testing.T, m *exec.Machine, nowUs int64, name string) string {
	t.Helper()
	s := m.ConnectLocal(nowUs)
	defer m.Disconnect(s)
	m.Step(nowUs, s, argsOf("INFO", "replication"))
	for _, line := range strings.Split(string(s.Out.Bytes()), "\r\n") {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return value
		}
	}
	return ""
}

// TestPublishedIsInNoFile: replicas hear what is published, and a log does not.
func TestPublishedIsInNoFile(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	r.primary.Propagate(true)
	r.follow()
	r.forget()
	for _, c := range []struct{ line, log, stream string }{
		{"SET a 1", "SELECT 0 SET a 1", "SELECT 0 SET a 1"},
		{"PUBLISH c m", "", "PUBLISH c m"},
		{"MULTI", "", ""},
		{"SET a 2", "", ""},
		{"SPUBLISH c m", "", ""},
		{"SET a 3", "", ""},
		{"EXEC", "MULTI SET a 2 SET a 3 EXEC", "MULTI SET a 2 SPUBLISH c m SET a 3 EXEC"},
	} {
		r.primary.Step(r.nowUs, r.client, argsOf(strings.Fields(c.line)...))
		log := r.primary.TakeEffects().Propagate
		if got := flat(t, log); got != c.log {
			t.Errorf("%s: the log has %q, want %q", c.line, got, c.log)
		}
		if got := flat(t, r.told()); got != c.stream {
			t.Errorf("%s: the stream has %q, want %q", c.line, got, c.stream)
		}
		r.forget()
	}
}

// flat writes requests as words.
func flat(t *testing.T, stream []byte) string {
	t.Helper()
	var all []string
	for _, words := range requestsOf(t, stream) {
		all = append(all, words...)
	}
	return strings.Join(all, " ")
}

// TestShutdownWaitsNoLongerThanItMay, and a replica that is still waiting for its snapshot holds nothing up.
func TestShutdownWaitsNoLongerThanItMay(t *testing.T) {
	r := newReplicated(t)
	r.follow()
	r.ask("SET a 1")
	if got := r.ask("SHUTDOWN NOSAVE"); got != "" {
		t.Fatalf("SHUTDOWN answers %q", got)
	}
	r.nowUs += 9 * seconds
	r.primary.Tick(r.nowUs)
	if r.primary.TakeEffects().Shutdown {
		t.Error("ends before the time is up")
	}
	r.nowUs += 2 * seconds
	r.primary.Tick(r.nowUs)
	if !r.primary.TakeEffects().Shutdown {
		t.Error("goes on though the time is up")
	}
	other := newReplicated(t, conf.Pair{Name: "shutdown-timeout", Value: "0"})
	other.follow()
	other.ask("SET a 1")
	other.client.Out.Reset()
	other.primary.Step(other.nowUs, other.client, argsOf("SHUTDOWN", "NOSAVE"))
	if !other.primary.TakeEffects().Shutdown {
		t.Error("waits though shutdown-timeout is 0")
	}
}

// TestNothingIsSaidBehindTheLastSnapshot: a replica that heard a PING which is not in it could not go on from where this
// server begins again.
func TestNothingIsSaidBehindTheLastSnapshot(t *testing.T) {
	r := newReplicated(t, conf.Pair{Name: "save", Value: "3600 1"})
	r.primary.Keep(r.nowUs, func() exec.LogState { return exec.LogState{} })
	r.follow()
	r.ask("SET a 1")
	r.forget()
	if r.primary.Shutdown(r.nowUs, 0); r.primary.TakeEffects().Begin != exec.JobSave {
		t.Fatal("no snapshot is begun")
	}
	for range 30 {
		r.nowUs += seconds
		r.primary.Tick(r.nowUs)
		r.primary.TakeEffects()
	}
	if told := r.told(); len(told) > 0 {
		t.Errorf("the replica is told %q", told)
	}
}

// TestReplicaOfBehindAWrite: what a server has written before it becomes a replica, be it in the same batch, is in the
// stream from whose end it goes on. Else it would have what nobody else has.
func TestReplicaOfBehindAWrite(t *testing.T) {
	r := newReplicated(t)
	r.follow()
	r.forget()
	r.primary.Step(r.nowUs, r.client, argsOf("SET", "a", "1"))
	r.primary.Step(r.nowUs, r.client, argsOf("REPLICAOF", "1.2.3.4", "1"))
	r.primary.TakeEffects()
	if got := flat(t, r.told()); got != "SELECT 0 SET a 1" {
		t.Errorf("the stream has %q", got)
	}
}
