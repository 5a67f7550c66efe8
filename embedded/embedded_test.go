package embedded_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func Example() {
	box, err := embedded.Open("")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close()
	ctx := context.Background()
	err = box.Semaphore("downloads", 2).Do(ctx, func(context.Context) error {
		state, err := box.Inspect(ctx, "downloads")
		if err == nil {
			fmt.Println("held:", state.Held, "of", state.Limit)
		}
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: held: 1 of 2
}

// A lease of half a minute is renewed through an hour of work, in no time.
func TestALeaseLivesThroughAnHourOfVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, err := embedded.Open("")
		if err != nil {
			t.Fatal(err)
		}
		lease, err := box.Mutex("m").Acquire(t.Context(), signalbox.TTL(30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if lease.Err() != nil {
			t.Errorf("the lease ended: %v", lease.Err())
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
}
