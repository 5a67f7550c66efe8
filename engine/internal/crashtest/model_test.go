package crashtest_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// What a writer's unit of some number does is a function of its number, so what the keys
// of a writer must hold is a function of how many of its units are there.

const (
	writers     = 4
	sharedDB    = "9" // not the one that a log begins with
	shownUnits  = 20  // how many entries a stream keeps
	largeFields = 300
	shortMs     = 15 // how long the short-lived key lives
)

// kinds of work.
const (
	plain = iota
	script
	shortLived
	deleted
	streamed
	popped
	large
	revived
	kinds
	bulky // now and then: a kill can come in the middle of a write of so many pages
)

const (
	bulkyEvery = 40
	bulkyBytes = 100 << 10
)

// kind is what a writer does in a unit.
func kind(writer, number int) int {
	if number%bulkyEvery == 0 {
		return bulky
	}
	return (number*7 + number/kinds + writer) % kinds
}

// bulk is the value of a bulky unit.
func bulk(n string) string { return strings.Repeat(n+" ", bulkyBytes/(len(n)+1)) }

func key(name string, writer int) string { return name + ":" + strconv.Itoa(writer) }

func label(writer, number int) string { return fmt.Sprintf("%d:%d", writer, number) }

const scriptUnit = `redis.call('RPUSH', KEYS[2], ARGV[1])
return redis.call('INCR', KEYS[1])`

// scriptPop takes a member at random: what it took is to be the same after a crash.
const scriptPop = `redis.call('SADD', KEYS[1], ARGV[1], ARGV[1] .. '+', ARGV[1] .. '-')
local member = redis.call('SPOP', KEYS[1])
redis.call('RPUSH', KEYS[2], member)
return member`

// scriptRevive counts on from a number, or from nothing if its time is over: which it was is
// to be the same after a crash.
const scriptRevive = `redis.call('SET', KEYS[2], redis.call('INCR', KEYS[1]))
return redis.call('PERSIST', KEYS[1])`

// revives reports whether a unit of that kind revives the key; if not it gives it a short life.
func revives(number int) bool { return number/kinds%2 == 0 }

// unit is the requests of a unit of work, from MULTI to EXEC.
func unit(writer, number int) [][]string {
	n := strconv.Itoa(number)
	requests := [][]string{{"MULTI"}, {"RPUSH", "log", label(writer, number)}, {"INCR", key("count", writer)}}
	switch kind(writer, number) {
	case shortLived:
		requests = append(requests, []string{"SET", key("short", writer), n, "PX", strconv.Itoa(shortMs)})
	case deleted:
		requests = append(requests, []string{"DEL", key("gone", writer)})
	case streamed:
		requests = append(requests,
			[]string{"XADD", key("stream", writer), "MAXLEN", strconv.Itoa(shownUnits), "*", "unit", n},
			[]string{"SET", key("gone", writer), n})
	case popped:
		requests = append(requests, []string{"EVAL", scriptPop, "2", key("pool", writer), key("popped", writer), n})
	case large:
		requests = append(requests, []string{"HSET", key("large", writer), strconv.Itoa(number % largeFields), n},
			[]string{"SET", key("gone", writer), n, "EX", "1000"})
	case revived:
		if revives(number) {
			requests = append(requests, []string{"EVAL", scriptRevive, "2", key("revived", writer), key("seen", writer)})
			break
		}
		requests = append(requests, []string{"SET", key("revived", writer), n, "PX", "4"})
	case bulky:
		requests = append(requests, []string{"SET", key("bulk", writer), bulk(n)}, []string{"SET", key("gone", writer), n})
	case script:
		// The whole unit within the script, which is in the transaction all the same.
		requests = [][]string{{"MULTI"}, {"EVAL", scriptUnit, "2", key("count", writer), "log", label(writer, number)}}
	}
	return append(requests, []string{"EXEC"})
}

// mark is what comes after a unit, by itself and in a database of the writer's own: the number
// of the unit.
func mark(writer, number int) [][]string {
	return [][]string{{"SELECT", strconv.Itoa(writer + 1)}, {"SET", "mark", strconv.Itoa(number)}, {"SELECT", sharedDB}}
}

// model is what a writer's keys must hold.
type model struct {
	writer    int
	count     int // units
	leastMark int // the mark must be that of this unit, or of a later one
	gone      string
	short     string
	bulk      string
	revived   bool // the key lives, with the number that was seen
	large     map[string]string
	stream    []string
	pool      map[string]bool // members ever added
}

