package command

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// fieldsOf reads the whole hash h, which must say the same in all its lists.
func fieldsOf(t rapid.TB, c *Ctx) map[string]string {
	t.Helper()
	flat := texts(call(t, c, "HGETALL", "h"))
	fields := map[string]string{}
	var names, values []string
	for i := 0; i < len(flat); i += 2 {
		fields[flat[i]] = flat[i+1]
		names = append(names, flat[i])
		values = append(values, flat[i+1])
	}
	if !slices.Equal(names, texts(call(t, c, "HKEYS", "h"))) || !slices.Equal(values, texts(call(t, c, "HVALS", "h"))) {
		t.Fatalf("HKEYS, HVALS and HGETALL disagree on %q", flat)
	}
	expect(t, c, fmt.Sprintf("(integer) %d", len(names)), "HLEN", "h")
	return fields
}

func TestHashMatchesModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		c, model := newTestCtx(), map[string]string{}
		field := rapid.SampledFrom([]string{"a", "b", "c", "d", ""})
		integer := func(ok bool) string { return map[bool]string{true: "(integer) 1", false: "(integer) 0"}[ok] }
		r.Repeat(map[string]func(*rapid.T){
			"set": func(r *rapid.T) {
				name, value := field.Draw(r, "field"), strconv.Itoa(rapid.IntRange(-9, 9).Draw(r, "value"))
				_, found := model[name]
				model[name] = value
				expect(r, c, integer(!found), "HSET", "h", name, value)
			},
			"set if new": func(r *rapid.T) {
				name := field.Draw(r, "field")
				_, found := model[name]
				if !found {
					model[name] = "5"
				}
				expect(r, c, integer(!found), "HSETNX", "h", name, "5")
			},
			"delete": func(r *rapid.T) {
				name := field.Draw(r, "field")
				_, found := model[name]
				delete(model, name)
				expect(r, c, integer(found), "HDEL", "h", name, "never there")
			},
			"add": func(r *rapid.T) {
				name, delta := field.Draw(r, "field"), rapid.IntRange(-5, 5).Draw(r, "delta")
				old, _ := strconv.Atoi(model[name])
				model[name] = strconv.Itoa(old + delta)
				expect(r, c, "(integer) "+model[name], "HINCRBY", "h", name, strconv.Itoa(delta))
			},
			"": func(*rapid.T) {
				if got := fieldsOf(r, c); !maps.Equal(got, model) {
					r.Fatalf("holds %v, want %v", got, model)
				}
				expect(r, c, integer(len(model) > 0), "EXISTS", "h")
			},
		})
	})
}

// An error leaves neither a hash nor a change behind.
func TestHashErrorsLeaveNothing(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"HSET", "h", "a", "1", "b"},
		{"HMSET", "h", "a", "1", "b"},
		{"HINCRBY", "h", "a", "1.5"},
		{"HINCRBYFLOAT", "h", "a", "one"},
		{"HINCRBYFLOAT", "h", "a", "inf"},
	} {
		c := newTestCtx()
		if reply := call(t, c, args...); !reply.IsError() {
			t.Errorf("%q: got %v, want an error", args, reply)
		}
		if c.DB.Len() != 0 || c.Space.Dirty != 0 {
			t.Errorf("%q left %d keys and %d changes", args, c.DB.Len(), c.Space.Dirty)
		}
	}
}

func TestHashRandomFieldsAreUniform(t *testing.T) {
	t.Parallel()
	const n, rounds = 20, 4000
	c := newTestCtx()
	for i := range n {
		run(t, c, "HSET", "h", "f"+strconv.Itoa(i), "v"+strconv.Itoa(i))
	}
	for _, count := range []string{"2", "9", "19", "-6"} {
		counts := map[string]int{}
		for range rounds {
			flat := texts(call(t, c, "HRANDFIELD", "h", count, "WITHVALUES"))
			for i := 0; i < len(flat); i += 2 {
				counts[flat[i]]++
				if flat[i][1:] != flat[i+1][1:] {
					t.Fatalf("field %s came with value %s", flat[i], flat[i+1])
				}
			}
		}
		expectUniform(t, "HRANDFIELD "+count, counts, n)
	}
	counts := map[string]int{}
	for range rounds {
		counts[run(t, c, "HRANDFIELD", "h")]++
	}
	expectUniform(t, "HRANDFIELD", counts, n)
}

func TestHashReplyTypes(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	run(t, c, "HSET", "h", "f", "v")
	for _, test := range []struct {
		proto int
		want  string
		args  []string
	}{
		{2, "*2\r\n$1\r\nf\r\n$1\r\nv\r\n", []string{"HGETALL", "h"}},
		{3, "%1\r\n$1\r\nf\r\n$1\r\nv\r\n", []string{"HGETALL", "h"}},
		{2, "*2\r\n$1\r\nf\r\n$1\r\nv\r\n", []string{"HRANDFIELD", "h", "1", "WITHVALUES"}},
		{3, "*1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n", []string{"HRANDFIELD", "h", "1", "WITHVALUES"}},
		{3, "%0\r\n", []string{"HGETALL", "none"}},
		{3, "*2\r\n$1\r\nv\r\n_\r\n", []string{"HMGET", "h", "f", "g"}},
	} {
		c.Out.Proto = test.proto
		call(t, c, test.args...)
		if got := string(c.Out.Bytes()); got != test.want {
			t.Errorf("%q in RESP%d: got %q, want %q", test.args, test.proto, got, test.want)
		}
	}
}
