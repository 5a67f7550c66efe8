package signalbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// What callers and servers do wrong, one test for each. Every error has to wrap the right sentinel, name the resource,
// and say what to do; nothing may hang, and nothing be left behind. The server is a real one brought into the state in
// question, or a fake (fakeServer) where a real one cannot be kept in it.

const (
	secret     = "s3cr3t"
	shortClaim = 2 * time.Second // for which a server that does not answer is asked again; a busy one answers within that
)

// strangeNames would break a hash tag, a pattern or a line if they were taken as they are.
var strangeNames = []string{
	"{", "}", "{}", "}{", "{a}b", "a{b}c{d}", "}a{b}", "%", "%7D", "%257D", "a b\r\nc", "\x00", "*[a]?", "é☂",
	strings.Repeat("}", ledger.MaxNameBytes), strings.Repeat("{}", ledger.MaxNameBytes/2),
}

// says asserts that an error wraps `want` and that its text holds all parts and no password.
func says(t *testing.T, err, want error, parts ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the error tells the password: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}

// idle asserts that neither leases nor waiters are left, at the latest when all claims and ttls are over.
func idle(t *testing.T, box *signalbox.Box, name string) {
	t.Helper()
	eventually(t, "nothing left of "+name, func() bool {
		state, err := box.Inspect(context.Background(), name)
		must(t, err)
		return state.Leases == 0 && state.Waiters == 0 && state.Held == 0
	})
}

// acquire acquires in the background and hands out lease and error.
func acquire(box *signalbox.Box, name string, options ...signalbox.AcquireOption) (<-chan *signalbox.Lease, <-chan error) {
	leases, failed := make(chan *signalbox.Lease, 1), make(chan error, 1)
	go func() {
		lease, err := box.Mutex(name).Acquire(context.Background(), options...)
		if err != nil {
			failed <- err
			return
		}
		leases <- lease
	}()
	return leases, failed
}

// granted waits for the lease of an acquire in the background, and releases it.
func granted(t *testing.T, leases <-chan *signalbox.Lease, failed <-chan error) {
	t.Helper()
	select {
	case lease := <-leases:
		must(t, lease.Release(context.Background()))
	case err := <-failed:
		t.Fatal(err)
	}
}

func admin(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { must(t, client.Close()) })
	return client
}

// onEach runs a test against a real Redis and against the engine in this process.
func onEach(t *testing.T, test func(t *testing.T, box *signalbox.Box)) {
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, openBox(t, difftest.Redis(t).Addr))
	})
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		box, err := embedded.Open("")
		must(t, err)
		t.Cleanup(func() { must(t, box.Close()) })
		test(t, box.Box)
	})
}

func TestStrangeNamesAreNamesLikeOthers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, box *signalbox.Box) {
		var leases []*signalbox.Lease
		for _, name := range strangeNames {
			lease, err := box.Mutex(name).TryAcquire(t.Context())
			must(t, err)
			leases = append(leases, lease)
		}
		list, err := box.List(t.Context())
		must(t, err)
		listed := make(map[string]bool)
		for _, state := range list {
			listed[state.Resource] = true
		}
		for i, name := range strangeNames {
			if !listed[name] {
				t.Errorf("%q is held and not listed", name)
			}
			must(t, leases[i].Release(t.Context()))
		}
	})
}

// slot is the slot of a key as the specification of Redis Cluster has it: CRC16 (XMODEM) of what stands between the
// first { and the first } behind it, or of the whole key if that is nothing.
func slot(key string) int {
	if _, behind, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(behind, "}"); ok && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
	}
	return int(crc % 16384)
}

