package topology

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faultproxy"
)

// patience is how long anything may take that happens within seconds on a healthy machine. It passes in full only if
// the test fails.
const patience = 60 * time.Second

// Node is one data server.
type Node struct {
	*difftest.Server
	// Client speaks to this server alone.
	Client *redis.Client

	proxy *faultproxy.Proxy // everybody else finds the server behind it; nil: at its own address

	id   string // in a Cluster
	bus  string // the port of the Cluster's bus
	down bool   // killed or paused: not to be asked
}

func newNode(t testing.TB, server *difftest.Server) *Node {
	t.Helper()
	n := &Node{Server: server, Client: redis.NewClient(&redis.Options{
		Addr: server.Addr, MaxRetries: -1, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})}
	t.Cleanup(func() {
		if err := n.Client.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// Kill ends the server as a crash would.
func (n *Node) Kill() {
	n.down = true
	n.Server.Kill()
}

// Restart starts the server again, with what is in its folder.
func (n *Node) Restart() {
	n.Server.Restart()
	n.down = false
}

// Pause suspends the server: its connections stay open, and nothing is answered.
func (n *Node) Pause() {
	n.down = true
	n.Server.Pause()
}

// Resume lets a paused server go on, with what it knew when it was paused.
func (n *Node) Resume() {
	n.Server.Resume()
	n.down = false
}

// CutOff lets nothing pass between the server and clients, replicas and Sentinels, but for those clients who have sent
// it a text; "" spares none. The server must be behind a proxy.
func (n *Node) CutOff(spared string) {
	n.down = true
	n.proxy.Set(faultproxy.Fault{Requests: faultproxy.Direction{Hold: true}, Replies: faultproxy.Direction{Hold: true}, Spare: spared})
}

// Rejoin ends CutOff. What was on its way arrives.
func (n *Node) Rejoin() {
	n.proxy.Restore()
	n.down = false
}

// found is the address at which others find the server.
func (n *Node) found() string {
	if n.proxy != nil {
		return n.proxy.Addr()
	}
	return n.Addr
}

// HostPort returns the address at which others find the server, in its parts.
func (n *Node) HostPort() (host, port string) {
	host, port, err := net.SplitHostPort(n.found())
	if err != nil {
		return n.found(), ""
	}
	return host, port
}

// replication returns what INFO replication says, by field; nothing if the server does not answer.
func (n *Node) replication(ctx context.Context) map[string]string {
	return fields(n.Client.Info(ctx, "replication").Val())
}

// follows reports whether the server is a replica that has caught up with its primary once.
func (n *Node) follows(ctx context.Context) bool {
	info := n.replication(ctx)
	return info["role"] == "slave" && info["master_link_status"] == "up"
}

func fields(text string) map[string]string {
	all := make(map[string]string)
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			all[key] = value
		}
	}
	return all
}

// Refusals returns how often the server has answered with an error that begins with a word, such as MOVED.
func (n *Node) Refusals(t testing.TB, word string) int {
	t.Helper()
	text, err := n.Client.Info(t.Context(), "errorstats").Result()
	if err != nil {
		t.Fatalf("ask %s for its errors: %v", n.Addr, err)
	}
	count, known := strings.CutPrefix(fields(text)["errorstat_"+word], "count=")
	if !known {
		return 0
	}
	number, err := strconv.Atoi(count)
	if err != nil {
		t.Fatalf("%s counts %q errors", n.Addr, count)
	}
	return number
}

// Quiesce lets the server take no more writes, and returns when its replicas have all it took: from now on a crash
// loses nothing that was acknowledged. Clients that write meanwhile wait for an answer.
func (n *Node) Quiesce(t testing.TB) {
	t.Helper()
	must(t, n.Client.Do(t.Context(), "CLIENT", "PAUSE", patience.Milliseconds(), "WRITE").Err())
	await(t, "replicas that have all that "+n.Addr+" took", func(ctx context.Context) bool {
		info := n.replication(ctx)
		for i := range number(info["connected_slaves"]) {
			replica := info["slave"+strconv.Itoa(i)]
			if !strings.Contains(replica, "state=online,offset="+info["master_repl_offset"]+",") {
				return false
			}
		}
		return number(info["connected_slaves"]) > 0
	})
}

// number is 0 for what is none.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// await asks until ok holds: for what processes do in their own time.
func await(t testing.TB, what string, ok func(ctx context.Context) bool) {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), patience)
	defer done()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !ok(ctx) {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lastWords shows what the servers of a failed test wrote.
func lastWords(t testing.TB, servers func() []*difftest.Server) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, server := range servers() {
			t.Logf("the last that %s wrote:\n%s", server.Addr, server.Output())
		}
	})
}
