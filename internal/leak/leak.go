// Package leak finds goroutines that outlive what started them, for tests. It compares stacks, since nothing else tells
// one goroutine from another; what ends by itself is given a moment for that.
package leak

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is for goroutines that are about to end. A test that leaks none does not wait.
const patience = time.Minute

// standing are functions whose goroutines belong to the test binary.
var standing = []string{
	"testing.Main", "testing.RunTests", "testing.(*T).Run", "testing.(*M).startAlarm", "testing.runFuzzing", "testing.runFuzzTests",
	"os/signal.signal_recv", "os/signal.loop", "runtime.ensureSigM", "runtime/trace.Start.func1", "runtime.ReadTrace",
}

// Main runs the tests of a package and fails when they leave goroutines behind. Those that run one of the functions named
// do not count.
func Main(m *testing.M, except ...string) {
	code := m.Run()
	if code == 0 {
		if err := Find(except...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Check looks who is there; what it returns fails the test when others have come and do not end.
func Check(t testing.TB) (verify func()) {
	before := map[string]bool{}
	for _, stack := range stacks() {
		before[id(stack)] = true
	}
	return func() {
		t.Helper()
		if err := find(before, nil, patience); err != nil {
			t.Error(err)
		}
	}
}

// Find says which goroutines there are besides the caller's and those of the test binary.
func Find(except ...string) error { return find(nil, except, patience) }

func find(known map[string]bool, except []string, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause *= 2 {
		var left []string
		for _, stack := range stacks() {
			if !known[id(stack)] && !runs(stack, standing) && !runs(stack, except) {
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d goroutines are left behind:\n%s", len(left), strings.Join(left, "\n\n"))
		}
		time.Sleep(min(pause, 100*time.Millisecond))
	}
}

// stacks are those of all goroutines but the caller's.
func stacks() []string {
	for size := 1 << 16; ; size *= 2 {
		all := make([]byte, size)
		if n := runtime.Stack(all, true); n < size {
			return strings.Split(strings.TrimSpace(string(all[:n])), "\n\n")[1:]
		}
	}
}

// id is what a stack begins with: "goroutine 17".
func id(stack string) string {
	name, _, _ := strings.Cut(stack, " [")
	return name
}

// runs reports whether one of the functions is on the stack.
func runs(stack string, functions []string) bool {
	for _, function := range functions {
		if strings.Contains(stack, "\n"+function+"(") || strings.Contains(stack, "\ncreated by "+function+" ") {
			return true
		}
	}
	return false
}
