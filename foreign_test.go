package signalbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// Keys of other programs in the place of a resource: what looks at all resources shows the others.
func TestListsGoOnBesideForeignKeys(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t)
	box, client := openBox(t, server.Addr), admin(t, server.Addr)
	lease, err := box.Mutex("good").Acquire(t.Context())
	must(t, err)
	must(t, client.Set(t.Context(), "signalbox:{x}", "1", 0).Err())
	must(t, client.RPush(t.Context(), "signalbox:{y}", "1").Err())
	list, err := box.List(t.Context())
	says(t, err, signalbox.ErrWrongType, `inspect "x"`, "signalbox:{x}*", `inspect "y"`, "remove")
	if len(list) != 1 || list[0].Resource != "good" || list[0].Held != 1 {
		t.Errorf("listed: %+v", list)
	}

	// Two that wait for each other beside them.
	ctx, cancel := context.WithCancel(t.Context())
	names, leases := []string{"a", "b"}, []*signalbox.Lease{lease}
	for _, name := range names {
		lease, err := box.Mutex(name).Acquire(ctx, signalbox.Label(name))
		must(t, err)
		leases = append(leases, lease)
	}
	var parties sync.WaitGroup
	for i, name := range names {
		parties.Go(func() {
			if _, err := box.Mutex(names[1-i]).Acquire(ctx, signalbox.Label(name)); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	eventually(t, "the circle is found", func() bool {
		found, err := box.Deadlocks(t.Context())
		says(t, err, signalbox.ErrWrongType, `inspect "x"`, `inspect "y"`)
		return len(found) == 1 && len(found[0].Waits) == 2
	})
	cancel()
	parties.Wait()
	for _, lease := range leases {
		must(t, lease.Release(t.Context()))
	}
}
