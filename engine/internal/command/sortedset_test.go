package command

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// scored is a member of the model: a plain sorted slice.
type scored struct {
	member string
	score  float64
}

func sortScored(members []scored) {
	slices.SortFunc(members, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.member, b.member))
	})
}

// modelOf is the model of a map from member to score.
func modelOf(scores map[string]float64) []scored {
	var members []scored
	for member, score := range scores {
		members = append(members, scored{member, score})
	}
	sortScored(members)
	return members
}

// members reads a reply of members, with their scores if they are there.
func members(v resp.Value) []string {
	var all []string
	for _, e := range v.Elems {
		all = append(all, e.Text())
	}
	return all
}

func names(members []scored) []string {
	var all []string
	for _, m := range members {
		all = append(all, m.member)
	}
	return all
}

// fill makes key a sorted set of n members m0, m1, ... with the scores 0, 1, ...
func fill(t testing.TB, c *Ctx, key string, n int) {
	t.Helper()
	for i := range n {
		call(t, c, "ZADD", key, strconv.Itoa(i), "m"+strconv.Itoa(i))
	}
}

func TestSortedSetAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := newTestCtx()
		model := map[string]float64{}
		for range rapid.IntRange(1, 80).Draw(rt, "calls") {
			member := "m" + strconv.Itoa(rapid.IntRange(0, 200).Draw(rt, "member"))
			score := float64(rapid.IntRange(-20, 20).Draw(rt, "score"))
			text := resp.FormatDouble(score)
			switch rapid.IntRange(0, 4).Draw(rt, "call") {
			case 0, 1:
				call(t, c, "ZADD", "z", text, member)
				model[member] = score
			case 2:
				call(t, c, "ZINCRBY", "z", text, member)
				model[member] += score
			case 3:
				call(t, c, "ZREM", "z", member)
				delete(model, member)
			default:
				high := score + 5
				call(t, c, "ZREMRANGEBYSCORE", "z", "("+text, resp.FormatDouble(high))
				for m, s := range model {
					if s > score && s <= high {
						delete(model, m)
					}
				}
			}
			checkRanges(t, rt, c, modelOf(model))
		}
	})
}

// checkRanges compares a range of each kind with the model.
func checkRanges(t *testing.T, rt *rapid.T, c *Ctx, model []scored) {
	t.Helper()
	same := func(what string, got, want []string) {
		if !slices.Equal(got, want) {
			rt.Fatalf("%s: got %q, want %q", what, got, want)
		}
	}
	same("ZRANGE", members(call(t, c, "ZRANGE", "z", "0", "-1")), names(model))
	low := float64(rapid.IntRange(-30, 30).Draw(rt, "low"))
	high := float64(rapid.IntRange(-30, 30).Draw(rt, "high"))
	between := slices.DeleteFunc(slices.Clone(model), func(m scored) bool { return m.score < low || m.score >= high })
	lowText, highText := resp.FormatDouble(low), "("+resp.FormatDouble(high)
	same("ZRANGEBYSCORE", members(call(t, c, "ZRANGEBYSCORE", "z", lowText, highText)), names(between))
	if n := call(t, c, "ZCOUNT", "z", lowText, highText).Int; n != int64(len(between)) {
		rt.Fatalf("ZCOUNT: got %d, want %d", n, len(between))
	}
	offset := rapid.IntRange(0, 5).Draw(rt, "offset")
	limit := rapid.IntRange(0, 5).Draw(rt, "limit")
	slices.Reverse(between)
	from := min(offset, len(between))
	same("REV LIMIT", members(call(t, c, "ZRANGE", "z", highText, lowText, "BYSCORE", "REV",
		"LIMIT", strconv.Itoa(offset), strconv.Itoa(limit))), names(between[from:min(from+limit, len(between))]))
	for rank, m := range model {
		if got := call(t, c, "ZRANK", "z", m.member).Int; got != int64(rank) {
			rt.Fatalf("ZRANK %s: got %d, want %d", m.member, got, rank)
		}
	}
}

