package lossy_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faultproxy"
	"github.com/signalbox-io/signalbox/internal/faults"
)

func TestMain(m *testing.M) { faults.Main(m) }

// pair is a primary and its replica. Clients come through a proxy that is told who serves, and the replica follows
// through another that can hold it back.
type pair struct {
	t                *testing.T
	primary, replica *difftest.Server
	clients, stream  *faultproxy.Proxy
	toPrimary        *redis.Client
	toReplica        *redis.Client
}

// startPair returns a pair that is in step. The replica is started by `start`, which is told whom it follows.
func startPair(t *testing.T, start func(t *testing.T, extra ...string) *difftest.Server) *pair {
	t.Helper()
	p := &pair{t: t, primary: difftest.Redis(t, "--repl-diskless-sync-delay", "0")}
	p.clients = faultproxy.Start(t, p.primary.Addr)
	p.stream = faultproxy.Start(t, p.primary.Addr)
	host, port, err := net.SplitHostPort(p.stream.Addr())
	must(t, err)
	p.replica = start(t, "--replicaof", host+" "+port)
	p.toPrimary, p.toReplica = dial(t, p.primary), dial(t, p.replica)
	faults.Await(t, "a replica that follows", func() bool {
		return strings.Contains(p.toReplica.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	return p
}

func inTime(t *testing.T, extra ...string) *difftest.Server { return difftest.Redis(t, extra...) }

func dial(t *testing.T, server *difftest.Server) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr, MaxRetries: -1, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { must(t, client.Close()) })
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// box returns a process of its own.
func (p *pair) box() *signalbox.Box {
	p.t.Helper()
	box, err := signalbox.Open(p.t.Context(), "redis://"+p.clients.Addr())
	must(p.t, err)
	p.t.Cleanup(func() { must(p.t, box.Close()) })
	return box
}

func acquire(t *testing.T, box *signalbox.Box, name string) *signalbox.Lease {
	t.Helper()
	lease, err := box.Mutex(name).Acquire(faults.Patient(t), signalbox.TTL(20*time.Second))
	must(t, err)
	return lease
}

// holdBack lets the replica hear of nothing more.
func (p *pair) holdBack() {
	p.stream.Set(faultproxy.Fault{Replies: faultproxy.Direction{Drop: true}})
}

// caughtUp waits until the replica has all that the primary took.
func (p *pair) caughtUp() {
	p.t.Helper()
	faults.Await(p.t, "a replica in step", func() bool {
		return p.toPrimary.Do(context.Background(), "WAIT", 1, 1000).Val() == int64(1)
	})
}

// promote makes the replica the primary after the old one has died.
func (p *pair) promote() {
	p.t.Helper()
	p.primary.Kill()
	must(p.t, p.toReplica.Do(p.t.Context(), "REPLICAOF", "NO", "ONE").Err())
	p.clients.Retarget(p.replica.Addr)
}
