package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"strconv"
	"time"
)

// A filler is a process with one connection that makes data of a kind, a pipeline after the other, and notes how long
// each took. It makes no garbage while it does, so that a long one was the server's.

// fillConfig is what the role fill is told: items From, From+1, ... of a kind.
type fillConfig struct {
	Addr, Kind            string
	From, Count, Pipeline int
	At                    int64 // when keys expire, ms
}

// filled is what a filler did.
type filled struct {
	Seconds          float64
	P50, P9999, Most float64 // of a pipeline, ms
	Fault            string
}

// kinds of data. What an item is, is said by memoryKinds.
const (
	kindStrings   = "strings"
	kindMixed     = "mixed"
	kindZset      = "zset"
	kindSet       = "set"
	kindHash      = "hash"
	kindList      = "list"
	kindZsets     = "zsets"
	kindSets      = "sets"
	kindHashes    = "hashes"
	kindLists     = "lists"
	kindExpiring  = "expiring"
	kindUnlinked  = "unlink"       // removes strings again,
	kindUnlinkedC = "unlink small" // and small collections
)

// fill runs a filler.
func fill(on []int, config fillConfig) (f filled, err error) {
	if config.Pipeline == 0 {
		config.Pipeline = 256
	}
	p, err := startRole(on, "fill", config)
	if err != nil {
		return f, err
	}
	defer p.stop()
	if err := p.hear(&f); err != nil {
		return f, err
	}
	if f.Fault != "" {
		return f, fmt.Errorf("filling with %s: %s", config.Kind, f.Fault)
	}
	return f, nil
}

func fillRole(_ context.Context, config []byte) error {
	var c fillConfig
	if err := decode(config, &c); err != nil {
		return err
	}
	conn, err := net.Dial("tcp", c.Addr)
	if err != nil {
		return err
	}
	defer shut(conn)
	debug.SetGCPercent(-1)
	var f filled
	took := make(latencies, 0, c.Count/c.Pipeline+1)
	begin := time.Now()
	if took, err = c.fill(conn, took); err != nil {
		f.Fault = err.Error()
	}
	f.Seconds = time.Since(begin).Seconds()
	took.sort()
	f.P50, f.P9999, f.Most = took.quantile(0.5), took.quantile(0.9999), took.quantile(1)
	return say(f)
}

func (c fillConfig) fill(conn net.Conn, took latencies) (latencies, error) {
	var r request
	answers := make([]byte, 0, 64<<10)
	for done := 0; done < c.Count; {
		n := min(c.Pipeline, c.Count-done)
		r = r[:0]
		for i := range n {
			r = c.item(r, c.From+done+i)
		}
		begin := time.Now()
		var err error
		if answers, err = exchange(conn, r, answers[:0], n); err != nil {
			return took, err
		}
		if i := bytes.IndexByte(answers, '-'); i >= 0 {
			return took, fmt.Errorf("the server said %q", answers[i:min(i+100, len(answers))])
		}
		took = append(took, time.Since(begin))
		done += n
	}
	return took, nil
}

// item appends the request for one item.
func (c fillConfig) item(r request, i int) request {
	n := scattered(i, 1<<40) // no pattern
	switch c.Kind {
	case kindStrings:
		return r.words(3).word("SET").key(i).value(n, 16)
	case kindMixed:
		return r.words(3).word("SET").key(i).value(n, 3+n%62)
	case kindExpiring:
		return r.words(5).word("SET").key(i).value(n, 16).word("PXAT").number(int(c.At))
	case kindUnlinked:
		return r.words(2).word("UNLINK").key(i)
	case kindUnlinkedC:
		return r.words(2).word("UNLINK").padded("small:", i, 6)
	case kindZset:
		return r.words(4).word("ZADD").word(kindZset).number(n%1e9).padded("member:", i, 7)
	case kindSet:
		return r.words(3).word("SADD").word(kindSet).padded("member:", i, 7)
	case kindHash:
		return r.words(4).word("HSET").word(kindHash).padded("member:", i, 7).value(n, 16)
	case kindList:
		return r.words(3).word("RPUSH").word(kindList).value(n, 16)
	}
	return c.small(r, i, n)
}

// small appends the request for one small collection.
func (c fillConfig) small(r request, i, n int) request {
	command, paired := smallCommands[c.Kind], 0
	if c.Kind == kindZsets || c.Kind == kindHashes {
		paired = smallSize
	}
	r = r.words(2+smallSize+paired).word(command).padded("small:", i, 6)
	for j := range smallSize {
		switch c.Kind {
		case kindZsets:
			r = r.number((n+j*7919)%10000).padded("member", j, 2)
		case kindHashes:
			r = r.padded("member", j, 2).value(n+j, 8)
		case kindSets:
			r = r.padded("member", j, 2)
		default:
			r = r.value(n+j, 8)
		}
	}
	return r
}

// smallSize is how many elements a small collection has.
const smallSize = 10

var smallCommands = map[string]string{kindZsets: "ZADD", kindSets: "SADD", kindHashes: "HSET", kindLists: "RPUSH"}

// request is the bytes of requests.
type request []byte

func (r request) words(n int) request {
	return append(strconv.AppendInt(append(r, '*'), int64(n), 10), "\r\n"...)
}

func (r request) length(n int) request {
	return append(strconv.AppendInt(append(r, '$'), int64(n), 10), "\r\n"...)
}

func (r request) word(s string) request {
	return append(append(r.length(len(s)), s...), "\r\n"...)
}

// padded is a word with a number of so many digits.
func (r request) padded(prefix string, n, digits int) request {
	r = append(r.length(len(prefix)+digits), prefix...)
	for range digits {
		r = append(r, '0')
	}
	for place := len(r) - 1; n > 0; place-- {
		r[place], n = byte('0'+n%10), n/10
	}
	return append(r, "\r\n"...)
}

func (r request) number(n int) request {
	digits := 1
	for rest := n; rest >= 10; rest /= 10 {
		digits++
	}
	return append(strconv.AppendInt(r.length(digits), int64(n), 10), "\r\n"...)
}

// key is one of keyBytes.
func (r request) key(n int) request { return r.padded("key:", n, keyBytes-len("key:")) }

// value is a word of so many letters that do not repeat.
func (r request) value(seed, bytes int) request {
	r = r.length(bytes)
	state := uint64(seed)*0x9e3779b97f4a7c15 + 1
	for range bytes {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		r = append(r, 'a'+byte(state%26))
	}
	return append(r, "\r\n"...)
}

// latencies are as many as there were, all of them.
type latencies []time.Duration

func (l latencies) sort() { slices.Sort(l) }

// quantile is in ms, of what is sorted.
func (l latencies) quantile(q float64) float64 {
	if len(l) == 0 {
		return 0
	}
	i := min(int(q*float64(len(l))), len(l)-1)
	return float64(l[i].Nanoseconds()) / 1e6
}
