package engine_test

import (
	"crypto/rand"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// noise is a text that cannot be compressed.
func noise() string {
	text := make([]byte, 50_000)
	rand.Read(text) // never fails
	return string(text)
}

// onSmallDisk is a folder on a file system of its own of so many bytes, and how to make that larger.
func onSmallDisk(t *testing.T, size string) (dir string, resize func(size string)) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no file system of its own here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir, func(size string) {
		t.Helper()
		if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size="+size); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReplicaWithAFullDisk: it goes on following, and says that it cannot write; when it has room again it has everything on
// disk.
func TestReplicaWithAFullDisk(t *testing.T) {
	dir, resize := onSmallDisk(t, "256k")
	primary := startEngine(t)
	l := listenAt(t, "127.0.0.1:"+difftest.FreePort(t))
	replica, end := serveEngine(t, l, dir, "appendonly=yes")
	replica.do("SET", "old", "data")
	for range 20 {
		primary.do("APPEND", "large", noise())
	}
	replica.follow(primary.addr)
	awaitSame(t, primary, replica)
	await(t, func() string { return replica.do("INFO", "persistence").Text }, func() bool {
		return replica.info("aof_last_bgrewrite_status") == "err"
	})
	if got := replica.log(); !strings.Contains(got, "no space left on device") {
		t.Errorf("the log does not name the cause:\n%s", got)
	}
	if got := replica.info("aof_last_write_status"); got != "err" {
		t.Errorf("aof_last_write_status is %s", got) // what signalbox doctor looks at
	}
	for i := range 10 {
		primary.do("SET", "more"+string(rune('a'+i)), noise())
	}
	awaitSame(t, primary, replica)
	resize("16m")
	if got := replica.do("BGREWRITEAOF").Text; !strings.Contains(got, "rewriting") {
		t.Error(got)
	}
	await(t, func() string { return replica.do("INFO", "persistence").Text }, func() bool {
		return replica.info("aof_last_bgrewrite_status") == "ok" && replica.info("aof_rewrite_in_progress") == "0" && replica.info("aof_last_write_status") == "ok"
	})
	want := primary.do("DEBUG", "DIGEST").Text
	end()
	again, endAgain := serveEngine(t, listenAt(t, l.Addr().String()), dir, "appendonly=yes", "replicaof=127.0.0.1 1")
	if got := again.do("DEBUG", "DIGEST").Text; got != want {
		t.Error("other data after a restart")
	}
	endAgain()
}

// TestReplicaWithAFullDiskHoldsBackSoMuch: what the primary goes on to write gathers for the file up to a bound; then it is
// given up, and said, and the file is written anew when there is room.
func TestReplicaWithAFullDiskHoldsBackSoMuch(t *testing.T) {
	dir, resize := onSmallDisk(t, "1m")
	primary := startEngine(t)
	replica, end := serveEngine(t, listenAt(t, "127.0.0.1:0"), dir, "appendonly=yes")
	replica.follow(primary.addr)
	awaitSame(t, primary, replica)
	await(t, func() string { return replica.do("INFO", "persistence").Text }, func() bool {
		return replica.info("aof_rewrite_in_progress") == "0" && replica.info("aof_last_write_status") == "ok"
	})
	const bound = 64 << 20
	megabyte := strings.Repeat(noise(), 20)
	for range bound/len(megabyte) + 10 {
		primary.do("SET", "k", megabyte)
	}
	awaitSame(t, primary, replica)
	await(t, func() string { return replica.do("INFO", "persistence").Text }, func() bool {
		discarded, err := strconv.Atoi(replica.info("aof_discarded_bytes"))
		return err == nil && discarded >= bound
	})
	if got, err := strconv.Atoi(replica.info("aof_buffer_length")); err != nil || got > bound/2 {
		t.Errorf("%d bytes are still held back, %v", got, err)
	}
	if got := replica.log(); !strings.Contains(got, "are given up") {
		t.Errorf("the log does not say so:\n%s", got)
	}
	if got := replica.info("aof_last_write_status"); got != "err" {
		t.Errorf("aof_last_write_status is %s", got)
	}
	resize("32m")
	await(t, func() string { return replica.do("INFO", "persistence").Text }, func() bool {
		return replica.info("aof_last_write_status") == "ok" && replica.info("aof_rewrite_in_progress") == "0"
	})
	primary.do("SET", "after", "v")
	awaitSame(t, primary, replica)
	want := primary.do("DEBUG", "DIGEST").Text
	end()
	again, endAgain := serveEngine(t, listenAt(t, "127.0.0.1:0"), dir, "appendonly=yes")
	if got := again.do("DEBUG", "DIGEST").Text; got != want {
		t.Error("other data after a restart")
	}
	endAgain()
}