// startCluster returns a Cluster of one node that has all slots.
func startCluster(t *testing.T) *difftest.Server {
	t.Helper()
	server := difftest.Redis(t, "--cluster-enabled", "yes", "--cluster-port", difftest.FreePort(t), "--cluster-announce-ip", "127.0.0.1")
	client := admin(t, server.Addr)
	must(t, client.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	eventually(t, "a Cluster that is up", func() bool {
		return strings.Contains(client.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	return server
}

// TestNamesKeepTheirKeysInOneSlot: also the channel of an inbox must have no hash tag, or all inboxes would be in one
// slot once pub/sub is sharded.
func TestNamesKeepTheirKeysInOneSlot(t *testing.T) {
	t.Parallel()
	server := startCluster(t)
	client := admin(t, server.Addr)
	for _, name := range append(strangeNames, "plain", "a:b") {
		resource, err := ledger.NewResource(name)
		must(t, err)
		for _, key := range resource.Keys() {
			if slot(key) != slot(resource.Keys()[0]) {
				t.Errorf("%.20q: %.40q is in another slot than the state", name, key)
			}
			if asked := client.ClusterKeySlot(t.Context(), key).Val(); int(asked) != slot(key) {
				t.Errorf("slot of %.40q: %d here, %d by the server", key, slot(key), asked)
			}
		}
	}
	if strings.ContainsAny(ledger.InboxPrefix, "{}") {
		t.Errorf("the channels %s… have a hash tag", ledger.InboxPrefix)
	}
}

// TestClusterHandsOver has the claim time so long that only the message through the inbox can bring the grant in time.
func TestClusterHandsOver(t *testing.T) {
	t.Parallel()
	server := startCluster(t)
	open := func() *signalbox.Box {
		box, err := signalbox.Open(t.Context(), "redis+cluster://"+server.Addr, signalbox.Claim(time.Hour))
		must(t, err)
		t.Cleanup(func() { must(t, box.Close()) })
		return box
	}
	holder, next := open(), open()
	for _, name := range strangeNames[:8] {
		lease, err := holder.Mutex(name).Acquire(t.Context())
		must(t, err)
		waits := make(chan signalbox.Waiting, 8)
		leases, failed := acquire(next, name, signalbox.OnWait(func(w signalbox.Waiting) { waits <- w }))
		<-waits
		must(t, lease.Release(t.Context()))
		granted(t, leases, failed)
	}
	alone := openBox(t, server.Addr) // a client that does not follow MOVED works where all slots are here
	_, err := alone.Mutex("m").TryAcquire(t.Context())
	must(t, err)
}

func TestBadArgumentsSayWhatIsAllowed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, box *signalbox.Box) {
		ctx, long := t.Context(), strings.Repeat("x", 100_000)
		try := func(name string, limit int, options ...signalbox.AcquireOption) error {
			_, err := box.Semaphore(name, limit).TryAcquire(ctx, options...)
			return err
		}
		says(t, try("", 1), signalbox.ErrInvalid, "name", "empty")
		says(t, try(long, 1), signalbox.ErrInvalid, "xxx", "100000", "512")
		says(t, try("a\xff", 1), signalbox.ErrInvalid, `"a\xff"`, "UTF-8")
		says(t, try("r", 0), signalbox.ErrInvalid, `"r"`, "limit 0", "1 to")
		says(t, try("r", 2, signalbox.Weight(0)), signalbox.ErrInvalid, `"r"`, "weight 0", "at least 1")
		says(t, try("r", 2, signalbox.Weight(3)), signalbox.ErrTooHeavy, `"r"`, "3", "2")
		says(t, try("r", 1, signalbox.TTL(9*time.Millisecond)), signalbox.ErrInvalid, `"r"`, "9ms", "10ms to")
		for _, name := range []string{"", long, "\xff"} {
			_, errInspect := box.Inspect(ctx, name)
			_, errResize := box.Resize(ctx, name, 1)
			_, errForce := box.Force(ctx, name, "id")
			_, errAll := box.ForceAll(ctx, name)
			for verb, err := range map[string]error{"inspect": errInspect, "resize": errResize, "force": errors.Join(errForce, errAll)} {
				says(t, err, signalbox.ErrInvalid, verb)
				if len(err.Error()) > 500 {
					t.Errorf("%s: the error is %d bytes long", verb, len(err.Error()))
				}
			}
		}
		_, err := box.Resize(ctx, "r", -1)
		says(t, err, signalbox.ErrInvalid, `"r"`, "limit -1")
		_, err = box.Force(ctx, "r", "")
		says(t, err, signalbox.ErrInvalid, `"r"`, "ForceAll")
		idle(t, box, "r")
	})
}

func TestWrongTypeNamesTheKeys(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t)
	box, client := openBox(t, server.Addr), admin(t, server.Addr)
	resource, err := ledger.NewResource("r}")
	must(t, err)
	for _, key := range resource.Keys() {
		must(t, client.Set(t.Context(), key, "somebody else's", 0).Err())
		_, err := box.Mutex("r}").Acquire(t.Context())
		says(t, err, signalbox.ErrWrongType, `"r}"`, "signalbox:{r%7D}*", "remove")
		_, err = box.Inspect(t.Context(), "r}")
		says(t, err, signalbox.ErrWrongType, `"r}"`)
		if value := client.Get(t.Context(), key).Val(); value != "somebody else's" {
			t.Errorf("%s was touched: %q", key, value)
		}
		must(t, client.Del(t.Context(), key).Err())
		if left := client.DBSize(t.Context()).Val(); left != 0 {
			t.Errorf("%d keys left behind with %s in the way", left, key)
		}
	}
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t)
	box := openBox(t, server.Addr, signalbox.Claim(shortClaim))
	server.Kill()
	_, err := signalbox.Open(t.Context(), "redis://me:"+secret+"@"+server.Addr+"/3")
	says(t, err, signalbox.ErrUnavailable, "redis://"+server.Addr+"/3", "check that it runs")
	_, err = box.Mutex("r").TryAcquire(t.Context())
	says(t, err, signalbox.ErrUnavailable, `"r"`, server.Addr, "check that it runs")
	_, err = box.Mutex("r").Acquire(t.Context())
	says(t, err, signalbox.ErrUnavailable, `"r"`, server.Addr, "check that it runs")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = box.Mutex("r").Acquire(ctx)
	says(t, err, context.DeadlineExceeded, `"r"`)
	_, err = box.List(t.Context())
	says(t, err, signalbox.ErrUnavailable, "list", "check that it runs")
	server.Restart()
	lease, err := box.Mutex("r").Acquire(t.Context())
	must(t, err)
	must(t, lease.Release(t.Context()))
	idle(t, box, "r")
}

