package clienttest

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// node runs a program of the folder node.
func node(t *testing.T, script, addr string, args ...string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join("node", "node_modules")); err != nil {
		t.Fatalf("the packages of Node are missing: run .ci/test-deps, or npm ci in clienttest/node: %v", err)
	}
	host, port := split(t, addr)
	t.Logf("%s", run(t, "", "node", append([]string{filepath.Join("node", script), host, port}, args...)...))
}

func TestIORedis(t *testing.T) {
	onBothProtocols(t, func(t *testing.T, addr string, protocol int) {
		node(t, "ioredis.mjs", addr, strconv.Itoa(protocol))
	})
}

func TestNodeRedis(t *testing.T) {
	onBothProtocols(t, func(t *testing.T, addr string, protocol int) {
		node(t, "node-redis.mjs", addr, strconv.Itoa(protocol))
	})
}

// TestBullMQ: scripts of hundreds of lines that take apart msgpack, streams of events, blocking on sorted sets.
func TestBullMQ(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) { node(t, "bullmq.mjs", addr) })
}
