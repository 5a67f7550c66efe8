package store

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// historyVersion is that of entries. One of another version is refused.
const historyVersion = 1

// Replay is what the entries of a history, read in their order, leave of a queue: for each key that the prelude records, the
// fields or members that it has. It knows no transition. What it is given is what transitions wrote, so it is right as long
// as they are.
type Replay struct {
	Hashes    map[string]map[string]string // jobs, claims, rates, settings, unique, ended, schedules
	Sets      map[string]map[string]int64  // links, times, endings, ticks: member -> score
	Producers map[string]Answered          // producer:… -> the last call
	Clock     int64                        // µs: the largest number that was given out
	Last      int64                        // number of the last entry
	ID        string                       // of the last entry
	Keep      int64                        // how many entries the server was to keep
	Whole     bool                         // false: it began over a queue that was there already, and has not said all of it
	walk      string                       // the number of the first walk, which says it
}

// Answered is what is kept of a producer.
type Answered struct {
	Text string
	At   int64 // µs
	For  bool  // for good: a sequence
}

// Mark is what an entry says of the history itself.
type Mark struct {
	Verb  string // walk, walked, rebuilt
	Words []string
}

func (m *Mark) is(verb string) bool { return m != nil && m.Verb == verb }

func (m *Mark) word(i int) string {
	if i < len(m.Words) {
		return m.Words[i]
	}
	return ""
}

// Came is one entry, taken apart.
type Came struct {
	Number  int64
	Mark    *Mark // nil: it is of a transition
	Workers []WorkerMark
	clock   int64
	events  [][]string
}

// WorkerMark is what became of a worker. No queue is made from it.
type WorkerMark struct {
	WorkerSight           // from now on, as far as the prelude keeps it; of one that has vanished the ID alone
	Vanished    time.Time // when its lease ended; zero: it has not vanished
	Here        bool      // it was there already when the history began
}

// BaseBegins says that from here on the queue says all that it has.
func (c *Came) BaseBegins() bool { return c.Mark.is("walk") }

// BaseEnds is the number of the entry with which a base began that is whole now, "" if none is.
func (c *Came) BaseEnds() string {
	if !c.Mark.is("walked") {
		return ""
	}
	return c.Mark.word(0)
}

// Rebuilds says that the queue was made again here, from what was before.
func (c *Came) Rebuilds() bool { return c.Mark.is("rebuilt") }

// Rebuilt says that the queue was made again behind the entry with that ID. That is the one before this.
func (c *Came) Rebuilt(after string) bool { return c.Mark.is("rebuilt") && c.Mark.word(0) == after }

// RebuiltAs is the entry that the queue was made up to, if it was made as it was at some time; else "".
func (c *Came) RebuiltAs() string {
	if !c.Mark.is("rebuilt") || c.Mark.word(1) == c.Mark.word(0) {
		return ""
	}
	return c.Mark.word(1)
}

// Events is how many fields and members were written.
func (c *Came) Events() (n int) {
	for _, words := range c.events {
		if n += len(words) - 2; words[0] == "HSET" || words[0] == "ZADD" {
			n -= (len(words) - 2) / 2
		}
	}
	return n
}

// NewReplay is a queue before its first entry.
func NewReplay() *Replay {
	r := &Replay{Hashes: map[string]map[string]string{}, Sets: map[string]map[string]int64{}, Producers: map[string]Answered{}}
	for _, name := range []string{"jobs", "claims", "rates", "settings", "unique", "ended", "schedules"} {
		r.Hashes[name] = map[string]string{}
	}
	for _, name := range []string{"links", "times", "endings", "ticks"} {
		r.Sets[name] = map[string]int64{}
	}
	return r
}

// Begins says that an entry is where a history begins, or begins anew: what was before it does not matter.
func (r *Replay) Begins(c *Came) bool {
	return c.Mark.is("walk") && (r.ID == "" || c.Number != r.Last+1)
}

