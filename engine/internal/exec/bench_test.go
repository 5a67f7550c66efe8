package exec_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
)

// BenchmarkStep is the way of a command through the machine, from its words to its
// reply: no parser, no socket, no lock. The keyspace has 100,000 keys, and the key (or
// the element) is another one each time, so that memory is as slow as it is in use.
func BenchmarkStep(b *testing.B) {
	value := strings.Repeat("v", 64)
	for _, c := range []struct {
		name    string
		request []string // "#" is replaced by a number
	}{
		{"PING", []string{"PING"}},
		{"GET", []string{"GET", "key:#"}},
		{"SET", []string{"SET", "key:#", value}},
		{"SETPX", []string{"SET", "key:#", value, "PX", "100000"}},
		{"MSET", []string{"MSET", "key:#", value, "key:1#", value, "key:2#", value}},
		{"INCR", []string{"INCR", "counter:#"}},
		{"EXISTS", []string{"EXISTS", "key:#"}},
		{"EXPIRE", []string{"EXPIRE", "key:#", "1000"}},
		{"LPUSH+RPOP", []string{"LPUSH", "long", value, "|", "RPOP", "long"}},
		{"LRANGE_100", []string{"LRANGE", "long", "0", "99"}},
		{"LRANGE_600", []string{"LRANGE", "long", "0", "599"}},
		{"SADD", []string{"SADD", "set", "member:#"}},
		{"SADD+SPOP", []string{"SADD", "set", "member:#", "|", "SPOP", "set"}},
		{"HSET", []string{"HSET", "hash", "field:#", value}},
		{"HGET", []string{"HGET", "hash", "field:#"}},
		{"ZADD", []string{"ZADD", "zset", "#", "member:#"}},
		{"ZADD+ZPOPMIN", []string{"ZADD", "zset", "#", "member:#", "|", "ZPOPMIN", "zset"}},
		{"PUBLISH", []string{"PUBLISH", "nobody", value}},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := newLoaded(b)
			s := m.ConnectLocal(1)
			var requests [][][]byte // of all but the number
			request := [][]byte{}
			for _, word := range append(c.request, "|") {
				if word == "|" {
					requests, request = append(requests, request), [][]byte{}
					continue
				}
				request = append(request, []byte(word))
			}
			numbered := newNumbers(requests)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				numbered.set(i * 7919 % benchKeys)
				for _, request := range requests {
					m.Step(1, s, request)
				}
				m.TakeEffects()
				s.Out.Reset()
			}
		})
	}
}

const benchKeys = 100_000

// newLoaded is a machine with something of everything.
func newLoaded(b *testing.B) *exec.Machine {
	b.Helper()
	m := exec.New(exec.Options{}, 1)
	b.Cleanup(m.Close)
	s := m.ConnectLocal(1)
	value := strings.Repeat("v", 64)
	step := func(words ...string) {
		m.Step(1, s, argsOf(words...))
		m.TakeEffects()
		s.Out.Reset()
	}
	for i := range benchKeys {
		n := fmt.Sprintf("%06d", i)
		step("SET", "key:"+n, value)
		step("SET", "counter:"+n, strconv.Itoa(i))
		step("SADD", "set", "member:"+n)
		step("HSET", "hash", "field:"+n, value)
		step("ZADD", "zset", n, "member:"+n)
	}
	for range 1000 {
		step("RPUSH", "long", value)
	}
	return m
}

// numbers are the places in requests where a number of six digits stands.
type numbers struct{ places [][]byte }

// newNumbers puts such a place where a word has a "#".
func newNumbers(requests [][][]byte) *numbers {
	n := &numbers{}
	for _, request := range requests {
		for i, word := range request {
			if before, ok := strings.CutSuffix(string(word), "#"); ok {
				request[i] = []byte(before + "000000")
				n.places = append(n.places, request[i][len(before):])
			}
		}
	}
	return n
}

func (n *numbers) set(to int) {
	for _, place := range n.places {
		for i, rest := len(place)-1, to; i >= 0; i, rest = i-1, rest/10 {
			place[i] = byte('0' + rest%10)
		}
	}
}
