package main

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// checks are all looks, in the order in which findings of a level are shown.
var checks = []struct {
	name string
	look func(*reading) finding
}{
	{"version", lookAtVersion},
	{"role", lookAtRole},
	{"eviction", lookAtEviction},
	{"persistence", lookAtPersistence},
	{"disk", lookAtDisk},
	{"memory", lookAtMemory},
	{"replicas", lookAtReplicas},
	{"sentinels", lookAtSentinels},
	{"access", lookAtAccess},
	{"rights", lookAtRights},
	{"clock", lookAtClock},
	{"cluster", lookAtCluster},
	{"connections", lookAtConnections},
	{"scripts", lookAtScripts},
}

// From where on a value is worth a word.
const (
	fillsUp       = 0.8 // of memory, of connections
	full          = 0.95
	silentSeconds = 10 // of a replica, which says something every second
	clockStep     = 2 * time.Second
	slowRequest   = 100 * time.Millisecond
	slotsInAll    = 16384
)

func ok(format string, args ...any) finding {
	return finding{Level: levelOK, What: fmt.Sprintf(format, args...)}
}

func hidden(format string, args ...any) finding {
	return finding{Level: levelHidden, What: fmt.Sprintf(format, args...)}
}

func lookAtVersion(r *reading) finding {
	switch {
	case r.unsupported != nil:
		return finding{Level: levelDanger, What: r.unsupported.Error(), Do: "use a newer server, or signalbox serve"}
	case r.info == nil:
		return hidden("INFO is refused")
	}
	return ok("%s", r.software())
}

func lookAtRole(r *reading) finding {
	primary := net.JoinHostPort(r.info["master_host"], r.info["master_port"])
	switch {
	case r.info["redis_mode"] == "sentinel":
		return finding{Level: levelDanger, What: "a Sentinel, which keeps no data", Do: "connect with redis+sentinel://host:port/master, the name of the master at the end"}
	case r.info["role"] == "":
		return hidden("INFO does not tell the role")
	case r.info["role"] != "slave":
		return ok("a primary")
	case r.info["slave_read_only"] == "0":
		return finding{
			Level: levelDanger, What: "a replica of " + primary + " that takes writes: the primary knows nothing of what is granted here",
			Do: "connect to " + primary + ", and CONFIG SET replica-read-only yes here",
		}
	}
	if r.moved != "" {
		return finding{
			Level: levelDanger, What: "it was closed by signalbox move, and answers READONLY to every acquire: its data is at " + r.moved,
			Do: "connect to " + r.moved + ", and shut this one down",
		}
	}
	link, mend := r.info["master_link_status"], ""
	if why := r.info["master_link_error"]; why != "" {
		link += ": " + why
		mend = mendLink(why)
	}
	return finding{
		Level: levelDanger, What: fmt.Sprintf("a replica of %s (link %s): it answers READONLY to every acquire", primary, link),
		Do: "connect to " + primary + ", or let Sentinels find the primary: redis+sentinel://" + mend,
	}
}

// mendLink says what else to do where a replica's link is down, "" if the reason says that itself.
func mendLink(why string) string {
	for _, known := range []struct{ sign, do string }{
		{"masterauth", "CONFIG SET masterauth, and masteruser if the primary has users"},
		{"NOAUTH", "CONFIG SET masterauth, and masteruser if the primary has users"},
		{"NOPERM", "the account of masteruser needs +psync +replconf +ping at the primary"},
		{"certificate", "CONFIG SET tls-ca-cert-file, tls-client-cert-file and tls-client-key-file"},
		{"Cluster", "a Cluster has replicas of its own; REPLICAOF NO ONE ends this one"},
		{"unknown command", "a server that knows it, and REPLICAOF again: until then it stands still"},
		{"version", "a server as new as its primary, and REPLICAOF again: until then it stands still"},
		{"refused", "see that the primary runs, and listens there"},
	} {
		if strings.Contains(why, known.sign) {
			return "; for the link: " + known.do
		}
	}
	return ""
}

func lookAtEviction(r *reading) finding {
	switch {
	case r.eviction != "":
		return finding{
			Level: levelDanger,
			What:  "maxmemory-policy is " + r.eviction + ": when memory is full, leases and jobs are removed, and two hold one permit",
			Do:    "CONFIG SET maxmemory-policy noeviction, or a server of its own for locks and queues",
		}
	case r.info["maxmemory_policy"] == "":
		return hidden("INFO does not tell maxmemory-policy")
	}
	return ok("no key is removed to make room")
}

