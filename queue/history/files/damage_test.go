package files_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/files"
	"github.com/signalbox-io/signalbox/queue/history/historytest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, folder string, options ...files.Option) *files.Sink {
	t.Helper()
	sink, err := files.Open(folder, options...)
	must(t, err)
	t.Cleanup(func() { must(t, sink.Close()) })
	return sink
}

const batch = 10

// written makes a folder with 300 entries in batches of 10, in several files, and returns their paths.
func written(t testing.TB) (folder string, segments []string, all []history.Entry) {
	t.Helper()
	folder, all = filepath.Join(t.TempDir(), "history"), historytest.Entries(0, 300)
	sink := open(t, folder, files.SegmentBytes(4000))
	for part := range slices.Chunk(all, batch) {
		must(t, sink.Append(t.Context(), historytest.Queue, part))
	}
	must(t, sink.Close())
	segments, err := filepath.Glob(folder + "/*.history")
	must(t, err)
	if len(segments) != 5 {
		t.Fatalf("%d files", len(segments))
	}
	return folder, segments, all
}

// edit changes a file.
func edit(t testing.TB, path string, change func([]byte) []byte) {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, change(content), 0o600))
}

// entryAt is where the record with an entry begins.
func entryAt(t testing.TB, content []byte, entry history.Entry) int {
	t.Helper()
	at := bytes.Index(content, entry.Data)
	if at < 0 {
		t.Fatalf("%s is not there", entry.ID)
	}
	return at - 40
}

func read(t testing.TB, sink *files.Sink) (ids []string, last error) {
	t.Helper()
	for entry, err := range sink.Read(t.Context(), "") {
		if err != nil {
			return ids, err
		}
		ids = append(ids, entry.ID)
	}
	return ids, nil
}

func idsOf(entries []history.Entry) (ids []string) {
	for _, entry := range entries {
		ids = append(ids, entry.ID)
	}
	return ids
}

// TestDamageInTheMiddle: it is named, what is before it is read, and what is behind it, too, by who asks for it.
func TestDamageInTheMiddle(t *testing.T) {
	for name, test := range map[string]struct {
		spoil      func(t *testing.T, segments []string, all []history.Entry)
		from, upTo int // the entries that are lost
		holes      int
		says       string
	}{
		"a bit of an entry": {func(t *testing.T, segments []string, all []history.Entry) {
			edit(t, segments[1], func(b []byte) []byte { b[entryAt(t, b, all[75])+42] ^= 4; return b })
		}, 75, 76, 1, "checksum"},
		"the length of an entry": {func(t *testing.T, segments []string, all []history.Entry) {
			edit(t, segments[1], func(b []byte) []byte { b[entryAt(t, b, all[75])+8] ^= 0x41; return b })
		}, 75, 76, 1, ""},
		"an enormous length": {func(t *testing.T, segments []string, all []history.Entry) {
			edit(t, segments[1], func(b []byte) []byte { b[entryAt(t, b, all[75])+11] = 0xff; return b })
		}, 75, 76, 1, "impossible length"},
		"a stretch of zeros": {func(t *testing.T, segments []string, all []history.Entry) {
			edit(t, segments[1], func(b []byte) []byte { clear(b[entryAt(t, b, all[75])+5 : entryAt(t, b, all[80])-5]); return b })
		}, 75, 80, 1, ""},
		"a stretch that is cut out": {func(t *testing.T, segments []string, all []history.Entry) {
			edit(t, segments[1], func(b []byte) []byte { return slices.Delete(b, entryAt(t, b, all[75]), entryAt(t, b, all[79])) })
		}, 75, 79, 1, "missing"},
		"the end of a file": {func(t *testing.T, segments []string, all []history.Entry) {
			edit(t, segments[0], func(b []byte) []byte { return b[:entryAt(t, b, all[55])+7] })
		}, 55, 70, 1, "ends within"},
		"the end of a file, between entries": {func(t *testing.T, segments []string, all []history.Entry) {
			edit(t, segments[0], func(b []byte) []byte { return b[:entryAt(t, b, all[55])] })
		}, 55, 70, 1, "come before it"},
		"a header": {func(t *testing.T, segments []string, _ []history.Entry) {
			edit(t, segments[1], func(b []byte) []byte { b[60] ^= 1; return b })
		}, 70, 70, 1, "header"},
		"a header and its mark": {func(t *testing.T, segments []string, _ []history.Entry) {
			edit(t, segments[1], func(b []byte) []byte { clear(b[:500]); return b })
		}, 70, 70, 1, "header"},
		"a file": {func(t *testing.T, segments []string, _ []history.Entry) { must(t, os.Remove(segments[1])) }, 70, 140, 1, "segment 2 is missing"},
		"two files": {func(t *testing.T, segments []string, _ []history.Entry) {
			must(t, errors.Join(os.Remove(segments[1]), os.Remove(segments[2])))
		}, 70, 210, 1, "segments 2 to 3 are missing"},
		"the first file": {func(t *testing.T, segments []string, _ []history.Entry) { must(t, os.Remove(segments[0])) }, 0, 70, 1, "segment 1 is missing"},
		"a file in the place of another": {func(t *testing.T, segments []string, _ []history.Entry) {
			must(t, os.Rename(segments[2], segments[1]))
		}, 70, 210, 1, "by its header it is segment 3"},
		"an empty file": {func(t *testing.T, segments []string, _ []history.Entry) { must(t, os.Truncate(segments[1], 0)) }, 70, 140, 1, "header"},
		"an entry of the last call but one": {func(t *testing.T, segments []string, all []history.Entry) {
			edit(t, segments[4], func(b []byte) []byte { b[entryAt(t, b, all[285])+42] ^= 4; return b })
		}, 285, 286, 1, "checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, segments, all := written(t)
			test.spoil(t, segments, all)
			ids, err := read(t, open(t, folder, files.ReadOnly()))
			var damage *files.Damage
			if !errors.Is(err, history.ErrDamaged) || !errors.As(err, &damage) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("the error is %v", err)
			}
			if !slices.Equal(ids, idsOf(all[:test.from])) {
				t.Errorf("before the damage %d entries are read, want %d", len(ids), test.from)
			}
			var holes []*files.Damage
			salvaged := open(t, folder, files.ReadOnly(), files.Salvage(func(d *files.Damage) { holes = append(holes, d) }))
			rest := slices.Concat(all[:test.from], all[test.upTo:])
			if ids, err = read(t, salvaged); err != nil || !slices.Equal(ids, idsOf(rest)) {
				t.Errorf("%d entries are left, want %d (%v)", len(ids), len(rest), err)
			}
			if len(holes) != test.holes || holes[0].Lost != uint64(test.upTo-test.from) || holes[0].Before != all[test.upTo].ID {
				t.Errorf("holes: %v", holes)
			}
			report, err := files.Check(t.Context(), folder)
			must(t, err)
			if len(report.Damage) != test.holes || report.Damage[0].File != damage.File || report.Entries != uint64(len(rest)) || report.Torn != nil {
				t.Errorf("the report: %+v", report)
			}
			goesOn(t, folder, all)
		})
	}
}