// TestSilentServer: connections open, and nothing is ever answered.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t)
	location := "redis://:" + secret + "@" + server.Addr + "?read_timeout=100ms"
	must(t, admin(t, server.Addr).Do(t.Context(), "CONFIG", "SET", "requirepass", secret).Err())
	var box *signalbox.Box
	var err error
	eventually(t, "a server that answers within 100ms", func() bool {
		box, err = signalbox.Open(t.Context(), location, signalbox.Claim(shortClaim))
		return err == nil
	})
	t.Cleanup(func() {
		if err := box.Close(); err != nil { // it may be told of the end again, and not be answered within 100ms
			says(t, err, signalbox.ErrUnavailable, `"r"`)
		}
	})
	server.Pause()
	_, err = signalbox.Open(t.Context(), location)
	says(t, err, signalbox.ErrUnavailable, server.Addr, "check that it runs")
	_, err = box.Mutex("r").TryAcquire(t.Context())
	says(t, err, signalbox.ErrUnavailable, `"r"`, "check that it runs")
	_, err = box.Mutex("r").Acquire(t.Context())
	says(t, err, signalbox.ErrUnavailable, `"r"`)
	server.Resume()
	patient, err := signalbox.Open(t.Context(), strings.TrimSuffix(location, "?read_timeout=100ms"))
	must(t, err)
	t.Cleanup(func() { must(t, patient.Close()) })
	idle(t, patient, "r") // what had been sent is executed now
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t, "--requirepass", "right "+secret)
	for user, advice := range map[*url.Userinfo]string{
		nil: "NOAUTH", url.UserPassword("", secret): "WRONGPASS", url.UserPassword("nobody", secret): "WRONGPASS",
	} {
		location := url.URL{Scheme: "redis", User: user, Host: server.Addr}
		_, err := signalbox.Open(t.Context(), location.String())
		says(t, err, signalbox.ErrServer, server.Addr, advice, "password in the URL")
	}
	right := url.URL{Scheme: "redis", User: url.UserPassword("", "right "+secret), Host: server.Addr}
	box, err := signalbox.Open(t.Context(), right.String())
	must(t, err)
	must(t, box.Close())
}

