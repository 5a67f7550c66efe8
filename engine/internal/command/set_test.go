package command

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// sorted is the elements of a reply in order, for replies without one.
func sorted(t rapid.TB, c *Ctx, args ...string) []string {
	t.Helper()
	members := texts(call(t, c, args...))
	slices.Sort(members)
	return members
}

type setModel map[string]map[string]bool

func (m setModel) add(key, member string) {
	if m[key] == nil {
		m[key] = map[string]bool{}
	}
	m[key][member] = true
}

func (m setModel) remove(key, member string) {
	if delete(m[key], member); len(m[key]) == 0 {
		delete(m, key)
	}
}

// combine is the members that the first of keys has, or with all any of them,
// and for which keep, told how many of keys have it, says so.
func (m setModel) combine(keys []string, keep func(inFirst bool, in int) bool) []string {
	counts := map[string]int{}
	for _, key := range keys {
		for member := range m[key] {
			counts[member]++
		}
	}
	maps.DeleteFunc(counts, func(member string, n int) bool { return !keep(m[keys[0]][member], n) })
	return slices.Sorted(maps.Keys(counts))
}

func TestSetAlgebraMatchesModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		c, model := newTestCtx(), setModel{}
		key := rapid.SampledFrom([]string{"s1", "s2", "s3"})
		member := rapid.SampledFrom([]string{"1", "2", "-3", "007", "a", "b", ""})
		store := func(name string, keys, want []string) {
			if got := sorted(r, c, append([]string{name}, keys...)...); !slices.Equal(got, want) {
				r.Fatalf("%s %q of %v: got %q, want %q", name, keys, model, got, want)
			}
			expect(r, c, fmt.Sprintf("(integer) %d", len(want)), append([]string{name + "STORE", "d"}, keys...)...)
			if got := sorted(r, c, "SMEMBERS", "d"); !slices.Equal(got, want) {
				r.Fatalf("%sSTORE %q of %v: stored %q, want %q", name, keys, model, got, want)
			}
			expect(r, c, fmt.Sprintf("(integer) %d", min(len(want), 1)), "EXISTS", "d")
		}
		r.Repeat(map[string]func(*rapid.T){
			"add": func(r *rapid.T) {
				k, m := key.Draw(r, "key"), member.Draw(r, "member")
				model.add(k, m)
				run(r, c, "SADD", k, m)
			},
			"remove": func(r *rapid.T) {
				k, m := key.Draw(r, "key"), member.Draw(r, "member")
				model.remove(k, m)
				run(r, c, "SREM", k, m)
			},
			"move": func(r *rapid.T) {
				from, to, m := key.Draw(r, "from"), key.Draw(r, "to"), member.Draw(r, "member")
				had := model[from][m]
				if had {
					model.remove(from, m)
					model.add(to, m)
				}
				expect(r, c, map[bool]string{true: "(integer) 1", false: "(integer) 0"}[had], "SMOVE", from, to, m)
			},
			"combine": func(r *rapid.T) {
				keys := rapid.SliceOfN(key, 1, 4).Draw(r, "keys")
				common := model.combine(keys, func(_ bool, in int) bool { return in == len(keys) })
				store("SINTER", keys, common)
				store("SUNION", keys, model.combine(keys, func(_ bool, in int) bool { return in > 0 }))
				others := model.combine(keys, func(inFirst bool, in int) bool { return inFirst && in == 1 })
				store("SDIFF", keys, others)
				card := append([]string{"SINTERCARD", strconv.Itoa(len(keys))}, keys...)
				expect(r, c, fmt.Sprintf("(integer) %d", len(common)), card...)
				expect(r, c, fmt.Sprintf("(integer) %d", min(len(common), 2)), append(card, "LIMIT", "2")...)
			},
		})
	})
}

// fillSet adds n members to the set s: integers, or strings.
func fillSet(t rapid.TB, c *Ctx, n int, prefix string) {
	t.Helper()
	for i := range n {
		run(t, c, "SADD", "s", prefix+strconv.Itoa(i))
	}
}

// expectUniform fails if counts, one for each of n outcomes, are too far from
// equal: a chi-square of more than six standard deviations over its mean.
func expectUniform(t rapid.TB, what string, counts map[string]int, n int) {
	t.Helper()
	total := 0
	for _, count := range counts {
		total += count
	}
	expected := float64(total) / float64(n)
	chiSquare := float64(n-len(counts)) * expected
	for _, count := range counts {
		chiSquare += (float64(count) - expected) * (float64(count) - expected) / expected
	}
	freedom := float64(n - 1)
	if len(counts) > n || chiSquare > freedom+6*math.Sqrt(2*freedom) {
		t.Errorf("%s is not uniform: chi-square %.1f with %d outcomes: %v", what, chiSquare, n, counts)
	}
}

func TestSetRandomMembersAreUniform(t *testing.T) {
	t.Parallel()
	const n, rounds = 24, 4000
	for _, prefix := range []string{"", "m"} {
		// Few, many, with repetition: the three ways in which they are chosen.
		for _, count := range []string{"3", "11", "23", "-5"} {
			c := newTestCtx()
			fillSet(t, c, n, prefix)
			counts := map[string]int{}
			for range rounds {
				members := texts(call(t, c, "SRANDMEMBER", "s", count))
				for _, member := range members {
					counts[member]++
				}
				slices.Sort(members)
				if count[0] != '-' && (strconv.Itoa(len(members)) != count || len(slices.Compact(members)) < len(members)) {
					t.Fatalf("SRANDMEMBER %s gave %q", count, members)
				}
			}
			expectUniform(t, "SRANDMEMBER "+count, counts, n)
		}
	}
}

func TestSetPopIsUniformAndTakesAway(t *testing.T) {
	t.Parallel()
	const n, rounds = 12, 3000
	c := newTestCtx()
	counts := map[string]int{}
	for range rounds {
		fillSet(t, c, n, "m")
		first := run(t, c, "SPOP", "s")
		counts[first]++
		popped := texts(call(t, c, "SPOP", "s", "4"))
		left := texts(call(t, c, "SMEMBERS", "s"))
		all := slices.Sorted(slices.Values(slices.Concat(popped, left)))
		if len(popped) != 4 || len(slices.Compact(all)) != n-1 {
			t.Fatalf("popped %s and %q, left %q", first, popped, left)
		}
		if got := len(texts(call(t, c, "SPOP", "s", "100"))); got != n-5 {
			t.Fatalf("the rest is %d members", got)
		}
		expect(t, c, "(integer) 0", "EXISTS", "s")
	}
	expectUniform(t, "SPOP", counts, n)
}

// Every member is found by a walk, whatever is added or removed meanwhile.
func TestSetScanFindsWhatStays(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	fillSet(t, c, 1000, "stays")
	seen := map[string]bool{}
	cursor := "0"
	for step := 0; ; step++ {
		reply := call(t, c, "SSCAN", "s", cursor, "MATCH", "stays*", "COUNT", "20")
		for _, member := range texts(reply.Elems[1]) {
			seen[member] = true
		}
		for i := range 100 {
			run(t, c, "SADD", "s", fmt.Sprintf("goes%d-%d", step, i))
			run(t, c, "SREM", "s", fmt.Sprintf("goes%d-%d", step-3, i))
		}
		if cursor = reply.Elems[0].Text(); cursor == "0" {
			break
		}
	}
	if len(seen) != 1000 {
		t.Errorf("saw %d of 1000 members", len(seen))
	}
}
