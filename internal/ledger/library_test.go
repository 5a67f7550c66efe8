package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// A client asks for the version to know how the functions behave, and an installer to know which is newer.
func TestEveryChangeOfATransitionRaisesTheVersion(t *testing.T) {
	t.Parallel()
	var texts strings.Builder
	for _, f := range library {
		fmt.Fprintln(&texts, f.name, f.frees, f.script.text)
	}
	want := fmt.Sprintf("%d %x\n", LibraryVersion, sha256.Sum256([]byte(texts.String())))
	const path = "testdata/library.version"
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("the transitions have changed: if a release has version %d already, raise LibraryVersion; "+
			"then put this into internal/ledger/%s:\n%s", LibraryVersion, path, want)
	}
}

func TestTheLibraryHasEveryTransition(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("*.lua")
	must(t, err)
	var want, got []string
	for _, path := range paths {
		switch name := strings.TrimSuffix(path, ".lua"); name {
		case "prelude", "read", "adopt", "functions", "tell": // what they include
		default:
			want = append(want, name)
		}
	}
	for _, f := range library {
		got = append(got, f.name)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the library has %v, there are %v", got, want)
	}
}

func connect(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// drawCall draws the keys, behind the prefix of the resource, and the arguments of a transition.
func drawCall(t *rapid.T, name string) (suffixes []string, args []any) {
	id := func(label string) string { return fmt.Sprintf("process%d:1", rapid.IntRange(1, 4).Draw(t, label)) }
	few := func(label string) int { return rapid.IntRange(1, 3).Draw(t, label) }
	const ttl, claim = 600000, 600000
	permits := []string{"", ":leases", ":queue", ":seen"}
	terms := rapid.SampledFrom([]string{"-", "c60000", "h60000", "n", "b3", "p60000000:2"}).Draw(t, "terms")
	wait := rapid.SampledFrom([]int{0, claim}).Draw(t, "wait")
	switch name {
	case "acquire":
		return permits, []any{id("id"), few("weight"), few("limit"), ttl, wait, claim, terms, "me\tlabel"}
	case "acquire_group":
		return append(permits, ":b", ":b:leases", ":b:queue", ":b:seen"),
			[]any{id("id"), few("weight"), few("limit"), id("other"), few("weight b"), few("limit b"), ttl, wait, claim, "me"}
	case "release":
		return permits, []any{id("id")}
	case "renew":
		return permits, []any{id("id"), ttl, 0, id("other"), ttl, 60000}
	case "cancel":
		return permits, []any{id("id"), claim}
	case "force":
		return permits, []any{rapid.SampledFrom([]string{"", id("id")}).Draw(t, "whom"), claim}
	case "resize":
		return permits, []any{rapid.IntRange(0, 4).Draw(t, "operator")}
	case "inspect":
		return permits, []any{100}
	case "reweigh":
		return permits, []any{id("id"), few("weight"), few("limit"), few("number")}
	case "heartbeat":
		return permits, []any{claim, id("id"), id("other")}
	case "still":
		return permits, []any{claim, "process1", few("version")}
	case "raise":
		return permits, []any{id("id"), 1}
	case "watch":
		return permits, []any{claim}
	case "limit":
		return []string{":rate"}, []any{60000000, few("burst"), few("cost"), 120000000}
	case "refund":
		return []string{":rate"}, []any{few("mark"), 60000000, few("cost")}
	case "latch":
		verb := rapid.SampledFrom([]string{"count", "await", "leave", "look"}).Draw(t, "verb")
		return []string{":counted", ":awaiting"}, []any{verb, id("id"), few("parties"), ttl, claim}
	case "barrier":
		verb := rapid.SampledFrom([]string{"arrive", "leave"}).Draw(t, "verb")
		return []string{":arrived", ":passed", ":left"}, []any{verb, id("id"), 3, claim}
	case "fence":
		return []string{":guarded", ":newest"}, []any{few("token"), ttl, "incrby", few("by")}
	}
	t.Fatalf("how is %s called?", name)
	return nil, nil
}

// told is a reply without what is different each time: the clock, and what is counted from it.
func told(value any, err error) string {
	if err != nil {
		return err.Error()
	}
	words := strings.FieldsFunc(fmt.Sprint(value), func(r rune) bool { return strings.ContainsRune(" []\t", r) })
	for i, word := range words {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil && n >= 1000 {
			words[i] = "#"
		}
	}
	return strings.Join(words, " ")
}

// Random calls go to a resource by script and to another by function: every reply is the same.
func TestFunctionsAnswerAsScriptsDo(t *testing.T) {
	client := connect(t, difftest.Redis(t).Addr)
	if _, err := New(goredis.New(client)).InstallFunctions(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		for range 30 {
			f := rapid.SampledFrom(library).Draw(t, "function")
			suffixes, args := drawCall(t, f.name)
			call := func(by, what, kind string) string {
				words := []any{by, what, len(suffixes)}
				for _, suffix := range suffixes {
					words = append(words, fmt.Sprintf("signalbox:{%d}%s%s", run, kind, suffix))
				}
				reply := told(client.Do(context.Background(), append(words, args...)...).Result())
				if f.name == "inspect" { // leases that expire in the same ms stand in any order
					words := strings.Fields(reply)
					slices.Sort(words)
					reply = strings.Join(words, " ")
				}
				return reply
			}
			script := call("eval", f.script.text.(string), "scripts")
			if reply := call("fcall", FunctionName(f.name), "functions"); reply != script {
				t.Fatalf("%s: the function answers %q, the script %q", f.name, reply, script)
			}
		}
	})
}

