package difftest

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// ClockedRedis starts a redis-server without files whose clock is that of libfaketime, by its settings in the environment:
// a library that stands before the system's. Redis brings an allocator of its own, which asks for the time before that library
// is ready, so the system's allocator goes before it. The monotonic clock is the system's.
func ClockedRedis(t testing.TB, clock []string, extraArgs ...string) *Server {
	t.Helper()
	library, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(library) == 0 {
		t.Fatal("libfaketime is not installed (Debian: apt-get install libfaketime)")
	}
	env, err := exec.LookPath("env")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return Start(t, func(port string) []string {
		args := append([]string{env, "LD_PRELOAD=" + library[0] + " libc.so.6", "FAKETIME_DONT_FAKE_MONOTONIC=1"}, clock...)
		args = append(args, RedisServer(t), "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--appendonly", "no")
		return append(args, extraArgs...)
	})
}