// Sight is what the history leaves of a job, with the token of its claim; nil if there is nothing.
func (r *Replay) Sight(id string) (sight *Sight, token string) {
	if kept, there := r.Hashes["ended"][id]; there {
		sight, _ = ParseEnded(kept)
	} else if record, ok := ParseRecord(r.Hashes["jobs"][id]); ok {
		sight = &Sight{State: record.State, Record: record}
	}
	if claim, there := r.Hashes["claims"][id]; there && sight != nil {
		f := append(strings.SplitN(claim, "\t", 3), "", "")
		sight.State, sight.Worker, token = "c", f[0], f[1]
		if _, offered := r.Sets["times"]["o\t"+id]; offered {
			sight.State = "o"
		}
	}
	return sight, token
}

// Take goes on by an entry, which Parse has taken apart. It reports false, and changes nothing, if it does not follow.
func (r *Replay) Take(id string, c *Came) (bool, error) {
	switch {
	case r.Begins(c):
		*r = *NewReplay()
		r.walk = strconv.FormatInt(c.Number, 10)
	case r.ID == "" || c.Number != r.Last+1, c.Mark.is("rebuilt") && !c.Rebuilt(r.ID):
		return false, nil
	}
	if c.Mark != nil {
		switch c.Mark.Verb {
		case "walk":
			r.Keep = whole(c.Mark.word(0))
		case "walked":
			r.Whole = r.Whole || c.Mark.word(0) == r.walk
		case "rebuilt":
			clear(r.Hashes["claims"])
			maps.DeleteFunc(r.Sets["times"], func(member string, _ int64) bool { return strings.HasPrefix(member, "o\t") })
		}
	}
	r.ID, r.Last, r.Clock = id, c.Number, max(r.Clock, c.clock)
	for _, words := range c.events {
		if err := r.write(words[0], words[1], words[2:]); err != nil {
			return false, err
		}
	}
	return true, nil
}

// write does what a command did. Words that are kept are copied: the text that they are in is that of a whole entry.
func (r *Replay) write(command, key string, words []string) error {
	hash, set := r.Hashes[key], r.Sets[key]
	switch {
	case command == "HSET" && hash != nil && len(words)%2 == 0:
		for i := 0; i < len(words); i += 2 {
			hash[strings.Clone(words[i])] = strings.Clone(words[i+1])
		}
	case command == "HSETNX" && hash != nil && len(words) == 2:
		if _, there := hash[words[0]]; !there {
			hash[strings.Clone(words[0])] = strings.Clone(words[1])
		}
	case command == "HDEL" && hash != nil:
		for _, field := range words {
			delete(hash, field)
		}
	case command == "ZADD" && set != nil && len(words)%2 == 0:
		for i := 0; i < len(words); i += 2 {
			score, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return fmt.Errorf("a score of %.40q", words[i])
			}
			set[strings.Clone(words[i+1])] = int64(score)
		}
	case command == "ZREM" && set != nil:
		for _, member := range words {
			delete(set, member)
		}
	case command == "SET" && strings.HasPrefix(key, "producer:") && len(words) > 0:
		r.Producers[strings.Clone(key)] = Answered{strings.Clone(words[0]), r.Clock, !slices.Contains(words[1:], "PX")}
	default:
		return fmt.Errorf("a %.20s of %.40s that no version of Signalbox writes", command, key)
	}
	return nil
}

// Parse takes the data of an entry apart. Its version is told also where the rest cannot be read.
func Parse(data []byte) (c *Came, version int64, err error) {
	p := &unpacker{text: string(data)}
	n := p.list()
	version = p.number()
	if p.bad || version != historyVersion {
		return nil, version, p.err()
	}
	c = &Came{Number: p.number()}
	given, _, _ := strings.Cut(p.word(), "\t")
	c.clock = whole(given)
	for range n - 3 {
		words := make([]string, p.list())
		for i := range words {
			words[i] = p.word()
		}
		switch {
		case p.bad || len(words) < 3:
			p.bad = true
		case words[0] == "MARK" && words[2] == "worker":
			w, ok := workerMark(words[3:])
			c.Workers, p.bad = append(c.Workers, w), !ok
		case words[0] == "MARK":
			c.Mark = &Mark{words[2], words[3:]}
		default:
			c.events = append(c.events, words)
		}
		if p.bad {
			break
		}
	}
	if len(p.text) > 0 {
		p.bad = true
	}
	return c, version, p.err()
}

