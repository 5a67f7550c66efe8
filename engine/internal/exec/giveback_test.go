package exec

import (
	"fmt"
	"strings"
	"testing"
)

// TestLargeDeletionsGiveMemoryBack: once, when they have come to rest, and not for little.
func TestLargeDeletionsGiveMemoryBack(t *testing.T) {
	const tickUs = 100_000
	for name, c := range map[string]struct {
		kilobytes int
		remove    []string
		want      int
	}{
		"flush":          {32 << 10, []string{"FLUSHALL"}, 1},
		"a huge key":     {32 << 10, []string{"DEL", "list"}, 1},
		"little":         {8 << 10, []string{"FLUSHALL"}, 0},
		"a small part":   {128 << 10, []string{"LTRIM", "list", "0", "110000"}, 0},
		"nothing at all": {32 << 10, []string{"DEL", "other"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t)
			given := 0
			d.m.options.FreeMemory = func() { given++ }
			text := strings.Repeat("v", 1000)
			for range c.kilobytes {
				d.ok("RPUSH", "list", text)
				d.m.NeedsTick()
			}
			d.ok(c.remove...)
			for i := range 100 {
				if needed := d.m.NeedsTick(); needed != (given < c.want) {
					t.Fatalf("tick %d: NeedsTick is %v, %d of %d given back", i, needed, given, c.want)
				}
				d.nowUs += tickUs
				d.m.Tick(d.nowUs)
			}
			if given != c.want {
				t.Errorf("given back %d times, want %d", given, c.want)
			}
		})
	}
}

// TestMemoryIsNotGivenBackAgainAndAgain bounds how often a collection is asked for.
func TestMemoryIsNotGivenBackAgainAndAgain(t *testing.T) {
	d := newDriver(t)
	given := 0
	d.m.options.FreeMemory = func() { given++ }
	text := strings.Repeat("v", 1<<20)
	for i := range 100 { // ten seconds
		for j := range 20 {
			d.ok("SET", fmt.Sprint("key", j), text)
		}
		d.m.NeedsTick()
		d.ok("FLUSHALL")
		for range 2 {
			d.nowUs += 50_000
			d.m.Tick(d.nowUs)
		}
		if most := 1 + i/50; given > most {
			t.Fatalf("given back %d times in %d ms", given, 100*i)
		}
	}
	if given == 0 {
		t.Error("never given back")
	}
}