func newModel(writer int) *model {
	return &model{writer: writer, large: map[string]string{}, pool: map[string]bool{}}
}

// apply does the next unit.
func (m *model) apply() {
	m.count++
	n := strconv.Itoa(m.count)
	switch kind(m.writer, m.count) {
	case shortLived:
		m.short = n
	case deleted:
		m.gone = ""
	case streamed:
		m.gone, m.stream = n, append(m.stream, n)
		m.stream = m.stream[max(0, len(m.stream)-shownUnits):]
	case popped:
		m.pool[n], m.pool[n+"+"], m.pool[n+"-"] = true, true, true
	case revived:
		m.revived = revives(m.count)
	case bulky:
		m.gone, m.bulk = n, bulk(n)
	case large:
		m.gone, m.large[strconv.Itoa(m.count%largeFields)] = n, n
	}
}

// look asks for what a writer's keys hold, in the order of compare.
func (m *model) look() [][]string {
	return [][]string{
		{"GET", key("count", m.writer)},
		{"GET", key("gone", m.writer)},
		{"HGETALL", key("large", m.writer)},
		{"XRANGE", key("stream", m.writer), "-", "+"},
		{"SMEMBERS", key("pool", m.writer)},
		{"LRANGE", key("popped", m.writer), "0", "-1"},
		{"PTTL", key("short", m.writer)},
		{"GET", key("short", m.writer)},
		{"SELECT", strconv.Itoa(m.writer + 1)},
		{"GET", "mark"},
		{"SELECT", sharedDB},
		{"GET", key("bulk", m.writer)},
		{"GET", key("revived", m.writer)},
		{"GET", key("seen", m.writer)},
	}
}

// compare says how the answers to look differ from the model; "" if they do not.
func (m *model) compare(answers []difftest.Value) string {
	var wrong []string
	is := func(what, got, want string) {
		if got != want {
			wrong = append(wrong, fmt.Sprintf("%s of writer %d is %s, want %s", what, m.writer, got, want))
		}
	}
	count := ""
	if m.count > 0 {
		count = strconv.Itoa(m.count)
	}
	is("the counter", answers[0].Text, count)
	is("the key that is deleted", answers[1].Text, m.gone)
	fields := map[string]string{}
	for pair := range slices.Chunk(texts(answers[2].Elems), 2) {
		fields[pair[0]] = pair[1]
	}
	is("the hash", fmt.Sprint(fields), fmt.Sprint(m.large))
	var entries []string
	for _, entry := range answers[3].Elems {
		entries = append(entries, entry.Elems[1].Elems[1].Text)
	}
	is("the stream", fmt.Sprint(entries), fmt.Sprint(m.stream))
	members := append(texts(answers[4].Elems), texts(answers[5].Elems)...)
	is("the number of members popped", fmt.Sprint(len(answers[5].Elems)), fmt.Sprint(len(m.pool)/3))
	slices.Sort(members)
	is("the set with what was popped", fmt.Sprint(members), fmt.Sprint(slices.Sorted(maps.Keys(m.pool))))
	if left := answers[6].Text; left == "-1" || len(left) > 2 {
		wrong = append(wrong, fmt.Sprintf("the short-lived key of writer %d has %s ms to live", m.writer, left))
	}
	if short := answers[7]; !short.Nil {
		is("the short-lived key", short.Text, m.short)
	}
	if got, seen := answers[12].Text, answers[13].Text; m.revived && (got != seen || got == "") {
		wrong = append(wrong, fmt.Sprintf("writer %d has seen %q, and the key has %q", m.writer, seen, got))
	}
	if answers[11].Text != m.bulk {
		wrong = append(wrong, fmt.Sprintf("the bulky value of writer %d is %.20q and so on, want %.20q", m.writer, answers[11].Text, m.bulk))
	}
	// It is that of the last unit, or of the one before if the engine was killed in between.
	if marked, _ := strconv.Atoi(answers[9].Text); marked < max(m.leastMark, m.count-1) || marked > m.count {
		wrong = append(wrong, fmt.Sprintf("writer %d has %d units, the mark %d was acknowledged, and it is %q", m.writer, m.count, m.leastMark, answers[9].Text))
	}
	return strings.Join(wrong, "\n")
}

func texts(values []difftest.Value) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = v.Text
	}
	return list
}
