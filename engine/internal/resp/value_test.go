package resp

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range replies {
		v, n, err := Parse([]byte(c.resp3 + "+next\r\n"))
		if err != nil || n != len(c.resp3) {
			t.Errorf("%s: %d of %d bytes, error %v", c.name, n, len(c.resp3), err)
		}
		if diff := cmp.Diff(c.value, v); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		for cut := range c.resp3 {
			if _, n, err := Parse([]byte(c.resp3[:cut])); !errors.Is(err, ErrIncomplete) || n != 0 {
				t.Errorf("%s cut after %d bytes: %d, %v", c.name, cut, n, err)
			}
		}
	}
}

func TestParseMore(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]Value{
		"$-1\r\n":                         {Kind: Null},
		"*-1\r\n":                         {Kind: Null},
		"!5\r\nERR x\r\n":                 {Kind: Error, Str: "ERR x"},
		",nan\r\n":                        {Kind: Double, Float: math.NaN()},
		",-nan\r\n":                       {Kind: Double, Float: math.NaN()},
		",inf\r\n":                        {Kind: Double, Float: math.Inf(1)},
		",1e999\r\n":                      {Kind: Double, Float: math.Inf(1)},
		",-1.5e-3\r\n":                    {Kind: Double, Float: -0.0015},
		"+\r\n":                           {Kind: SimpleString},
		"%0\r\n":                          {Kind: Map},
		"|1\r\n+ttl\r\n:5\r\n$1\r\na\r\n": {Kind: BulkString, Str: "a"},
		"*1\r\n|1\r\n+a\r\n*1\r\n_\r\n:1\r\n": {Kind: Array, Elems: []Value{
			{Kind: Integer, Int: 1},
		}},
	} {
		v, n, err := Parse([]byte(input))
		if err != nil || n != len(input) {
			t.Errorf("%q: %d of %d bytes, error %v", input, n, len(input), err)
		}
		if diff := cmp.Diff(want, v, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%q: %s", input, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, input := range []string{
		"\r\n", "\n", "x\r\n", "OK\n", "+OK\n", ":\r\n", ":1a\r\n", ":01\r\n", ":9223372036854775808\r\n",
		"$-2\r\n", "$a\r\n", "$1\r\nabc", "=-1\r\n", "=3\r\ntxt\r\n", "=4\r\ntext\r\n", "!-1\r\n",
		"*-2\r\n", "*2147483648\r\n", "%-1\r\n", "~-1\r\n", ">-1\r\n", "*1\r\n?\r\n", "%1\r\n+k\r\n?\r\n",
		"#x\r\n", "#\r\n", "_x\r\n", "(\r\n", "(-\r\n", "(1x\r\n", ",\r\n", ",0x1p2\r\n", ",1e\r\n", ",infinity\r\n",
		"|-1\r\n+x\r\n", "|1\r\n?\r\n", strings.Repeat("*1\r\n", maxDepth+1),
	} {
		v, n, err := Parse([]byte(input))
		var refused ProtocolError
		if !errors.As(err, &refused) || n != 0 || v.Kind != 0 {
			t.Errorf("%.40q: got %v, %d, %v", input, v, n, err)
		}
	}
}

// What a peer announces costs nothing until it arrives.
func TestParseAllocatesForWhatIsThere(t *testing.T) {
	for _, input := range []string{"*2147483647\r\n:1\r\n", "$9223372036854775807\r\nabc", "%2147483647\r\n+k\r\n"} {
		allocs := testing.AllocsPerRun(10, func() {
			if _, _, err := Parse([]byte(input)); !errors.Is(err, ErrIncomplete) {
				t.Fatalf("%q: %v", input, err)
			}
		})
		if allocs > 4 {
			t.Errorf("%q: %v allocations", input, allocs)
		}
	}
	nested := []byte(strings.Repeat("*2147483647\r\n", maxDepth))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, _ = Parse(nested)
	runtime.ReadMemStats(&after)
	if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(maxDepth*64*80); got > limit {
		t.Errorf("nested: %d bytes, limit %d", got, limit)
	}
}

func TestParseSharesNoMemory(t *testing.T) {
	t.Parallel()
	input := []byte("*1\r\n$5\r\nhello\r\n")
	v, _, err := Parse(input)
	if err != nil {
		t.Fatal(err)
	}
	clear(input)
	if v.Elems[0].Str != "hello" {
		t.Errorf("the value changed with its source: %q", v.Elems[0].Str)
	}
}

