package leak

import (
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

// waits is found by its name.
func waits(begun chan<- struct{}, until <-chan struct{}) {
	close(begun)
	<-until
}

func TestGoroutinesThatStayAreFound(t *testing.T) {
	end := make(chan struct{})
	before := map[string]bool{}
	for _, stack := range stacks() {
		before[id(stack)] = true
	}
	begun := make(chan struct{})
	go waits(begun, end)
	<-begun
	err := find(before, nil, time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "leak.waits(") || !strings.HasPrefix(err.Error(), "1 goroutines") {
		t.Errorf("found: %v", err)
	}
	if err := find(before, []string{"github.com/signalbox-io/signalbox/internal/leak.waits"}, patience); err != nil {
		t.Errorf("it was excepted: %v", err)
	}
	check := Check(t)
	close(end)
	check()
	if err := find(before, nil, patience); err != nil {
		t.Errorf("it has ended: %v", err)
	}
}
