package files

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/internal/sequence"
)

// The file pruned has the ID up to which entries were removed, and a checksum. It is written before a segment goes, and nothing
// is read up to there: so it does not matter how many of the segments had gone when a crash came.
const (
	prunedName  = "pruned"
	pruningName = "pruning" // its lock: two would undo each other
)

// Prune removes the entries up to the one with that ID for good: queue.Prunable says which nobody needs any more. Files go as
// soon as all of their entries do; the last one stays. Somebody else may write or read meanwhile; a reader whose file is
// removed fails, and reads again.
func Prune(folder, upto string) error {
	if err := prune(folder, upto); err != nil {
		return fmt.Errorf("prune the history in %s: %w", folder, err)
	}
	return nil
}

func prune(folder, upto string) (err error) {
	id, err := sequence.Parse(upto)
	if err != nil {
		return err
	}
	if _, err := os.Stat(folder); err != nil {
		return err
	}
	lock, err := openLocked(filepath.Join(folder, pruningName))
	if errors.Is(err, ErrLocked) {
		return fmt.Errorf("it is being pruned: %w", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	segments, pruned, err := list(folder)
	if err != nil {
		return err
	}
	t, err := findTip(segments, pruned, false)
	if err != nil {
		return err
	}
	if id.After(t.position) {
		return fmt.Errorf("there is no entry %s: the last one is %q", id, t.position)
	}
	if id.After(pruned) {
		pruned = id
		if err := writePruned(folder, id); err != nil {
			return err
		}
	}
	for i, next := range segments[min(1, len(segments)):] {
		h, err := readHeader(next)
		if err != nil {
			return fmt.Errorf("%s: %w", next.path, err)
		}
		if h.after.After(pruned) {
			break
		}
		if err := os.Remove(segments[i].path); err != nil {
			return err
		}
	}
	return syncFolder(folder)
}

func prunedText(id sequence.ID) string {
	return fmt.Sprintf("%s %08x\n", id, crc32.Checksum([]byte(id.String()), castagnoli))
}

func writePruned(folder string, id sequence.ID) error {
	path := filepath.Join(folder, prunedName)
	file, err := os.OpenFile(path+unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	_, err = file.WriteString(prunedText(id))
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(path+unfinished, path), syncFolder(folder))
}

// readPruned returns the ID up to which nothing is to be read, the zero one if nothing was pruned.
func readPruned(folder string) (sequence.ID, error) {
	path := filepath.Join(folder, prunedName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return sequence.ID{}, nil
	}
	if err != nil {
		return sequence.ID{}, err
	}
	word, _, _ := strings.Cut(string(text), " ")
	if id, err := sequence.Parse(word); err == nil && prunedText(id) == string(text) {
		return id, nil
	}
	return sequence.ID{}, fmt.Errorf("%w: %s is not what it was (put it back from a copy; or remove it, and what was pruned counts as missing)",
		history.ErrDamaged, path)
}
