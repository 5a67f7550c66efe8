package engine_test

import (
	"net"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// What a replica may be told to follow, and cannot: it says why, and keeps the data that it had.

// awaitTrouble waits until INFO says what is wrong with the link, and looks for it in the log and at the data.
func awaitTrouble(t *testing.T, replica *server, want string) {
	t.Helper()
	await(t, func() string { return want + " in\n" + replica.do("INFO", "replication").Text }, func() bool {
		return strings.Contains(replica.info("master_link_error"), want)
	})
	if got := replica.log(); !strings.Contains(got, want) {
		t.Errorf("the log does not say %q:\n%s", want, got)
	}
	if got := replica.do("GET", "old").Text; got != "data" {
		t.Errorf("%s: the old data is %q", want, got)
	}
}

// TestReplicaOfItself, or of its own replica: each waits for the other one, and says so; in a circle when nothing has
// come for repl-timeout.
func TestReplicaOfItself(t *testing.T) {
	t.Parallel()
	const want = "NOMASTERLINK"
	alone, a, b := startEngine(t), startEngine(t, "repl-timeout=1"), startEngine(t, "repl-timeout=1")
	for _, s := range []*server{alone, a, b} {
		s.do("SET", "old", "data")
	}
	alone.follow(alone.addr)
	awaitTrouble(t, alone, want)
	b.follow(a.addr)
	awaitSame(t, a, b)
	a.follow(b.addr)
	awaitTrouble(t, a, want)
	awaitTrouble(t, b, want)
	if got := a.do("REPLICAOF", "NO", "ONE").Text; got != "OK" {
		t.Fatal(got)
	}
	a.do("SET", "new", "1")
	awaitSame(t, a, b)
}

// TestSnapshotThatCannotBeTaken: nothing of it is there.
func TestSnapshotThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	marked := "$EOF:" + strings.Repeat("m", 40) + "\r\n"
	for snapshot, want := range map[string]string{
		"$100\r\nREDIS0099" + strings.Repeat("x", 91): "version 99",
		"$100\r\nMEMORY010" + strings.Repeat("x", 91): "the snapshot of the primary cannot be taken",
		marked + "REDIS0010\x99garbage":               "the snapshot of the primary cannot be taken",
		marked + empty + strings.Repeat("n", 40):      "the mark behind it is another one",
		"$1000\r\nREDIS0010\xfe\x00":                  "broke off after",
		"$10\r\n" + empty:                             "the snapshot",
		"-ERR no memory for that\r\n":                 "no memory for that",
		"HTTP/1.1 400 Bad Request\r\n":                "HTTP/1.1 400",
		strings.Repeat("x", 5000):                     "a line without end",
	} {
		replica := startEngine(t)
		replica.do("SET", "old", "data")
		replica.follow(startServing(t, func(conn net.Conn) { lieAbout(conn, snapshot) }))
		awaitTrouble(t, replica, want)
	}
}

// TestReplicaOfAClusterNode has no part of the data, which would pass for all of it.
func TestReplicaOfAClusterNode(t *testing.T) {
	t.Parallel()
	node := difftest.Redis(t, "--cluster-enabled", "yes", "--cluster-port", difftest.FreePort(t))
	replica := startEngine(t)
	replica.do("SET", "old", "data")
	replica.follow(node.Addr)
	awaitTrouble(t, replica, "a node of a Cluster")
}