func lookAtPersistence(r *reading) finding {
	if r.private {
		return finding{
			Level: levelWarning,
			What: "it keeps everything in memory: jobs, and leases of acquire --detach, are lost when it is ended or the machine restarts. " +
				"What a command holds nobody else is granted even then",
			Do: "signalbox serve --dir DIR, and --url, for jobs that are to be kept",
		}
	}
	save := r.config["save"]
	switch aof := r.info["aof_enabled"]; {
	case aof == "":
		return hidden("INFO does not tell whether there is an append-only file")
	case aof == "1":
		return lookAtFsync(r)
	case r.config == nil:
		return hidden("there is no append-only file; CONFIG is refused, which would tell of snapshots")
	case save == "":
		return finding{
			Level: levelDanger,
			What: "no append-only file and no snapshots: a restart frees all permits while their holders still work, and all jobs are lost; " +
				"tokens increase all the same",
			Do: "CONFIG SET appendonly yes and CONFIG REWRITE; signalbox serve with --dir. For locks alone: keep it down for the longest ttl at each restart",
		}
	}
	return finding{
		Level: levelWarning,
		What: "no append-only file: a crash goes back to the last snapshot (save " + save + "): what was granted since is granted again, " +
			"jobs that were added since are lost; tokens increase all the same",
		Do: "CONFIG SET appendonly yes and CONFIG REWRITE",
	}
}

func lookAtFsync(r *reading) finding {
	switch r.config["appendfsync"] {
	case "":
		return hidden("there is an append-only file; CONFIG is refused, which would tell how often it is forced to the disk")
	case "no":
		return finding{
			Level: levelWarning,
			What:  "appendfsync is no: a machine that loses its power loses what the system has not written, half a minute of grants and jobs",
			Do:    "CONFIG SET appendfsync everysec, or always for grants that are on disk before they are answered",
		}
	case "always":
		return ok("an append-only file, on disk before a reply is sent")
	}
	return ok("an append-only file, on disk within a second: what a machine that loses its power can lose")
}

func lookAtDisk(r *reading) finding {
	switch {
	case r.info["rdb_last_bgsave_status"] == "":
		return hidden("INFO does not tell of its files")
	case r.info["aof_last_write_status"] == "err" && r.info["role"] == "slave":
		return finding{
			Level: levelDanger,
			What: fmt.Sprintf("it cannot write its append-only file, and follows on in memory; %d bytes of it were given up: "+
				"started again it would begin with older data", r.info.number("aof_discarded_bytes")),
			Do: "make room on its disk: then the file is written anew by itself; its log says what failed",
		}
	case r.info["aof_last_write_status"] == "err":
		return finding{Level: levelDanger, What: "it cannot write its append-only file: writes are answered MISCONF", Do: "make room on its disk; its log says what failed"}
	case r.info["rdb_last_bgsave_status"] == "err":
		return finding{
			Level: levelDanger, What: "its last snapshot failed: writes are answered MISCONF unless stop-writes-on-bgsave-error is no",
			Do: "see its log: mostly it is a full disk, or too little memory for a fork; then BGSAVE",
		}
	}
	return ok("its last writes to disk succeeded")
}

