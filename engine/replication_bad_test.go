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

// TestReplicaOfItself, or of its own replica, directly or not: who would close the circle says so at once.
func TestReplicaOfItself(t *testing.T) {
	t.Parallel()
	const want = "are in a circle"
	alone, a, b, c := startEngine(t), startEngine(t), startEngine(t), startEngine(t)
	for _, s := range []*server{alone, a, b} {
		s.do("SET", "old", "data")
	}
	alone.follow(alone.addr)
	awaitTrouble(t, alone, "is this server itself")
	b.follow(a.addr)
	awaitSame(t, a, b)
	c.follow(b.addr)
	awaitSame(t, a, c)
	a.follow(c.addr)
	awaitTrouble(t, a, "3 replicas "+want)
	if got := a.do("REPLICAOF", "NO", "ONE").Text; got != "OK" {
		t.Fatal(got)
	}
	a.do("SET", "new", "1")
	awaitSame(t, a, b)
	awaitSame(t, a, c)
}

// TestCircleThatWasMadeAllAtOnce: nobody has a primary, so nobody can tell of its primary's; they tell one another.
func TestCircleThatWasMadeAllAtOnce(t *testing.T) {
	t.Parallel()
	var circle []*server
	for range 3 {
		circle = append(circle, startEngine(t))
		circle[len(circle)-1].do("SET", "old", "data")
	}
	for i, s := range circle {
		s.follow(circle[(i+1)%3].addr)
	}
	for _, s := range circle {
		awaitTrouble(t, s, "3 replicas are in a circle")
	}
	if got := circle[0].do("REPLICAOF", "NO", "ONE").Text; got != "OK" {
		t.Fatal(got)
	}
	circle[0].do("SET", "new", "1")
	awaitSame(t, circle[0], circle[1])
	awaitSame(t, circle[0], circle[2])
}

// TestChainIsTurnedAround: who was followed follows who has followed it, and that is no circle.
func TestChainIsTurnedAround(t *testing.T) {
	t.Parallel()
	a, b, c := startEngine(t), startEngine(t), startEngine(t)
	b.follow(a.addr)
	awaitSame(t, a, b)
	c.follow(b.addr)
	awaitSame(t, a, c)
	if got := b.do("REPLICAOF", "NO", "ONE").Text; got != "OK" {
		t.Fatal(got)
	}
	a.follow(c.addr)
	b.do("SET", "new", "1")
	awaitSame(t, b, c)
	awaitSame(t, b, a)
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
