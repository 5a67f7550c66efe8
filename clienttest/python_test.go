package clienttest

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// pythons are where a Python with redis-py may be: Debian's packages belong to Debian's own.
var pythons = []string{"/usr/bin/python3", "python3"}

// python runs a program of the folder python.
func python(t *testing.T, script, addr string) {
	t.Helper()
	host, port := split(t, addr)
	for _, python := range pythons {
		if exec.CommandContext(t.Context(), python, "-c", "import redis.asyncio").Run() == nil {
			run(t, "", python, filepath.Join("python", script), host, port)
			return
		}
	}
	t.Fatal("redis-py is missing: run .ci/test-deps, or install it (Debian: apt-get install python3-redis)")
}

// Debian's redis-py speaks RESP2 only.
func TestRedisPy(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) { python(t, "redis_sync.py", addr) })
}

func TestRedisPyAsyncio(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) { python(t, "redis_asyncio.py", addr) })
}
