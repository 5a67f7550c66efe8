package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/engine/check"
)

// A backup is a snapshot: the server is asked to write one, and its file is copied and
// read from beginning to end before it counts. It is what an engine and Redis have in
// common; a copy of the append-only file would be one of a file that is being written.
//
// The file is found where the server says it is, which means something on its machine
// only. Another server's file under the same path is told by its time: the snapshot
// must have begun while we waited, by the server's clock. The way without a shared disk is to
// be a replica for a moment, which the engine cannot serve yet.

// backupJSON is the output of `backup --json` and `restore --json`.
type backupJSON struct {
	File      string `json:"file"`
	Dir       string `json:"dir,omitempty"` // of a restore
	SizeBytes int64  `json:"size_bytes"`
	Keys      int    `json:"keys"`
	Expired   int    `json:"expired"` // of the keys, by now
	SHA256    string `json:"sha256"`
}

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Write all data of a server to a file", Args: exactly("FILE"),
		Long: `Have the server at --url write a snapshot, copy it to FILE, and read the copy from
beginning to end. The server is an engine (signalbox serve), a Redis or a Valkey on this
machine; it goes on working meanwhile. FILE is as of a moment after the command began,
in Redis's RDB format. An earlier FILE is replaced when the new one has been found whole.

signalbox restore makes a folder of FILE to serve from.

JSON: {file, size_bytes, keys, expired, sha256}.`,
		Example: `  signalbox backup --url redis://127.0.0.1:7379 monday.rdb
  signalbox restore monday.rdb --dir data`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), terminationSignals...)
			defer cancel()
			done, err := a.backup(ctx, args[0])
			if err != nil {
				return err
			}
			return a.printBackup(done, "Backed up to "+printable(done.File), "")
		},
	}
}

func (a *app) printBackup(done *backupJSON, what, next string) error {
	if a.json {
		return a.printJSON(done)
	}
	expired := ""
	if done.Expired > 0 {
		expired = fmt.Sprintf(" (%d of them expired by now)", done.Expired)
	}
	_, err := fmt.Fprintf(a.stdout, "%s: %s%s, %d bytes, found whole\n  sha256 %s\n%s", what, count(done.Keys, "key"), expired, done.SizeBytes, done.SHA256, next)
	return err
}

func (a *app) backup(ctx context.Context, path string) (*backupJSON, error) {
	client, err := a.dialServer(ctx)
	if err != nil {
		return nil, err
	}
	progress := a.newProgress()
	progress.say(func() string { return "the server writes a snapshot" })
	taken, err := takeSnapshot(ctx, client, progress)
	if err = errors.Join(err, client.Close()); err != nil {
		return nil, err
	}
	defer progress.clear()
	return copyRDB(ctx, taken.path, path, progress, taken.judge)
}

// dialServer connects to the one server of --url.
func (a *app) dialServer(ctx context.Context) (*redis.Client, error) {
	url := a.server()
	if url == "" {
		return nil, usage("backup: give the server with --url: the private local engine keeps nothing on disk")
	}
	box, err := signalbox.Open(ctx, url)
	if err == nil {
		err = box.Close()
	}
	if err != nil {
		return nil, unavailable(err)
	}
	options, err := redis.ParseURL(url)
	if err != nil { // its own words hold the password
		return nil, usage("backup: give one server: redis://, rediss:// or unix://")
	}
	return redis.NewClient(options), nil
}

// snapshotTaken is where a server has written a snapshot, and when that was, in seconds by its clock.
type snapshotTaken struct {
	path     string
	afterSec int64
	untilSec int64
}

// takeSnapshot has the server write a snapshot that begins after now.
func takeSnapshot(ctx context.Context, client *redis.Client, progress *progress) (taken snapshotTaken, err error) {
	var dir, file string
	if dir, err = configured(ctx, client, "dir"); err != nil {
		return taken, err
	}
	if file, err = configured(ctx, client, "dbfilename"); err != nil {
		return taken, err
	}
	taken.path = filepath.Join(dir, file)
	began, err := client.Time(ctx).Result()
	if err != nil {
		return taken, fmt.Errorf("backup: %w", err)
	}
	if err := save(ctx, client, progress); err != nil {
		return taken, fmt.Errorf("backup: %w", err)
	}
	ended, err := client.Time(ctx).Result()
	if err != nil {
		return taken, fmt.Errorf("backup: %w", err)
	}
	taken.afterSec, taken.untilSec = began.Unix(), ended.Unix()
	return taken, nil
}

