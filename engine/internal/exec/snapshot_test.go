package exec_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// lab is a machine and a client that sends it random requests.
type lab struct {
	m          *exec.Machine
	s          *exec.Session
	nowUs      int64
	random     *rand.Rand
	largeBytes int64
}

const labStartUs = 1_700_000_000_000_000

func newLab(t *testing.T, seed uint64) *lab {
	l := &lab{m: exec.New(exec.Options{Seed: seed}, labStartUs), nowUs: labStartUs, random: rand.New(rand.NewPCG(seed, 1))}
	l.s = l.m.ConnectLocal(l.nowUs)
	t.Cleanup(l.m.Close)
	return l
}

// do runs a request and returns its reply.
func (l *lab) do(words ...string) string {
	args := make([][]byte, len(words))
	for i, word := range words {
		args[i] = []byte(word)
	}
	l.s.Out.Reset()
	l.m.Step(l.nowUs, l.s, args)
	if _, _, blocked := l.s.Blocked(); blocked {
		l.m.Disconnect(l.s)
		l.s = l.m.ConnectLocal(l.nowUs)
	}
	l.m.TakeEffects()
	return string(l.s.Out.Bytes())
}

// live runs n random requests, lets time pass between them, and calls between after
// each.
func (l *lab) live(seed uint64, n int, between func()) {
	for words := range difftest.Requests(seed) {
		if l.random.IntN(10) == 0 {
			words = l.other()
		}
		l.do(words...)
		if l.nowUs += l.random.Int64N(2000); l.random.IntN(20) == 0 {
			l.m.Tick(l.nowUs)
		}
		between()
		if n--; n == 0 {
			break
		}
	}
}

// growLarge makes a collection of each kind that a snapshot writes in pieces.
func (l *lab) growLarge() {
	l.largeBytes = 1000
	for i := range 40 {
		hash, zset, set, list := []string{"HSET", "hash:0"}, []string{"ZADD", "zset:0"}, []string{"SADD", "set:0"}, []string{"RPUSH", "list:0"}
		for j := range 20 {
			word := strconv.Itoa(i*20+j) + strings.Repeat("-", l.random.IntN(100))
			hash, zset = append(hash, word, "v"+word), append(zset, strconv.Itoa(j), word)
			set, list = append(set, word), append(list, word)
		}
		for _, words := range [][]string{hash, zset, set, list} {
			l.do(words...)
		}
		for range 20 {
			l.do("XADD", "stream:0", "*", "field", strings.Repeat("-", l.random.IntN(100)))
			l.nowUs += 1000
		}
	}
}

// other is a request that the fuzzer leaves out, since not all servers answer the same.
func (l *lab) other() []string {
	groups := []string{"str", "list", "set", "hash", "zset", "stream"}
	key := func() string { return groups[l.random.IntN(6)] + ":" + strconv.Itoa(l.random.IntN(3)) }
	db := strconv.Itoa(l.random.IntN(4))
	forms := []string{
		"SELECT " + db, "SWAPDB 0 " + db, "MOVE " + key() + " " + db, "PEXPIRE " + key() + " " + strconv.Itoa(1+l.random.IntN(100)),
		"RENAME " + key() + " " + key(), "SPOP " + key(), "SMOVE " + key() + " " + key() + " m1",
		"COPY " + key() + " " + key() + " DB " + db + " REPLACE", "CONFIG SET maxmemory " + []string{"0", "0", "3000"}[l.random.IntN(3)],
		"GETDEL " + key(), "SET " + key() + " v PX 20", "RPUSH " + key() + " a b c", "HSET " + key() + " f v g w",
	}
	switch l.random.IntN(60) {
	case 0:
		return []string{"FLUSHALL"}
	case 1, 2:
		return []string{"FLUSHDB"}
	case 3, 4, 5:
		return []string{"EVAL", "redis.call('SET', KEYS[1], 'x') redis.call('DEL', KEYS[2]) redis.call('RPUSH', KEYS[2], 'y') return 1", "2", key(), key()}
	}
	return strings.Fields(forms[l.random.IntN(len(forms))])
}

// persist makes all keys stay.
func (l *lab) persist() {
	probe := &lab{m: l.m, nowUs: l.nowUs, s: l.m.ConnectLocal(l.nowUs)}
	defer l.m.Disconnect(probe.s)
	for db := range 16 {
		probe.do("SELECT", strconv.Itoa(db))
		for key := range strings.SplitSeq(probe.do("KEYS", "*"), "\r\n") {
			probe.do("PERSIST", key)
		}
	}
}

// content is all that a snapshot has to keep: the digest, which does not look at times,
// and when keys expire.
func (l *lab) content() []string {
	probe := &lab{m: l.m, nowUs: l.nowUs, s: l.m.ConnectLocal(l.nowUs)}
	defer l.m.Disconnect(probe.s)
	content := []string{probe.do("DEBUG", "DIGEST")}
	for db := range 16 {
		probe.do("SELECT", strconv.Itoa(db))
		for key := range strings.SplitSeq(probe.do("KEYS", "*"), "\r\n") {
			if strings.Contains(key, ":") {
				content = append(content, fmt.Sprint(db, key, probe.do("PEXPIRETIME", key), probe.do("TYPE", key)))
			}
		}
	}
	slices.Sort(content)
	return content
}

