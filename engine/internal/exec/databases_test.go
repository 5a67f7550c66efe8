package exec_test

import (
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
)

// Keys that nobody looks at expire in every database, not only in the first. A
// tick takes samples, so it takes some to find them all.
func TestTickExpiresInEveryDatabase(t *testing.T) {
	t.Parallel()
	const start = 1_700_000_000_000_000
	m := exec.New(exec.Options{}, start)
	defer m.Close()
	s := m.Connect(start, "a", "b")
	do := func(words ...string) string {
		args := make([][]byte, len(words))
		for i, word := range words {
			args[i] = []byte(word)
		}
		s.Out.Reset()
		m.Step(start, s, args)
		return string(s.Out.Bytes())
	}
	for _, db := range []string{"0", "7", "15"} {
		do("SELECT", db)
		do("SET", "soon", "v", "PX", "5")
		do("SET", "later", "v", "PX", "5000")
		do("SET", "never", "v")
	}
	tick := func(nowUs int64) {
		for range 100 {
			m.Tick(nowUs)
		}
	}
	tick(start + 6000)
	for _, db := range []string{"0", "7", "15"} {
		do("SELECT", db)
		if got := do("DBSIZE"); got != ":2\r\n" {
			t.Errorf("database %s: DBSIZE is %q after one of three keys has expired", db, got)
		}
	}
	tick(start + 6_000_000)
	if m.NeedsTick() {
		t.Error("a key is left that should have expired")
	}
}
