package engine_test

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faultproxy"
)

// pair starts a primary and a replica that follows it.
func pair(t *testing.T, primary, replica string, settings ...string) (*server, *server) {
	t.Helper()
	p, r := start(t, primary, settings...), start(t, replica, settings...)
	r.follow(p.addr)
	awaitSame(t, p, r)
	return p, r
}

// TestInfoReplicationHasRedissFields compares the names of the fields, in both roles.
func TestInfoReplicationHasRedissFields(t *testing.T) {
	t.Parallel()
	names := func(s *server) (names []string) {
		for line := range strings.Lines(s.do("INFO", "replication").Text) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
			names = append(names, name)
		}
		return names
	}
	redis, follower := pair(t, "redis", "redis", "min-replicas-to-write=1")
	primary, replica := pair(t, "engine", "engine", "min-replicas-to-write=1")
	for _, c := range []struct{ redis, engine *server }{{redis, primary}, {follower, replica}} {
		if diff := cmp.Diff(names(c.redis), names(c.engine)); diff != "" {
			t.Error(diff)
		}
		if want, got := shapeOf(c.redis.do("ROLE")), shapeOf(c.engine.do("ROLE")); want != got {
			t.Errorf("ROLE:\n got %s\nwant %s", got, want)
		}
	}
	line := regexp.MustCompile(`^ip=127\.0\.0\.1,port=\d+,state=online,offset=\d+,lag=\d$`)
	for _, s := range []*server{redis, primary} {
		if got := s.info("slave0"); !line.MatchString(got) {
			t.Errorf("%s says %s", s.name, got)
		}
	}
	for _, s := range []*server{follower, replica} {
		if got := s.do("HELLO").String(); !strings.Contains(got, "replica") {
			t.Errorf("%s is no replica to HELLO: %s", s.name, got)
		}
	}
	for kind, flag := range map[string]string{"replica": "flags=S", "master": "flags=M"} {
		for _, s := range []*server{redis, primary, follower, replica} {
			list := s.do("CLIENT", "LIST", "TYPE", kind).Text
			if has := strings.Contains(list, flag+" "); has != (kind == "replica" == (s == redis || s == primary)) {
				t.Errorf("CLIENT LIST TYPE %s of a %s: %q", kind, s.name, list)
			}
		}
	}
}

// shapeOf writes a reply with its numbers left out.
func shapeOf(v difftest.Value) string {
	return regexp.MustCompile(`\d+`).ReplaceAllString(v.String(), "N")
}

// TestReplicaAnswersAsRedisDoes sends what a replica refuses, and what not, to a Redis and to an engine.
func TestReplicaAnswersAsRedisDoes(t *testing.T) {
	t.Parallel()
	_, redis := pair(t, "redis", "redis")
	primary, ours := pair(t, "engine", "engine")
	primary.do("SET", "k", "v")
	compare := func(line string) {
		t.Helper()
		words := strings.Split(line, " ")
		if strings.HasPrefix(line, "EVAL") {
			words = []string{words[0], strings.Join(words[1:len(words)-1], " "), words[len(words)-1]}
		}
		if want, got := redis.do(words...).String(), ours.do(words...).String(); want != got {
			t.Errorf("%s:\n got %s\nwant %s", line, got, want)
		}
	}
	lines := []string{
		"SET a 1", "DEL a", "MULTI", "GET a", "SET a 1", "EXEC", "EVAL return{redis.pcall('set','a',1)} 0", "EVAL #!lua\nreturn{1} 0",
		"EVAL #!lua flags=no-writes\nreturn{redis.pcall('get','a')} 0", "WAIT 1 0", "PUBLISH a b", "REPLCONF", "REPLCONF a", "REPLCONF a b", "REPLCONF listening-port x",
		"REPLCONF capa eof", "FAILOVER", "FAILOVER ABORT", "FLUSHALL", "FUNCTION FLUSH", "PFADD a b", "XREAD STREAMS a 0", "BLPOP a 0", "GETEX a EX 1",
	}
	for _, line := range lines {
		compare(line)
	}
	for _, s := range []*server{redis, ours} {
		s.do("CONFIG", "SET", "replica-serve-stale-data", "no")
		s.do("REPLICAOF", "127.0.0.1", "1")
	}
	for _, line := range append(lines, "GET a", "PING", "INFO nothing", "MULTI", "PING", "GET a", "EXEC", "SELECT 1", "CONFIG GET replicaof", "PSYNC ? -1", "SYNC") {
		compare(line)
	}
	for _, s := range []*server{redis, ours} {
		s.do("CONFIG", "SET", "replica-serve-stale-data", "yes", "replica-read-only", "no")
		s.do("REPLICAOF", "127.0.0.1", "1")
	}
	for _, line := range []string{"SET a 1", "GET a", "REPLICAOF NO ONE", "FAILOVER", "FAILOVER ABORT", "FAILOVER TO a 1", "FAILOVER TIMEOUT 0", "FAILOVER TO a", "PSYNC a b FAILOVER"} {
		compare(line)
	}
}

