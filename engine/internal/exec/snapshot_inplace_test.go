package exec_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is changed where it lies: a number, a text of the same length, a value in a row, a field that a reader was shown,
// the end of a list, an entry of a stream. The fuzzer seldom changes a key often enough, while a snapshot is under way,
// for all of these.

// inPlace is a request that changes one of few keys, or looks into it, so that the next change may not be where it was.
func (l *lab) inPlace() []string {
	n := func(most int) string { return strconv.Itoa(l.random.IntN(most)) }
	key := func(kind string) string { return kind + ":" + n(4) }
	text := strings.Repeat(n(10)+"x", 1+l.random.IntN(20))
	if l.random.IntN(8) == 0 {
		text = strings.Repeat("long ", 90+l.random.IntN(30)) // on both sides of what fits into the object
	}
	forms := map[string][]string{
		"str": {
			"SET $ " + text, "SET $ " + n(1000) + " KEEPTTL", "INCR $", "INCRBYFLOAT $ 0.5", "APPEND $ x", "SETRANGE $ 3 yy", "SETBIT $ 9 1",
			"GETSET $ " + text, "BITFIELD $ INCRBY u8 0 1", "GETEX $ PX 1000000", "PERSIST $", "DEL $", "MSET $ " + text + " str:0 1",
		},
		"hash": {
			"HSET $ f" + n(9) + " " + text, "HSET $ f" + n(9) + " " + text, "HINCRBY $ n" + n(3) + " 7", "HDEL $ f" + n(9), "HGETALL $",
			"HGET $ f" + n(9), "HINCRBYFLOAT $ r 0.25", "HRANDFIELD $ 2",
		},
		"zset": {
			"ZADD $ " + n(9) + " m" + n(12), "ZADD $ " + n(1<<20) + " m" + n(12) + " -0.5 n" + n(12), "ZINCRBY $ 1.5 m" + n(12), "ZREM $ m" + n(12),
			"ZPOPMIN $", "ZRANGE $ 0 -1", "ZREMRANGEBYRANK $ 1 2", "ZRANDMEMBER $ 2", "SORT $ BY nosort STORE list:0",
		},
		"set": {
			"SADD $ " + n(99), "SADD $ " + n(9) + " 70000 5000000000", "SADD $ m" + n(20), "SREM $ " + n(99) + " m" + n(20), "SPOP $", "SMEMBERS $",
			"SMOVE $ set:0 m" + n(20), "SUNIONSTORE $ set:0 set:1",
		},
		"list": {
			"RPUSH $ " + text, "LPUSH $ " + text + " b", "LSET $ 0 " + text, "LPOP $", "RPOP $ 2", "LINSERT $ BEFORE b c", "LREM $ 1 b",
			"LMOVE $ list:0 LEFT RIGHT", "LRANGE $ 0 -1", "LTRIM $ 0 60",
		},
		"stream": {
			"XADD $ * f " + text, "XADD $ MAXLEN 20 * f v g w", "XTRIM $ MAXLEN 5", "XGROUP CREATE $ g 0 MKSTREAM", "XREADGROUP GROUP g c COUNT 2 STREAMS $ >",
			"XAUTOCLAIM $ g d 0 0", "XSETID $ 9999999999999-0", "DEL $",
		},
	}
	kinds := []string{"str", "hash", "zset", "set", "list", "stream"}
	kind := kinds[l.random.IntN(len(kinds))]
	form := forms[kind][l.random.IntN(len(forms[kind]))]
	switch l.random.IntN(15) {
	case 0:
		form = "COPY $ " + key(kind) + " REPLACE" // a row is shared from then on
	case 1:
		form = "RENAME $ " + key(kind)
	}
	words := strings.Fields(strings.ReplaceAll(form, "$", key(kind)))
	if l.random.IntN(10) == 0 {
		words = append([]string{"EVAL", "return redis.call(unpack(ARGV))", "0"}, words...)
	}
	return words
}

// work runs n such requests, some of them in transactions.
func (l *lab) work(n int, between func()) {
	queueing := false
	for range n {
		if l.random.IntN(20) == 0 {
			l.do([]string{"MULTI", "EXEC"}[map[bool]int{true: 1}[queueing]])
			queueing = !queueing
		}
		l.do(l.inPlace()...)
		l.nowUs += l.random.Int64N(2000)
		between()
	}
	if queueing {
		l.do("EXEC")
	}
}

// everything is content, and what it leaves out: groups.
func (l *lab) everything() []string {
	all := l.content()
	for i := range 4 {
		key := fmt.Sprint("stream:", i)
		all = append(all, key, l.do("XINFO", "STREAM", key), l.do("XINFO", "GROUPS", key))
	}
	slices.Sort(all)
	return all
}

// A snapshot has each value as it was at its moment, wherever changes go.
func TestASnapshotKeepsWhatIsChangedInPlace(t *testing.T) {
	for seed := range uint64(150) {
		l := newLab(t, seed)
		if seed%3 == 0 {
			l.largeBytes = 300 // in pieces
		}
		l.work(250, func() {})
		l.persist()
		want, at := l.everything(), l.nowUs
		sn, f, done := begin(t, l), newFile(), false
		l.work(250, func() {
			if !done && l.random.IntN(20) == 0 {
				done = step(t, sn, 100, 1)
			}
		})
		if diff := cmp.Diff(want, loaded(t, f.finish(t, sn), at).everything()); diff != "" {
			t.Fatalf("seed %d: -began with +loaded:\n%s", seed, diff)
		}
	}
}

// The other way round: what is loaded shares nothing, and goes on like that from which it was saved, where rows are shared
// by copies and were shown to readers.
func TestValuesThatShareNothingGoOnAlike(t *testing.T) {
	for seed := range uint64(100) {
		l := newLab(t, seed)
		l.work(200, func() {})
		sn, f := begin(t, l), newFile()
		other := loaded(t, f.finish(t, sn), l.nowUs)
		for range 300 {
			words := l.inPlace()
			if at := slices.IndexFunc(words, isRandom); at >= 0 {
				continue // would not be the same in both
			}
			if ours, theirs := l.do(words...), other.do(words...); ours != theirs && !inNoOrder(words) {
				t.Fatalf("seed %d: %v: %q, and of what was loaded %q", seed, words, ours, theirs)
			}
			l.nowUs += 500
			other.nowUs = l.nowUs
		}
		if diff := cmp.Diff(l.everything(), other.everything()); diff != "" {
			t.Fatalf("seed %d: -went on +went on from the file:\n%s", seed, diff)
		}
	}
}

func isRandom(word string) bool {
	return slices.Contains([]string{"SPOP", "ZRANDMEMBER", "HRANDFIELD"}, word)
}

func inNoOrder(words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return word == "SMEMBERS" || word == "HGETALL" })
}