// goesOn has a writer continue in a folder that is damaged somewhere.
func goesOn(t *testing.T, folder string, all []history.Entry) {
	t.Helper()
	sink := open(t, folder, files.Salvage(func(*files.Damage) {}))
	more := historytest.Entries(300, 20)
	must(t, sink.Append(t.Context(), historytest.Queue, more))
	i := 0
	for entry, err := range sink.Read(t.Context(), all[299].ID) {
		must(t, err)
		if entry.ID != more[i].ID {
			t.Errorf("%s was read, want %s", entry.ID, more[i].ID)
		}
		i++
	}
	if i != len(more) {
		t.Errorf("%d new entries, want %d", i, len(more))
	}
}

// TestDamageInTheLastFile: Open refuses it, unless it is told to salvage.
func TestDamageInTheLastFile(t *testing.T) {
	folder, segments, all := written(t)
	edit(t, segments[4], func(b []byte) []byte { b[entryAt(t, b, all[283])+42] ^= 4; return b })
	if _, err := files.Open(folder); !errors.Is(err, history.ErrDamaged) {
		t.Fatalf("the error is %v", err)
	}
	before, err := os.ReadFile(segments[4])
	must(t, err)
	goesOn(t, folder, all)
	after, err := os.ReadFile(segments[4])
	must(t, err)
	if !bytes.Equal(before, after) {
		t.Error("a damaged file was changed")
	}
}

// TestLastFileWithoutAHeader: the position is where the file before it ends.
func TestLastFileWithoutAHeader(t *testing.T) {
	folder, segments, all := written(t)
	must(t, os.Truncate(segments[4], 100))
	if _, err := files.Open(folder); !errors.Is(err, history.ErrDamaged) {
		t.Fatalf("the error is %v", err)
	}
	sink := open(t, folder, files.Salvage(func(*files.Damage) {}))
	position, err := sink.Position(t.Context())
	must(t, err)
	at := slices.IndexFunc(all, func(e history.Entry) bool { return e.ID == position })
	if at != 279 {
		t.Fatalf("the position is %s, entry %d", position, at)
	}
	must(t, sink.Append(t.Context(), historytest.Queue, all[280:]))
	if ids, err := read(t, sink); err != nil || !slices.Equal(ids, idsOf(all)) {
		t.Errorf("%d entries, %v", len(ids), err)
	}
}

