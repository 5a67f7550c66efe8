package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/engine/check"
)

// A restore makes a new folder of a backup: its snapshot, and an append-only file with that
// as its base, so that it makes no difference whether whoever serves the folder has
// the append-only file on. An engine is opened on the folder for it, and what it has loaded,
// and what it has written, are compared with what the backup holds. A folder with data is
// refused: the way back would be gone.

func (a *app) restoreCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "restore FILE --dir DIR", Short: "Make a folder to serve from of a backup", Args: exactly("FILE"),
		Long: `Make DIR, which is new or empty, a folder with the data of FILE: a backup, or any RDB
file of an engine, of Redis or of Valkey. FILE is read from beginning to end first, an
engine is opened on the folder, and what it has loaded and what it has written are
compared with FILE. If something is wrong, DIR is left as it was.

Permits are held then by those who held them when the backup was made, until their
leases expire.

JSON: {file, dir, size_bytes, keys, expired, sha256}.`,
		Example: `  signalbox restore monday.rdb --dir data
  signalbox serve --dir data`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" {
				return usage("restore: give the folder with --dir")
			}
			ctx, cancel := signal.NotifyContext(cmd.Context(), terminationSignals...)
			defer cancel()
			done, err := a.restore(ctx, args[0], dir)
			if err != nil {
				return err
			}
			return a.printBackup(done, "Restored to "+printable(dir), "  signalbox serve --dir "+word(dir)+"\n")
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder to make, new or empty")
	return cmd
}

// What a restored folder holds.
const (
	restoredSnapshot = "dump.rdb"
	restoredLog      = "appendonlydir"
	folderLock       = "signalbox.lock"
)

func (a *app) restore(ctx context.Context, path, dir string) (done *backupJSON, err error) {
	if _, err := os.Stat(path); err != nil {
		return nil, absent(err, path, "a backup, or another RDB file")
	}
	made, err := emptyFolder(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, unmake(dir, made))
		}
	}()
	progress := a.newProgress()
	defer progress.clear()
	var held *check.RDBReport
	done, err = copyRDB(ctx, path, filepath.Join(dir, restoredSnapshot), progress, func(report *check.RDBReport) error {
		held = report
		return nil
	})
	if err != nil {
		return nil, err
	}
	done.File, done.Dir = path, dir
	if done.Expired, err = a.adopt(ctx, dir, held); err != nil {
		return nil, err
	}
	return done, compareLog(dir, held)
}

// emptyFolder makes the folder if it is not there, and refuses one that is not empty.
func emptyFolder(dir string) (made bool, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, os.MkdirAll(dir, 0o700)
	case err != nil:
		return false, err
	}
	for _, entry := range entries {
		if entry.Name() != "lost+found" { // of an empty file system
			return false, fmt.Errorf("%s is not empty, %s is there: give a new folder", printable(dir), printable(entry.Name()))
		}
	}
	return false, nil
}

// unmake removes what a restore has made.
func unmake(dir string, made bool) error {
	var err error
	for _, name := range []string{restoredSnapshot, restoredLog, folderLock} {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, name)))
	}
	if made {
		err = errors.Join(err, os.Remove(dir))
	}
	return err
}

// adopt opens an engine on the folder, which makes the append-only file, compares what it has loaded, and returns how
// many keys it has not, since they had expired.
func (a *app) adopt(ctx context.Context, dir string, held *check.RDBReport) (expired int, err error) {
	config, err := engine.ReadConfig("", "appendonly=yes", "save=")
	if err != nil {
		return 0, err
	}
	e, err := engine.Open(engine.Options{Dir: dir, Config: config, Log: a.logLine})
	if err != nil {
		return 0, err
	}
	info, err := e.Do(ctx, "INFO", "persistence")
	if err = errors.Join(err, e.Close()); err != nil {
		return 0, err
	}
	loaded := infoNumber(info.String(), "rdb_last_load_keys_loaded")
	expired = infoNumber(info.String(), "rdb_last_load_keys_expired")
	if loaded+expired != keysOf(held) {
		return 0, fmt.Errorf("of %s in the file %d were loaded, and %d had expired", count(keysOf(held), "key"), loaded, expired)
	}
	return expired, nil
}

// infoNumber is a field of INFO; -1 if it is not there.
func infoNumber(info, name string) int {
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(line, name+":"); ok {
			if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
				return n
			}
		}
	}
	return -1
}

// compareLog reads the append-only file that was made. Keys with an expiry may be gone by now.
func compareLog(dir string, held *check.RDBReport) error {
	report, err := check.AOF(dir, 0, nil)
	if err != nil {
		return err
	}
	keys, functions := 0, 0
	for _, file := range report.Files {
		if file.RDB != nil {
			keys += keysOf(file.RDB)
			functions += file.RDB.Functions
		}
	}
	volatile := 0
	for _, db := range held.Databases {
		volatile += db.Volatile
	}
	if want := keysOf(held); !report.OK() || functions != held.Functions || keys > want || keys < want-volatile {
		return fmt.Errorf("the append-only file that was made of it is wrong: %s of %d", count(keys, "key"), want)
	}
	return nil
}
