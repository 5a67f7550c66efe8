package main

import (
	"bufio"
	"bytes"
	"errors"
	"math"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func sectionOf(rows ...*engineRow) *section {
	out := engineSection()
	for _, r := range rows {
		r.tell(out)
	}
	return out
}

func TestRowsJudgeTheRatioOrTheEnginesOwn(t *testing.T) {
	t.Parallel()
	test := &engineTest{}
	rate := test.row("GET", "op/s", 0, ratioAtLeast(1))
	cpu := test.row("GET", "µs CPU", 2, ratioAtMost(1))
	own := test.row("idle", "KB each", 1, ownAtMost(20, "KB"))
	for _, server := range []string{redisName, engineName} {
		factor := map[string]float64{redisName: 1, engineName: 2}[server]
		rate.add(server, 100*factor)
		cpu.add(server, 3*factor)
		own.add(server, 15*factor)
	}
	out := sectionOf(test.rows...)
	for i, want := range []bool{true, false, false} {
		if out.Aims[i].Pass != want {
			t.Errorf("%+v, want pass %v", out.Aims[i], want)
		}
	}
	if got := strings.Join(out.Rows[0], "|"); got != "GET|op/s|100|200|2.00|2.00..2.00|1|≥ 1.00 ×|pass" {
		t.Errorf("got %s", got)
	}
	if out.Aims[2].Measured != 30 {
		t.Errorf("%v KB are judged, want the engine's 30", out.Aims[2].Measured)
	}
}

func TestAHalfOfAPairIsDropped(t *testing.T) {
	t.Parallel()
	r := (&engineTest{}).row("GET", "op/s", 0, ratioAtLeast(1))
	r.add(redisName, 1)
	r.add(engineName, 2)
	r.align(nil)
	r.add(redisName, 1000)
	r.align(errors.New("the engine ended"))
	if out := sectionOf(r); out.Rows[0][6] != "1" || out.Rows[0][4] != "2.00" || out.Rows[0][2] != "1" {
		t.Errorf("got %v, want the first pair alone", out.Rows[0])
	}
	none := (&engineTest{}).row("GET", "op/s", 0, ratioAtLeast(1))
	none.align(errors.New("broken"))
	if out := sectionOf(none); out.Aims[0].Pass || !strings.Contains(out.Rows[0][8], "broken") {
		t.Errorf("got %v and %+v, want a miss that says why", out.Rows[0], out.Aims[0])
	}
}

func TestOneTableTellsItsAimsOnce(t *testing.T) {
	t.Parallel()
	row := (&engineTest{}).row("GET -P 1", "op/s", 0, ratioAtLeast(1))
	row.add(redisName, 2)
	row.add(engineName, 1)
	r := &report{Sections: []*section{sectionOf(row)}}
	r.explain(map[string]string{"GET": "slow"})
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "≥ 1.00 ×"); n != 1 {
		t.Errorf("the aim is told %d times:\n%s", n, &out)
	}
	if !strings.Contains(out.String(), "MISS, GET -P 1: op/s: slow") {
		t.Errorf("the reason is not told:\n%s", &out)
	}
}

func TestOnlyChoosesRowsByName(t *testing.T) {
	t.Parallel()
	b := &engineBench{plan: quickEngine}
	groups, err := b.chosen(regexp.MustCompile("^GET -P 16$|idle"))
	if err != nil || len(groups) != 2 || len(groups[0].tests) != 1 || groups[0].tests[0].name != "GET -P 16" {
		t.Errorf("got %d groups, %v", len(groups), err)
	}
	if _, err := b.chosen(regexp.MustCompile("nonsense")); err == nil {
		t.Error("a pattern without rows was taken")
	}
}

// readRequest reads what a server would.
func readRequest(t *testing.T, from *bufio.Reader) []string {
	t.Helper()
	length := func(kind string) int {
		line, err := from.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, kind) || !strings.HasSuffix(line, "\r\n") {
			t.Fatalf("%q, %v", line, err)
		}
		n, err := strconv.Atoi(line[1 : len(line)-2])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	words := make([]string, length("*"))
	for i := range words {
		word := make([]byte, length("$")+2)
		if _, err := from.Read(word); err != nil || !bytes.HasSuffix(word, []byte("\r\n")) {
			t.Fatalf("%q, %v", word, err)
		}
		words[i] = string(word[:len(word)-2])
	}
	return words
}

func TestFillersSendWhatTheirKindsSay(t *testing.T) {
	t.Parallel()
	const number = 1_234_567
	for kind, want := range map[string]string{
		kindStrings:   `^SET key:000001234567 [a-z]{16}$`,
		kindMixed:     `^SET key:000001234567 [a-z]{3,64}$`,
		kindExpiring:  `^SET key:000001234567 [a-z]{16} PXAT 99$`,
		kindUnlinked:  `^UNLINK key:000001234567$`,
		kindZset:      `^ZADD zset \d+ member:1234567$`,
		kindSet:       `^SADD set member:1234567$`,
		kindHash:      `^HSET hash member:1234567 [a-z]{16}$`,
		kindList:      `^RPUSH list [a-z]{16}$`,
		kindHashes:    `^HSET small:\d{6}( member0\d [a-z]{8}){10}$`,
		kindZsets:     `^ZADD small:\d{6}( \d{1,4} member0\d){10}$`,
		kindSets:      `^SADD small:\d{6}( member0\d){10}$`,
		kindLists:     `^RPUSH small:\d{6}( [a-z]{8}){10}$`,
		kindUnlinkedC: `^UNLINK small:\d{6}$`,
	} {
		item := number
		if strings.Contains(want, "small") {
			item = 34_567
		}
		r := fillConfig{Kind: kind, At: 99}.item(nil, item)
		got := strings.Join(readRequest(t, bufio.NewReader(bytes.NewReader(r))), " ")
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: %q is not like %s", kind, got, want)
		}
	}
}

func TestAFillerReportsWhatTheServerRefuses(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	go func() {
		defer shut(theirs)
		answers := []byte("+OK\r\n-OOM command not allowed\r\n")
		if _, err := theirs.Read(make([]byte, 1<<16)); err == nil {
			_, _ = theirs.Write(answers) // the other end says what it got
		}
	}()
	defer shut(ours)
	_, err := fillConfig{Kind: kindStrings, Count: 2, Pipeline: 2}.fill(ours, nil)
	if err == nil || !strings.Contains(err.Error(), "-OOM") {
		t.Errorf("got %v", err)
	}
}

func TestCollectorTellsTheLongestPauseOfAWindow(t *testing.T) {
	t.Parallel()
	before := readCollector()
	now := readCollector()
	now.cycles, now.total, now.assist = before.cycles+2, before.total+10, before.assist+1
	counts := append([]uint64(nil), before.pauses.Counts...)
	last := len(counts) - 2
	counts[last]++
	now.pauses.Counts = counts
	now.idle, now.all = before.idle, before.all
	got := now.since(before)
	if got.Cycles != 2 || math.Abs(got.Assist-10) > 1e-9 || got.WorstPauseMs != before.pauses.Buckets[last+1]*1e3 {
		t.Errorf("got %+v", got)
	}
}
