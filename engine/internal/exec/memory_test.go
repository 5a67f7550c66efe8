package exec

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// driver sends requests to a machine at a time of its own.
type driver struct {
	t     *testing.T
	m     *Machine
	s     *Session
	nowUs int64
}

func newDriver(t *testing.T) *driver {
	const startUs = 1_700_000_000_000_000
	m := New(Options{Seed: 1, MaxClients: 10}, startUs)
	t.Cleanup(m.Close)
	return &driver{t: t, m: m, s: m.Connect(startUs, "test:1", "test:2"), nowUs: startUs}
}

// do sends one request and returns the first line of the reply.
func (d *driver) do(words ...string) string {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	d.m.Step(d.nowUs, d.s, args)
	reply, _, _ := strings.Cut(string(d.s.Out.Bytes()), "\r\n")
	d.s.Out.Reset()
	return reply
}

// ok is do for what must not fail.
func (d *driver) ok(words ...string) string {
	d.t.Helper()
	reply := d.do(words...)
	if strings.HasPrefix(reply, "-") {
		d.t.Fatalf("%q: %s", words, reply)
	}
	return reply
}

func (d *driver) sleep(sec int64) { d.nowUs += sec * 1e6 }

// weighAll adds up what the values take, from scratch.
func (d *driver) weighAll() (total int64) {
	for i := range keyspace.Databases {
		db := d.m.space.DB(i)
		db.Each(func(key string, o *keyspace.Object) bool {
			total += db.SizeOf([]byte(key), 0) - 40 - int64(ds.StringBytes(len(key)))
			if o.ExpireAt() != 0 {
				total -= 40
			}
			return true
		})
	}
	return total
}

// anyRequest is a request that changes data, chosen at random.
func anyRequest(r *rand.Rand) []string {
	key := func() string { return fmt.Sprint("k", r.IntN(30)) }
	word := func() string { return strings.Repeat("x", r.IntN(100)) + fmt.Sprint(r.IntN(50)) }
	n := func() string { return fmt.Sprint(r.IntN(20)) }
	all := [][]string{
		{"SET", key(), word()},
		{"SET", key(), word(), "EX", "1000"},
		{"APPEND", key(), word()},
		{"SETRANGE", key(), n(), word()},
		{"INCR", key()},
		{"GETSET", key(), word()},
		{"GETDEL", key()},
		{"GETEX", key(), "PX", "100000"},
		{"DEL", key()},
		{"RENAME", key(), key()},
		{"COPY", key(), key(), "REPLACE"},
		{"COPY", key(), key(), "DB", "3"},
		{"MOVE", key(), "3"},
		{"SWAPDB", "0", "3"},
		{"PEXPIRE", key(), "100000"},
		{"PEXPIREAT", key(), "1"},
		{"PERSIST", key()},
		{"RPUSH", key(), word(), word(), word()},
		{"LPOP", key(), n()},
		{"LSET", key(), n(), word()},
		{"LINSERT", key(), "BEFORE", word(), word()},
		{"LREM", key(), "0", word()},
		{"LTRIM", key(), "1", n()},
		{"LMOVE", key(), key(), "LEFT", "RIGHT"},
		{"SADD", key(), word(), n(), n()},
		{"SREM", key(), word(), n()},
		{"SMOVE", key(), key(), n()},
		{"SPOP", key(), "2"},
		{"SUNIONSTORE", key(), key(), key()},
		{"HSET", key(), word(), word(), n(), word()},
		{"HINCRBY", key(), n(), "1"},
		{"HDEL", key(), word(), n()},
		{"ZADD", key(), n(), word(), n(), n()},
		{"ZINCRBY", key(), "2", n()},
		{"ZREM", key(), word()},
		{"ZPOPMIN", key(), "2"},
		{"ZREMRANGEBYRANK", key(), "0", "1"},
		{"ZUNIONSTORE", key(), "2", key(), key()},
		{"SETBIT", key(), n(), "1"},
		{"BITOP", "OR", key(), key(), key()},
		{"SORT", key(), "ALPHA", "STORE", key()},
		{"XADD", key(), "MAXLEN", "50", "*", word(), word()},
		{"XDEL", key(), "1700000000000-0"},
		{"XTRIM", key(), "MAXLEN", n()},
		{"XGROUP", "CREATE", key(), "g", "0", "MKSTREAM"},
		{"XREADGROUP", "GROUP", "g", "c" + n(), "COUNT", "5", "STREAMS", key(), ">"},
		{"XAUTOCLAIM", key(), "g", "c" + n(), "0", "0"},
		{"XACK", key(), "g", "1700000000000-" + n()},
		{"XGROUP", "DESTROY", key(), "g"},
		{"EVAL", "redis.call('rpush', KEYS[1], ARGV[1]) redis.call('hset', KEYS[2], 'f', ARGV[1])", "2", key(), key(), word()},
		{"MULTI"},
		{"EXEC"},
		{"DISCARD"},
	}
	return all[r.IntN(len(all))]
}