// TestTornEnd: wherever a crash cuts the last call off, or whatever it leaves of it, the calls before are there, and Open says
// what it has removed.
func TestTornEnd(t *testing.T) {
	folder, segments, all := written(t)
	whole, err := os.ReadFile(segments[4])
	must(t, err)
	start := entryAt(t, whole, all[290])
	random := rand.New(rand.NewPCG(3, 3))
	for cut := start; cut < len(whole); cut += 1 + random.IntN(9) {
		torn := whole[:cut]
		switch random.IntN(3) {
		case 0: // the file has its new length, and not its data
			torn = append(slices.Clone(torn), make([]byte, len(whole)-cut)...)
		case 1: // later data, and not earlier ones
			torn = slices.Clone(whole)
			clear(torn[start:cut])
			torn[start] ^= 1
		}
		must(t, os.WriteFile(segments[4], torn, 0o600))
		report, err := files.Check(t.Context(), folder)
		must(t, err)
		sink, err := files.Open(folder)
		must(t, err)
		repaired := sink.Repaired()
		if report.Damage != nil || (report.Torn == nil) != (repaired == nil) || repaired != nil && *repaired != *report.Torn {
			t.Fatalf("cut at %d: %+v, %v", cut, report, repaired)
		}
		ids, err := read(t, sink)
		must(t, err)
		if len(ids) < 290 || !slices.Equal(ids, idsOf(all[:len(ids)])) {
			t.Fatalf("cut at %d: %d entries", cut, len(ids))
		}
		must(t, sink.Append(t.Context(), historytest.Queue, all[280:]))
		if ids, err = read(t, sink); err != nil || !slices.Equal(ids, idsOf(all)) {
			t.Fatalf("cut at %d: afterwards %d entries, %v", cut, len(ids), err)
		}
		must(t, sink.Close())
	}
}

func TestAnotherVersion(t *testing.T) {
	folder, _, _ := written(t)
	files.WriteVersion(t, folder, 2)
	if _, err := files.Open(folder); !errors.Is(err, history.ErrOtherVersion) {
		t.Errorf("Open: %v", err)
	}
	if _, err := read(t, open(t, folder, files.ReadOnly(), files.Salvage(func(*files.Damage) {}))); !errors.Is(err, history.ErrOtherVersion) {
		t.Errorf("Read: %v", err)
	}
}

func TestOneWriter(t *testing.T) {
	folder, _, all := written(t)
	sink := open(t, folder)
	_, err := files.Open(folder)
	if !errors.Is(err, files.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("the error is %v", err)
	}
	reader := open(t, folder, files.ReadOnly())
	more := historytest.Entries(300, 100)
	must(t, sink.Append(t.Context(), historytest.Queue, more))
	if ids, err := read(t, reader); err != nil || len(ids) != 400 {
		t.Errorf("%d entries are read beside the writer, %v", len(ids), err)
	}
	if position, err := reader.Position(t.Context()); err != nil || position != more[99].ID {
		t.Errorf("the reader's position is %s, %v", position, err)
	}
	if err := reader.Append(t.Context(), historytest.Queue, all); !errors.Is(err, files.ErrReadOnly) {
		t.Errorf("the error is %v", err)
	}
	must(t, sink.Close())
	must(t, open(t, folder).Append(t.Context(), historytest.Queue, historytest.Entries(400, 1)))
}

// A history is its owner's alone. What is unfinished is removed, what is somebody else's stays.
func TestRightsAndStrangers(t *testing.T) {
	folder, segments, all := written(t)
	for path, want := range map[string]os.FileMode{folder: 0o700 | os.ModeDir, segments[0]: 0o600, folder + "/lock": 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s has the rights %v, want %v", path, info.Mode(), want)
		}
	}
	must(t, os.WriteFile(folder+"/0000000006.history.new", []byte("sb"), 0o600))
	must(t, os.WriteFile(folder+"/notes.txt", nil, 0o600))
	must(t, os.WriteFile(folder+"/7.history", nil, 0o600))
	sink := open(t, folder)
	if ids, err := read(t, sink); err != nil || len(ids) != len(all) {
		t.Errorf("%d entries, %v", len(ids), err)
	}
	if _, err := os.Stat(folder + "/0000000006.history.new"); !errors.Is(err, os.ErrNotExist) {
		t.Error("what was unfinished is still there")
	}
	if _, err := os.Stat(folder + "/notes.txt"); err != nil {
		t.Error(err)
	}
	if _, err := files.Open(segments[0]); err == nil {
		t.Error("a file is a folder")
	}
	if _, err := files.Open(filepath.Join(folder, "none"), files.ReadOnly()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}
