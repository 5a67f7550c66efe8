package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// healthy is a server with nothing to say against it.
func healthy() *reading {
	return &reading{
		info: told{
			"redis_version": "7.0.15", "role": "master", "connected_slaves": "0", "maxmemory_policy": "noeviction", "maxmemory": "1000",
			"used_memory": "100", "aof_enabled": "1", "aof_last_write_status": "ok", "rdb_last_bgsave_status": "ok",
			"rdb_last_save_time": "1000", "cluster_enabled": "0", "connected_clients": "5", "maxclients": "100",
			"cmdstat_evalsha": "calls=2,usec=90,usec_per_call=45.00,rejected_calls=0,failed_calls=0",
		},
		config: map[string]string{
			"save": "", "appendfsync": "everysec", "protected-mode": "yes", "bind": "* -::*", "min-replicas-to-write": "0",
		},
		now: time.Unix(2000, 0), open: true, slowest: []redis.SlowLog{},
	}
}

func TestDoctorFindsNothingWrongWithAHealthyServer(t *testing.T) {
	t.Parallel()
	for _, f := range healthy().examine() {
		if f.Level != levelOK {
			t.Errorf("%s: %s: %s", f.Check, f.Level, f.What)
		}
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	const replica = "ip=10.0.0.6,port=6379,state=online,offset=14,lag=0"
	fields := func(pairs ...string) func(*reading) {
		return func(r *reading) {
			for i := 0; i < len(pairs); i += 2 {
				r.info[pairs[i]] = pairs[i+1]
			}
		}
	}
	for _, c := range []struct {
		check, level, what string
		change             func(*reading)
	}{
		{"version", levelDanger, "found Redis 6", func(r *reading) { r.unsupported = errors.New("found Redis 6") }},
		{"role", levelDanger, `replica of 10.0.0.5:6379 \(link down\).*READONLY`, fields("role", "slave", "master_host", "10.0.0.5", "master_port", "6379", "master_link_status", "down")},
		{"role", levelDanger, `link down: the primary refuses masterauth`, fields("role", "slave", "master_link_status", "down", "master_link_error", "the primary refuses masterauth")},
		{"role", levelDanger, "its data is at redis://10.0.0.9:6379", func(r *reading) {
			r.info["role"], r.moved = "slave", "redis://10.0.0.9:6379"
		}},
		{"disk", levelDanger, "follows on in memory; 70 bytes of it were given up", fields("role", "slave", "aof_last_write_status", "err", "aof_discarded_bytes", "70")},
		{"role", levelDanger, "Sentinel", fields("redis_mode", "sentinel")},
		{"role", levelDanger, "takes writes", fields("role", "slave", "slave_read_only", "0")},
		{"eviction", levelDanger, "volatile-lru", func(r *reading) { r.eviction = "volatile-lru" }},
		{"persistence", levelDanger, "frees all permits", fields("aof_enabled", "0")},
		{"persistence", levelWarning, "save 60 1", func(r *reading) { r.info["aof_enabled"], r.config["save"] = "0", "60 1" }},
		{"persistence", levelWarning, "appendfsync is no", func(r *reading) { r.config["appendfsync"] = "no" }},
		{"persistence", levelOK, "before a reply", func(r *reading) { r.config["appendfsync"] = "always" }},
		{"persistence", levelHidden, "CONFIG is refused", func(r *reading) { r.config = nil }},
		{"persistence", levelHidden, "CONFIG is refused", func(r *reading) { r.info["aof_enabled"], r.config = "0", nil }},
		{"disk", levelDanger, "MISCONF", fields("aof_last_write_status", "err")},
		{"disk", levelDanger, "snapshot", fields("rdb_last_bgsave_status", "err")},
		{"memory", levelWarning, "85 % of maxmemory", fields("used_memory", "850")},
		{"memory", levelDanger, "OOM", fields("used_memory", "960")},
		{"memory", levelDanger, "the machine's", fields("maxmemory", "0", "used_memory_rss", "98", "total_system_memory", "100")},
		{"memory", levelOK, "no limit", fields("maxmemory", "0")},
		{"replicas", levelWarning, "1 online.*failover", fields("connected_slaves", "1", "slave0", replica)},
		{"replicas", levelOK, "1 must be", func(r *reading) {
			fields("connected_slaves", "1", "slave0", replica, "min_slaves_good_slaves", "1")(r)
			r.config["min-replicas-to-write"] = "1"
		}},
		{"replicas", levelDanger, "NOREPLICAS", func(r *reading) {
			r.info["min_slaves_good_slaves"], r.config["min-replicas-to-write"] = "0", "1"
		}},
		{"replicas", levelWarning, "10.0.0.6:6379 is not up to date", fields("connected_slaves", "1", "slave0", strings.Replace(replica, "lag=0", "lag=30", 1))},
		{"replicas", levelWarning, "wait_bgsave", fields("connected_slaves", "1", "slave0", strings.Replace(replica, "online", "wait_bgsave", 1))},
		{"replicas", levelHidden, "WithReplicas", func(r *reading) {
			fields("connected_slaves", "1", "slave0", replica)(r)
			r.config = nil
		}},
		{"access", levelDanger, "no password", func(r *reading) { r.config["protected-mode"] = "no" }},
		{"access", levelDanger, "no password", func(r *reading) { r.config["protected-mode"], r.config["bind"] = "no", "127.0.0.1 10.0.0.5" }},
		{"access", levelDanger, "no password", func(r *reading) { r.config["protected-mode"], r.config["bind"] = "no", "" }},
		{"access", levelOK, "loopback", func(r *reading) { r.config["protected-mode"], r.config["bind"] = "no", "127.0.0.1 -::1" }},
		{"access", levelOK, "not let in", func(r *reading) { r.config["protected-mode"], r.open = "no", false }},
		{"access", levelHidden, "CONFIG", func(r *reading) { r.config = nil }},
		{"rights", levelDanger, "HSET, SCAN", func(r *reading) { r.missing = []string{"HSET", "SCAN"} }},
		{"rights", levelWarning, "SCAN", func(r *reading) { r.missing = []string{"SCAN"} }},
		{"rights", levelDanger, "may run no script: NOPERM", func(r *reading) { r.rights = errors.New("NOPERM no") }},
		{"rights", levelDanger, "unknown command 'eval'$", func(r *reading) { r.rights = errors.New("ERR unknown command 'eval', with args x") }},
		{"clock", levelWarning, "gone back, by 10s", func(r *reading) { r.now = time.Unix(990, 0) }},
		{"clock", levelWarning, "5s ahead of", func(r *reading) { r.ahead, r.uncertain = 6*time.Second, time.Second }},
		{"clock", levelWarning, "5s behind", func(r *reading) { r.ahead, r.uncertain = -6*time.Second, time.Second }},
		{"clock", levelOK, "agrees", func(r *reading) { r.ahead, r.uncertain = 6*time.Second, 5*time.Second }},
		{"clock", levelHidden, "TIME", func(r *reading) { r.now = time.Time{} }},
		{"cluster", levelDanger, "MOVED", fields("cluster_enabled", "1")},
		{"cluster", levelHidden, "CLUSTER INFO", cluster(nil)},
		{"cluster", levelDanger, "1 of 16384 slots", cluster(told{"cluster_state": "fail", "cluster_slots_assigned": "16383"})},
		{"cluster", levelDanger, "CLUSTERDOWN", cluster(told{"cluster_state": "fail", "cluster_slots_assigned": "16384"})},
		{"cluster", levelWarning, "3 slots", cluster(told{"cluster_state": "ok", "cluster_slots_assigned": "16384", "cluster_slots_pfail": "3"})},
		{"cluster", levelOK, "all slots", cluster(told{"cluster_state": "ok", "cluster_slots_assigned": "16384"})},
		{"sentinels", levelOK, "the URL names none", func(*reading) {}},
		{"sentinels", levelOK, "3 agree on 10.0.0.5:6379, quorum 2, 1 replica", sentinels(nil)},
		{"sentinels", levelHidden, "none of them answers: .*refused", func(r *reading) { r.sentinels = []sentinelView{viewOf("s", nil, errors.New("refused"))} }},
		{"sentinels", levelDanger, "different primaries, 10.0.0.5:6379 and 10.0.0.6:6379", sentinels(func(v []sentinelView) { v[2].primary = "10.0.0.6:6379" })},
		{"sentinels", levelDanger, "do not hear of the primary 10.0.0.5:6379", sentinels(func(v []sentinelView) { v[1].down = true })},
		{"sentinels", levelDanger, "quorum is 4, and there are 3", sentinels(func(v []sentinelView) { v[0].quorum = 4 })},
		{"sentinels", levelDanger, `1 of 3 answer, and a failover needs 2: s2 \(gone\), s3 \(gone\)`, sentinels(func(v []sentinelView) { v[1].err, v[2].err = errors.New("gone"), errors.New("gone") })},
		{"sentinels", levelWarning, "some do not answer: s3", sentinels(func(v []sentinelView) { v[2].err = errors.New("gone") })},
		{"sentinels", levelWarning, "there are 1", func(r *reading) {
			sentinels(func(v []sentinelView) { v[0].all, v[0].quorum = 1, 1 })(r)
			r.sentinels = r.sentinels[:1]
		}},
		{"sentinels", levelWarning, "do not agree on the quorum", sentinels(func(v []sentinelView) { v[1].quorum = 3 })},
		{"sentinels", levelWarning, "no replica of 10.0.0.5:6379", sentinels(func(v []sentinelView) { v[0].replicas = 0 })},
		{"connections", levelWarning, "85 of 100", fields("connected_clients", "85")},
		{"connections", levelDanger, "refused", fields("connected_clients", "99")},
		{"scripts", levelWarning, "2 requests of 100ms or longer, the longest 3s by KEYS.*45.00 µs", func(r *reading) {
			r.slowest = []redis.SlowLog{{Duration: time.Second}, {Duration: 3 * time.Second, Args: []string{"keys", "*"}}, {Duration: 20 * time.Millisecond}}
		}},
		{"scripts", levelHidden, "SLOWLOG", func(r *reading) { r.slowest = nil }},
	} {
		r := healthy()
		c.change(r)
		all := r.examine()
		f := all[slices.IndexFunc(all, func(f finding) bool { return f.Check == c.check })]
		if f.Level != c.level || !regexp.MustCompile(c.what).MatchString(f.What) {
			t.Errorf("%s: %s: %s; want %s: %s", f.Check, f.Level, f.What, c.level, c.what)
		}
		if bad := f.Level == levelDanger || f.Level == levelWarning; bad != (f.Do != "") {
			t.Errorf("%s: %s: what to do is %q", f.Check, f.Level, f.Do)
		}
	}
}

// sentinels has three of them that are well, but for a change.
func sentinels(change func([]sentinelView)) func(*reading) {
	return func(r *reading) {
		for _, addr := range []string{"s1", "s2", "s3"} {
			r.sentinels = append(r.sentinels, viewOf(addr, map[string]string{
				"ip": "10.0.0.5", "port": "6379", "flags": "master", "num-other-sentinels": "2", "quorum": "2", "num-slaves": "1",
			}, nil))
		}
		if change != nil {
			change(r.sentinels)
		}
	}
}

func cluster(info told) func(*reading) {
	return func(r *reading) { r.info["cluster_enabled"], r.inCluster, r.cluster = "1", true, info }
}

// TestDoctorGuessesNothing: of a server that refuses everything nothing is told but that.
func TestDoctorGuessesNothing(t *testing.T) {
	t.Parallel()
	for _, f := range (&reading{rights: errors.New("NOPERM")}).examine() {
		if f.Level != levelHidden && f.Check != "rights" && f.Check != "access" { // a password is all that access asks for
			t.Errorf("%s: %s: %s", f.Check, f.Level, f.What)
		}
	}
}

// TestDoctorOnThePrivateEngine: nobody can set anything of it.
func TestDoctorOnThePrivateEngine(t *testing.T) {
	t.Parallel()
	r := &reading{private: true, info: told{"role": "master", "maxclients": "100", "connected_clients": "90"}}
	for _, f := range r.examine() {
		if strings.Contains(f.Do, "CONFIG") || f.Level == levelDanger && f.Check == "persistence" {
			t.Errorf("%+v", f)
		}
		if f.Check == "connections" && !strings.Contains(f.Do, "nothing can be set here: signalbox serve --dir DIR") {
			t.Errorf("%+v", f)
		}
	}
}

// TestDoctorKnowsTheCommandsOfTheScripts: what a script gives, the doctor asks the rights for.
func TestDoctorKnowsTheCommandsOfTheScripts(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, request := range slices.Concat(needed, neededInCluster) {
		name, _, _ := strings.Cut(request, " ")
		known[name] = true
	}
	for _, folder := range []string{"../../internal/ledger", "../../internal/queue/store"} {
		files, err := filepath.Glob(folder + "/*.lua")
		if err != nil || len(files) == 0 {
			t.Fatal(folder, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range regexp.MustCompile(`(?:call|ranged)\('([A-Z]+)'`).FindAllSubmatch(text, -1) {
				if !known[string(match[1])] {
					t.Errorf("%s gives %s, which the doctor does not know", file, match[1])
				}
			}
		}
	}
}