func TestWaitCountsAcknowledgements(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t, "engine", "redis")
	other := start(t, "engine")
	proxy := faultproxy.Start(t, primary.addr)
	other.follow(proxy.Addr())
	awaitSame(t, primary, other)
	primary.do("SET", "k", "1")
	if got := primary.do("WAIT", "2", "0").Text; got != "2" {
		t.Errorf("WAIT 2: %s", got)
	}
	proxy.Set(faultproxy.Fault{Requests: faultproxy.Direction{Hold: true}}) // the second one's acknowledgements
	primary.do("SET", "k", "2")
	if got := primary.do("WAIT", "2", "100").Text; got != "1" {
		t.Errorf("WAIT 2 while one cannot answer: %s", got)
	}
	if got := replica.do("GET", "k").Text; got != "2" {
		t.Errorf("acknowledged and not there: %q", got)
	}
	proxy.Restore()
	if got := primary.do("WAIT", "2", "0").Text; got != "2" {
		t.Errorf("WAIT 2 after that: %s", got)
	}
}

// TestWaitIsForWhatWasSeen: a write that is said again on another connection, after the first one has broken, changes
// nothing, and yet WAIT is about it.
func TestWaitIsForWhatWasSeen(t *testing.T) {
	for _, kind := range []string{"redis", "engine"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			primary, replica := start(t, kind), start(t, "redis")
			proxy := faultproxy.Start(t, primary.addr)
			replica.follow(proxy.Addr())
			awaitSame(t, primary, replica)
			proxy.Set(faultproxy.Fault{Replies: faultproxy.Direction{Hold: true}})
			primary.do("SADD", "k", "1")
			again := connect(t, primary.dial)
			do(t, again, "SADD", "k", "1")
			if got := do(t, again, "WAIT", "1", "50").Text; got != "0" {
				t.Errorf("%s replicas have it", got)
			}
		})
	}
}

// TestShutdownWaitsForReplicas: while one lags, writes wait, until it has everything, or until SHUTDOWN ABORT.
func TestShutdownWaitsForReplicas(t *testing.T) {
	for _, kind := range []string{"redis", "engine"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			primary, replica := start(t, kind, "shutdown-timeout=60"), start(t, "redis")
			proxy := faultproxy.Start(t, primary.addr)
			replica.follow(proxy.Addr())
			awaitSame(t, primary, replica)
			proxy.Set(faultproxy.Fault{Replies: faultproxy.Direction{Hold: true}})
			primary.do("SET", "k", "1")
			ending := answerOf(connect(t, primary.dial), "SHUTDOWN", "NOSAVE")
			await(t, func() string { return "a shutdown that waits" }, func() bool { return primary.info("shutdown_in_milliseconds") != "" })
			written := answerOf(connect(t, primary.dial), "SET", "k", "2")
			await(t, func() string { return "a write that waits" }, func() bool { return primary.info("blocked_clients") == "2" })
			if got := primary.do("GET", "k").Text; got != "1" {
				t.Errorf("k is %q", got)
			}
			for _, c := range []struct{ words, want string }{
				{"SHUTDOWN ABORT NOW", "ERR syntax error"}, {"SHUTDOWN ABORT", "OK"}, {"SHUTDOWN ABORT", "ERR No shutdown in progress."},
			} {
				if got := primary.do(strings.Fields(c.words)...).Text; got != c.want {
					t.Errorf("%s: %s", c.words, got)
				}
			}
			if got := <-ending; got != "ERR Errors trying to SHUTDOWN. Check logs." {
				t.Errorf("SHUTDOWN: %s", got)
			}
			if got := <-written; got != "OK" {
				t.Errorf("SET: %s", got)
			}
			ending = answerOf(connect(t, primary.dial), "SHUTDOWN", "NOSAVE")
			await(t, func() string { return "a shutdown that waits" }, func() bool { return primary.info("shutdown_in_milliseconds") != "" })
			proxy.Restore()
			if got := <-ending; got != "EOF" {
				t.Errorf("SHUTDOWN: %s", got)
			}
			if got := replica.do("GET", "k").Text; got != "2" {
				t.Errorf("the replica has %q", got)
			}
		})
	}
}

