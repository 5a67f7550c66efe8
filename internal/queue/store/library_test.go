package store

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A client asks for the version to know how the functions behave, and an installer to know which is newer.
func TestEveryChangeOfATransitionRaisesTheVersion(t *testing.T) {
	t.Parallel()
	want := fmt.Sprintf("%d %x\n", LibraryVersion, sha256.Sum256([]byte(Library().Source())))
	const path = "testdata/library.version"
	got, err := os.ReadFile(path)
	must(t, err)
	if string(got) != want {
		t.Errorf("the transitions have changed: if a release has version %d already, raise LibraryVersion; "+
			"then put this into internal/queue/store/%s:\n%s", LibraryVersion, path, want)
	}
}

func TestTheLibraryHasEveryTransition(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("*.lua")
	must(t, err)
	var there, got []string
	for _, path := range paths {
		switch name := strings.TrimSuffix(path, ".lua"); name {
		case "prelude": // what they include
		case "check": // mends, in the parts and the order that this package knows
		case "history", "restore": // take a history away and put a queue there, in the steps that this package knows
		default:
			there = append(there, name)
		}
	}
	for _, f := range library {
		got = append(got, f.name)
	}
	slices.Sort(got)
	want(t, "functions", strings.Join(got, " "), strings.Join(there, " "))
}

// docs/functions-queue.md names the functions that are there and no other, and all keys in their order.
func TestThePageNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/functions-queue.md")
	must(t, err)
	there := map[string]bool{}
	for _, match := range regexp.MustCompile(`'(signalbox_queue_\w+)'`).FindAllStringSubmatch(Library().Source(), -1) {
		there[match[1]] = true
	}
	named := map[string]bool{}
	for _, name := range regexp.MustCompile(`signalbox_queue_\w+`).FindAllString(string(page), -1) {
		named[name] = true
	}
	for name := range there {
		if !named[name] {
			t.Errorf("the page says nothing of %s", name)
		}
	}
	for name := range named {
		if !there[name] {
			t.Errorf("the page describes %s, and the library has it not", name)
		}
	}
	var keys []string
	for _, match := range regexp.MustCompile("(?m)^\\| \\d+ \\| `([a-z]+)(?::`\\*process\\*)?`? \\|").FindAllStringSubmatch(string(page), -1) {
		keys = append(keys, match[1])
	}
	want(t, "keys on the page", strings.Join(keys, " "), strings.Join(append(slices.Clone(keyNames), "producer"), " "))
}

func newFunctionLab(t testing.TB) *lab {
	l := newLab(t)
	l.raw("FUNCTION", "LOAD", Library().Source())
	l.called = map[string]int{}
	return l
}

// asFunction makes EVALSHA digest an FCALL name: what follows is the same.
func (l *lab) asFunction(words []string) {
	for _, f := range library {
		if words[0] == "evalsha" && words[1] == f.script.digest {
			words[0], words[1] = "FCALL", LibraryName+"_"+f.name
			l.called[f.name]++
		}
	}
}

// The transitions keep their promises when they run as functions.
func TestRandomRunsOfFunctions(t *testing.T) {
	called := map[string]int{}
	randomRuns(t, 4, func(t testing.TB) *lab {
		l := newFunctionLab(t)
		l.called = called
		return l
	})
	for _, name := range []string{"enqueue", "work", "change", "configure"} {
		want(t, name+" was called", called[name] > 0, true)
	}
}

func TestClientsOfAnotherKindAreToldSo(t *testing.T) {
	l := newFunctionLab(t)
	want(t, "version", l.raw("FCALL_RO", "signalbox_queue_version", "0", "1"), any(int64(LibraryVersion)))
	ask := func(words ...string) string {
		_, err := parseReply(l.engine.Do(words...))
		return fmt.Sprint(err)
	}
	want(t, "another wire version", ask("FCALL_RO", "signalbox_queue_version", "0", "2"),
		"WIRE these functions speak wire version 1 of the queue, and the client 2: update the older of the two")
	want(t, "too few keys", ask("FCALL", "signalbox_queue_stats", "1", l.key("jobs")),
		fmt.Sprintf("KEYS a queue has %d keys, not 1: ask signalbox_queue_keys which, and call again", len(keyNames)+1))
	want(t, "keys", fmt.Sprint(l.raw("FCALL_RO", "signalbox_queue_keys", "0")), fmt.Sprint(append(slices.Clone(keyNames), "producer:")))
}

