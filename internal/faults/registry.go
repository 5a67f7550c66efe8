package faults

import (
	"strings"
	"testing"
)

// Fault is one line of the registry. The test in Package whose name is "Test" + Name shows that it holds.
type Fault struct {
	Package  string // below internal/faults
	Name     string
	Injected string
	Holds    string
}

// What holds under most of them.
const (
	allHolds  = "L1, L2; every waiter gets its turn; nothing is left behind (L6, L7)"
	lossHolds = "L2; every waiter gets its turn; nothing is left behind (L6, L7); L1 among leases younger than the loss"
)

// Registry lists every fault that has a test.
var Registry = []Fault{
	{"network", "RepliesLost", "requests arrive and their replies are lost", allHolds},
	{"network", "RequestsLost", "requests are lost", allHolds},
	{"network", "Partition", "nothing passes either way for longer than a ttl, then all of it", allHolds},
	{"network", "SlowerThanTheReadTimeout", "replies come later than the client waits for them", allHolds},
	{"network", "ConnectionsCut", "all connections are cut every few milliseconds", allHolds},
	{"network", "CutInsideAReply", "connections are cut after every few hundred bytes of replies", allHolds},
	{"network", "MessagesLost", "the connection for messages is a black hole, requests pass", allHolds + "; by heartbeats alone"},

	{"server", "ServerSuspended", "SIGSTOP of the server for longer than a ttl, then SIGCONT", allHolds},
	{"server", "HolderSuspended", "SIGSTOP of a holder's process past its lease, then SIGCONT", "its context has ended when it wakes, its token is smaller than the next holder's, it releases nothing"},
	{"server", "ScriptsFlushed", "SCRIPT FLUSH in a loop", allHolds + "; no call fails"},
	{"server", "ClientsKilled", "CLIENT KILL of every connection in a loop", allHolds},
	{"server", "DataFlushed", "FLUSHALL in a loop", lossHolds},

	{"cluster", "ClusterPrimaryKilled", "kill -9 of a primary that has passed on all its writes; a replica takes over", allHolds},
	{"cluster", "ClusterPrimaryCrashed", "kill -9 of a primary while it writes; a replica takes over", lossHolds},
	{"cluster", "ClusterFailover", "CLUSTER FAILOVER, back and forth", allHolds},
	{"cluster", "ClusterSlotMoved", "slots move between primaries: MOVED, ASK, TRYAGAIN", allHolds},
	{"cluster", "ClusterScriptStopped", "a slot begins to move, and its old owner stops a script in the middle", "the release is no error, the waiter gets its turn, what is torn is repaired (L8)"},
	{"cluster", "ClusterGrows", "a primary joins and is given slots", allHolds},
	{"cluster", "ClusterClientsKilled", "CLIENT KILL of every connection of every node in a loop", allHolds},

	{"sentinel", "SentinelPrimaryKilled", "kill -9 of the primary that has passed on all its writes; a replica takes over", allHolds},
	{"sentinel", "SentinelFailover", "SENTINEL FAILOVER, which waits for no replica", lossHolds},
	{"sentinel", "SentinelStalePrimary", "SIGSTOP of the primary, a replica takes over, SIGCONT", lossHolds},

	{"lossy", "LastWritesLost", "a replica that lacks the last grant is made the primary", "two hold at once: this is possible; the later token is larger (L2), the first holder is told"},
	{"lossy", "ClockBehind", "the same, and the replica's clock is behind by less than the failover takes", "the later token is larger (L2)"},
	{"lossy", "ClockFarBehind", "a replica that lacks nothing is made the primary, its clock an hour behind", "the later token is larger (L2)"},
	{"lossy", "ClockAhead", "a replica that lacks nothing is made the primary, its clock an hour ahead", "two hold at once: leases end early; the later token is larger (L2), the first holder is told"},
}

// Begin looks the fault of a test up in the registry, and lets the test run beside others. A test that is not listed
// fails.
func Begin(t *testing.T) Fault {
	t.Helper()
	t.Parallel()
	guard(t)
	name, _ := strings.CutPrefix(t.Name(), "Test")
	for _, fault := range Registry {
		if fault.Name == name {
			t.Logf("injected: %s; must hold: %s", fault.Injected, fault.Holds)
			return fault
		}
	}
	t.Fatalf("%s is not in the registry of internal/faults", t.Name())
	return Fault{}
}
