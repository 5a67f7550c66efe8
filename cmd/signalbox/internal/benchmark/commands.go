package benchmark

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// What redis-benchmark does: many connections send one command over and over, each a batch at a time, and wait for all
// its replies. The commands, their order and their random parts are redis-benchmark's, so that the numbers can be laid
// beside its own. What one command has filled the next one empties; keys are removed after the last.

// CommandSettings are what redis-benchmark knows as -t, -c, -P, -n, -r and -d.
type CommandSettings struct {
	// Tests are names as CommandTests has them, or what stands in them before the underscore; empty for all.
	Tests []string
	// Clients are the connections of a cell.
	Clients int
	// Pipeline is how many requests are sent at once, by each client.
	Pipeline int
	// Requests ends a cell after so many, instead of the duration; 0 for the duration.
	Requests int64
	// RandomKeys is how many keys, members or fields are drawn from; 0 for always the same.
	RandomKeys int
	// ValueBytes is the size of a value.
	ValueBytes int
}

// CommandRow is one command.
type CommandRow struct {
	Command           string  `json:"command"`
	Requests          int64   `json:"requests"`
	RequestsPerSecond float64 `json:"requests_per_second"`
	// The latencies are of batches: all requests of one come back together.
	LatencyP50 time.Duration `json:"latency_p50_ns"`
	LatencyP95 time.Duration `json:"latency_p95_ns"`
	LatencyP99 time.Duration `json:"latency_p99_ns"`
	LatencyMax time.Duration `json:"latency_max_ns"`
}

// commandTest is a command, in words. KEY stands for the run's own prefix, RAND for twelve digits, DATA for the value.
type commandTest struct {
	name  string
	words []string
	grows bool // takes more memory with each request, and so ends after a while
	list  int  // it wants a list of that length
	fill  bool // it wants its keys to be there
}

func commandTests() []commandTest {
	mset := []string{"MSET"}
	for range 10 {
		mset = append(mset, "KEYkey:RAND", "DATA")
	}
	tests := []commandTest{
		{name: "PING_INLINE"},
		{name: "PING_MBULK", words: []string{"PING"}},
		{name: "SET", words: []string{"SET", "KEYkey:RAND", "DATA"}},
		{name: "GET", words: []string{"GET", "KEYkey:RAND"}, fill: true},
		{name: "INCR", words: []string{"INCR", "KEYcounter:RAND"}},
		{name: "LPUSH", words: []string{"LPUSH", "KEYmylist", "DATA"}, grows: true},
		{name: "RPUSH", words: []string{"RPUSH", "KEYmylist", "DATA"}, grows: true},
		{name: "LPOP", words: []string{"LPOP", "KEYmylist"}},
		{name: "RPOP", words: []string{"RPOP", "KEYmylist"}},
		{name: "SADD", words: []string{"SADD", "KEYmyset", "element:RAND"}},
		{name: "HSET", words: []string{"HSET", "KEYmyhash", "element:RAND", "DATA"}},
		{name: "SPOP", words: []string{"SPOP", "KEYmyset"}},
		{name: "ZADD", words: []string{"ZADD", "KEYmyzset", "0", "element:RAND"}},
		{name: "ZPOPMIN", words: []string{"ZPOPMIN", "KEYmyzset"}},
	}
	for _, n := range []int{100, 300, 500, 600} {
		tests = append(tests, commandTest{
			name: fmt.Sprintf("LRANGE_%d", n), words: []string{"LRANGE", "KEYrange", "0", fmt.Sprint(n - 1)}, list: n,
		})
	}
	return append(tests, commandTest{name: "MSET_10", words: mset})
}

// CommandTests are the names of what there is to measure, in order.
func CommandTests() []string {
	var names []string
	for _, test := range commandTests() {
		names = append(names, test.name)
	}
	return names
}

// chosen are the tests that were asked for.
func (s *CommandSettings) chosen() []commandTest {
	all := commandTests()
	if len(s.Tests) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(t commandTest) bool {
		return !slices.ContainsFunc(s.Tests, func(wanted string) bool { return isTest(t.name, wanted) })
	})
}

func isTest(name, wanted string) bool {
	family, _, _ := strings.Cut(name, "_")
	return strings.EqualFold(name, wanted) || strings.EqualFold(family, wanted)
}

// IsCommandTest reports whether a name chooses any test.
func IsCommandTest(wanted string) bool {
	return slices.ContainsFunc(CommandTests(), func(name string) bool { return isTest(name, wanted) })
}

func (b *Bench) commandCells() []cell[CommandRow] {
	var cells []cell[CommandRow]
	for _, test := range b.settings.Commands.chosen() {
		cells = append(cells, cell[CommandRow]{test.name, func(ctx context.Context) (CommandRow, error) {
			return b.commandCell(ctx, test)
		}})
	}
	return cells
}

// growth bounds what the commands that take memory may take, in requests and in bytes.
const (
	growthRequests = 1_000_000
	growthBytes    = 256 << 20
)

// sender is one connection. Only its worker uses it while the squad works.
type sender struct {
	conn     *conn
	batch    []byte
	randoms  []int // where in the batch the random digits are
	from     int   // how many there are to draw from
	replies  int
	requests int64
	batches  latencies
}

