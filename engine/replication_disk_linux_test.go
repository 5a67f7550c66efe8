package engine_test

import (
	"crypto/rand"
	"strings"
	"syscall"
	"testing"
)

// noise is a text that cannot be compressed.
func noise() string {
	text := make([]byte, 50_000)
	rand.Read(text) // never fails
	return string(text)
}

// TestReplicaWithAFullDisk: it goes on following, and says that it cannot write; when it has room again it has everything on
// disk.
func TestReplicaWithAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("no file system of its own here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	primary := startEngine(t)
	l := listenAt(t, "127.0.0.1:0")
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
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size=16m"); err != nil {
		t.Fatal(err)
	}
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