// An error must leave the keyspace as it was, nothing created, nothing changed.
func TestSortedSetErrorsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"ZADD", "z", "1", "a", "x", "b"},
		{"ZADD", "z", "NX", "XX", "1", "a"},
		{"ZADD", "z", "1", "a", "2"},
		{"ZINCRBY", "z", "nan", "a"},
		{"ZRANGESTORE", "z", "src", "0", "-1", "LIMIT", "0", "1"},
		{"ZUNIONSTORE", "z", "2", "src", "text"},
		{"ZINTERSTORE", "z", "1", "src", "WEIGHTS", "x"},
		{"ZPOPMIN", "src", "-1"},
		{"ZMPOP", "1", "src", "MIN", "COUNT", "0"},
	} {
		c := newTestCtx()
		fill(t, c, "src", 3)
		call(t, c, "SET", "text", "x")
		before := c.Space.Dirty
		if v := call(t, c, args...); !v.IsError() {
			t.Errorf("%q: got %s, want an error", args, v)
		}
		if c.Space.Dirty != before || c.DB.Len() != 2 {
			t.Errorf("%q changed something", args)
		}
	}
}

// What changes nothing must not count as a change: nobody is woken, and nothing
// is logged.
func TestSortedSetUnchangedIsNotTouched(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	fill(t, c, "z", 3)
	before := c.Space.Dirty
	for _, args := range [][]string{
		{"ZADD", "z", "1", "m1"},
		{"ZADD", "z", "NX", "7", "m1"},
		{"ZADD", "z", "GT", "0", "m1"},
		{"ZADD", "none", "XX", "1", "m1"},
		{"ZINCRBY", "z", "0", "m1"},
		{"ZREM", "z", "none"},
		{"ZREMRANGEBYSCORE", "z", "10", "20"},
		{"ZPOPMIN", "z", "0"},
		{"ZDIFFSTORE", "none", "2", "z", "z"},
	} {
		if call(t, c, args...); c.Space.Dirty != before {
			t.Fatalf("%q counted as a change", args)
		}
	}
}

func TestK1SortedSetNoEmptyCollection(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"ZREM", "z", "m0", "m1", "m2"},
		{"ZPOPMIN", "z", "10"},
		{"ZPOPMAX", "z", "3"},
		{"ZMPOP", "1", "z", "MIN", "COUNT", "9"},
		{"ZREMRANGEBYRANK", "z", "0", "-1"},
		{"ZREMRANGEBYSCORE", "z", "-inf", "+inf"},
		{"ZREMRANGEBYLEX", "z", "-", "+"},
		{"ZRANGESTORE", "z", "z", "5", "9"},
		{"ZINTERSTORE", "z", "2", "z", "none"},
	} {
		c := newTestCtx()
		fill(t, c, "z", 3)
		call(t, c, args...)
		if c.DB.Len() != 0 {
			t.Errorf("%q left an empty key", args)
		}
	}
}

func TestSortedSetAlgebraAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := newTestCtx()
		sources := make([]map[string]float64, 3)
		for i := range sources {
			sources[i] = map[string]float64{}
			for range rapid.IntRange(0, 12).Draw(rt, "size") {
				member := strconv.Itoa(rapid.IntRange(0, 15).Draw(rt, "member"))
				score := float64(rapid.IntRange(0, 9).Draw(rt, "score"))
				if i == 2 { // a plain set
					score = 1
					call(t, c, "SADD", "2", member)
				} else {
					call(t, c, "ZADD", strconv.Itoa(i), resp.FormatDouble(score), member)
				}
				sources[i][member] = score
			}
		}
		union, inter, diff := map[string]float64{}, map[string]float64{}, map[string]float64{}
		for i := range 16 {
			member, sum, in := strconv.Itoa(i), 0.0, 0
			for j, s := range sources {
				if score, ok := s[member]; ok {
					sum += score * float64(j+1)
					in++
				}
			}
			first, inFirst := sources[0][member]
			if in > 0 {
				union[member] = sum
			}
			if in == 3 {
				inter[member] = sum
			}
			if in == 1 && inFirst {
				diff[member] = first
			}
		}
		for name, want := range map[string]map[string]float64{"UNION": union, "INTER": inter, "DIFF": diff} {
			args := []string{"3", "0", "1", "2"}
			if name != "DIFF" {
				args = append(args, "WEIGHTS", "1", "2", "3")
			}
			var flat []string
			for _, m := range modelOf(want) {
				flat = append(flat, m.member, resp.FormatDouble(m.score))
			}
			got := members(call(t, c, append(append([]string{"Z" + name}, args...), "WITHSCORES")...))
			call(t, c, append([]string{"Z" + name + "STORE", "d"}, args...)...)
			stored := members(call(t, c, "ZRANGE", "d", "0", "-1", "WITHSCORES"))
			if !slices.Equal(got, flat) || !slices.Equal(stored, flat) {
				rt.Fatalf("Z%s: got %q, stored %q, want %q", name, got, stored, flat)
			}
		}
		if n := call(t, c, "ZINTERCARD", "3", "0", "1", "2").Int; n != int64(len(inter)) {
			rt.Fatalf("ZINTERCARD: got %d, want %d", n, len(inter))
		}
	})
}

func TestSortedSetPairsNestInRESP3(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	fill(t, c, "z", 2)
	for _, tt := range []struct {
		args         []string
		resp2, resp3 string
	}{
		{[]string{"ZRANGE", "z", "0", "0", "WITHSCORES"}, "*2\r\n$2\r\nm0\r\n$1\r\n0\r\n", "*1\r\n*2\r\n$2\r\nm0\r\n,0\r\n"},
		{[]string{"ZUNION", "1", "none", "WITHSCORES"}, "*0\r\n", "*0\r\n"},
		{[]string{"ZPOPMIN", "z"}, "*2\r\n$2\r\nm0\r\n$1\r\n0\r\n", "*2\r\n$2\r\nm0\r\n,0\r\n"},
		{[]string{"ZPOPMIN", "z", "1"}, "*2\r\n$2\r\nm0\r\n$1\r\n0\r\n", "*1\r\n*2\r\n$2\r\nm0\r\n,0\r\n"},
		{[]string{"ZMPOP", "1", "z", "MIN"}, "*2\r\n$1\r\nz\r\n*1\r\n*2\r\n$2\r\nm0\r\n$1\r\n0\r\n", "*2\r\n$1\r\nz\r\n*1\r\n*2\r\n$2\r\nm0\r\n,0\r\n"},
		{[]string{"ZMPOP", "1", "none", "MIN"}, "*-1\r\n", "_\r\n"},
		{[]string{"BZPOPMIN", "z", "0"}, "*3\r\n$1\r\nz\r\n$2\r\nm0\r\n$1\r\n0\r\n", "*3\r\n$1\r\nz\r\n$2\r\nm0\r\n,0\r\n"},
		{[]string{"ZSCORE", "z", "none"}, "$-1\r\n", "_\r\n"},
		{[]string{"ZSCAN", "z", "0", "MATCH", "m0"}, "*2\r\n$1\r\n0\r\n*2\r\n$2\r\nm0\r\n$1\r\n0\r\n", "*2\r\n$1\r\n0\r\n*2\r\n$2\r\nm0\r\n$1\r\n0\r\n"},
	} {
		for proto, want := range map[int]string{2: tt.resp2, 3: tt.resp3} {
			call(t, c, "ZADD", "z", "0", "m0")
			c.Out.Proto = proto
			if call(t, c, tt.args...); string(c.Out.Bytes()) != want {
				t.Errorf("%q in RESP%d: got %q, want %q", tt.args, proto, c.Out.Bytes(), want)
			}
		}
	}
}