func (b *Bench) commandCell(ctx context.Context, test commandTest) (row CommandRow, err error) {
	s := &b.settings.Commands
	prefix := b.server.name("commands") + ":"
	if err := b.prepareCommand(ctx, test, prefix); err != nil {
		return row, err
	}
	during, most := b.settings.Duration, int64(0)
	if test.grows {
		most = min(growthRequests, growthBytes/int64(s.ValueBytes+1))
	}
	if s.Requests > 0 {
		during, most = patience, s.Requests
	}
	batch, randoms := test.batch(prefix, s)
	var sent atomic.Int64
	senders := make([]*sender, s.Clients)
	took, err := squad(ctx, s.Clients, during, func(ctx context.Context, i int) (worker, error) {
		conn, err := b.server.dial(ctx)
		if err != nil {
			return worker{}, err
		}
		senders[i] = &sender{
			conn: conn, batch: slices.Clone(batch), randoms: randoms, from: s.RandomKeys, replies: s.Pipeline, batches: newLatencies(),
		}
		return worker{func(context.Context) error { return senders[i].turn(&sent, most) }, conn.close}, nil
	})
	if err != nil {
		return row, err
	}
	return commandRow(test.name, senders, took), nil
}

// turn sends a batch, unless there have been enough requests.
func (s *sender) turn(sent *atomic.Int64, most int64) error {
	if n := int64(s.replies); most > 0 && sent.Add(n)-n >= most {
		return errTimeIsUp
	}
	if s.from > 0 {
		for _, at := range s.randoms {
			putDigits(s.batch[at:at+randomDigits], rand.IntN(s.from))
		}
	}
	begun := time.Now()
	if err := s.conn.roundTrip(s.batch, s.replies); err != nil {
		return err
	}
	s.requests += int64(s.replies)
	return s.batches.add(time.Since(begun))
}

// randomDigits is how long a random part is.
const randomDigits = 12

func putDigits(into []byte, n int) {
	for i := len(into) - 1; i >= 0; i-- {
		into[i] = '0' + byte(n%10)
		n /= 10
	}
}

// batch is what a client sends at once, and where in it the random parts are.
func (t commandTest) batch(prefix string, s *CommandSettings) (batch []byte, randoms []int) {
	one := []byte("PING\r\n")
	zeros := strings.Repeat("0", randomDigits)
	if len(t.words) > 0 {
		words := make([]string, len(t.words))
		for i, word := range t.words {
			if word == "DATA" {
				words[i] = strings.Repeat("x", s.ValueBytes)
				continue
			}
			words[i] = strings.NewReplacer("KEY", prefix, "RAND", zeros).Replace(word)
		}
		one = request(words...)
	}
	for range s.Pipeline {
		for at := 0; t.draws(); {
			next := strings.Index(string(one[at:]), ":"+zeros+"\r\n")
			if next < 0 {
				break
			}
			at += next + 1
			randoms = append(randoms, len(batch)+at)
		}
		batch = append(batch, one...)
	}
	return batch, randoms
}

// draws reports whether the command has random parts.
func (t commandTest) draws() bool {
	return slices.ContainsFunc(t.words, func(word string) bool { return strings.Contains(word, "RAND") })
}

// prepareCommand has the server hold what the command works on.
func (b *Bench) prepareCommand(ctx context.Context, test commandTest, prefix string) error {
	s := &b.settings.Commands
	b.ownCommandKeys(prefix, max(1, s.RandomKeys))
	value := strings.Repeat("x", s.ValueBytes)
	if test.fill {
		for keys := range slices.Chunk(slices.Collect(numbered(prefix+"key:", max(1, s.RandomKeys))), removeBatch) {
			var pairs []any
			for _, key := range keys {
				pairs = append(pairs, key, value)
			}
			if err := b.server.admin.MSet(ctx, pairs...).Err(); err != nil {
				return err
			}
		}
	}
	if test.list > 0 {
		elements := slices.Repeat([]any{value}, test.list)
		err := b.server.admin.Del(ctx, prefix+"range").Err()
		return errors.Join(err, b.server.admin.RPush(ctx, prefix+"range", elements...).Err())
	}
	return nil
}

// ownCommandKeys notes, once, which keys the part makes.
func (b *Bench) ownCommandKeys(prefix string, n int) {
	if b.commandKeys {
		return
	}
	b.commandKeys = true
	b.server.owns(slices.Values([]string{
		prefix + "mylist", prefix + "myset", prefix + "myhash", prefix + "myzset", prefix + "range",
	}))
	b.server.owns(numbered(prefix+"key:", n))
	b.server.owns(numbered(prefix+"counter:", n))
}

// numbered are the keys that random parts can make.
func numbered(name string, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range n {
			if !yield(fmt.Sprintf("%s%0*d", name, randomDigits, i)) {
				return
			}
		}
	}
}

func commandRow(name string, senders []*sender, took time.Duration) CommandRow {
	row, batches := CommandRow{Command: name}, newLatencies()
	for _, s := range senders {
		row.Requests += s.requests
		batches.merge(s.batches)
	}
	row.RequestsPerSecond = perSecond(row.Requests, took)
	row.LatencyP50, row.LatencyP95 = batches.percentile(50), batches.percentile(95)
	row.LatencyP99, row.LatencyMax = batches.percentile(99), batches.max()
	return row
}

// mergeCommands takes the median of everything but the longest latency.
func mergeCommands(rows []CommandRow) CommandRow {
	row := rows[0]
	row.Requests = medianOf(rows, func(r *CommandRow) int64 { return r.Requests })
	row.RequestsPerSecond = medianRate(rows, func(r *CommandRow) float64 { return r.RequestsPerSecond })
	row.LatencyP50 = medianOf(rows, func(r *CommandRow) time.Duration { return r.LatencyP50 })
	row.LatencyP95 = medianOf(rows, func(r *CommandRow) time.Duration { return r.LatencyP95 })
	row.LatencyP99 = medianOf(rows, func(r *CommandRow) time.Duration { return r.LatencyP99 })
	for _, r := range rows {
		row.LatencyMax = max(row.LatencyMax, r.LatencyMax)
	}
	return row
}