// describe is what Functions and its kin return, in short.
func describe(servers []Installed, err error) string {
	if err != nil {
		return err.Error()
	}
	var text []string
	for _, s := range servers {
		text = append(text, fmt.Sprintf("version %d, %d functions", s.Version, len(s.Functions)))
	}
	return strings.Join(text, "; ")
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %q, want %q", what, got, want)
	}
}

func TestInstallingFunctions(t *testing.T) {
	ctx := t.Context()
	server := difftest.Redis(t)
	client := connect(t, server.Addr)
	l := New(goredis.New(client))
	here := fmt.Sprintf("version %d, %d functions", LibraryVersion, len(library)+1)

	expect(t, "before", describe(l.Functions(ctx)), "version 0, 0 functions")
	expect(t, "delete nothing", describe(l.DeleteFunctions(ctx)), "version 0, 0 functions")
	expect(t, "install", describe(l.InstallFunctions(ctx)), "version 0, 0 functions")
	expect(t, "install again", describe(l.InstallFunctions(ctx)), here)
	found, err := l.Functions(ctx)
	expect(t, "afterwards", describe(found, err), here)
	expect(t, "address", found[0].Server, server.Addr)
	if !strings.HasPrefix(found[0].Software, "Redis 7.") {
		t.Errorf("the server is said to be %q", found[0].Software)
	}
	for _, f := range found[0].Functions {
		if f.Name == "signalbox_acquire" {
			expect(t, "description", f.Description, "takes permits for an id, or a place in the queue")
		}
	}

	newer := strings.Replace(Library(), fmt.Sprintf("return %d end", LibraryVersion), "return 1000 end", 1)
	must(t, client.FunctionLoadReplace(ctx, newer).Err())
	if _, err := l.InstallFunctions(ctx); !errors.Is(err, ErrNewer) {
		t.Errorf("over a newer one: got %v, want ErrNewer", err)
	}
	expect(t, "the newer one", describe(l.Functions(ctx)), "version 1000, 19 functions")
	expect(t, "delete", describe(l.DeleteFunctions(ctx)), "version 1000, 19 functions")
	expect(t, "deleted", describe(l.Functions(ctx)), "version 0, 0 functions")

	must(t, client.FunctionLoad(ctx, "#!lua name=signalbox\nredis.register_function('mine', function() return 1 end)").Err())
	for what, call := range map[string]func(context.Context) ([]Installed, error){
		"install": l.InstallFunctions, "delete": l.DeleteFunctions, "list": l.Functions,
	} {
		if _, err := call(ctx); err == nil || !strings.Contains(err.Error(), "FUNCTION DELETE signalbox") {
			t.Errorf("%s, with a library of somebody else: got %v", what, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestServerWithoutFunctions(t *testing.T) {
	server := difftest.Redis(t, "--rename-command", "FUNCTION", "")
	_, err := New(goredis.New(connect(t, server.Addr))).InstallFunctions(t.Context())
	if !errors.Is(err, ErrUnsupportedServer) || !strings.Contains(fmt.Sprint(err), ": "+server.Addr+" (Redis 7.") {
		t.Errorf("got %v", err)
	}
}

// A holder keeps its lease, and gives it back, on a server whose memory is full.
func TestFunctionsWithoutMemory(t *testing.T) {
	ctx := t.Context()
	client := connect(t, difftest.Redis(t).Addr)
	if _, err := New(goredis.New(client)).InstallFunctions(ctx); err != nil {
		t.Fatal(err)
	}
	call := func(name string, args ...any) string {
		words := []any{"fcall", "signalbox_" + name, 4, "signalbox:{x}", "signalbox:{x}:leases", "signalbox:{x}:queue", "signalbox:{x}:seen"}
		return told(client.Do(ctx, append(words, args...)...).Result())
	}
	expect(t, "acquire", call("acquire", "a:1", 1, 1, 60000, 0, 3000, "-", "me"), "1 # #")
	must(t, client.ConfigSet(ctx, "maxmemory", "1").Err())
	if got := call("acquire", "b:1", 1, 1, 60000, 60000, 3000, "-", "me"); !strings.Contains(got, "OOM") {
		t.Errorf("acquire without memory: %s", got)
	}
	expect(t, "renew", call("renew", "a:1", 60000, 0), "1")
	expect(t, "release", call("release", "a:1"), "1")
}

// On a Cluster every primary gets the library, and the keys of a resource lie together.
func TestFunctionsOnACluster(t *testing.T) {
	ctx := t.Context()
	client := cluster(t)
	l := New(goredis.New(client))
	here := fmt.Sprintf("version %d, %d functions", LibraryVersion, len(library)+1)
	expect(t, "install", describe(l.InstallFunctions(ctx)), "version 0, 0 functions; version 0, 0 functions")
	expect(t, "installed", describe(l.Functions(ctx)), here+"; "+here)
	call := func(name string, keys []any, args ...any) string {
		words := append([]any{"fcall", "signalbox_" + name, len(keys)}, keys...)
		cmd := redis.NewCmd(ctx, append(words, args...)...)
		cmd.SetFirstKeyPos(3)
		_ = client.Process(ctx, cmd) // the error is the command's own
		return told(cmd.Result())
	}
	group := func(a, b string) string {
		keys := append(resourceKeys(t, a), resourceKeys(t, b)...)
		return call("acquire_group", keys, "g:1", 1, 5, "g:1", 1, 5, 60000, 0, 3000, "me")
	}
	for i := range 20 {
		for _, name := range []string{fmt.Sprint("name ", i), fmt.Sprintf("invoice:{%d}", i), fmt.Sprintf("}%%{%d", i)} {
			keys := resourceKeys(t, name)
			expect(t, "acquire "+name, call("acquire", keys, "a:1", 1, 2, 60000, 0, 3000, "-", "me"), "1 # #")
			expect(t, "release "+name, call("release", keys, "a:1"), "1")
		}
		expect(t, "a group by hash tag", group(fmt.Sprintf("invoice:{%d}", i), fmt.Sprintf("customer:{%d}", i)), "1 # # #")
	}
	if got := group("a", "b"); !strings.Contains(got, "CROSSSLOT") {
		t.Errorf("a group without a hash tag: %s", got)
	}
}

func resourceKeys(t *testing.T, name string) []any {
	t.Helper()
	resource, err := NewResource(name)
	must(t, err)
	return resource.keys
}

// cluster starts two primaries that share the slots, and returns a client of them.
func cluster(t *testing.T) *redis.ClusterClient {
	t.Helper()
	ctx := t.Context()
	var addrs []string
	for i, slots := range [][2]int{{0, 8191}, {8192, 16383}} {
		bus := difftest.FreePort(t)
		node := difftest.Redis(t, "--cluster-enabled", "yes", "--cluster-port", bus)
		client := connect(t, node.Addr)
		must(t, client.ClusterAddSlotsRange(ctx, slots[0], slots[1]).Err())
		if i > 0 {
			must(t, connect(t, addrs[0]).Do(ctx, "cluster", "meet", "127.0.0.1", portOf(t, node.Addr), bus).Err())
		}
		addrs = append(addrs, node.Addr)
	}
	for _, addr := range addrs {
		await(t, addr+" sees the whole cluster", func() bool {
			info, err := connect(t, addr).ClusterInfo(ctx).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_size:2")
		})
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func portOf(t *testing.T, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	must(t, err)
	return port
}