func TestSortedSetBlocking(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	c.CanBlock = true
	call(t, c, "BZPOPMIN", "a", "b", "1.5")
	block, ok := c.TakeBlock()
	if !ok || block.TimeoutUs != 1_500_000 || len(block.Keys) != 2 || c.Out.Len() != 0 || c.Space.Dirty != 0 {
		t.Fatalf("BZPOPMIN did not wait as it should: %+v", block)
	}
	block.OnTimeout(c.Out)
	if got := string(c.Out.Bytes()); got != "*-1\r\n" {
		t.Errorf("on timeout: got %q", got)
	}

	// A key that got another type meanwhile does not end the wait, and does not
	// hide the key that did get members.
	call(t, c, "SET", "a", "x")
	c.Ready = []byte("a")
	call(t, c, "BZMPOP", "0", "2", "a", "b", "MAX")
	if _, ok := c.TakeBlock(); !ok {
		t.Error("BZMPOP waits no longer after a key of another type came")
	}
	fill(t, c, "b", 2)
	c.Ready = []byte("b")
	if call(t, c, "BZPOPMAX", "a", "b", "0"); string(c.Out.Bytes()) != "*3\r\n$1\r\nb\r\n$2\r\nm1\r\n$1\r\n1\r\n" {
		t.Errorf("BZPOPMAX: got %q", c.Out.Bytes())
	}
	c.Ready = nil
	if v := call(t, c, "BZPOPMAX", "a", "b", "0"); !v.IsError() {
		t.Errorf("BZPOPMAX of a string: got %s", v)
	}
	c.CanBlock = false
	if v := call(t, c, "BZMPOP", "0", "1", "none", "MIN"); v.Kind != resp.Null {
		t.Errorf("where waiting is not possible: got %s", v)
	}
}

func TestZRandMemberIsUniform(t *testing.T) {
	t.Parallel()
	const size, rounds = 20, 4000
	c := newTestCtx()
	fill(t, c, "z", size)
	for _, count := range []string{"-10", "5", "19"} {
		seen := map[string]int{}
		total := 0
		for range rounds {
			reply := members(call(t, c, "ZRANDMEMBER", "z", count))
			if count[0] != '-' && len(slices.Compact(slices.Sorted(slices.Values(reply)))) != len(reply) {
				t.Fatalf("ZRANDMEMBER %s repeats a member: %q", count, reply)
			}
			for _, member := range reply {
				seen[member]++
				total++
			}
		}
		expected := float64(total) / size
		chiSquare := 0.0
		for i := range size {
			d := float64(seen[fmt.Sprintf("m%d", i)]) - expected
			chiSquare += d * d / expected
		}
		if chiSquare > 60 { // 19 degrees of freedom: exceeded once in 10^5 tries
			t.Errorf("ZRANDMEMBER %s: chi square is %.1f", count, chiSquare)
		}
	}
}

func TestZScanVisitsAll(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	const size = 5000
	fill(t, c, "z", size)
	seen := map[string]bool{}
	cursor := "0"
	for calls := 0; ; calls++ {
		v := call(t, c, "ZSCAN", "z", cursor, "COUNT", "50")
		found := v.Elems[1].Elems
		if len(found) > 2*500 {
			t.Fatalf("one call returned %d members for COUNT 50", len(found)/2)
		}
		for i := 0; i < len(found); i += 2 {
			if "m"+found[i+1].Str != found[i].Str {
				t.Fatalf("%s has the score %s", found[i].Str, found[i+1].Str)
			}
			seen[found[i].Str] = true
		}
		if cursor = v.Elems[0].Str; cursor == "0" {
			break
		}
	}
	if len(seen) != size {
		t.Errorf("saw %d of %d members", len(seen), size)
	}
}