func configured(ctx context.Context, client *redis.Client, name string) (string, error) {
	found, err := client.ConfigGet(ctx, name).Result()
	if err == nil && found[name] == "" {
		err = errors.New("it names none, as a server that keeps its data in memory only does")
	}
	if err != nil {
		return "", fmt.Errorf("backup: the server does not say where its snapshots are (CONFIG GET %s): %w", name, err)
	}
	return found[name], nil
}

// save has a snapshot written, and waits for it. One that is under way began too early: it is waited for first.
func save(ctx context.Context, client *redis.Client, progress *progress) error {
	const every = 50 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	begun := false
	for {
		info, err := client.InfoMap(ctx, "persistence").Result()
		if err != nil {
			return err
		}
		state := info["Persistence"]
		if state["rdb_bgsave_in_progress"] == "0" {
			if begun && state["rdb_last_bgsave_status"] != "ok" {
				return errors.New("the server could not write a snapshot; its log says why")
			}
			if begun {
				return nil
			}
			err := client.BgSave(ctx).Err()
			if err != nil && !strings.Contains(err.Error(), "in progress") && !strings.Contains(err.Error(), "Another child") {
				return err
			}
			begun = err == nil
		}
		progress.say(func() string { return "the server writes a snapshot" })
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// judge refuses a file that is not the snapshot that was asked for.
func (s *snapshotTaken) judge(report *check.RDBReport) error {
	for _, aux := range report.Aux {
		if aux.Name != "ctime" {
			continue
		}
		if sec, err := strconv.ParseInt(aux.Value, 10, 64); err == nil && s.afterSec <= sec && sec <= s.untilSec {
			return nil
		}
	}
	return fmt.Errorf("%s is not the snapshot that the server has just written: it is another machine's path; run this where the server runs", printable(s.path))
}

// copyRDB copies an RDB file, reads the copy, and gives it its name when it is whole and judge has nothing against it.
func copyRDB(ctx context.Context, from, to string, progress *progress, judge func(*check.RDBReport) error) (done *backupJSON, err error) {
	source, err := os.Open(from)
	if err != nil {
		return nil, fmt.Errorf("the snapshot cannot be read here, run this where the server runs: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if info, err := os.Stat(to); err == nil && !info.Mode().IsRegular() {
		return nil, usage("%s is no file", printable(to))
	}
	temp, err := os.CreateTemp(filepath.Dir(to), ".signalbox-*.rdb")
	if err != nil {
		return nil, absent(err, filepath.Dir(to), "a file in a folder that is there")
	}
	defer func() {
		if err != nil {
			if gone := os.Remove(temp.Name()); !errors.Is(gone, fs.ErrNotExist) { // else it has its name already
				err = errors.Join(err, gone)
			}
		}
	}()
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(temp, sum), interruptible{ctx, source})
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return nil, err
	}
	report, err := check.RDB(temp.Name(), progress.reading)
	switch {
	case err != nil:
		return nil, err
	case report.Problem != "":
		return nil, fmt.Errorf("%s is damaged at byte %d: %s", printable(from), report.OKUpTo, report.Problem)
	}
	if err := errors.Join(judge(report), ctx.Err()); err != nil {
		return nil, err
	}
	done = &backupJSON{File: to, SizeBytes: report.SizeBytes, Keys: keysOf(report), Expired: expiredOf(report), SHA256: hex.EncodeToString(sum.Sum(nil))}
	if err := os.Rename(temp.Name(), to); err != nil {
		return nil, err
	}
	return done, syncFolder(filepath.Dir(to))
}

// syncFolder makes the names in a folder durable, where the system can be asked to.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err == nil && runtime.GOOS != "windows" {
		err = folder.Sync()
	}
	if folder != nil {
		err = errors.Join(err, folder.Close())
	}
	return err
}

func expiredOf(report *check.RDBReport) (expired int) {
	for _, db := range report.Databases {
		expired += db.Expired
	}
	return expired
}

// interruptible is a reader that ends with a context.
type interruptible struct {
	ctx  context.Context
	from io.Reader
}

// Read reads.
func (r interruptible) Read(into []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.from.Read(into)
}
