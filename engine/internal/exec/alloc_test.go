package exec_test

import (
	"fmt"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
)

// TestCommonCommandsDoNotAllocate holds the way of a command through the
// machine to what the command itself needs.
func TestCommonCommandsDoNotAllocate(t *testing.T) {
	for _, propagate := range []bool{false, true} {
		t.Run(fmt.Sprintf("propagate=%v", propagate), func(t *testing.T) { commonCommandsDoNotAllocate(t, propagate) })
	}
}

func commonCommandsDoNotAllocate(t *testing.T, propagate bool) {
	m := exec.New(exec.Options{Password: "secret"}, 1)
	defer m.Close()
	m.Propagate(propagate)
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
		{"PEXPIREAT", "key", "4102444800000"},
		{"EXPIRE", "key", "1000"},
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