// TestTheSumOfWeightsIsExact: after any commands, what is kept up to date is what
// adding everything up gives.
func TestTheSumOfWeightsIsExact(t *testing.T) {
	d := newDriver(t)
	r := rand.New(rand.NewPCG(7, 7))
	for i := range 30_000 {
		d.do(anyRequest(r)...)
		if i%500 != 0 {
			continue
		}
		kept := d.m.space.UsedBytes()
		keys := 0
		for j := range keyspace.Databases {
			if db := d.m.space.DB(j); db.Len() > 0 {
				kept -= db.TableBytes()
				keys += db.Len()
			}
		}
		// Each object's weight is rounded up to 16 bytes.
		if all := d.weighAll(); kept < all || kept > all+int64(16*keys) {
			t.Fatalf("after %d requests: %d bytes are kept, %d are there in %d keys", i, kept, all, keys)
		}
	}
	d.do("DISCARD")
	d.ok("FLUSHALL")
	if left := d.m.space.UsedBytes(); left != 0 {
		t.Errorf("%d bytes are used by nothing", left)
	}
}

// TestTheEstimateIsNearTheHeap fills the machine with one kind of value after
// another and compares what it says of itself with what the runtime says.
func TestTheEstimateIsNearTheHeap(t *testing.T) {
	const leastFactor, mostFactor = 0.8, 1.25 // documented in docs/deviations.md
	value := func(n int) string { return strings.Repeat("v", n) }
	for name, fill := range map[string]func(d *driver){
		"short strings": func(d *driver) {
			for i := range 50_000 {
				d.ok("SET", fmt.Sprint("key:", i), value(10))
			}
		},
		"long strings with an expiry": func(d *driver) {
			for i := range 10_000 {
				d.ok("SET", fmt.Sprint("key:", i), value(1000), "EX", "1000")
			}
		},
		"small hashes": func(d *driver) {
			for i := range 10_000 {
				for f := range 5 {
					d.ok("HSET", fmt.Sprint("key:", i), fmt.Sprint("field", f), value(20))
				}
			}
		},
		"one large hash": func(d *driver) {
			for i := range 50_000 {
				d.ok("HSET", "hash", fmt.Sprint("field:", i), value(20))
			}
		},
		"small lists": func(d *driver) {
			for i := range 10_000 {
				d.ok("RPUSH", fmt.Sprint("key:", i), value(20), value(20), value(20))
			}
		},
		"one large list": func(d *driver) {
			for i := range 50_000 {
				d.ok("RPUSH", "list", fmt.Sprint("element:", i))
			}
		},
		"integer sets": func(d *driver) {
			for i := range 10_000 {
				d.ok("SADD", fmt.Sprint("key:", i), "1", "2", "3", "4", "5", "6", "7", "8")
			}
		},
		"one large set": func(d *driver) {
			for i := range 50_000 {
				d.ok("SADD", "set", fmt.Sprint("member:", i))
			}
		},
		"small sorted sets": func(d *driver) {
			for i := range 10_000 {
				for j := range 5 {
					d.ok("ZADD", fmt.Sprint("key:", i), fmt.Sprint(j), fmt.Sprint("member", j))
				}
			}
		},
		"small streams": func(d *driver) {
			for i := range 10_000 {
				for range 3 {
					d.ok("XADD", fmt.Sprint("key:", i), "*", "field", value(20))
				}
			}
		},
		"one large stream": func(d *driver) {
			for i := range 50_000 {
				d.ok("XADD", "stream", "*", "field", value(20), "other", fmt.Sprint(i))
			}
		},
		"pending entries": func(d *driver) {
			for range 50_000 {
				d.ok("XADD", "stream", "*", "f", "v")
			}
			d.ok("XGROUP", "CREATE", "stream", "group", "0")
			for i := range 500 {
				d.ok("XREADGROUP", "GROUP", "group", fmt.Sprint("consumer", i%5), "COUNT", "100", "STREAMS", "stream", ">")
			}
		},
		"one large sorted set": func(d *driver) {
			for i := range 50_000 {
				d.ok("ZADD", "zset", fmt.Sprint(i*7919%50_000), fmt.Sprint("member:", i))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t)
			before := liveHeap()
			fill(d)
			heap, used := int64(liveHeap()-before), d.m.space.UsedBytes()
			if factor := float64(used) / float64(heap); factor < leastFactor || factor > mostFactor {
				t.Errorf("the data is estimated at %d bytes and takes %d: a factor of %.2f", used, heap, factor)
			} else {
				t.Logf("factor %.2f", factor)
			}
			runtime.KeepAlive(d)
		})
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // the first may have begun before what is garbage now
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestMemoryStaysBounded writes ten times as much as there may be.
func TestMemoryStaysBounded(t *testing.T) {
	const bound = 2 << 20
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"} {
		t.Run(policy, func(t *testing.T) {
			d := newDriver(t)
			d.ok("CONFIG", "SET", "maxmemory", fmt.Sprint(bound), "maxmemory-policy", policy)
			before := liveHeap()
			text := strings.Repeat("v", 800)
			for i := range 10 * bound / 1000 {
				d.ok("SET", fmt.Sprint("key:", i), text, "EX", fmt.Sprint(1000+i%100))
				if used := d.m.space.UsedBytes(); used > bound+64<<10 {
					t.Fatalf("after %d keys %d bytes are used", i, used)
				}
			}
			if heap := int64(liveHeap() - before); heap > bound*3/2 {
				t.Errorf("the heap has grown by %d bytes under a bound of %d", heap, bound)
			}
			if d.m.space.Evicted == 0 || d.m.space.UsedBytes() < bound/2 {
				t.Errorf("%d keys have been evicted, %d bytes are used", d.m.space.Evicted, d.m.space.UsedBytes())
			}
		})
	}
}

