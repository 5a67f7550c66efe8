package aof_test

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/aof"
	"github.com/signalbox-io/signalbox/engine/internal/disk"
	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

func connect(t *testing.T, dir string, names aof.Names, args ...string) (*difftest.Server, *difftest.Conn) {
	t.Helper()
	server := difftest.Redis(t, append([]string{
		"--dir", dir, "--appendonly", "yes", "--appendfilename", names.File, "--appenddirname", names.Folder,
	}, args...)...)
	conn, err := difftest.Connect(server.Dial)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return server, conn
}

func do(t *testing.T, conn *difftest.Conn, want string, words ...string) {
	t.Helper()
	reply, err := conn.Do(words...)
	must(t, err)
	if got := reply.String(); !strings.Contains(got, want) {
		t.Errorf("%v: %s, want %s", words, got, want)
	}
}

// Redis goes on where we ended, in every state in which a set can be, and we where Redis ended.
func TestSetsMoveBetweenRedisAndUs(t *testing.T) {
	t.Parallel()
	for name, names := range map[string]aof.Names{
		"usual": aof.DefaultNames, "with spaces": {Folder: "a folder", File: "my file.aof"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			moveToRedis(t, dir, names)
			moveBack(t, dir, names)
		})
	}
}

func moveToRedis(t *testing.T, dir string, names aof.Names) {
	t.Helper()
	set, err := aof.Open(disk.At(dir), names)
	must(t, err)
	l, err := set.Start(aof.Options{Policy: aof.Always})
	must(t, err)
	w := &work{l: l}
	must(t, w.add(10))
	must(t, w.rewrite())
	must(t, w.add(3))
	r, err := l.Begin() // and never finished: there are two incremental files
	must(t, err)
	must(t, w.add(2))
	must(t, r.Abort())
	must(t, l.Close())
	server, conn := connect(t, dir, names, "--aof-timestamp-enabled", "yes")
	do(t, conn, fmt.Sprint(w.last), "DBSIZE")
	do(t, conn, "17", "GET", "k17")
	do(t, conn, "started", "BGREWRITEAOF")
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for rewriting := true; rewriting; <-again.C {
		reply, err := conn.Do("INFO", "persistence")
		must(t, err)
		info := reply.String()
		rewriting = !strings.Contains(info, "aof_rewrite_in_progress:0") || !strings.Contains(info, "aof_rewrite_scheduled:0")
	}
	do(t, conn, "OK", "SET", "after", "rewrite")
	server.Kill()
}

func moveBack(t *testing.T, dir string, names aof.Names) {
	t.Helper()
	set, err := aof.Open(disk.At(dir), names)
	must(t, err)
	files, err := set.Files()
	must(t, err)
	keys, requests, remarks := 0, []string{}, 0
	for _, file := range files {
		from, err := set.Open(file)
		must(t, err)
		r := aof.NewReader(from)
		r.Strict = true
		r.Remark = func(line []byte, _ int64) error { remarks++; return nil }
		r.Preamble = func(from io.Reader) (io.Reader, int64, error) {
			limits := ds.DefaultLimits()
			records := rdb.NewReader(from, &limits)
			for {
				record, err := records.Next()
				if errors.Is(err, io.EOF) {
					return records.Rest(), records.Offset(), nil
				}
				if err != nil {
					return nil, 0, err
				}
				if _, is := record.(rdb.Key); is {
					keys++
				}
			}
		}
		read, err := readAll(r)
		if !errors.Is(err, io.EOF) || r.Whole() != file.SizeBytes {
			t.Errorf("%s: %v at %d of %d", file.Name, err, r.Whole(), file.SizeBytes)
		}
		requests = append(requests, read...)
		must(t, from.Close())
	}
	if all := strings.Join(requests, "|"); keys != 17 || remarks == 0 || len(requests) != 2 || !strings.HasSuffix(all, "SET after rewrite") {
		t.Errorf("%d keys, %d remarks, %s", keys, remarks, all)
	}
	l, err := set.Start(aof.Options{})
	must(t, err)
	w := &work{l: l, last: 99}
	must(t, w.add(1))
	must(t, l.Close())
	_, conn := connect(t, dir, names)
	do(t, conn, "100", "GET", "k100")
	do(t, conn, "rewrite", "GET", "after")
	do(t, conn, "19", "DBSIZE")
}

// What Redis's own loader makes of a torn transaction is what the Reader says.
func TestTornTransactionAsRedis(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := disk.At(dir)
	l := start(t, d, aof.Options{})
	text := append(request(1), multi...)
	seq, _ := l.Append(append(text, request(2)...))
	must(t, l.Commit(seq))
	must(t, l.Close())
	name := "appendonlydir/appendonly.aof.1.incr.aof"
	from, err := d.Open(name)
	must(t, err)
	_, err = readAll(aof.NewReader(from))
	must(t, from.Close())
	var torn *aof.TornError
	if !errors.As(err, &torn) {
		t.Fatal(err)
	}
	server, conn := connect(t, dir, aof.DefaultNames)
	do(t, conn, "1", "DBSIZE")
	server.Kill()
	if size, err := d.Size(filepath.ToSlash(name)); err != nil || size != torn.Offset {
		t.Errorf("Redis has cut the file to %d, we would to %d: %v", size, torn.Offset, err)
	}
}