func TestAppendCommand(t *testing.T) {
	t.Parallel()
	got := string(AppendCommand([]byte("before "), "SET", "", "a\r\n"))
	if want := "before *3\r\n$3\r\nSET\r\n$0\r\n\r\n$3\r\na\r\n\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestValueErr(t *testing.T) {
	t.Parallel()
	refused := Value{Kind: Error, Str: "WRONGTYPE no"}
	var err ReplyError
	if !refused.IsError() || !errors.As(refused.Err(), &err) || err.Error() != "WRONGTYPE no" {
		t.Errorf("error reply: %v, %v", refused.IsError(), refused.Err())
	}
	fine := Value{Kind: BulkString, Str: "ERR just a string"}
	if fine.IsError() || fine.Err() != nil {
		t.Errorf("string: %v, %v", fine.IsError(), fine.Err())
	}
}

// The human forms are those of redis-cli 7.0.15 for the same replies, except
// for a big number, which it does not know.
func TestValueForPeople(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ reply, human, text string }{
		{"+OK\r\n", "OK", "OK"},
		{"-ERR x\r\n", "(error) ERR x", "ERR x"},
		{":-7\r\n", "(integer) -7", "-7"},
		{"$10\r\nq\"\\\n\x00\xff\a\b\t\r\r\n", `"q\"\\\n\x00\xff\a\b\t\r"`, "q\"\\\n\x00\xff\a\b\t\r"},
		{"$2\r\n\v\f\r\n", `"\x0b\x0c"`, "\v\f"},
		{"_\r\n", "(nil)", ""},
		{"#t\r\n", "(true)", "true"},
		{"#f\r\n", "(false)", "false"},
		{",3.141\r\n", "(double) 3.141", "3.141"},
		{"(123456789012345678901\r\n", "123456789012345678901", "123456789012345678901"},
		{"=7\r\ntxt:a\nb\r\n", "a\nb", "a\nb"},
		{"*0\r\n", "(empty array)", ""},
		{"~0\r\n", "(empty set)", ""},
		{"%0\r\n", "(empty hash)", ""},
		{"*2\r\n:1\r\n$1\r\na\r\n", "1) (integer) 1\n2) \"a\"", "1\na"},
		{"~1\r\n:1\r\n", "1~ (integer) 1", "1"},
		{">1\r\n:1\r\n", "1) (integer) 1", "1"},
		{"%2\r\n+a\r\n:1\r\n+b\r\n*0\r\n", "1# a => (integer) 1\n2# b => (empty array)", "a\n1\nb\n"},
		{"%1\r\n+k\r\n%1\r\n+a\r\n:1\r\n", "1# k => 1# a => (integer) 1", "k\na\n1"},
		{"*1\r\n%1\r\n+k\r\n*2\r\n:1\r\n:2\r\n", "1) 1# k => \n      1) (integer) 1\n      2) (integer) 2", "k\n1\n2"},
		{"%1\r\n*2\r\n:1\r\n:2\r\n:7\r\n", "1# 1) (integer) 1\n   2) (integer) 2 => (integer) 7", "1\n2\n7"},
		{
			"*10\r\n*2\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\n" + strings.Repeat(":0\r\n", 9),
			" 1) 1) \"a\"\n    2) 1) \"b\"\n 2) (integer) 0\n 3) (integer) 0\n 4) (integer) 0\n 5) (integer) 0\n" +
				" 6) (integer) 0\n 7) (integer) 0\n 8) (integer) 0\n 9) (integer) 0\n10) (integer) 0",
			"a\nb" + strings.Repeat("\n0", 9),
		},
	} {
		v, _, err := Parse([]byte(c.reply))
		if err != nil {
			t.Fatalf("%q: %v", c.reply, err)
		}
		if got := v.String(); got != c.human {
			t.Errorf("%q: String()\n%s\nwant\n%s", c.reply, got, c.human)
		}
		if got := v.Text(); got != c.text {
			t.Errorf("%q: Text() = %q, want %q", c.reply, got, c.text)
		}
	}
}

// FuzzParse: never panics, asks for more at every cut of what it accepts, and
// shows whatever it accepts.
func FuzzParse(f *testing.F) {
	for _, c := range replies {
		f.Add([]byte(c.resp3))
		f.Add([]byte(c.resp2))
	}
	f.Add([]byte("|1\r\n+k\r\n:1\r\n!3\r\nERR\r\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		v, n, err := Parse(input)
		if err != nil {
			if n != 0 {
				t.Fatalf("%d bytes used in spite of %v", n, err)
			}
			return
		}
		if n < 3 || n > len(input) {
			t.Fatalf("%d bytes of %d", n, len(input))
		}
		_, _ = v.String(), v.Text()
		for cut := max(0, n-64); cut < n; cut++ {
			if _, _, err := Parse(input[:cut]); !errors.Is(err, ErrIncomplete) {
				t.Fatalf("cut after %d of %d bytes: %v", cut, n, err)
			}
		}
	})
}