// TestNothingIsEvictedWithoutAnExpiry under the policies that promise it.
func TestNothingIsEvictedWithoutAnExpiry(t *testing.T) {
	for _, policy := range []string{"noeviction", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"} {
		t.Run(policy, func(t *testing.T) {
			d := newDriver(t)
			d.ok("CONFIG", "SET", "maxmemory", "1mb", "maxmemory-policy", policy)
			var refused string
			written := 0
			for ; refused == "" && written < 10_000; written++ {
				if reply := d.do("SET", fmt.Sprint("key:", written), strings.Repeat("v", 800)); reply[0] == '-' {
					refused = reply
				}
			}
			if refused != "-"+string(errOOM) {
				t.Errorf("the answer is %q", refused)
			}
			if n := d.m.space.DB(0).Len(); n != written-1 {
				t.Errorf("%d of %d keys are left", n, written-1)
			}
		})
	}
}

// survivors fills the machine under a policy, after favour has prepared some of
// the keys, and returns how many are left of the favoured and of the others.
func survivors(t *testing.T, policy string, favour func(d *driver, favoured, other func(i int) string)) (favoured, others int) {
	d := newDriver(t)
	favouredKey := func(i int) string { return fmt.Sprint("favoured:", i) }
	otherKey := func(i int) string { return fmt.Sprint("other:", i) }
	d.ok("CONFIG", "SET", "maxmemory-policy", policy)
	favour(d, favouredKey, otherKey)
	d.ok("CONFIG", "SET", "maxmemory", fmt.Sprint(d.m.usedBytes()/2), "maxmemory-samples", "10")
	d.ok("PING")
	for i := range 500 {
		favoured += len(strings.TrimLeft(d.do("EXISTS", favouredKey(i)), ":0"))
		others += len(strings.TrimLeft(d.do("EXISTS", otherKey(i)), ":0"))
	}
	return favoured, others
}

