package lua

import (
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// fakeHost answers the few commands that the transcripts use.
type fakeHost struct {
	texts map[string]string
	lists map[string][]string
	steps int
	// lasts is how many steps a script may make; 0 means any number.
	lasts int
}

func newFakeHost() *fakeHost {
	return &fakeHost{texts: map[string]string{}, lists: map[string][]string{}}
}

func (h *fakeHost) Permits(args [][]byte) (permitted, known bool) {
	return !strings.EqualFold(string(args[0]), "flushall"), !strings.EqualFold(string(args[0]), "nonsense")
}

func (h *fakeHost) Record(bool) {}

func (h *fakeHost) Heavy(int64) {}

func (h *fakeHost) Interrupt(steps int) (stop string) {
	if h.steps += steps; h.lasts > 0 && h.steps > h.lasts {
		return "Script killed by user with SCRIPT KILL..."
	}
	return ""
}

func (h *fakeHost) Call(args [][]byte, out *resp.Writer) {
	arity := map[string]int{
		"PING": 1, "ECHO": 2, "SET": 3, "GET": 2, "INCR": 2, "RPUSH": 3, "LRANGE": 4, "MGET": 3,
		"HSET": 4, "HGETALL": 2, "SADD": 3, "SMEMBERS": 2, "ZADD": 4, "ZSCORE": 3, "TYPED": 2,
	}
	name := strings.ToUpper(string(args[0]))
	n, known := arity[name]
	switch {
	case !known:
		out.Error("ERR Unknown Redis command called from script")
		return
	case len(args) < n:
		out.Error("ERR Wrong number of args calling Redis command from script")
		return
	}
	words := make([]string, len(args))
	for i := range args {
		words[i] = string(args[i])
	}
	switch name {
	case "PING":
		out.SimpleString("PONG")
	case "ECHO":
		out.BulkString(words[1])
	case "SET":
		h.texts[words[1]] = words[2]
		out.SimpleString("OK")
	case "INCR":
		h.incr(words[1], out)
	case "RPUSH":
		h.lists[words[1]] = append(h.lists[words[1]], words[2:]...)
		out.Int(int64(len(h.lists[words[1]])))
	case "LRANGE":
		list := h.lists[words[1]]
		out.Array(len(list))
		for _, v := range list {
			out.BulkString(v)
		}
	case "GET", "MGET":
		h.get(name, words[1:], out)
	default:
		h.collections(name, words, out)
	}
}

// collections holds one element per collection: enough for their replies.
func (h *fakeHost) collections(name string, words []string, out *resp.Writer) {
	switch name {
	case "HSET", "SADD", "ZADD":
		h.lists[words[1]] = words[2:]
		out.Int(1)
	case "HGETALL":
		out.Map(1)
		out.BulkString(h.lists[words[1]][0])
		out.BulkString(h.lists[words[1]][1])
	case "SMEMBERS":
		out.Set(1)
		out.BulkString(h.lists[words[1]][0])
	case "ZSCORE":
		score, err := strconv.ParseFloat(h.lists[words[1]][0], 64)
		if err != nil {
			out.Error("ERR value is not a valid float")
			return
		}
		out.Double(score)
	case "TYPED":
		h.typed(words[1], out)
	}
}

func (h *fakeHost) get(name string, keys []string, out *resp.Writer) {
	if name == "GET" && h.lists[keys[0]] != nil {
		out.Error("WRONGTYPE Operation against a key holding the wrong kind of value")
		return
	}
	if name == "MGET" {
		out.Array(len(keys))
	}
	for _, key := range keys {
		if v, ok := h.texts[key]; ok {
			out.BulkString(v)
		} else {
			out.Null()
		}
	}
}

func (h *fakeHost) incr(key string, out *resp.Writer) {
	n, err := strconv.Atoi("0" + h.texts[key])
	if err != nil {
		out.Error("ERR value is not an integer or out of range")
		return
	}
	h.texts[key] = strconv.Itoa(n + 1)
	out.Int(int64(n + 1))
}

// typed replies with what no command of Redis answers to a script.
func (h *fakeHost) typed(kind string, out *resp.Writer) {
	switch kind {
	case "bignum":
		out.BigNumber("1234567999999999999999999999999999999")
	case "true", "false":
		out.Bool(kind == "true")
	case "verbatim":
		out.Verbatim("txt", "This is a verbatim\nstring")
	}
}

// Beside does the work in a goroutine, as the engine does.
func (h *fakeHost) Beside(work func()) (ended func() bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	return func() bool {
		select {
		case <-done:
			return true
		case <-time.After(time.Millisecond):
			return false
		}
	}
}