// workerMark reads id, and what is kept of the worker and perhaps "here"; or "" and ms.
func workerMark(words []string) (m WorkerMark, ok bool) {
	if len(words) < 2 {
		return m, false
	}
	if words[1] == "" {
		m.ID = words[0]
		if len(words) > 2 {
			m.Vanished = time.UnixMilli(whole(words[2]))
		}
		return m, !m.Vanished.IsZero()
	}
	m.WorkerSight, ok = parseWorker(words[0], words[1])
	m.Here = len(words) > 2 && words[2] == "here"
	return m, ok
}

// Jobs are the ids of those that the entry writes about, each once and in the order of what was written.
func (c *Came) Jobs() (ids []string) {
	seen := map[string]bool{}
	for _, words := range c.events {
		from, step := 2, 1
		switch words[0] {
		case "HSET", "HSETNX":
			step = 2
		case "ZADD":
			from, step = 3, 2
		}
		for i := from; i < len(words); i += step {
			id := words[i]
			switch words[1] {
			case "jobs", "claims", "ended":
			case "times":
				var offer bool
				if id, offer = strings.CutPrefix(id, "o\t"); !offer {
					continue
				}
			default:
				continue
			}
			if !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// unpacker reads what cmsgpack writes, as far as entries need it: lists of words and numbers.
type unpacker struct {
	text string
	bad  bool
}

func (p *unpacker) err() error {
	if p.bad {
		return fmt.Errorf("an entry that no version of Signalbox writes")
	}
	return nil
}

// take returns the next n bytes, and zeros if there are not so many.
func (p *unpacker) take(n int) string {
	if n > len(p.text) {
		p.bad, p.text = true, ""
		return string(make([]byte, min(n, 8)))
	}
	head := p.text[:n]
	p.text = p.text[n:]
	return head
}

func (p *unpacker) unsigned(bytes int) int {
	var all [8]byte
	copy(all[8-bytes:], p.take(bytes))
	return int(binary.BigEndian.Uint64(all[:]) & math.MaxInt64) //nolint:gosec // a length that is too long is found by take
}

// list returns the length of a list. No word is shorter than a byte.
func (p *unpacker) list() int {
	n := 0
	switch head := p.take(1)[0]; {
	case head&0xf0 == 0x90:
		n = int(head & 0x0f)
	case head == 0xdc:
		n = p.unsigned(2)
	case head == 0xdd:
		n = p.unsigned(4)
	default:
		p.bad = true
	}
	if n > len(p.text) {
		p.bad, n = true, 0
	}
	return n
}

func (p *unpacker) number() int64 {
	n, err := strconv.ParseInt(p.word(), 10, 64)
	p.bad = p.bad || err != nil
	return n
}

// word returns a string, or a number as text.
func (p *unpacker) word() string {
	switch head := p.take(1)[0]; {
	case head&0xe0 == 0xa0:
		return p.take(int(head & 0x1f))
	case head == 0xd9:
		return p.take(p.unsigned(1))
	case head == 0xda:
		return p.take(p.unsigned(2))
	case head == 0xdb:
		return p.take(p.unsigned(4))
	case head < 0x80:
		return strconv.Itoa(int(head))
	case head >= 0xe0:
		return strconv.Itoa(int(int8(head))) //nolint:gosec // it is a signed byte
	case head >= 0xcc && head <= 0xcf:
		return strconv.Itoa(p.unsigned(1 << (head - 0xcc)))
	case head >= 0xd0 && head <= 0xd3:
		bits := 8 << (head - 0xd0)
		return strconv.FormatInt(int64(uint64(p.unsigned(bits/8))<<(64-bits))>>(64-bits), 10) //nolint:gosec // its sign goes along
	case head == 0xca:
		return decimal(float64(math.Float32frombits(uint32(p.unsigned(4))))) //nolint:gosec // four bytes
	case head == 0xcb:
		var all [8]byte
		copy(all[:], p.take(8))
		return decimal(math.Float64frombits(binary.BigEndian.Uint64(all[:])))
	}
	p.bad = true
	return ""
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
