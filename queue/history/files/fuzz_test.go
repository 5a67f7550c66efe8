package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/files"
	"github.com/signalbox-io/signalbox/queue/history/historytest"
)

// FuzzSegments changes two files as it likes. What is read of them, by whatever way, is in order; who does not salvage reads
// the beginning of that; and a writer that can be opened goes on.
func FuzzSegments(f *testing.F) {
	folder, segments, all := written(f)
	first, err := os.ReadFile(segments[0])
	must(f, err)
	second, err := os.ReadFile(segments[1])
	must(f, err)
	f.Add(first, second)
	f.Add(first[:len(first)-3], second)
	f.Add(first, second[:entryAt(f, second, all[100])+20])
	f.Add(second, first)
	f.Add([]byte{}, []byte("sbhist\r\n"))
	known := map[string]string{}
	for _, entry := range all {
		known[entry.ID] = string(entry.Data)
	}
	_ = folder
	f.Fuzz(func(t *testing.T, first, second []byte) {
		folder := t.TempDir()
		must(t, os.WriteFile(filepath.Join(folder, "0000000001.history"), first, 0o600))
		must(t, os.WriteFile(filepath.Join(folder, "0000000002.history"), second, 0o600))
		plain, plainErr := read(t, open(t, folder, files.ReadOnly()))
		holes := 0
		salvaged, err := read(t, open(t, folder, files.ReadOnly(), files.Salvage(func(*files.Damage) { holes++ })))
		switch {
		case errors.Is(err, history.ErrOtherVersion):
			return
		case err != nil:
			t.Fatal(err)
		case (plainErr != nil) != (holes > 0):
			t.Fatalf("%d holes, and who does not salvage reads %v", holes, plainErr)
		case len(plain) > len(salvaged):
			t.Fatal("who salvages reads less")
		}
		sink, err := files.Open(folder, files.Salvage(func(*files.Damage) {}))
		must(t, err)
		defer func() { must(t, sink.Close()) }()
		position, err := sink.Position(t.Context())
		must(t, err)
		if len(salvaged) > 0 && position != salvaged[len(salvaged)-1] {
			t.Fatalf("the position is %s, and the last entry %s", position, salvaged[len(salvaged)-1])
		}
		queue, err := sink.Queue(t.Context())
		must(t, err)
		if queue == "" {
			queue = historytest.Queue
		}
		next := history.Entry{ID: "9223372036854775807-9223372036854775807", Data: []byte("next")}
		if position == next.ID {
			return
		}
		must(t, sink.Append(t.Context(), queue, []history.Entry{next}))
		if again, err := read(t, sink); err != nil || len(again) != len(salvaged)+1 {
			t.Fatalf("%d entries after one more, %d before (%v)", len(again), len(salvaged), err)
		}
	})
}