func TestSortedSetKeyPositions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want []int
	}{
		{[]string{"ZUNIONSTORE", "d", "2", "a", "b"}, []int{1, 3, 4}},
		{[]string{"ZINTER", "2", "a", "b", "WITHSCORES"}, []int{2, 3}},
		{[]string{"BZMPOP", "0", "1", "a", "MIN"}, []int{3}},
		{[]string{"BZPOPMIN", "a", "b", "0"}, []int{1, 2}},
		{[]string{"ZRANGESTORE", "d", "a", "0", "-1"}, []int{1, 2}},
		{[]string{"ZMPOP", "9", "a", "MIN"}, nil},
	} {
		var args [][]byte
		for _, arg := range tt.args {
			args = append(args, []byte(arg))
		}
		spec, _ := testTable().Lookup(args[0])
		if got := spec.KeyPositions(args); !slices.Equal(got, tt.want) {
			t.Errorf("%q: keys at %v, want %v", tt.args, got, tt.want)
		}
	}
}

func TestParseScoreBound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bound{
		"":        {},
		"(":       {open: true},
		"(1.5":    {score: 1.5, open: true},
		" 2":      {score: 2},
		"0x10":    {score: 16},
		"-inf":    {score: math.Inf(-1)},
		"1e400":   {score: math.Inf(1)},
		"1e-400":  {},
		"3\x00no": {score: 3},
	} {
		if got, err := parseScoreBound([]byte(text)); err != nil || got.score != want.score || got.open != want.open {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"nan", "((1", "1 ", " ", "1_0", "one", "0x"} {
		if got, err := parseScoreBound([]byte(text)); err == nil {
			t.Errorf("%q: got %+v, want an error", text, got)
		}
	}
}

func FuzzSortedSetBounds(f *testing.F) {
	for _, text := range []string{"", "(", "[a", "(1e5", "+", "-inf", "0x1p-2"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if b, err := parseScoreBound(text); err == nil && math.IsNaN(b.score) {
			t.Errorf("%q is NaN", text)
		}
		for _, by := range []sortedBy{byRank, byScore, byBytes} {
			if _, err := parseInterval(by, text, text); err != nil && err.Error() == "" {
				t.Errorf("%q: an error without a text", text)
			}
		}
	})
}

func BenchmarkZAdd(b *testing.B) {
	c := newTestCtx()
	fill(b, c, "z", 1000)
	spec, _ := testTable().Lookup([]byte("zadd"))
	c.Args = [][]byte{[]byte("ZADD"), []byte("z"), []byte("1"), []byte("m1")}
	b.ReportAllocs()
	for b.Loop() {
		c.Out.Reset()
		if err := spec.Run(c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkZRangeByScore(b *testing.B) {
	c := newTestCtx()
	fill(b, c, "z", 10_000)
	spec, _ := testTable().Lookup([]byte("zrangebyscore"))
	c.Args = [][]byte{[]byte("ZRANGEBYSCORE"), []byte("z"), []byte("5000"), []byte("(5010")}
	b.ReportAllocs()
	for b.Loop() {
		c.Out.Reset()
		if err := spec.Run(c); err != nil {
			b.Fatal(err)
		}
	}
}

// A large union shares strings that are members of large sources, but not those of small ones: one that lies in a row
// holds the whole of it, so that each small source could leave a kilobyte behind for one member.
func TestALargeUnionHoldsNoRows(t *testing.T) {
	c := newTestCtx()
	for i := range 200 {
		call(t, c, "ZADD", "large", "1", fmt.Sprint("member ", i))
	}
	for i := range 50 {
		call(t, c, "ZADD", "small", "1", fmt.Sprint("s", i), "2", "zero")
		call(t, c, "SADD", "plain", fmt.Sprint("p", i), "zero")
	}
	expect(t, c, "(integer) 301", "ZUNIONSTORE", "union", "3", "large", "small", "plain", "WEIGHTS", "1", "0", "0")
	union, _, _ := Read[*ds.SortedSet](c, []byte("union"))
	places := map[*byte]bool{}
	for member := range union.All() {
		places[unsafe.StringData(member)] = true
	}
	for key, want := range map[string]bool{"large": true, "small": false, "plain": false} {
		from, err := readSource(c, []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		shares := false
		for member := range from.all() {
			shares = shares || places[unsafe.StringData(member)]
		}
		if shares != want {
			t.Errorf("the union shares strings with %s: %v", key, shares)
		}
	}
}