// What crosses the wire, word by word. A test that fails here has broken clients that are out there: add, and change nothing;
// else it is another WireVersion.
func TestTheWireIsFrozen(t *testing.T) {
	l := newFunctionLab(t)
	var keys []string
	for _, word := range l.raw("FCALL_RO", "signalbox_queue_keys", "0").([]any) {
		keys = append(keys, l.key(word.(string)))
	}
	keys[len(keys)-1] += "p"
	numbers := regexp.MustCompile(`\d{13,}`)
	call := func(name string, args ...string) string {
		words := append([]string{"FCALL", "signalbox_queue_" + name, fmt.Sprint(len(keys))}, keys...)
		value, err := parseReply(l.engine.Do(append(words, args...)...))
		must(t, err)
		text, err := json.Marshal(value)
		must(t, err)
		return numbers.ReplaceAllString(string(text), "#")
	}
	work := func(number string, more ...string) string {
		head := []string{"w/1", number, "seed", "15000", "online", "call:1,slot:2", "de,fr", "sum", "{}", "100"}
		return call("work", append(head, more...)...)
	}
	sees := func(what, got, wanted string) {
		t.Helper()
		want(t, what, got, wanted)
	}
	sees("enqueue", call("enqueue", "1", "seed", "", "", "", "0",
		"a", "sum\tde\tcall=1\tk", "0\t3\t60000\twlh\tfinger\t", "\n{\"args\":[1]}",
		"b", "sum\t\t\t", "", "\n{\"args\":[2]}",
		"c", "sum\t\t\t", "60000\t0\t0\t\tid\tall\tcancel\ta,b", "\n{\"args\":[3]}"), `[["n","n","n"]]`)
	sees("enqueue again", call("enqueue", "1", "seed", "", "", "", "0",
		"a", "sum\tde\tcall=1\tk", "0\t3\t60000\twlh\tfinger\t", "\n{\"args\":[1]}"), `[["n","n","n"],-1]`)
	sees("enqueue what is there", call("enqueue", "2", "seed", "", "", "", "0",
		"d", "sum\t\t\t", "0\t0\t0\twlh\tfinger\t", "\n{}", "b", "sum\t\t\t", "0\t0\t0\t\tid\t", "\n{}"), `[["ua","s"]]`)
	sees("look", call("look", "a", "p"),
		`["w","w\t#\t180000000\t0\t0\t60000\twlh\tfinger\t#\t\tsum\tde\tcall=1\tk\n{\"args\":[1]}","","#",0,0,"",#,["","","0","0","","","0","0","","","0","0"],"","",""]`)
	sees("the first call", work("1", "1", "-", "2"),
		`["ok",15000,[],[],[],[],[],[]]`)
	sees("the second", work("2", "0", "", "2"),
		`["ok",15000,[],["a\t#\tw\t#\t180000000\t0\t0\t60000\twlh\tfinger\t#\t\tsum\tde\tcall=1\tk\n{\"args\":[1]}","b\t#\tw\t#\t0\t0\t0\t0\t\t\t#\t\tsum\t\t\t\n{\"args\":[2]}"],[],[],[],[]]`)
	claims := l.claimsOf("w/1")
	sees("done", work("3", "0", "", "5", "a", claims["a"], "done", "60000", `{"sum":1}`, "b", claims["b"], "retry", "5000", "no"),
		`["ok",5000,[],[],[],[],[],[]]`)
	sees("look at what has ended", call("look", "a", ""),
		`["ended","d\t#\t9\n{\"sum\":1}d\t#\t180000000\t0\t0\t60000\twlh\tfinger\t#\t\tsum\tde\tcall=1\tk\n{\"args\":[1]}",#]`)
	sees("look at nothing", call("look", "x", ""),
		`["unknown"]`)
	sees("another's", work("4", "0", "a,x", "2"),
		`["ok",5000,[],[],[],["a","x"],[],[]]`)
	sees("cancel", call("change", "cancel", "seed", "why", "", "b", "x"),
		`["ok","unknown"]`)
	sees("unknown", call("work", "w/9", "1", "seed", "15000", "online", "slot:1", "", "sum", "{}", "100", "0", "-", "2"),
		`["unknown",-1,[],[],[],[],[],[]]`)
	var told []string
	for _, m := range l.messages() {
		told = append(told, numbers.ReplaceAllString(fmt.Sprint(m), "#"))
	}
	sees("messages", strings.Join(told, "\n"),
		`[ended a d {"sum":1}]`)
}

// claimsOf returns the tokens of what a worker holds.
func (l *lab) claimsOf(worker string) map[string]string {
	found := map[string]string{}
	words := l.raw("HGETALL", l.key("claims")).([]any)
	for i := 0; i < len(words); i += 2 {
		f := strings.Split(words[i+1].(string), "\t")
		if f[0] == worker {
			found[words[i].(string)] = f[1]
		}
	}
	return found
}