// file is what a shell makes of a snapshot.
type file struct {
	bytes.Buffer
	seal  *rdb.Seal
	parts [][]byte
}

func newFile() *file {
	f := &file{}
	f.seal = rdb.NewSeal(&f.Buffer, true)
	return f
}

// drain writes what the snapshot has ready, and hands its buffers back.
func (f *file) drain(t *testing.T, sn *exec.Snapshot) {
	t.Helper()
	f.parts = sn.Take(f.parts)
	for _, part := range f.parts {
		if _, err := f.seal.Write(part); err != nil {
			t.Fatal(err)
		}
	}
}

func begin(t *testing.T, l *lab) *exec.Snapshot {
	t.Helper()
	sn, err := l.m.BeginSnapshot(l.nowUs, exec.SnapshotOptions{LargeBytes: l.largeBytes})
	if err != nil {
		t.Fatal(err)
	}
	return sn
}

func step(t *testing.T, sn *exec.Snapshot, maxBytes, maxKeys int) bool {
	t.Helper()
	done, err := sn.Step(maxBytes, maxKeys)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// finish takes the snapshot to its end.
func (f *file) finish(t *testing.T, sn *exec.Snapshot) []byte {
	t.Helper()
	for !step(t, sn, 1000, 3) {
		f.drain(t, sn)
	}
	f.drain(t, sn)
	if err := f.seal.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Bytes()
}

// load loads a file into a lab.
func (l *lab) load(from io.Reader, options exec.LoadOptions) error {
	loader := l.m.BeginLoad(from, options)
	defer loader.End()
	for batch := (*exec.Batch)(nil); ; {
		var ended error
		if batch, ended = loader.Read(batch); ended != nil && !errors.Is(ended, io.EOF) {
			return ended
		}
		if err := loader.Store(l.nowUs, batch); err != nil || ended != nil {
			return err
		}
	}
}

// loaded is a new lab with what a file has.
func loaded(t *testing.T, content []byte, nowUs int64) *lab {
	t.Helper()
	l := newLab(t, 0)
	l.nowUs = nowUs
	if err := l.load(bytes.NewReader(content), exec.LoadOptions{FileBytes: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	return l
}

// A snapshot has the data of the moment in which it began, whatever clients do until it
// is done.
func TestASnapshotIsOfOneMoment(t *testing.T) {
	const seeds, before, during = 300, 100, 300
	for seed := range uint64(seeds) {
		l := newLab(t, seed)
		l.do("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
		live := func(n int, between func()) { l.live(l.random.Uint64(), n, between) }
		if seed%2 == 1 {
			l.growLarge()
		}
		live(before, func() {})
		for range l.random.IntN(3) {
			sn := begin(t, l)
			live(l.random.IntN(20)+1, func() { step(t, sn, 100, 1) })
			sn.Abort()
			for !step(t, sn, 1, 1) {
				live(1, func() {})
			}
			if sn.PendingBytes() > rdb.PartBytes {
				t.Errorf("seed %d: an aborted snapshot keeps bytes", seed)
			}
		}
		want, at := l.content(), l.nowUs
		sn, f, done := begin(t, l), newFile(), false
		live(during, func() {
			if !done && l.random.IntN(8) == 0 {
				done = step(t, sn, 100, 1)
			}
			if l.random.IntN(50) == 0 {
				f.drain(t, sn)
			}
		})
		if diff := cmp.Diff(want, loaded(t, f.finish(t, sn), at).content()); diff != "" {
			t.Fatalf("seed %d: -began with +loaded:\n%s", seed, diff)
		}
	}
}

func newValue(text string) *keyspace.String { return keyspace.NewString([]byte(text)) }

// While parts are taken and given back, a snapshot needs the memory of a few, however
// large the data and its values are.
func TestASnapshotNeedsLittleMemory(t *testing.T) {
	l := newLab(t, 1)
	noise := make([]byte, 3<<20)
	for i := range noise {
		noise[i] = byte(l.random.Uint32())
	}
	for i := range 20_000 {
		at := l.random.IntN(1 << 20)
		l.do("SET", strconv.Itoa(i), string(noise[at:at+500]))
	}
	l.do("SET", "large", string(noise))
	sn, parts, most := begin(t, l), [][]byte(nil), 0
	for i, done := 0, false; !done; i++ {
		done = step(t, sn, 10_000, 1000)
		l.do("SET", strconv.Itoa(i*50%20_000), "changed") // and its pre-image
		most = max(most, sn.PendingBytes())
		parts = sn.Take(parts)
		for _, part := range parts {
			if len(part) > rdb.PartBytes || cap(part) > rdb.PartBytes {
				t.Fatalf("a part of %d bytes, in a buffer of %d", len(part), cap(part))
			}
		}
	}
	if sn.Bytes() < 12<<20 || most > len(noise)+2*rdb.PartBytes {
		t.Errorf("%d bytes in all, %d at a time", sn.Bytes(), most)
	}
	if saved, keys := sn.Progress(); saved != keys || keys != 20_001 {
		t.Errorf("%d keys of %d", saved, keys)
	}
}
