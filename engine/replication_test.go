package engine_test

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/cases"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faultproxy"
)

// Replication between engines and real redis-servers, in all pairs: after any requests, cuts and failovers the data
// must be the same on all sides.

// server is a Redis or an engine that listens.
type server struct {
	t    *testing.T
	name string
	addr string
	dial difftest.Dial
	conn *difftest.Conn
	log  func() string
}

// replicates is how every server of these tests is set up.
var replicates = []string{"repl-diskless-sync-delay=0"}

func startRedis(t *testing.T, settings ...string) *server {
	t.Helper()
	var args []string
	for _, setting := range append(replicates, settings...) {
		name, value, _ := strings.Cut(setting, "=")
		args = append(args, "--"+name)
		args = append(args, strings.Fields(value)...)
	}
	r := difftest.Redis(t, args...)
	return &server{t: t, name: "redis", addr: r.Addr, dial: r.Dial, conn: connect(t, r.Dial), log: r.Output}
}

func startEngine(t *testing.T, settings ...string) *server {
	t.Helper()
	return startEngineIn(t, "", settings...)
}

// startEngineIn starts an engine that keeps its data in a folder, if one is given.
func startEngineIn(t *testing.T, dir string, settings ...string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := serveEngine(t, l, dir, settings...)
	return s
}