func lookAtMemory(r *reading) finding {
	if r.info["used_memory"] == "" {
		return hidden("INFO does not tell of memory")
	}
	used, limit, of := r.info.number("used_memory"), r.info.number("maxmemory"), "maxmemory"
	if limit == 0 {
		used, limit, of = r.info.number("used_memory_rss"), r.info.number("total_system_memory"), "the machine's memory"
	}
	if limit == 0 {
		return ok("%s used, no limit is set", mebibytes(used))
	}
	f := ok("%d %% of %s (%s) used", 100*used/limit, of, mebibytes(limit))
	switch share := float64(used) / float64(limit); {
	case share >= full:
		f.Level, f.What = levelDanger, f.What+": requests are about to be answered OOM, renewals too"
	case share >= fillsUp:
		f.Level = levelWarning
	}
	if f.Level != levelOK {
		f.Do = "raise maxmemory, or remove data: what else is on this server? signalbox queue stats tells of queues"
	}
	return f
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func lookAtReplicas(r *reading) finding {
	n := r.info.number("connected_slaves")
	least, seen := r.config["min-replicas-to-write"]
	demanded, err := strconv.ParseInt(least, 10, 64)
	if seen && err != nil {
		return hidden("min-replicas-to-write is %q", least)
	}
	const with = "acquire with signalbox.WithReplicas, which waits until they have the grant"
	switch {
	case r.info["role"] == "":
		return hidden("INFO does not tell of replicas")
	case r.info["min_slaves_good_slaves"] != "" && r.info.number("min_slaves_good_slaves") < demanded:
		return finding{
			Level: levelDanger,
			What:  fmt.Sprintf("min-replicas-to-write is %d, and %d are good: writes are answered NOREPLICAS", demanded, r.info.number("min_slaves_good_slaves")),
			Do:    "signalbox replicas shows which; start them, or lower min-replicas-to-write",
		}
	case n == 0:
		return ok("no replica follows: there is nothing to fail over to")
	}
	for _, replica := range replicationOf("", r.info).Replicas {
		if replica.State != "online" || replica.LagSeconds > silentSeconds {
			return finding{
				Level: levelWarning, What: fmt.Sprintf("the replica %s is not up to date (%s, heard %ds ago): if it is promoted, grants are lost",
					replica.Address, replica.State, replica.LagSeconds),
				Do: "signalbox replicas shows the lag; see the replica's log",
			}
		}
	}
	switch {
	case !seen:
		return hidden("%d online; CONFIG is refused, which would tell min-replicas-to-write: %s", n, with)
	case demanded == 0:
		return finding{
			Level: levelWarning, What: fmt.Sprintf("%d online, and a grant is answered before any of them has it: a failover can lose it, and two hold the permit", n),
			Do: with + "; CONFIG SET min-replicas-to-write 1 bounds what a primary that was cut off goes on granting",
		}
	}
	return ok("%d online, %d must be for a write; a grant that is to survive a failover: %s", n, demanded, with)
}

func lookAtAccess(r *reading) finding {
	switch {
	case !r.open:
		return ok("who has no password is not let in")
	case r.config == nil:
		return hidden("nobody is asked for a password here; CONFIG is refused, which would tell who reaches it")
	case r.config["protected-mode"] == "yes":
		return ok("no password, and protected mode: only its own machine is let in")
	case !isWideOpen(r.config["bind"]):
		return ok("no password, and it listens on loopback alone")
	}
	return finding{
		Level: levelDanger, What: fmt.Sprintf("no password, no protected mode, and bind %q: whoever reaches it can take, end and forge leases", r.config["bind"]),
		Do: "CONFIG SET requirepass, or ACL users; and CONFIG SET protected-mode yes",
	}
}

// isWideOpen says whether an address of bind is another one than loopback's.
func isWideOpen(bind string) bool {
	addresses := strings.Fields(bind)
	return len(addresses) == 0 || slices.ContainsFunc(addresses, func(address string) bool {
		address = strings.TrimPrefix(address, "-")
		ip := net.ParseIP(address)
		return address != "localhost" && (ip == nil || !ip.IsLoopback())
	})
}

func lookAtRights(r *reading) finding {
	const grant = "ACL SETUSER name ~signalbox:* &signalbox:* +@read +@write +@scripting +@pubsub +@connection +info +time +wait +scan"
	// Without these locks and queues work; what they do not have is ls, WithReplicas, and a check of the version.
	spare := []string{"SCAN", "WAIT", "INFO"}
	missing := slices.Compact(slices.Clone(r.missing))
	level := levelDanger
	if !slices.ContainsFunc(missing, func(command string) bool { return !slices.Contains(spare, command) }) {
		level = levelWarning
	}
	switch {
	case r.unsupported != nil:
		return hidden("servers before 7.0 do not tell")
	case r.rights != nil && strings.HasPrefix(r.rights.Error(), "NOPERM"):
		return finding{Level: levelDanger, What: "this account may run no script: " + r.rights.Error(), Do: grant}
	case r.rights != nil:
		why, _, _ := strings.Cut(r.rights.Error(), ", with args") // of an unknown command
		return finding{Level: levelDanger, What: "no script can be run: " + why, Do: "EVAL and EVALSHA must be there under their names; see the server's log"}
	case len(missing) > 0:
		return finding{Level: level, What: "this account may not give, on signalbox:*: " + strings.Join(missing, ", "), Do: grant}
	}
	return ok("this account may give all that the library and its scripts need")
}

func lookAtClock(r *reading) finding {
	const slew = "have its clock slewed, never stepped (chrony, ntpd -x)"
	if r.now.IsZero() {
		return hidden("TIME is refused")
	}
	// The time of the last snapshot is that of the start if there was none.
	if saved := time.Unix(r.info.number("rdb_last_save_time"), 0); saved.Sub(r.now) > clockStep {
		return finding{
			Level: levelWarning,
			What: fmt.Sprintf("its clock has gone back, by %s at least. The ledger makes up for that, however far: leases and queues of waiters "+
				"go on as if it had not; who crashed about then keeps a lease for up to one ttl longer", span(saved.Sub(r.now))),
			Do: slew,
		}
	}
	if off := max(r.ahead, -r.ahead) - r.uncertain; off > clockStep {
		which := "ahead of"
		if r.ahead < 0 {
			which = "behind"
		}
		return finding{
			Level: levelWarning,
			What: fmt.Sprintf("its clock is %s %s this machine's. Leases do not mind, all their times are the server's; after a failover between "+
				"clocks that differ so they end that much early or late, and jobs for a time of day start by its clock", span(off), which),
			Do: slew + ", on all machines",
		}
	}
	return ok("agrees with this machine's to %s", max(max(r.ahead, -r.ahead)+r.uncertain, time.Millisecond).Round(time.Millisecond))
}

func lookAtCluster(r *reading) finding {
	assigned, failing := r.cluster.number("cluster_slots_assigned"), r.cluster.number("cluster_slots_pfail")+r.cluster.number("cluster_slots_fail")
	switch {
	case r.info["cluster_enabled"] == "":
		return hidden("INFO does not tell")
	case r.info["cluster_enabled"] == "0":
		return ok("not one of a Cluster")
	case !r.inCluster:
		return finding{Level: levelDanger, What: "this is one node of a Cluster: requests for the others' keys are answered MOVED", Do: "connect with redis+cluster://"}
	case r.cluster == nil:
		return hidden("CLUSTER INFO is refused")
	case assigned < slotsInAll:
		return finding{
			Level: levelDanger, What: fmt.Sprintf("%d of %d slots belong to no node: the names in them cannot be locked", slotsInAll-assigned, slotsInAll),
			Do: "redis-cli --cluster check, then --cluster fix",
		}
	case r.cluster["cluster_state"] != "ok":
		return finding{Level: levelDanger, What: "cluster_state is " + r.cluster["cluster_state"] + ": requests are answered CLUSTERDOWN", Do: "redis-cli --cluster check; start the nodes that are missing"}
	case failing > 0:
		return finding{Level: levelWarning, What: fmt.Sprintf("the nodes of %d slots are not heard of", failing), Do: "CLUSTER NODES shows which"}
	}
	return ok("state ok, all slots are served")
}

func lookAtConnections(r *reading) finding {
	clients, most := r.info.number("connected_clients"), r.info.number("maxclients")
	if most == 0 {
		return hidden("INFO does not tell maxclients")
	}
	f := ok("%d of %d", clients, most)
	switch share := float64(clients) / float64(most); {
	case share >= full:
		f.Level, f.What = levelDanger, f.What+": new ones are about to be refused, and a holder that lost its connection loses its leases"
	case share >= fillsUp:
		f.Level = levelWarning
	}
	if f.Level != levelOK {
		f.Do = "CONFIG SET maxclients, and see CLIENT LIST for who has so many"
	}
	return f
}

func lookAtScripts(r *reading) finding {
	average := ""
	for field := range strings.SplitSeq(r.info["cmdstat_evalsha"], ",") {
		if value, found := strings.CutPrefix(field, "usec_per_call="); found {
			average = "; EVALSHA takes " + value + " µs on average"
		}
	}
	if r.slowest == nil {
		return hidden("SLOWLOG is refused%s", average)
	}
	var worst redis.SlowLog
	many := 0
	for _, entry := range r.slowest {
		if entry.Duration >= slowRequest {
			many++
		}
		if entry.Duration > worst.Duration {
			worst = entry
		}
	}
	if many == 0 {
		return ok("nothing took %s or longer%s", span(slowRequest), average)
	}
	name := "?"
	if len(worst.Args) > 0 {
		name = strings.ToUpper(worst.Args[0])
	}
	return finding{
		Level: levelWarning,
		What: fmt.Sprintf("%s of %s or longer, the longest %s by %s at %s: all others wait meanwhile, renewals too%s", count(many, "request"),
			span(slowRequest), span(worst.Duration), name, worst.Time.UTC().Format(time.DateTime), average),
		Do: "SLOWLOG GET shows them; give them a server of their own, or a ttl that is far longer",
	}
}
