package faults

import (
	"strings"
	"testing"
	"time"
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

// jobsHold is what holds for a queue whose server keeps its data and whose workers keep their leases.
const jobsHold = "each acknowledged job runs (Q3, Q7), and once (Q2); no key exceeds its limit (Q4); Check finds nothing (Q1)"

// jobsLost is what holds for a queue whose server loses its data.
const jobsLost = "what was enqueued before is gone, or ran; what is enqueued after it runs (Q3, Q7); Check finds nothing (Q1)"

const (
	reweighHolds = "a reader is in only if no lease says that it writes (L1), L2; the call may be made again; nothing is left behind (L7)"
	roundsHold   = "L2; two hold only from a fault to its healing; what both replicas had acknowledged is not lost, and locks that wait for that (WithReplicas) keep L1"
	quorumHolds  = "L1, L2; what is held stays held; every waiter gets its turn"
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
	{"sentinel", "SentinelRounds", "three engines; round after round the primary is killed, suspended or cut off, and comes back", roundsHold},
	{"sentinel", "SentinelRoundsMixed", "the same of engines and a redis-server", roundsHold},

	{"lossy", "LastWritesLost", "a replica that lacks the last grant is made the primary", "two hold at once: this is possible; the later token is larger (L2), the first holder is told"},
	{"lossy", "ClockBehind", "the same, and the replica's clock is behind by less than the failover takes", "the later token is larger (L2)"},
	{"lossy", "ClockFarBehind", "a replica that lacks nothing is made the primary, its clock an hour behind", "the later token is larger (L2)"},
	{"lossy", "ClockAhead", "a replica that lacks nothing is made the primary, its clock an hour ahead", "two hold at once: leases end early; the later token is larger (L2), the first holder is told"},
	{"lossy", "ClockStepsBack", "the clock of a server steps back by an hour while leases are held, and one holder crashes", "the crashed holder's lease ends by its ttl; tokens increase (L2); who lives notices nothing"},
	{"lossy", "ClockStepsForward", "the clock of a server steps forward by an hour while a lease is held", "two hold at once: leases end early; the later token is larger (L2), the first holder is told"},

	{"late", "DowngradeReplyLost", "Downgrade is executed and its reply is lost", reweighHolds},
	{"late", "UpgradeReplyLost", "Upgrade is executed and its reply is lost", reweighHolds},
	{"late", "DowngradeLate", "the request of a Downgrade arrives after the next Upgrade", reweighHolds},
	{"late", "UpgradeLate", "the request of an Upgrade arrives after the next Downgrade", reweighHolds},
	{"late", "AcquireLate", "the request of an acquisition that was given up arrives after the claim time", "nobody's lease is left on the server (L7)"},
	{"late", "BarrierArriveLate", "the request of a party that gave up arrives after its leave", "the barrier waits for a party that is there"},

	{"quorum", "QuorumServerKilled", "kill -9 of one of three servers, that at which all queue", quorumHolds},
	{"quorum", "QuorumServerHung", "SIGSTOP of each of three servers in turn for longer than a ttl, then SIGCONT", quorumHolds},
	{"quorum", "QuorumServerCut", "nothing passes between clients and each of three servers in turn, for longer than a ttl", quorumHolds},
	{"quorum", "QuorumServersInTurn", "the same under one lease", quorumHolds},

	{"jobs", "JobsWorkerKilled", "SIGKILL of the process of a worker that runs jobs", "what it ran runs again by others once its lease is over (Q5); nothing else runs twice (Q2)"},
	{"jobs", "JobsWorkerSuspended", "SIGSTOP of a worker's process past its lease, then SIGCONT", "its jobs' contexts have ended when it wakes, its report is refused; the job is done once, by who has the larger token (Q2)"},
	{
		"jobs", "JobsHandedToASleeper", "SIGSTOP of an idle worker's process, which is handed a job in its sleep, and SIGCONT past its lease",
		"it does not begin the job, which is another's by now (Q2)",
	},
	{"jobs", "JobsRedisKilled", "kill -9 of redis-server, with an append-only file, and its restart, several times", jobsHold},
	{"jobs", "JobsEngineKilled", "the same of the engine", jobsHold},
	{"jobs", "JobsScriptsFlushed", "SCRIPT FLUSH between jobs", jobsHold + "; no call fails"},
	{"jobs", "JobsDataFlushed", "FLUSHALL between jobs", jobsLost},
	{"jobs", "JobsEngineFlushed", "the same of the engine", jobsLost},
	{"jobs", "JobsRedisEmptied", "kill -9 of redis-server, without files, and its restart, several times", jobsLost},
	{"jobs", "JobsEngineEmptied", "the same of the engine", jobsLost},
	{"jobs", "JobsClockAhead", "the clock of a program is an hour ahead of the server's", "schedules tick by the server's clock, each tick once (Q10)"},
	{"jobs", "JobsConnectionsCut", "all connections are cut between jobs", jobsHold},
	{"jobs", "JobsRepliesLost", "requests arrive and their replies are lost", jobsHold},
	{"jobs", "JobsRequestsLate", "requests arrive after their callers have given up on them", jobsHold},
	{"jobs", "JobsMessagesLost", "the connection for messages is a black hole, requests pass", jobsHold},

	{"soak", "Soak", "several processes under load; the network slow, held, lossy and cut, processes killed, all by a seed", allHolds + "; permits counted by a witness outside; no goroutine and no key left"},
	{"soak", "Processes", "many processes on a handful of names, and no fault", allHolds + "; no call fails; turns are shared evenly; no goroutine and no key left"},
}

// Begin looks the fault of a test up in the registry, and lets the test run beside others. A test that is not listed
// fails.
func Begin(t *testing.T) Fault { return BeginFor(t, 0) }

// BeginFor is Begin for a test that takes so much longer.
func BeginFor(t *testing.T, longer time.Duration) Fault {
	t.Helper()
	t.Parallel()
	guard(t, longer)
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