// serveEngine serves an engine on a listener, and returns what ends it before the test does.
func serveEngine(t *testing.T, l net.Listener, dir string, settings ...string) (s *server, end func()) {
	t.Helper()
	all := append([]string{"enable-debug-command=yes"}, append(replicates, settings...)...)
	config, err := engine.ReadConfig("", all...)
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	e, err := engine.Open(engine.Options{
		Config: config, Port: l.Addr().(*net.TCPAddr).Port, Dir: dir,
		Log: func(_ int, line string) {
			select {
			case lines <- line:
			default:
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- e.Serve(l) }()
	over := false
	end = func() {
		if over {
			return
		}
		over = true
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(end)
	addr := l.Addr().String()
	dial := func() (net.Conn, error) { return net.Dial("tcp", addr) }
	s = &server{t: t, name: "engine", addr: addr, dial: dial, log: func() string {
		var text strings.Builder
		for len(lines) > 0 {
			text.WriteString(<-lines + "\n")
		}
		return text.String()
	}}
	s.conn = connect(t, dial)
	return s, end
}

// start starts a server of a kind.
func start(t *testing.T, kind string, settings ...string) *server {
	t.Helper()
	if kind == "redis" {
		return startRedis(t, settings...)
	}
	return startEngine(t, settings...)
}

func (s *server) do(words ...string) difftest.Value {
	s.t.Helper()
	return do(s.t, s.conn, words...)
}

// info is a field of INFO.
func (s *server) info(field string) string {
	s.t.Helper()
	for line := range strings.Lines(s.do("INFO", "everything").Text) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (s *server) number(field string) int {
	s.t.Helper()
	n, err := strconv.Atoi(s.info(field))
	if err != nil {
		s.t.Fatalf("%s of %s: %v", field, s.name, err)
	}
	return n
}

// follow makes the server a replica of whoever is found at an address.
func (s *server) follow(addr string) {
	s.t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		s.t.Fatal(err)
	}
	if got := s.do("REPLICAOF", host, port); !strings.HasPrefix(got.Text, "OK") {
		s.t.Fatalf("REPLICAOF: %s", got.Text)
	}
}

// await asks until ok holds: for what servers do in their own time.
func await(t *testing.T, what func() string, ok func() bool) {
	t.Helper()
	const patience = time.Minute
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what())
		}
	}
}

// unsettled is a replica that has not got its snapshot yet, as its primary sees it.
var unsettled = regexp.MustCompile(`state=(wait_bgsave|send_bulk)`)

// awaitSame waits until a server has all that another one has, and compares the data.
func awaitSame(t *testing.T, from, to *server) {
	t.Helper()
	await(t, func() string {
		return fmt.Sprintf("the same data on %s and %s: %s and %s\n%s\n%s\n%s", from.name, to.name,
			from.do("DEBUG", "DIGEST").Text, to.do("DEBUG", "DIGEST").Text,
			from.do("INFO", "replication").Text, to.do("INFO", "replication").Text, to.log())
	}, func() bool {
		return to.info("master_link_status") == "up" && !unsettled.MatchString(from.do("INFO", "replication").Text) && from.info("master_repl_offset") == to.info("master_repl_offset") &&
			from.do("DEBUG", "DIGEST").Text == to.do("DEBUG", "DIGEST").Text
	})
}

// TestReplicasHaveTheData plays random requests of all kinds on a primary, and compares the data of its replica, and
// of that one's replica, at every pause.
func TestReplicasHaveTheData(t *testing.T) {
	for _, chain := range [][]string{{"redis", "engine"}, {"engine", "redis"}, {"engine", "engine"}, {"redis", "engine", "redis"}, {"engine", "redis", "engine", "engine"}} {
		t.Run(strings.Join(chain, "-"), func(t *testing.T) {
			t.Parallel()
			servers := []*server{start(t, chain[0])}
			player, err := difftest.NewPlayer(1, servers[0].dial)
			if err != nil {
				t.Fatal(err)
			}
			defer player.Close()
			play := func() {
				t.Helper()
				if err := player.Send(400); err != nil {
					t.Fatal(err)
				}
				expireSome(servers[0])
			}
			play()
			for i, kind := range chain[1:] {
				servers = append(servers, start(t, kind))
				servers[i+1].follow(servers[i].addr)
			}
			for range cases.Few([]int{1, 2, 3, 4}) {
				play()
				for i := range servers[1:] {
					awaitSame(t, servers[i], servers[i+1])
				}
			}
		})
	}
}

// expireSome has keys of several databases expire now, and others later.
func expireSome(s *server) {
	s.t.Helper()
	for i, words := range []string{
		"SET soon 1 PX 1", "SELECT 3", "SET there 2 PX 1", "SET later 2 EX 1000", "MULTI", "INCR there", "PEXPIRE later 1", "SET other 1", "EXEC",
		"SELECT 0", "PUBLISH channel message", "XADD stream MAXLEN ~ 3 * a b",
	} {
		if got := s.do(strings.Fields(words)...); got.Kind == difftest.Error {
			s.t.Fatalf("%d %s: %s", i, words, got.Text)
		}
	}
}

// TestCutStreamsGoOn cuts the connection after each of many numbers of bytes, and expects the same data in the end, without
// another full synchronisation once the stream has begun.
func TestCutStreamsGoOn(t *testing.T) {
	for _, pair := range [][2]string{{"redis", "engine"}, {"engine", "redis"}, {"engine", "engine"}} {
		t.Run(pair[0]+"-"+pair[1], func(t *testing.T) {
			t.Parallel()
			primary, replica := start(t, pair[0]), start(t, pair[1])
			proxy := faultproxy.Start(t, primary.addr)
			replica.follow(proxy.Addr())
			awaitSame(t, primary, replica)
			full := primary.info("sync_full")
			player, err := difftest.NewPlayer(2, primary.dial)
			if err != nil {
				t.Fatal(err)
			}
			defer player.Close()
			cuts := cases.Few([]int64{1, 2, 7, 30, 100, 333, 1000})
			for _, after := range cuts {
				before := proxy.Opened()
				proxy.Set(faultproxy.Fault{Replies: faultproxy.Direction{CutAfter: after}})
				if err := player.Send(100); err != nil {
					t.Fatal(err)
				}
				expireSome(primary)
				await(t, func() string { return "a cut" }, func() bool { return proxy.Opened() > before })
				proxy.Restore()
				awaitSame(t, primary, replica)
			}
			if got := primary.info("sync_full"); got != full {
				t.Errorf("%s full synchronisations, %s before the cuts", got, full)
			}
			if got := primary.number("sync_partial_ok"); got < len(cuts) {
				t.Errorf("%d partial synchronisations after %d cuts", got, len(cuts))
			}
		})
	}
}

// TestCutHandshakesLeaveTheOldData cuts the way to the stream after each of many numbers of bytes: the replica has what it
// had until all is there.
func TestCutHandshakesLeaveTheOldData(t *testing.T) {
	t.Parallel()
	primary, replica := startRedis(t), startEngine(t)
	primary.do("DEBUG", "POPULATE", "200")
	replica.do("SET", "old", "data")
	proxy := faultproxy.Start(t, primary.addr)
	proxy.Set(faultproxy.Fault{Replies: faultproxy.Direction{CutAfter: 1}})
	replica.follow(proxy.Addr())
	for _, after := range cases.Few([]int64{1, 5, 12, 40, 80, 130, 200, 500, 2000}) {
		proxy.Set(faultproxy.Fault{Replies: faultproxy.Direction{CutAfter: after}})
		before := proxy.Opened()
		await(t, func() string { return "another attempt" }, func() bool { return proxy.Opened() > before+1 })
		if got := replica.do("GET", "old").Text; got != "data" {
			t.Fatalf("cut after %d bytes, the old data is gone: %q", after, got)
		}
		if got := replica.info("master_link_status"); got != "down" {
			t.Fatalf("cut after %d bytes, the link is %s", after, got)
		}
	}
	proxy.Restore()
	awaitSame(t, primary, replica)
	if got := replica.do("DBSIZE").Text; got != "200" {
		t.Errorf("%s keys", got)
	}
}

// TestPromotedReplicaIsFollowed promotes a replica, and expects its sibling and the old primary to go on with it without a
// full synchronisation.
func TestPromotedReplicaIsFollowed(t *testing.T) {
	for _, kinds := range [][3]string{{"redis", "engine", "redis"}, {"engine", "engine", "engine"}, {"engine", "redis", "engine"}} {
		t.Run(strings.Join(kinds[:], "-"), func(t *testing.T) {
			t.Parallel()
			old, next, sibling := start(t, kinds[0]), start(t, kinds[1]), start(t, kinds[2])
			old.do("SET", "k", "1")
			old.do("CONFIG", "SET", "repl-ping-replica-period", "3600") // one that comes to the sibling alone is history
			next.follow(old.addr)
			sibling.follow(old.addr)
			awaitSame(t, old, next)
			awaitSame(t, old, sibling)
			if kinds[0] == "engine" { // whose first PING comes at once
				await(t, func() string { return "the first PING" }, func() bool { return old.info("master_repl_offset") != "0" })
			}
			old.do("CLIENT", "PAUSE", "60000", "WRITE") // nothing is lost
			await(t, func() string { return "equal offsets" }, func() bool {
				return old.info("master_repl_offset") == next.info("master_repl_offset") && next.info("master_repl_offset") == sibling.info("master_repl_offset")
			})
			if got := next.do("REPLICAOF", "NO", "ONE").Text; got != "OK" {
				t.Fatal(got)
			}
			full := next.info("sync_full")
			next.do("SELECT", "2")
			next.do("SET", "k", "2")
			old.do("CLIENT", "UNPAUSE")
			sibling.follow(next.addr)
			old.follow(next.addr)
			awaitSame(t, next, sibling)
			awaitSame(t, next, old)
			if got := next.info("sync_full"); got != full || next.number("sync_partial_ok") < 2 {
				t.Errorf("%s full synchronisations (%s before), %s partial ones", got, full, next.info("sync_partial_ok"))
			}
		})
	}
}

// TestStreamThatCannotBeFollowedStopsTheLink: it is named, the data stays what it was, and nothing is tried again.
func TestStreamThatCannotBeFollowedStopsTheLink(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		"*2\r\n$5\r\nBOGUS\r\n$1\r\na\r\n":         `"BOGUS": ERR unknown command`,
		"*2\r\n$4\r\nINCR\r\n$1\r\nk\r\n":          "incr: ERR value is not an integer",
		"*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nk\r\n":     `"SUBSCRIBE" does not belong`,
		"*1\r\n!4\r\nPING\r\n":                     "expected '$', got '!'",
		"*1\r\n$5\r\nMULTI\r\n*1\r\n$3\r\nXXX\r\n": `"XXX": ERR unknown command`,
	} {
		liar := startLiar(t, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n"+request)
		replica := startEngine(t)
		replica.follow(liar)
		await(t, func() string { return replica.do("INFO", "replication").Text }, func() bool {
			return strings.Contains(replica.info("master_link_error"), want)
		})
		if got := replica.do("GET", "k").Text; got != "value" {
			t.Errorf("%q: k is %q", request, got)
		}
		if got := replica.do("ROLE").Elems[3].Text; got != "connect" {
			t.Errorf("%q: the link is in state %s", request, got)
		}
	}
}

// startLiar starts a primary that has nothing, and says what it is told to once.
func startLiar(t *testing.T, stream string) (addr string) {
	t.Helper()
	return startServing(t, func(conn net.Conn) { lie(conn, stream) })
}

// startServing starts a server of one connection after the other.
func startServing(t *testing.T, serve func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

// empty is a snapshot of nothing.
const empty = "REDIS0010\xff\x00\x00\x00\x00\x00\x00\x00\x00"

// lie answers the handshake, and sends a stream after an empty snapshot.
func lie(conn net.Conn, stream string) {
	lieAbout(conn, "$"+strconv.Itoa(len(empty))+"\r\n"+empty+stream)
}

// lieAbout answers the handshake, and sends something in the place of a snapshot.
func lieAbout(conn net.Conn, snapshot string) {
	defer conn.Close()
	requests, err := difftest.Connect(func() (net.Conn, error) { return conn, nil })
	if err != nil {
		return
	}
	for {
		request, err := requests.Receive()
		if err != nil {
			return
		}
		answer := "+OK\r\n"
		switch request.Elems[0].Text {
		case "READONLY":
			answer = "-ERR This instance has cluster support disabled\r\n"
		case "PSYNC":
			answer = "+FULLRESYNC " + strings.Repeat("a", 40) + " 0\r\n\n" + snapshot
		}
		if err := requests.SendRaw([]byte(answer)); err != nil {
			return
		}
		if request.Elems[0].Text == "PSYNC" && !strings.Contains(snapshot, empty) {
			return
		}
	}
}
