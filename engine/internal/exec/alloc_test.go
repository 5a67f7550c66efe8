package exec_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
)

// TestCommonCommandsDoNotAllocate holds the way of a command through the
// machine to what the command itself needs.
func TestCommonCommandsDoNotAllocate(t *testing.T) {
	for _, propagate := range []bool{false, true} {
		t.Run(fmt.Sprintf("propagate=%v", propagate), func(t *testing.T) { commonCommandsDoNotAllocate(t, propagate) })
	}
}

func commonCommandsDoNotAllocate(t *testing.T, propagate bool) {
	m := exec.New(exec.Options{Password: "secret"}, 1)
	defer m.Close()
	m.Propagate(propagate)
	s := m.ConnectLocal(1)
	m.Step(1, s, argsOf("RPUSH", "list", "a", "b", "c"))
	s.Out.Reset()
	for _, request := range [][]string{
		{"SET", "key", "value"},
		{"GET", "key"},
		{"PING"},
		{"ECHO", "hi"},
		{"EXISTS", "key"},
		{"INCR", "n"},
		{"HSET", "h", "f", "v"},
		{"HGET", "h", "f"},
		{"SADD", "s", "m"},
		{"ZSCORE", "z", "m"},
		{"TTL", "key"},
		{"PEXPIREAT", "key", "4102444800000"},
		{"EXPIRE", "key", "1000"},
		{"MGET", "key", "h", "nothing"},
		{"INCRBY", "n", "1000000"},
		{"STRLEN", "key"},
		{"TYPE", "key"},
		{"SETNX", "key", "other"},
		{"LRANGE", "list", "0", "-1"},
		{"LINDEX", "list", "1"},
		{"LLEN", "list"},
		{"RPOPLPUSH", "nothing", "list"},
		{"SISMEMBER", "s", "m"},
		{"SMEMBERS", "s"},
		{"SRANDMEMBER", "s"},
		{"HMGET", "h", "f", "none"},
		{"ZADD", "z", "1", "m"},
		{"ZRANK", "z", "m"},
		{"ZCARD", "z"},
		{"ZPOPMIN", "nothing"},
		{"PUBLISH", "nobody", "hi"},
		{"DEL", "nothing"},
	} {
		args := argsOf(request...)
		run := func() {
			m.Step(1, s, args)
			m.TakeEffects()
			s.Out.Reset()
		}
		run()
		if n := testing.AllocsPerRun(100, run); n > 0 {
			t.Errorf("%q allocates %v times", request, n)
		}
	}
}

// TestANewStringAllocatesItsKeyAndItself: of the value nothing is apart. One of another
// size under the same key takes the place of the object.
func TestANewStringAllocatesItsKeyAndItself(t *testing.T) {
	m := exec.New(exec.Options{}, 1)
	defer m.Close()
	s := m.ConnectLocal(1)
	var next int
	for _, c := range []struct {
		name    string
		request func() [][]byte
		budget  float64
	}{
		{"SET, new", func() [][]byte { return argsOf("SET", "k"+strconv.Itoa(next), "a value of some bytes") }, 2},
		{"SET of a number, new", func() [][]byte { return argsOf("SET", "n"+strconv.Itoa(next), "123456789") }, 2},
		{"INCR, new", func() [][]byte { return argsOf("INCR", "c"+strconv.Itoa(next)) }, 2},
		{"SET, longer and shorter", func() [][]byte { return argsOf("SET", "k", strings.Repeat("v", 300-next%2*280)) }, 1},
		{"SET, text and number", func() [][]byte { return argsOf("SET", "k1", strings.Repeat("7", 5+next%2*17)) }, 0},
	} {
		const runs = 1000
		requests := make([][][]byte, 0, runs+1)
		for next = range runs + 1 {
			requests = append(requests, c.request())
		}
		at := 0
		if n := testing.AllocsPerRun(runs, func() {
			s.Out.Reset()
			m.Step(1, s, requests[at])
			at++
		}); n > c.budget {
			t.Errorf("%s: %v allocations, not %v", c.name, n, c.budget)
		}
	}
}

