package topology

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faultproxy"
)

// masterName is what the Sentinels call the group.
const masterName = "box"

// SentinelOptions say how large the group is. Zero values are replaced.
type SentinelOptions struct {
	Sentinels int // 3
	Replicas  int // 2
	// DownAfter is for how long the primary may be silent before it is replaced: 10 s, which is to be longer than the
	// machine may stall. AwaitTakeover makes the Sentinels less patient for as long as a failover is wanted.
	DownAfter time.Duration
	// Proxied puts a proxy before each data server, so that it can be cut off.
	Proxied bool
	// Start starts a data server, with further arguments as redis-server takes them: difftest.Redis.
	Start func(t testing.TB, extraArgs ...string) *difftest.Server
}

// takeoverDownAfter is for how long the primary may be silent while a failover is wanted.
const takeoverDownAfter = 500 * time.Millisecond

func (o *SentinelOptions) fill() {
	if o.Sentinels == 0 {
		o.Sentinels = 3
	}
	if o.Replicas == 0 {
		o.Replicas = 2
	}
	if o.DownAfter == 0 {
		o.DownAfter = 10 * time.Second
	}
	if o.Start == nil {
		o.Start = difftest.Redis
	}
}

// Sentinel is a primary with replicas, watched by Sentinels.
type Sentinel struct {
	t         testing.TB
	options   SentinelOptions
	nodes     []*Node
	sentinels []*watcher
}

type watcher struct {
	*difftest.Server
	client *redis.SentinelClient
}

// StartSentinel returns a group that is up: all replicas follow, and every Sentinel knows all of them and each other.
func StartSentinel(t testing.TB, options SentinelOptions) *Sentinel {
	t.Helper()
	options.fill()
	s := &Sentinel{t: t, options: options}
	for range 1 + options.Replicas {
		extra := []string{"--repl-diskless-sync-delay", "0"}
		if len(s.nodes) > 0 {
			host, port := s.nodes[0].HostPort()
			extra = append(extra, "--replicaof", host+" "+port)
		}
		s.nodes = append(s.nodes, s.startNode(extra))
	}
	for range options.Sentinels {
		s.sentinels = append(s.sentinels, s.startSentinel())
	}
	lastWords(t, func() (servers []*difftest.Server) {
		for _, n := range s.nodes {
			servers = append(servers, n.Server)
		}
		for _, w := range s.sentinels {
			servers = append(servers, w.Server)
		}
		return servers
	})
	s.AwaitWhole()
	return s
}

// startNode starts a data server, behind a proxy if that is wanted.
func (s *Sentinel) startNode(extra []string) *Node {
	s.t.Helper()
	if !s.options.Proxied {
		return newNode(s.t, s.options.Start(s.t, extra...))
	}
	proxy := faultproxy.Start(s.t, "127.0.0.1:1") // nobody asks before the server is there
	host, port, err := net.SplitHostPort(proxy.Addr())
	must(s.t, err)
	n := newNode(s.t, s.options.Start(s.t, append(extra, "--replica-announce-ip", host, "--replica-announce-port", port)...))
	proxy.Retarget(n.Addr)
	n.proxy = proxy
	return n
}

// startSentinel starts one, which rewrites its configuration with what it learns.
func (s *Sentinel) startSentinel() *watcher {
	s.t.Helper()
	host, port := s.nodes[0].HostPort()
	dir := s.t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	quorum := s.options.Sentinels/2 + 1
	server := difftest.Start(s.t, func(own string) []string {
		must(s.t, os.WriteFile(file, fmt.Appendf(nil, `bind 127.0.0.1
port %s
dir %q
protected-mode no
sentinel monitor %[3]s %s %s %d
sentinel down-after-milliseconds %[3]s %[7]d
sentinel failover-timeout %[3]s 3000
sentinel parallel-syncs %[3]s %[8]d
`, own, dir, masterName, host, port, quorum, s.options.DownAfter.Milliseconds(), s.options.Replicas), 0o600))
		return []string{difftest.RedisServer(s.t), file, "--sentinel"}
	})
	w := &watcher{server, redis.NewSentinelClient(&redis.Options{
		Addr: server.Addr, MaxRetries: -1, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})}
	s.t.Cleanup(func() {
		if err := w.client.Close(); err != nil {
			s.t.Error(err)
		}
	})
	// They look around every few seconds; a test has no time for that. What a replica has said counts for five pings only,
	// and while its primary is down it is asked once a second: with shorter pings there is often none that is good enough.
	hurry := redis.NewCmd(s.t.Context(), "SENTINEL", "DEBUG", "INFO-PERIOD", 200, "PUBLISH-PERIOD", 200, "PING-PERIOD", 250)
	must(s.t, w.client.Process(s.t.Context(), hurry))
	return w
}

