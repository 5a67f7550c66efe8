package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/engine"
)

// Where `serve` keeps the data, and what it says of that: before it can (another engine is there, a file is damaged), while it
// loads, and once it serves.

// defaultDir is where the data is kept if nobody says where.
const defaultDir = "signalbox-data"

// check refuses flags that contradict each other.
func (f serveFlags) check() error {
	if f.memory && f.dir != "" {
		return usage("--memory keeps nothing on disk: leave it out, or --dir %s", f.dir)
	}
	if f.shutdownTimeout < 0 {
		return usage("--shutdown-timeout must not be negative, but is %v", f.shutdownTimeout)
	}
	for _, setting := range f.set {
		name, value, _ := strings.Cut(setting, "=")
		switch name = strings.ToLower(name); {
		case !f.memory:
		case name == "appendonly" && strings.EqualFold(value, "yes"), (name == "save" || name == "dir") && value != "":
			return usage("--memory keeps nothing on disk: leave it out, or --set %s", setting)
		}
	}
	return nil
}

// folder is where the data is kept; "" for in memory only.
func (f serveFlags) folder(config *engine.Config) string {
	if f.memory {
		return ""
	}
	dir := cmp.Or(f.dir, config.Dir(), defaultDir)
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	return dir
}

// notOpened says what to do about an engine that did not open.
func notOpened(err error, dir string) error {
	var used *engine.InUseError
	if !errors.As(err, &used) {
		return err
	}
	return &exitError{exitUnavailable, inUse(used, dir, "give another folder with --dir, or end that engine")}
}

func inUse(used *engine.InUseError, dir, advice string) error {
	by := "another engine"
	if used.PID != 0 {
		by = fmt.Sprintf("another engine (process %d)", used.PID)
	}
	return fmt.Errorf("%s is used by %s: %s", printable(dir), by, advice)
}

// notLoaded says what to do about data that cannot be loaded.
func notLoaded(err error, k keeping) error {
	look := ""
	for _, tool := range []struct{ command, file, argument string }{
		{"check-aof", k.folder, k.dir}, {"check-rdb", k.file, filepath.Join(k.dir, k.file)},
	} {
		if _, missing := os.Stat(filepath.Join(k.dir, tool.file)); missing == nil {
			look += fmt.Sprintf("\n  look at it: signalbox %s %s", tool.command, word(tool.argument))
		}
	}
	return fmt.Errorf("the data in %s cannot be loaded, and was left as it is:\n  %w%s", printable(k.dir), err, look)
}

// word is a path as a word of the shell.
func word(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !strings.ContainsRune("/._-", r) && !isAlphanumeric(r) }) {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// keeping is what is kept of the data.
type keeping struct {
	dir                      string // "" for nothing
	appendOnly, fsync, saves string // as the parameters are
	folder, file             string // the append-only file's and the snapshot's, in dir
}

func keptIn(ctx context.Context, e *engine.Engine, dir string) keeping {
	of := func(name string) string { return parameter(ctx, e, name) }
	return keeping{
		dir: dir, appendOnly: of("appendonly"), fsync: of("appendfsync"), saves: of("save"),
		folder: of("appenddirname"), file: of("dbfilename"),
	}
}

// parameter is what CONFIG GET says; "" if it says nothing.
func parameter(ctx context.Context, e *engine.Engine, name string) string {
	reply, err := e.Do(ctx, "CONFIG", "GET", name)
	if err != nil || reply.Len() < 2 {
		return ""
	}
	return reply.At(1).String()
}

// String says it in words: where, and what may be lost.
func (k keeping) String() string {
	how := map[string]string{
		"always": "append-only file, on disk before a reply is sent", "everysec": "append-only file, on disk within a second",
		"no": "append-only file, on disk when the system writes it",
	}[k.fsync]
	switch {
	case k.dir == "":
		return "Data is in memory only: it is gone when this ends."
	case k.appendOnly == "yes":
	case k.saves != "":
		how = "snapshots only, a crash loses what came after the last"
	default:
		return fmt.Sprintf("Data is in memory only: it is gone when this ends, unless BGSAVE writes it.\n  folder: %s", printable(k.dir))
	}
	return fmt.Sprintf("Data is in %s\n  %s", printable(k.dir), how)
}

// loadingText tells how far the loading is.
func loadingText(p engine.LoadProgress) string {
	const mega = 1e6
	perSecond := float64(p.LoadedBytes) / max(p.Elapsed.Seconds(), 1e-3)
	text := fmt.Sprintf("loading %d%%: %s, %.0f MB/s", p.LoadedBytes*100/max(p.TotalBytes, 1), count(int(p.Keys), "key"), perSecond/mega)
	if p.LoadedBytes == 0 {
		return text
	}
	remaining := time.Duration(float64(p.TotalBytes-p.LoadedBytes) / perSecond * float64(time.Second))
	return fmt.Sprintf("%s, %s left", text, span(max(remaining.Round(time.Second), time.Second)))
}