func TestWhatThePoliciesKeep(t *testing.T) {
	text := strings.Repeat("v", 500)
	both := func(d *driver, ttl string, favoured, other func(i int) string) {
		for i := range 500 {
			d.ok("SET", favoured(i), text, "EX", "5000")
			d.ok("SET", other(i), text, "EX", ttl)
		}
	}
	used := func(times int) func(d *driver, favoured, other func(i int) string) {
		return func(d *driver, favoured, other func(i int) string) {
			both(d, "5000", favoured, other)
			for range times {
				d.sleep(10)
				for i := range 500 {
					d.ok("GET", favoured(i))
				}
			}
		}
	}
	for policy, favour := range map[string]func(d *driver, favoured, other func(i int) string){
		"allkeys-lru":  used(1),
		"volatile-lru": used(1),
		"allkeys-lfu":  used(20),
		"volatile-lfu": used(20),
		"volatile-ttl": func(d *driver, favoured, other func(i int) string) { both(d, "1000", favoured, other) },
	} {
		favoured, others := survivors(t, policy, favour)
		if favoured < 9*others || favoured < 400 {
			t.Errorf("%s: of 500 each, %d of those to be kept are left and %d others", policy, favoured, others)
		}
	}
	favoured, others := survivors(t, "allkeys-random", used(20))
	if favoured > 2*others || others > 2*favoured {
		t.Errorf("allkeys-random: %d and %d are left, which is no accident", favoured, others)
	}
}

// TestTheFrequencyDecays: what was popular long ago counts no more than what is new.
func TestTheFrequencyDecays(t *testing.T) {
	d := newDriver(t)
	d.ok("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu", "lfu-log-factor", "0")
	d.ok("SET", "k", "v")
	for range 100 {
		d.ok("GET", "k")
	}
	if got := d.ok("OBJECT", "FREQ", "k"); got != ":105" {
		t.Errorf("after 100 uses the frequency is %s", got)
	}
	d.sleep(60 * 30)
	if got := d.ok("OBJECT", "FREQ", "k"); got != ":75" {
		t.Errorf("half an hour later the frequency is %s", got)
	}
	d.sleep(60 * 1000)
	if got := d.ok("OBJECT", "FREQ", "k"); got != ":0" {
		t.Errorf("in the end the frequency is %s", got)
	}
}

// TestEvictionIsTold: to those who watch the key, who keep a copy, who listen.
func TestEvictionIsTold(t *testing.T) {
	d := newDriver(t)
	listener := d.m.Connect(d.nowUs, "test:3", "test:2")
	step := func(s *Session, words ...string) {
		args := make([][]byte, len(words))
		for i, w := range words {
			args[i] = []byte(w)
		}
		d.m.Step(d.nowUs, s, args)
	}
	step(listener, "HELLO", "3")
	step(listener, "CLIENT", "TRACKING", "ON")
	step(listener, "SUBSCRIBE", "__keyevent@0__:evicted")
	d.ok("CONFIG", "SET", "notify-keyspace-events", "Ee", "maxmemory-policy", "allkeys-random")
	d.ok("SET", "k", "v")
	step(listener, "GET", "k")
	step(listener, "WATCH", "k")
	listener.Out.Reset()
	d.ok("CONFIG", "SET", "maxmemory", "1")
	d.ok("PING")
	told := string(listener.Out.Bytes())
	if !strings.Contains(told, "$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n") || !strings.Contains(told, "__keyevent@0__:evicted\r\n$1\r\nk\r\n") {
		t.Errorf("told was %q", told)
	}
	if !listener.watch.Marked() {
		t.Error("the watch is not marked")
	}
}