// TestShutdownNowWaitsForNobody.
func TestShutdownNowWaitsForNobody(t *testing.T) {
	t.Parallel()
	primary, replica := start(t, "engine", "shutdown-timeout=60"), start(t, "redis")
	proxy := faultproxy.Start(t, primary.addr)
	replica.follow(proxy.Addr())
	awaitSame(t, primary, replica)
	proxy.Set(faultproxy.Fault{Replies: faultproxy.Direction{Hold: true}})
	primary.do("SET", "k", "1")
	if got := <-answerOf(primary.conn, "SHUTDOWN", "NOW"); got != "EOF" {
		t.Errorf("SHUTDOWN NOW: %s", got)
	}
}

// answerOf asks, and waits for the answer in the background. EOF is that of a server that has ended.
func answerOf(conn *difftest.Conn, words ...string) <-chan string {
	answer := make(chan string, 1)
	go func() {
		v, err := conn.Do(words...)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
			answer <- "EOF"
		case err != nil:
			answer <- err.Error()
		default:
			answer <- v.Text
		}
	}()
	return answer
}

// TestTooFewReplicas: min-replicas-to-write refuses writes, scripts' too, as Redis does.
func TestTooFewReplicas(t *testing.T) {
	t.Parallel()
	redis, ours := start(t, "redis", "min-replicas-to-write=1"), start(t, "engine", "min-replicas-to-write=1")
	replica := start(t, "engine")
	compare := func(words ...string) string {
		t.Helper()
		want, got := redis.do(words...).String(), ours.do(words...).String()
		if want != got {
			t.Errorf("%q:\n got %s\nwant %s", words, got, want)
		}
		return got
	}
	if got := compare("SET", "k", "1"); !strings.HasPrefix(got, "-NOREPLICAS") {
		t.Errorf("SET: %s", got)
	}
	compare("GET", "k")
	compare("EVAL", "return redis.pcall('set', 'k', 1)", "0")
	compare("EVAL", "#!lua\nreturn 1", "0")
	compare("MULTI")
	compare("SET", "k", "1")
	compare("EXEC")
	replica.follow(ours.addr)
	awaitSame(t, ours, replica)
	if got := ours.do("SET", "k", "1").Text; got != "OK" {
		t.Errorf("with a replica: %s", got)
	}
}

// TestFailoverLosesNothing has the two change places while clients write, and back.
func TestFailoverLosesNothing(t *testing.T) {
	for _, kinds := range [][2]string{{"engine", "engine"}, {"engine", "redis"}, {"redis", "engine"}} {
		t.Run(kinds[0]+"-"+kinds[1], func(t *testing.T) {
			t.Parallel()
			primary, replica := pair(t, kinds[0], kinds[1])
			for round := range 2 {
				written := make(chan int)
				writer := connect(t, primary.dial)
				go func() {
					n := 0
					defer func() { written <- n }()
					for {
						if v, err := writer.Do("INCR", "n"); err != nil || v.Kind == difftest.Error {
							return
						}
						n++
					}
				}()
				await(t, func() string { return "writes" }, func() bool { return primary.do("GET", "n").Text != "" })
				if got := primary.do("FAILOVER", "TIMEOUT", "60000").Text; got != "OK" {
					t.Fatal(got)
				}
				n := <-written
				await(t, func() string { return "the other role" }, func() bool {
					return replica.info("role") == "master" && primary.info("master_failover_state") == "no-failover"
				})
				awaitSame(t, replica, primary)
				if got := replica.do("GET", "n").Text; got != fmt.Sprint(n) {
					t.Errorf("round %d: %d writes were acknowledged, and n is %s", round, n, got)
				}
				replica.do("DEL", "n")
				primary, replica = replica, primary
			}
		})
	}
}