// TestNoRights: an account that may do everything, but not with our keys.
func TestNoRights(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t)
	client := admin(t, server.Addr)
	must(t, client.Do(t.Context(), "ACL", "SETUSER", "guest", "on", ">"+secret, "~other:*", "&*", "+@all").Err())
	box, err := signalbox.Open(t.Context(), "redis://guest:"+secret+"@"+server.Addr)
	must(t, err)
	t.Cleanup(func() { must(t, box.Close()) })
	_, err = box.Mutex("r").Acquire(t.Context())
	says(t, err, signalbox.ErrServer, `"r"`, "NOPERM", "~signalbox:*")
	idle(t, openBox(t, server.Addr), "r")
}

func TestScriptsFlushedUnderARunningClient(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t)
	box, client := openBox(t, server.Addr), admin(t, server.Addr)
	for range 3 {
		lease, err := box.Mutex("r").Acquire(t.Context(), signalbox.TTL(6*time.Second))
		must(t, err)
		waits := make(chan signalbox.Waiting, 8)
		leases, failed := acquire(box, "r", signalbox.OnWait(func(w signalbox.Waiting) { waits <- w }))
		<-waits
		must(t, client.ScriptFlush(t.Context()).Err())
		first := lease.Deadline()
		eventually(t, "a renewal", func() bool { return lease.Deadline().After(first) })
		must(t, client.ScriptFlush(t.Context()).Err())
		must(t, lease.Release(t.Context()))
		granted(t, leases, failed)
	}
	idle(t, box, "r")
}

