package move_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/signalbox-io/signalbox/internal/move"
)

// TestTargetWithAFullDisk: the move ends, and says so, and the source goes on.
func TestTargetWithAFullDisk(t *testing.T) {
	for _, c := range []struct{ by, load, want string }{
		{move.ByReplicaOf, "disabled", "it begins to copy again and again"},
		{move.ByReplicaOf, "swapdb", "the target cannot write its append-only file"},
		{move.ByRestore, "disabled", "the target cannot save to its disk"},
	} {
		t.Run(c.by+"-"+c.load, func(t *testing.T) {
			disk := t.TempDir()
			if err := syscall.Mount("none", disk, "tmpfs", 0, "size=512k"); err != nil {
				t.Skipf("no file system of its own here: %v", err)
			}
			t.Cleanup(func() { must(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
			from, to := start(t, "redis"), start(t, "redis", "dir "+disk, "appendfsync everysec", "repl-diskless-load "+c.load)
			source := dial(t, from.Addr)
			for i := range 40 {
				noise := make([]byte, 50_000)
				rand.Read(noise) // never fails
				must(t, source.Set(t.Context(), fmt.Sprint("k", i), noise, 0).Err())
			}
			err := run(t.Context(), options(url(from), url(to), c.by))
			if text := fmt.Sprint(err); err == nil || !strings.Contains(text, c.want) {
				t.Errorf("ended with %v", err)
			}
			isOpen(t, source, 40)
		})
	}
}
