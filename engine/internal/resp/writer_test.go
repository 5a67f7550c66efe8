package resp

import (
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// replies is the table of encodings: what a handler says, the bytes in
// either protocol, and what Parse makes of the RESP3 ones.
var replies = []struct {
	name         string
	write        func(w *Writer)
	resp2, resp3 string
	value        Value
}{
	{"simple string", func(w *Writer) { w.SimpleString("OK") }, "+OK\r\n", "+OK\r\n", Value{Kind: SimpleString, Str: "OK"}},
	{"simple string with breaks", func(w *Writer) { w.SimpleString("a\r\nb") }, "+a  b\r\n", "+a  b\r\n", Value{Kind: SimpleString, Str: "a  b"}},
	{"error", func(w *Writer) { w.Error("ERR no\n+OK\r") }, "-ERR no +OK \r\n", "-ERR no +OK \r\n", Value{Kind: Error, Str: "ERR no +OK "}},
	{"zero", func(w *Writer) { w.Int(0) }, ":0\r\n", ":0\r\n", Value{Kind: Integer}},
	{"lowest integer", func(w *Writer) { w.Int(math.MinInt64) }, ":-9223372036854775808\r\n", ":-9223372036854775808\r\n", Value{Kind: Integer, Int: math.MinInt64}},
	{"highest integer", func(w *Writer) { w.Int(math.MaxInt64) }, ":9223372036854775807\r\n", ":9223372036854775807\r\n", Value{Kind: Integer, Int: math.MaxInt64}},
	{"bulk", func(w *Writer) { w.Bulk([]byte("a\r\n\x00")) }, "$4\r\na\r\n\x00\r\n", "$4\r\na\r\n\x00\r\n", Value{Kind: BulkString, Str: "a\r\n\x00"}},
	{"nil bulk is empty", func(w *Writer) { w.Bulk(nil) }, "$0\r\n\r\n", "$0\r\n\r\n", Value{Kind: BulkString}},
	{"bulk string", func(w *Writer) { w.BulkString("hello world") }, "$11\r\nhello world\r\n", "$11\r\nhello world\r\n", Value{Kind: BulkString, Str: "hello world"}},
	{"bulk integer", func(w *Writer) { w.BulkInt(math.MinInt64) }, "$20\r\n-9223372036854775808\r\n", "$20\r\n-9223372036854775808\r\n", Value{Kind: BulkString, Str: "-9223372036854775808"}},
	{"null", (*Writer).Null, "$-1\r\n", "_\r\n", Value{Kind: Null}},
	{"null array", (*Writer).NullArray, "*-1\r\n", "_\r\n", Value{Kind: Null}},
	{"empty array", func(w *Writer) { w.Array(0) }, "*0\r\n", "*0\r\n", Value{Kind: Array}},
	{
		"array", func(w *Writer) { w.Array(2); w.Int(1); w.Array(1); w.Null() }, "*2\r\n:1\r\n*1\r\n$-1\r\n", "*2\r\n:1\r\n*1\r\n_\r\n",
		Value{Kind: Array, Elems: []Value{{Kind: Integer, Int: 1}, {Kind: Array, Elems: []Value{{Kind: Null}}}}},
	},
	{
		"map", func(w *Writer) { w.Map(1); w.BulkString("k"); w.Bool(true) }, "*2\r\n$1\r\nk\r\n:1\r\n", "%1\r\n$1\r\nk\r\n#t\r\n",
		Value{Kind: Map, Elems: []Value{{Kind: BulkString, Str: "k"}, {Kind: Bool, Int: 1}}},
	},
	{
		"set", func(w *Writer) { w.Set(1); w.Bool(false) }, "*1\r\n:0\r\n", "~1\r\n#f\r\n",
		Value{Kind: Set, Elems: []Value{{Kind: Bool}}},
	},
	{
		"push", func(w *Writer) { w.Push(1); w.BulkString("x") }, "*1\r\n$1\r\nx\r\n", ">1\r\n$1\r\nx\r\n",
		Value{Kind: Push, Elems: []Value{{Kind: BulkString, Str: "x"}}},
	},
	{"double", func(w *Writer) { w.Double(0.1) }, "$19\r\n0.10000000000000001\r\n", ",0.10000000000000001\r\n", Value{Kind: Double, Float: 0.1}},
	{"infinity", func(w *Writer) { w.Double(math.Inf(-1)) }, "$4\r\n-inf\r\n", ",-inf\r\n", Value{Kind: Double, Float: math.Inf(-1)}},
	{"verbatim", func(w *Writer) { w.Verbatim("txt", "a\nb") }, "$3\r\na\nb\r\n", "=7\r\ntxt:a\nb\r\n", Value{Kind: Verbatim, Str: "a\nb"}},
	{"verbatim of a long format", func(w *Writer) { w.Verbatim("longer", "x") }, "$1\r\nx\r\n", "=5\r\nlon:x\r\n", Value{Kind: Verbatim, Str: "x"}},
	{"verbatim of a short format", func(w *Writer) { w.Verbatim("m", "") }, "$0\r\n\r\n", "=4\r\nm  :\r\n", Value{Kind: Verbatim}},
	{"big number", func(w *Writer) { w.BigNumber("-1234567890123456789012") }, "$23\r\n-1234567890123456789012\r\n", "(-1234567890123456789012\r\n", Value{Kind: BigNumber, Str: "-1234567890123456789012"}},
	{"raw", func(w *Writer) { w.Raw([]byte("+raw\r\n")) }, "+raw\r\n", "+raw\r\n", Value{Kind: SimpleString, Str: "raw"}},
}

func TestWriter(t *testing.T) {
	t.Parallel()
	for _, c := range replies {
		for proto, want := range map[int]string{0: c.resp2, 2: c.resp2, 3: c.resp3} {
			w := Writer{Proto: proto}
			c.write(&w)
			if got := string(w.Bytes()); got != want {
				t.Errorf("%s, protocol %d: got %q, want %q", c.name, proto, got, want)
			}
			if w.Len() != len(want) {
				t.Errorf("%s, protocol %d: Len() = %d, want %d", c.name, proto, w.Len(), len(want))
			}
		}
	}
}

func TestWriterBigNumberHasNoLineBreak(t *testing.T) {
	t.Parallel()
	for proto, want := range map[int]string{2: "$3\r\n1 2\r\n", 3: "(1 2\r\n"} {
		w := Writer{Proto: proto}
		w.BigNumber("1\r2")
		if got := string(w.Bytes()); got != want {
			t.Errorf("protocol %d: got %q, want %q", proto, got, want)
		}
	}
}

func TestWriterBuffer(t *testing.T) {
	t.Parallel()
	var w Writer
	w.SimpleString("first")
	mark := w.Len()
	w.Array(3)
	w.Truncate(mark)
	w.Truncate(mark + 1)
	w.Truncate(-1)
	if got := string(w.Bytes()); got != "+first\r\n" {
		t.Fatalf("after Truncate: %q", got)
	}
	first := w.Swap([]byte("old contents"))
	w.Int(7)
	second := w.Swap(first)
	if string(second) != ":7\r\n" || w.Len() != 0 {
		t.Fatalf("after Swap: %q, %d bytes left", second, w.Len())
	}
	w.SimpleString("again")
	if &w.Bytes()[0] != &first[0] {
		t.Error("Swap does not reuse the buffer it was given")
	}
	w.Reset()
	if w.Len() != 0 {
		t.Error("Reset leaves bytes")
	}
}

func TestWriterDoesNotAllocate(t *testing.T) {
	for _, proto := range []int{2, 3} {
		w := Writer{Proto: proto}
		value := []byte("value")
		write := func() {
			w.Reset()
			w.SimpleString("OK")
			w.Error("ERR no such key")
			w.Int(1234567)
			w.Bulk(value)
			w.BulkInt(-99)
			w.Double(0.1)
			w.Map(1)
			w.Verbatim("txt", "text")
			w.BigNumber("12345678901234567890")
		}
		write()
		if allocs := testing.AllocsPerRun(100, write); allocs != 0 {
			t.Errorf("protocol %d: %v allocations", proto, allocs)
		}
	}
}

// The texts are those that ZSCORE of Redis 7.0.15 gave.
func TestFormatDouble(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]float64{
		"3": 3, "0": 0, "-0": math.Copysign(0, -1), "2.5": 2.5, "-123456.75": -123456.75,
		"0.10000000000000001": 0.1, "0.29999999999999999": 0.3,
		"1000000000000000": 1e15, "10000000000000000": 1e16, "99999999999999984": 99999999999999984,
		"1e+17": 1e17, "-1e+17": -1e17, "1.2345678901234568e+17": 123456789012345680, "1e+21": 1e21,
		"0.0001": 1e-4, "1.0000000000000001e-05": 1e-5, "2.9999999999999908e-310": 3e-310,
		"1.7976931348623157e+308": math.MaxFloat64, "4.9406564584124654e-324": math.SmallestNonzeroFloat64,
		"inf": math.Inf(1), "-inf": math.Inf(-1), "nan": math.NaN(), "-nan": math.Copysign(math.NaN(), -1),
	} {
		if got := FormatDouble(f); got != want {
			t.Errorf("FormatDouble(%g) = %q, want %q", f, got, want)
		}
	}
}

func TestFormatDoubleReadsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.OneOf(rapid.Float64(), rapid.Map(rapid.Int64(), func(n int64) float64 { return float64(n) })).Draw(t, "f")
		text := FormatDouble(f)
		if back, err := strconv.ParseFloat(text, 64); err != nil || back != f && !math.IsNaN(f) {
			t.Fatalf("%g became %q, which is %g, %v", f, text, back, err)
		}
	})
}