// URL is what signalbox.Open takes.
func (s *Sentinel) URL() string {
	var hosts []string
	for _, w := range s.sentinels {
		hosts = append(hosts, w.Addr)
	}
	return "redis+sentinel://" + strings.Join(hosts, ",") + "/" + masterName
}

// Addrs returns the addresses of the Sentinels, and what they call the group.
func (s *Sentinel) Addrs() (addrs []string, master string) {
	for _, w := range s.sentinels {
		addrs = append(addrs, w.Addr)
	}
	return addrs, masterName
}

func (s *Sentinel) live() (nodes []*Node) {
	for _, n := range s.nodes {
		if !n.down {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// Primary returns the primary that all Sentinels agree on.
func (s *Sentinel) Primary() *Node {
	s.t.Helper()
	var primary *Node
	await(s.t, "Sentinels of one opinion", func(ctx context.Context) bool {
		primary = s.agreed(ctx)
		return primary != nil
	})
	return primary
}

// agreed returns the living primary that all Sentinels name and that knows itself as one, nil if there is none.
func (s *Sentinel) agreed(ctx context.Context) *Node {
	addr := ""
	for _, w := range s.sentinels {
		part := w.client.GetMasterAddrByName(ctx, masterName).Val()
		if named := strings.Join(part, ":"); addr == "" || named == addr {
			addr = named
			continue
		}
		return nil
	}
	for _, n := range s.live() {
		if n.found() == addr && n.replication(ctx)["role"] == "master" {
			return n
		}
	}
	return nil
}

// AwaitWhole returns when the Sentinels agree on a primary, all living others follow it, and every Sentinel knows all
// replicas and all other Sentinels.
func (s *Sentinel) AwaitWhole() {
	s.t.Helper()
	await(s.t, "a whole Sentinel group", func(ctx context.Context) bool {
		primary := s.agreed(ctx)
		if primary == nil {
			return false
		}
		_, port := primary.HostPort()
		for _, n := range s.live() {
			if n != primary && (!n.follows(ctx) || n.replication(ctx)["master_port"] != port) {
				return false
			}
		}
		for _, w := range s.sentinels {
			known := w.client.Master(ctx, masterName).Val()
			if known["flags"] != "master" || number(known["num-other-sentinels"]) != len(s.sentinels)-1 ||
				number(known["num-slaves"]) < len(s.live())-1 {
				return false
			}
		}
		return true
	})
}

// Failover has the Sentinels replace the primary although it is well, and returns the new one. They do not wait for the
// replica to catch up: the last writes may be lost.
func (s *Sentinel) Failover() *Node {
	s.t.Helper()
	s.AwaitWhole()
	old := s.Primary()
	// Refused while another failover is young.
	await(s.t, "the start of a failover", func(ctx context.Context) bool {
		return s.sentinels[0].client.Failover(ctx, masterName).Err() == nil
	})
	next := s.AwaitTakeover(old)
	s.AwaitWhole()
	return next
}

// AwaitTakeover returns the new primary once all Sentinels name one that is not `old`.
func (s *Sentinel) AwaitTakeover(old *Node) *Node {
	s.t.Helper()
	s.setDownAfter(takeoverDownAfter)
	defer s.setDownAfter(s.options.DownAfter)
	var next *Node
	await(s.t, "a primary in the place of "+old.Addr, func(ctx context.Context) bool {
		next = s.agreed(ctx)
		return next != nil && next != old
	})
	return next
}

// setDownAfter is told to all Sentinels.
func (s *Sentinel) setDownAfter(span time.Duration) {
	s.t.Helper()
	for _, w := range s.sentinels {
		must(s.t, w.client.Set(s.t.Context(), masterName, "down-after-milliseconds", fmt.Sprint(span.Milliseconds())).Err())
	}
}