// TestPasswordsOfPrimaries: masterauth and masteruser open the door; without them, INFO says what is wrong.
func TestPasswordsOfPrimaries(t *testing.T) {
	t.Parallel()
	primary := start(t, "engine", "user=default on >secret ~* &* +@all", "user=fleet on >other +psync +replconf +ping")
	for _, conn := range []*server{primary} {
		conn.do("AUTH", "secret")
	}
	replica := start(t, "engine")
	replica.follow(primary.addr)
	await(t, func() string { return replica.do("INFO", "replication").Text }, func() bool {
		return strings.Contains(replica.info("master_link_error"), "NOAUTH")
	})
	replica.do("CONFIG", "SET", "masterauth", "wrong")
	await(t, func() string { return replica.do("INFO", "replication").Text }, func() bool {
		return strings.Contains(replica.info("master_link_error"), "WRONGPASS")
	})
	replica.do("CONFIG", "SET", "masterauth", "other", "masteruser", "fleet")
	awaitSame(t, primary, replica)
}

// TestReplicaKeepsWhatItHears: an append-only file and snapshots of a replica have the primary's data, and nothing of
// what it had before.
func TestReplicaKeepsWhatItHears(t *testing.T) {
	t.Parallel()
	for _, appendOnly := range []string{"yes", "no"} {
		primary := startRedis(t)
		player, err := difftest.NewPlayer(3, primary.dial)
		if err != nil {
			t.Fatal(err)
		}
		defer player.Close()
		dir := t.TempDir()
		l := listenAt(t, "127.0.0.1:"+difftest.FreePort(t))
		replica, end := serveEngine(t, l, dir, "appendonly="+appendOnly)
		replica.do("SET", "before", "1")
		if err := player.Send(300); err != nil {
			t.Fatal(err)
		}
		replica.follow(primary.addr)
		awaitSame(t, primary, replica)
		if err := player.Send(300); err != nil {
			t.Fatal(err)
		}
		awaitSame(t, primary, replica)
		want := replica.do("DEBUG", "DIGEST").Text
		await(t, func() string { return "the append-only file" }, func() bool { return replica.info("aof_rewrite_in_progress") == "0" })
		end()
		again, _ := serveEngine(t, listenAt(t, l.Addr().String()), dir, "appendonly="+appendOnly, "replicaof=127.0.0.1 1")
		if got := again.do("DEBUG", "DIGEST").Text; got != want {
			t.Errorf("appendonly %s: other data after a restart", appendOnly)
		}
	}
}

