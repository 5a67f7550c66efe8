package exec_test

import (
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
)

// TestCommonCommandsDoNotAllocate holds the way of a command through the
// machine to what the command itself needs.
func TestCommonCommandsDoNotAllocate(t *testing.T) {
	m := exec.New(exec.Options{Password: "secret"}, 1)
	defer m.Close()
	s := m.ConnectLocal(1)
	for _, request := range [][]string{
		{"SET", "key", "value"},
		{"GET", "key"},
		{"PING"},
		{"ECHO", "hi"},
		{"EXISTS", "key"},
		{"INCR", "n"},
		{"HSET", "h", "f", "v"},
		{"HGET", "h", "f"},
		{"SADD", "s", "m"},
		{"ZSCORE", "z", "m"},
		{"TTL", "key"},
	} {
		args := make([][]byte, len(request))
		for i, word := range request {
			args[i] = []byte(word)
		}
		run := func() {
			m.Step(1, s, args)
			m.TakeEffects()
			s.Out.Reset()
		}
		run()
		if n := testing.AllocsPerRun(100, run); n > 0 {
			t.Errorf("%q allocates %v times", request, n)
		}
	}
}
