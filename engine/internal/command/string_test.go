package command

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// An error must leave the value, the expiry and the count of changes alone.
func TestStringErrorsChangeNothing(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	c.MaxStringBytes = 100
	call(t, c, "SET", "k", "9223372036854775807", "EX", "100")
	digest, dirty := Digest(c.Space, c.NowMs()), c.Space.Dirty
	for _, args := range [][]string{
		{"SET", "k", "v", "NX", "XX"},
		{"SET", "k", "v", "EX", "0"},
		{"SET", "k", "v", "EX", "9223372036854775807"},
		{"SET", "k", "v", "PX", "9223372036854775807", "GET"},
		{"SET", "k", "v", "EX", "10", "KEEPTTL"},
		{"SETEX", "k", "-1", "v"},
		{"GETEX", "k", "PERSIST", "EX", "1"},
		{"GETEX", "k", "PX", "0"},
		{"MSET", "k", "v", "x"},
		{"MSETNX", "n", "v", "x"},
		{"INCR", "k"},
		{"DECRBY", "k", "-9223372036854775808"},
		{"INCRBYFLOAT", "k", "inf"},
		{"INCRBYFLOAT", "k", "x"},
		{"SETRANGE", "k", "-1", "v"},
		{"SETRANGE", "n", "100", "v"},
		{"SETRANGE", "n", "9223372036854775807", "v"},
		{"EXPIRE", "k", "10", "NX", "GT"},
		{"EXPIRE", "k", "9223372036854775807"},
		{"COPY", "k", "k"},
		{"MOVE", "k", "16"},
		{"RENAME", "n", "k"},
		{"FLUSHALL", "NOW"},
	} {
		if reply := call(t, c, args...); !reply.IsError() {
			t.Errorf("%q: got %s, want an error", args, reply)
		}
		if Digest(c.Space, c.NowMs()) != digest || c.Space.Dirty != dirty {
			t.Fatalf("%q changed something", args)
		}
	}
}

func TestAppendUpToTheBound(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	c.MaxStringBytes = 8
	expect(t, c, "(integer) 4", "APPEND", "k", "abcd")
	expect(t, c, "(integer) 8", "APPEND", "k", "efgh")
	expect(t, c, "(error) "+string(ErrTooLong), "APPEND", "k", "i")
	expect(t, c, `"abcdefgh"`, "GET", "k")
	expect(t, c, "(integer) 8", "SETRANGE", "k", "6", "XY")
	expect(t, c, `"abcdefXY"`, "GET", "k")
}

// Strings are changed in place, so a value stored from another's bytes or from
// the arguments must not change along.
func TestStringsShareNoMemory(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	call(t, c, "SET", "a", "original value")
	call(t, c, "COPY", "a", "b")
	call(t, c, "SET", "c", "original value")
	copy(c.Args[2], "XXXXXXXXXXXXXX") // the connection reads its next request
	call(t, c, "SETRANGE", "a", "0", "changed")
	call(t, c, "SET", "a", "x")
	expect(t, c, `"original value"`, "GET", "b")
	expect(t, c, `"original value"`, "GET", "c")
	expect(t, c, `"x"`, "SET", "a", "something longer", "GET")
	expect(t, c, `"something longer"`, "GETSET", "a", "y")
}

func TestRangesAgainstAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := newTestCtx()
		var model []byte
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			part := rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(rt, "part")
			if rapid.Bool().Draw(rt, "append") {
				model = append(model, part...)
				call(t, c, "APPEND", "k", string(part))
			} else {
				offset := rapid.IntRange(0, 60).Draw(rt, "offset")
				for len(model) < offset+len(part) {
					model = append(model, 0)
				}
				copy(model[offset:], part)
				call(t, c, "SETRANGE", "k", strconv.Itoa(offset), string(part))
			}
			from := rapid.IntRange(0, len(model)-1).Draw(rt, "from")
			to := rapid.IntRange(from, len(model)-1).Draw(rt, "to")
			fromEnd := strconv.Itoa(from - len(model))
			if got := call(t, c, "GETRANGE", "k", fromEnd, strconv.Itoa(to)).Str; got != string(model[from:to+1]) {
				rt.Fatalf("GETRANGE %d %d: %q of %q", from, to, got, model)
			}
			if got := call(t, c, "STRLEN", "k").Int; got != int64(len(model)) {
				rt.Fatalf("STRLEN: %d, want %d", got, len(model))
			}
		}
	})
}

// The sums are those of Redis 7.0.15 on x86-64.
func TestLongDoubleSums(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ value, delta, want string }{
		{"0.1", "0.2", "0.3"},
		{"-0.0", "-0", "0"},
		{"3.0e3", "200", "3200"},
		{"0x10", "0x1p2", "20"},
		{"1.23456789012345678901", "0", "1.23456789012345679"},
		{"9007199254740993", "0.5", "9007199254740993.5"},
		{"18446744073709551616", "1", "18446744073709551616"},
		{"1", "3.6e-4951", "1"},
		{"1", "0e99999999999", "1"},
		{"1e4932", "1e4932", ""},
		{"inf", "-inf", ""},
	} {
		value, ok := parseLongDouble([]byte(test.value))
		delta, deltaOK := parseLongDouble([]byte(test.delta))
		if !ok || !deltaOK {
			t.Errorf("%s, %s: not accepted", test.value, test.delta)
			continue
		}
		if sum, ok := sumLongDouble(value, delta); sum != test.want || ok != (test.want != "") {
			t.Errorf("%s + %s = %s, want %s", test.value, test.delta, sum, test.want)
		}
	}
	for _, bad := range []string{"", " 1", "1 ", ".", "1e", "0e", "0x", "nan", "1_0", "0b1", "--1", "1p3", "1e4933", "1e-4951", "1e99999999999"} {
		if _, ok := parseLongDouble([]byte(bad)); ok {
			t.Errorf("%q accepted", bad)
		}
	}
}

func BenchmarkSetOverwrite(b *testing.B) {
	c := newTestCtx()
	spec, _ := testTable().Lookup([]byte("set"))
	c.Args = [][]byte{[]byte("SET"), []byte("key"), []byte("some value")}
	b.ReportAllocs()
	for b.Loop() {
		c.Out.Reset()
		if err := spec.Run(c); err != nil {
			b.Fatal(err)
		}
	}
}