// listenAt listens. Where another server has just been, a process that a test beside this one starts may have its listener
// for the moment between fork and exec.
func listenAt(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	for deadline := time.Now().Add(time.Minute); errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(deadline); {
		l, err = net.Listen("tcp", addr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestRestartedReplicaGoesOn: the snapshot says where it was, so that neither a replica nor what follows a primary has to
// begin anew.
func TestRestartedReplicaGoesOn(t *testing.T) {
	for _, other := range []string{"redis", "engine"} {
		t.Run(other, func(t *testing.T) {
			t.Parallel()
			primary := start(t, other)
			dir := t.TempDir()
			l := listenAt(t, "127.0.0.1:"+difftest.FreePort(t))
			replica, end := serveEngine(t, l, dir, "appendonly=no")
			replica.follow(primary.addr)
			primary.do("SELECT", "5")
			primary.do("SET", "k", "1")
			awaitSame(t, primary, replica)
			end()
			full := primary.info("sync_full")
			primary.do("SET", "k", "2")
			host, port, _ := net.SplitHostPort(primary.addr)
			replica, end = serveEngine(t, listenAt(t, l.Addr().String()), dir, "appendonly=no", "replicaof="+host+" "+port)
			awaitSame(t, primary, replica)
			if got := primary.info("sync_full"); got != full {
				t.Errorf("%s full synchronisations, %s before the restart", got, full)
			}
			// Promoted, followed by the old primary, and started again: that goes on, too.
			replica.do("REPLICAOF", "NO", "ONE")
			primary.follow(replica.addr)
			awaitSame(t, replica, primary)
			end()
			replica, _ = serveEngine(t, listenAt(t, l.Addr().String()), dir, "appendonly=no")
			replica.do("SET", "k", "3")
			awaitSame(t, replica, primary)
			if got := replica.info("sync_partial_ok"); got != "1" {
				t.Errorf("%s partial synchronisations of the old primary", got)
			}
		})
	}
}

// TestConfigRewriteKeepsWhomToFollow: Sentinel relies on it.
func TestConfigRewriteKeepsWhomToFollow(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "box.conf")
	if err := os.WriteFile(path, []byte("# mine\nslaveof 127.0.0.1 1\ntimeout 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, dial := configured(t, path)
	conn := connect(t, dial)
	for _, c := range []struct{ words, want string }{
		{"CONFIG REWRITE", "replicaof 127.0.0.1 1"}, {"SLAVEOF example.org 77", "replicaof example.org 77"}, {"SLAVEOF NO ONE", ""},
	} {
		do(t, conn, strings.Fields(c.words)...)
		if got := do(t, conn, "CONFIG", "REWRITE").Text; got != "OK" {
			t.Fatal(got)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		if c.want != "" && !slices.Contains(lines, c.want) || c.want == "" && strings.Contains(string(text), "of ") {
			t.Errorf("after %s: %q", c.words, text)
		}
	}
}

// TestManyReplicasShareASnapshot, and a client of redis-cli --rdb gets one without the stream.
func TestManyReplicasShareASnapshot(t *testing.T) {
	t.Parallel()
	primary := startEngine(t, "repl-diskless-sync-delay=60", "repl-diskless-sync-max-replicas=3")
	primary.do("DEBUG", "POPULATE", "10000")
	replicas := []*server{start(t, "engine"), start(t, "redis"), start(t, "engine")}
	for _, r := range replicas {
		r.follow(primary.addr)
	}
	for _, r := range replicas {
		awaitSame(t, primary, r)
	}
	if got := primary.info("sync_full"); got != "3" {
		t.Errorf("%s full synchronisations", got)
	}
}

// TestReplicationOverTLS: with tls-replication the link shows a certificate, and wants a good one.
func TestReplicationOverTLS(t *testing.T) {
	t.Parallel()
	a, stranger := newAuthority(t), newAuthority(t)
	addr, e := listenTLS(t, a, "tls-ca-cert-file="+a.path("ca"), "repl-diskless-sync-delay=0")
	if _, err := e.Do(t.Context(), "SET", "k", "v"); err != nil {
		t.Fatal(err)
	}
	a.issue("client", &x509.Certificate{})
	settings := func(ca string) []string {
		return []string{
			"tls-replication=yes", "tls-ca-cert-file=" + ca, "tls-client-cert-file=" + a.path("client"), "tls-client-key-file=" + a.path("client") + ".key",
		}
	}
	replica, wary := startEngine(t, settings(a.path("ca"))...), startEngine(t, settings(stranger.path("ca"))...)
	replica.follow(addr)
	wary.follow(addr)
	await(t, func() string { return replica.do("INFO", "replication").Text }, func() bool { return replica.do("GET", "k").Text == "v" })
	await(t, func() string { return wary.do("INFO", "replication").Text }, func() bool {
		return strings.Contains(wary.info("master_link_error"), "certificate")
	})
}

// TestRedisCLISavesASnapshot by the commands of replicas.
func TestRedisCLISavesASnapshot(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Fatal("redis-cli is not on PATH: install redis-tools")
	}
	primary := startEngine(t)
	primary.do("DEBUG", "POPULATE", "1000")
	primary.do("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 1 end)")
	dir := t.TempDir()
	_, port, _ := net.SplitHostPort(primary.addr)
	for _, flag := range []string{"--rdb", "--functions-rdb"} {
		file := filepath.Join(dir, flag)
		if output, err := exec.CommandContext(t.Context(), path, "-p", port, flag, file).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", flag, err, output)
		}
		again := difftest.Redis(t, "--dir", dir, "--dbfilename", flag)
		conn := connect(t, again.Dial)
		keys, functions := do(t, conn, "DBSIZE").Text, len(do(t, conn, "FUNCTION", "LIST").Elems)
		if want := map[string]string{"--rdb": "1000", "--functions-rdb": "0"}[flag]; keys != want || functions != 1 {
			t.Errorf("%s: %s keys and %d libraries", flag, keys, functions)
		}
	}
}