// TestReplica: a replica refuses, and one that becomes the primary while somebody waits for it does not.
func TestReplica(t *testing.T) {
	t.Parallel()
	primary := difftest.Redis(t, "--repl-diskless-sync-delay", "0")
	host, port, err := net.SplitHostPort(primary.Addr)
	must(t, err)
	replica := difftest.Redis(t, "--replicaof", host+" "+port)
	client := admin(t, replica.Addr)
	eventually(t, "a replica that follows", func() bool {
		return strings.Contains(client.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	box := openBox(t, replica.Addr, signalbox.Claim(shortClaim))
	_, err = box.Mutex("r").TryAcquire(t.Context())
	says(t, err, signalbox.ErrUnavailable, `"r"`, "READONLY", "connect to the primary")
	_, err = box.Mutex("r").Acquire(t.Context())
	says(t, err, signalbox.ErrUnavailable, `"r"`, "READONLY", "connect to the primary")
	patient := openBox(t, replica.Addr)
	leases, failed := acquire(patient, "r")
	must(t, client.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	granted(t, leases, failed)
	idle(t, patient, "r")
}

// TestFullServer: no memory left for a lease; what is held can be given back.
func TestFullServer(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t, "--maxmemory-policy", "noeviction")
	box, client := openBox(t, server.Addr, signalbox.Claim(shortClaim)), admin(t, server.Addr)
	held, err := box.Mutex("held").Acquire(t.Context())
	must(t, err)
	dying, err := box.Mutex("dying").Acquire(t.Context(), signalbox.TTL(3*time.Second)) // longer than it takes to fill the memory
	must(t, err)
	must(t, client.ConfigSet(t.Context(), "maxmemory", "1mb").Err())
	for i := 0; ; i++ { // fill what is left
		if err := client.Set(t.Context(), fmt.Sprint("ballast ", i), strings.Repeat("x", 10_000), 0).Err(); err != nil {
			says(t, err, err, "OOM")
			break
		}
	}
	_, err = box.Mutex("r").TryAcquire(t.Context())
	says(t, err, signalbox.ErrUnavailable, `"r"`, "OOM", "raise maxmemory")
	_, err = box.Mutex("r").Acquire(t.Context())
	says(t, err, signalbox.ErrUnavailable, `"r"`, "OOM", "raise maxmemory")
	must(t, held.Release(t.Context()))
	<-dying.Done()
	says(t, dying.Err(), signalbox.ErrLeaseLost, `"dying"`, "OOM", "raise maxmemory")
	must(t, client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	for _, name := range []string{"held", "dying", "r"} {
		idle(t, box, name)
	}
}

func TestBusyServer(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t, "--busy-reply-threshold", "1")
	box, client := openBox(t, server.Addr, signalbox.Claim(shortClaim)), admin(t, server.Addr)
	patient := openBox(t, server.Addr)
	looping := make(chan error, 1)
	go func() { looping <- patiently(server.Addr, "EVAL", "while true do end", "0") }()
	eventually(t, "a busy server", func() bool { return redis.HasErrorPrefix(client.Get(t.Context(), "x").Err(), "BUSY") })
	_, err := box.Mutex("r").TryAcquire(t.Context())
	says(t, err, signalbox.ErrUnavailable, `"r"`, "BUSY", "SCRIPT KILL")
	_, err = box.Mutex("r").Acquire(t.Context())
	says(t, err, signalbox.ErrUnavailable, `"r"`, "BUSY", "SCRIPT KILL")
	_, err = signalbox.Open(t.Context(), "redis://"+server.Addr)
	says(t, err, signalbox.ErrUnavailable, server.Addr, "SCRIPT KILL")
	leases, failed := acquire(patient, "r")
	must(t, client.ScriptKill(t.Context()).Err())
	granted(t, leases, failed)
	if err := <-looping; err == nil {
		t.Error("the endless script ended by itself")
	}
	idle(t, box, "r")
}

// patiently runs one command for as long as it takes.
func patiently(addr string, command ...any) (err error) {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: -1})
	defer func() { err = errors.Join(err, client.Close()) }()
	return client.Do(context.Background(), command...).Err()
}

func TestServerKilledUnderWaiterAndHolder(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t)
	box := openBox(t, server.Addr, signalbox.Claim(time.Second))
	lease, err := box.Mutex("r").Acquire(t.Context(), signalbox.TTL(3*time.Second))
	must(t, err)
	waits := make(chan signalbox.Waiting, 8)
	leases, failed := acquire(box, "r", signalbox.OnWait(func(w signalbox.Waiting) { waits <- w }))
	<-waits
	server.Kill()
	select {
	case <-leases:
		t.Fatal("granted by a dead server")
	case err := <-failed:
		says(t, err, signalbox.ErrUnavailable, `"r"`, "check that it runs")
	}
	<-lease.Done()
	says(t, lease.Err(), signalbox.ErrLeaseLost, `"r"`, "check that it runs")
	says(t, lease.Release(t.Context()), signalbox.ErrLeaseLost, `"r"`)
	server.Restart()
	idle(t, box, "r")
}

func TestReleaseToADeadServer(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t)
	box := openBox(t, server.Addr, signalbox.Claim(shortClaim))
	lease, err := box.Mutex("r").Acquire(t.Context(), signalbox.TTL(5*time.Second))
	must(t, err)
	server.Kill()
	says(t, lease.Release(t.Context()), signalbox.ErrUnavailable, `"r"`, "check that it runs", "ttl of 5s")
}