// TestSmallCollectionsAllocateTheirRow: a small collection is one row, of which a change
// makes a new one.
func TestSmallCollectionsAllocateTheirRow(t *testing.T) {
	m := exec.New(exec.Options{}, 1)
	defer m.Close()
	s := m.ConnectLocal(1)
	for _, request := range [][]string{{"HINCRBY", "h", "f", "1"}, {"ZINCRBY", "z", "1", "m"}} {
		args := argsOf(request...)
		if n := testing.AllocsPerRun(100, func() {
			s.Out.Reset()
			m.Step(1, s, args)
		}); n > 1 {
			t.Errorf("%q allocates %v times", request, n)
		}
	}
}

// TestASmallCollectionTakesWhatItHolds: a command that makes one of ten elements allocates its
// key, object, header and row, and leaves nothing for the collector. The bytes are those of
// the entry (40), key (16), object (32), header (24, of a list 32) and row.
func TestASmallCollectionTakesWhatItHolds(t *testing.T) {
	m := exec.New(exec.Options{}, 1)
	defer m.Close()
	s := m.ConnectLocal(1)
	key := []byte("small:000000")
	for _, c := range []struct {
		command string
		most    int
		element []string
	}{
		{"HSET", 304, []string{"member0#", "abcdefgh"}}, // a row of 180 bytes
		{"RPUSH", 232, []string{"abcdefg#"}},            // of 100
		{"LPUSH", 232, []string{"abcdefg#"}},
		{"SADD", 208, []string{"member0#"}},        // of 90
		{"SADD", 144, []string{"123#"}},            // of 20
		{"ZADD", 224, []string{"12#", "member0#"}}, // of 110
	} {
		request := [][]byte{[]byte(c.command), key}
		for i := range 10 {
			for _, word := range c.element {
				request = append(request, []byte(strings.ReplaceAll(word, "#", strconv.Itoa(i*7%10))))
			}
		}
		remove := [][]byte{[]byte("DEL"), key}
		if n := testing.AllocsPerRun(10, func() {
			m.Step(1, s, remove)
			m.Step(1, s, request)
		}); n > 5 { // one more under the race detector, which makes a row twice
			t.Errorf("%s of ten elements allocates %v times", c.command, n)
		}
		s.Out.Reset()
		m.Step(1, s, argsOf("MEMORY", "USAGE", string(key)))
		bytes, err := strconv.Atoi(strings.Trim(string(s.Out.Bytes()), ":\r\n"))
		if err != nil || bytes > c.most {
			t.Errorf("%s of ten elements takes %q bytes, more than %d", c.command, s.Out.Bytes(), c.most)
		}
		s.Out.Reset()
	}
}

// TestLongRepliesDoNotAllocateForEachElement: some are written by a function that is made
// for the call, which is all they may allocate.
func TestLongRepliesDoNotAllocateForEachElement(t *testing.T) {
	const perCall = 4
	m := exec.New(exec.Options{}, 1)
	defer m.Close()
	s := m.ConnectLocal(1)
	for i := range 500 {
		n := strconv.Itoa(i)
		m.Step(1, s, argsOf("HSET", "h", n, n))
		m.Step(1, s, argsOf("SADD", "s", "member"+n))
		m.Step(1, s, argsOf("RPUSH", "list", n))
		m.Step(1, s, argsOf("ZADD", "z", n+".5", n))
	}
	for _, request := range [][]string{
		{"HGETALL", "h"},
		{"HKEYS", "h"},
		{"SMEMBERS", "s"},
		{"LRANGE", "list", "0", "-1"},
		{"ZRANGE", "z", "0", "-1", "WITHSCORES"},
		{"ZRANGEBYSCORE", "z", "0", "400"},
	} {
		args := argsOf(request...)
		if n := testing.AllocsPerRun(10, func() {
			s.Out.Reset()
			m.Step(1, s, args)
		}); n > perCall {
			t.Errorf("%q of 500 elements allocates %v times", request, n)
		}
	}
}
