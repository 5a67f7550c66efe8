package engine_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// infoOf sends INFO and returns its lines, and its headings.
func infoOf(t *testing.T, conn *difftest.Conn, sections ...string) (lines, headings []string) {
	t.Helper()
	text := do(t, conn, append([]string{"INFO"}, sections...)...).Text
	for line := range strings.SplitSeq(text, "\r\n") {
		if strings.HasPrefix(line, "#") {
			headings = append(headings, line)
		}
		lines = append(lines, line)
	}
	return lines, headings
}

func TestInfoHasTheSectionsOfRedis(t *testing.T) {
	t.Parallel()
	redis, _ := connectTwo(t, difftest.Redis(t).Dial)
	ours, _ := connectTwo(t, dial(t))
	for _, conn := range []*difftest.Conn{redis, ours} {
		do(t, conn, "SET", "k", "v")
		do(t, conn, "GET")
	}
	for _, sections := range [][]string{
		nil,
		{"all"},
		{"everything"},
		{"default"},
		{"server", "clients"},
		{"COMMANDSTATS"},
		{"latencystats"},
		{"nosuch"},
		{"nosuch", "memory"},
		{"default", "commandstats"},
		{"modules"},
		{"keyspace", "errorstats"},
	} {
		_, want := infoOf(t, redis, sections...)
		_, got := infoOf(t, ours, sections...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("INFO %q (-redis +engine):\n%s", sections, diff)
		}
	}
}

// TestInfoNamesItsFieldsAsRedisDoes: no field is made up, but these.
func TestInfoNamesItsFieldsAsRedisDoes(t *testing.T) {
	t.Parallel()
	own := []string{"server_name", "pubsub_clients"}
	name := func(line string) string { before, _, _ := strings.Cut(line, ":"); return before }
	redis, _ := connectTwo(t, difftest.Redis(t).Dial)
	ours, _ := connectTwo(t, dial(t))
	sections := []string{"server", "clients", "memory", "persistence", "stats", "replication", "cpu", "cluster"}
	theirs, _ := infoOf(t, redis, sections...)
	known := map[string]bool{}
	for _, line := range theirs {
		known[name(line)] = true
	}
	lines, _ := infoOf(t, ours, sections...)
	for _, line := range lines {
		if !known[name(line)] && !slices.Contains(own, name(line)) {
			t.Errorf("Redis has no field %q", line)
		}
	}
}

// TestInfoCountsAsRedisDoes sends the same requests to both.
func TestInfoCountsAsRedisDoes(t *testing.T) {
	t.Parallel()
	requests := strings.Split(strings.TrimSpace(`
SET k v
GET k
GET missing
MGET k missing k
EXISTS k missing
TTL missing
TYPE k
TOUCH k missing
GETSET k w
GETDEL missing
GETEX k
SET k x GET
SETNX k y
COPY missing k2
COPY k k2
INCR k
LPUSH k v
LPUSH
LPUSH k
NOSUCH
GET a b c
SADD s a b
SINTERSTORE d s missing
SUNION s s
ZUNIONSTORE d 2 s missing
ZRANGESTORE d2 d 0 -1
HSET h f v
HGET h f
HGET missing f
LRANGE missing 0 -1
SET past v PXAT 1
GET past
EVAL return~1 0
EVAL return~{err='MYERR~one'} 0
EVAL return~redis.call('get',KEYS[1]) 1 k
EVAL syntax~error 0
EVALSHA 0000000000000000000000000000000000000000 0
MULTI
NOSUCH
EXEC
MULTI
GET k
LPUSH k x
EXEC
EXEC
DISCARD
CONFIG SET nosuch 1
CONFIG NOSUCH
CLIENT KILL 1.2.3.4:5
AUTH x
HELLO 4
RPUSH l 1
BLPOP l 0
BLPOP l 0.01
SELECT 99
`), "\n")
	uncounted := regexp.MustCompile(`,usec=\d+,usec_per_call=[\d.]+`)
	collect := func(dial difftest.Dial) (counted []string) {
		conn, _ := connectTwo(t, dial)
		do(t, conn, "CONFIG", "RESETSTAT")
		for _, line := range requests {
			do(t, conn, words(line)...)
		}
		lines, _ := infoOf(t, conn, "stats", "commandstats", "errorstats", "keyspace")
		for _, line := range lines {
			before, _, _ := strings.Cut(line, ":")
			switch {
			case strings.HasPrefix(line, "cmdstat_"):
				counted = append(counted, uncounted.ReplaceAllString(line, ""))
			case strings.HasPrefix(line, "errorstat_"), strings.HasPrefix(line, "db0"):
				counted = append(counted, line)
			case slices.Contains([]string{
				"keyspace_hits", "keyspace_misses", "expired_keys", "evicted_keys", "total_error_replies", "total_commands_processed",
			}, before):
				counted = append(counted, line)
			}
		}
		slices.Sort(counted)
		return counted
	}
	want, got := collect(difftest.Redis(t).Dial), collect(dial(t))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("INFO (-redis +engine):\n%s", diff)
	}
	if len(got) < 30 {
		t.Errorf("only %d lines: nothing has been compared", len(got))
	}
}