func TestServerRestartedUnderWaiterAndHolder(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	box := openBox(t, server.Addr)
	lease, err := box.Mutex("r").Acquire(t.Context())
	must(t, err)
	waits := make(chan signalbox.Waiting, 8)
	leases, failed := acquire(box, "r", signalbox.OnWait(func(w signalbox.Waiting) { waits <- w }))
	<-waits
	server.Restart()
	must(t, lease.Err())
	must(t, lease.Release(t.Context()))
	granted(t, leases, failed)
	idle(t, box, "r")
}

func TestCloseInsideOnWait(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, box *signalbox.Box) {
		lease, err := box.Mutex("r").Acquire(t.Context())
		must(t, err)
		closed := make(chan error, 1)
		_, err = box.Mutex("r").Acquire(t.Context(), signalbox.OnWait(func(signalbox.Waiting) { closed <- box.Close() }))
		says(t, err, signalbox.ErrClosed, `"r"`)
		must(t, <-closed)
		says(t, lease.Err(), signalbox.ErrClosed, `"r"`)
	})
}

func TestOldServerIsNamed(t *testing.T) {
	t.Parallel()
	old := &fakeServer{info: "# Server\r\nredis_version:6.2.0\r\nredis_mode:standalone\r\n", reply: "+OK"}
	addr := old.start(t)
	_, err := signalbox.Open(t.Context(), "redis://:"+secret+"@"+addr)
	says(t, err, signalbox.ErrUnsupportedServer, addr, "6.2.0", "7.0", "Valkey")
	client := admin(t, addr)
	box := signalbox.New(client)
	_, err = box.Mutex("r").Acquire(t.Context())
	says(t, err, signalbox.ErrUnsupportedServer, `"r"`, "6.2.0", "7.0")
	must(t, box.Close())
	if n := old.asked.Load(); n > 1 { // the AUTH of the first
		t.Errorf("%d commands to a server that is not supported", n)
	}
}

func TestValkeyIsAccepted(t *testing.T) {
	t.Parallel()
	valkey := &fakeServer{info: "# Server\r\nserver_name:valkey\r\nredis_version:7.2.4\r\nvalkey_version:8.0.1\r\n", reply: "+OK"}
	box, err := signalbox.Open(t.Context(), "redis://"+valkey.start(t))
	must(t, err)
	must(t, box.Close())
}

func TestLoadingServer(t *testing.T) {
	t.Parallel()
	loading := &fakeServer{info: "redis_version:7.0.15\r\n", reply: "-LOADING Redis is loading the dataset in memory"}
	addr := loading.start(t)
	box, err := signalbox.Open(t.Context(), "redis://"+addr, signalbox.Claim(shortClaim))
	must(t, err)
	t.Cleanup(func() { must(t, box.Close()) })
	_, err = box.Mutex("r").TryAcquire(t.Context())
	says(t, err, signalbox.ErrUnavailable, `"r"`, "LOADING", "try again")
	_, err = box.Mutex("r").Acquire(t.Context())
	says(t, err, signalbox.ErrUnavailable, `"r"`, "LOADING", "try again")
	_, err = box.Inspect(t.Context(), "r")
	says(t, err, signalbox.ErrUnavailable, `"r"`, "LOADING", "try again")
	// Who has the time asks again and again.
	patient, err := signalbox.Open(t.Context(), "redis://"+addr, signalbox.Claim(10*time.Second))
	must(t, err)
	before := loading.asked.Load()
	_, failed := acquire(patient, "r")
	eventually(t, "a third request", func() bool { return loading.asked.Load() >= before+3 })
	if err := patient.Close(); err != nil { // what was on its way at that moment
		says(t, err, signalbox.ErrUnavailable, `"r"`, "LOADING")
	}
	says(t, <-failed, signalbox.ErrClosed, `"r"`)
}
