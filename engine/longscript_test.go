package engine_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// Scripts that run for long: what others are told meanwhile, and how such a
// script is ended. A dialogue takes place with the engine and with Redis, and
// must be the same.

// dialogue is a request that runs for long, what others ask meanwhile, and its
// own reply in the end.
type dialogue struct {
	before [][]string
	runs   []string
	asked  [][]string // each on a connection of its own
}

const endless = "while true do end"

var longScripts = map[string]dialogue{
	"what others are told": {
		runs: []string{"EVAL", endless, "0"},
		asked: [][]string{
			{"GET", "x"},
			{"PING"},
			{"NOPE"},
			{"GET"},
			{"INFO"},
			{"SUBSCRIBE", "c"},
			{"EVAL", "return 1", "0"},
			{"SCRIPT", "EXISTS", "x"},
			{"SCRIPT", "HELP"},
			{"FUNCTION", "STATS"},
			{"FUNCTION", "KILL"},
			{"AUTH", "x"},
			{"MULTI"},
			{"EXEC"},
			{"DISCARD"},
			{"WATCH", "x"},
			{"UNWATCH"},
			{"RESET"},
			{"SHUTDOWN"},
			{"SHUTDOWN", "SAVE"},
			{"SHUTDOWN", "x"},
			{"QUIT"},
			{"SCRIPT", "KILL"},
		},
	},
	"pcall does not help": {
		runs:  []string{"EVAL", "while true do pcall(function() while true do end end) end", "0"},
		asked: [][]string{{"SCRIPT", "KILL"}},
	},
	"nor a coroutine": {
		runs:  []string{"EVAL", "coroutine.wrap(function() while true do end end)()", "0"},
		asked: [][]string{{"SCRIPT", "KILL"}},
	},
	"nor commands": {
		runs:  []string{"EVAL", "while true do redis.call('get', KEYS[1]) end", "1", "k"},
		asked: [][]string{{"SCRIPT", "KILL"}},
	},
	"nor memory that is being made": {
		runs:  []string{"EVAL", "while true do local t = {} for i = 1, 4e6 do t[i] = i end end", "0"},
		asked: [][]string{{"GET", "x"}, {"SCRIPT", "KILL"}},
	},
	"a script by its SHA1": {
		before: [][]string{{"SCRIPT", "LOAD", endless}},
		runs:   []string{"EVALSHA_RO", "694a5fe1ddb97a4c6a1bf299d9537c7d3d0f84e7", "0"},
		asked:  [][]string{{"SCRIPT", "KILL"}},
	},
	"a function": {
		before: [][]string{{"FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('loop', function() while true do end end)"}},
		runs:   []string{"FCALL", "LOOP", "1", "k", "a"},
		asked:  [][]string{{"GET", "x"}, {"SCRIPT", "KILL"}, {"SHUTDOWN"}, {"FUNCTION", "KILL"}},
	},
	"a transaction": {
		before: [][]string{{"MULTI"}, {"SET", "a", "1"}, {"EVAL", endless, "0"}, {"SET", "b", "2"}},
		runs:   []string{"EXEC"},
		asked:  [][]string{{"GET", "x"}, {"SCRIPT", "KILL"}},
	},
}

func TestLongScripts(t *testing.T) {
	t.Parallel()
	for name, d := range longScripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := d.hold(t, difftest.Redis(t).Dial)
			got := d.hold(t, dial(t))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-redis +engine):\n%s", diff)
			}
		})
	}
}

// hold has a dialogue with one server.
func (d *dialogue) hold(t *testing.T, dial difftest.Dial) (replies []string) {
	t.Helper()
	runner := connectTo(t, dial)
	ask(t, runner, "CONFIG", "SET", "busy-reply-threshold", "20")
	for _, request := range d.before {
		ask(t, runner, request...)
	}
	if err := runner.Send(d.runs...); err != nil {
		t.Fatal(err)
	}
	awaitBusy(t, dial)
	for _, request := range d.asked {
		replies = append(replies, strings.Join(request, " ")+": "+ask(t, connectTo(t, dial), request...))
	}
	reply, err := runner.Receive()
	if err != nil {
		t.Fatal(err)
	}
	return append(replies, reply.String(), ask(t, runner, "PING"), ask(t, runner, "MGET", "a", "b"))
}

func ask(t testing.TB, conn *difftest.Conn, request ...string) string {
	t.Helper()
	reply, err := conn.Do(request...)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	return reply.String()
}

// awaitBusy returns once a script runs for too long. A server answers before
// it has begun, or not at all until it has been running for long enough.
func awaitBusy(t *testing.T, dial difftest.Dial) {
	t.Helper()
	conn := connectTo(t, dial)
	for !strings.HasPrefix(ask(t, conn, "PING"), "-BUSY ") {
		continue
	}
}

// TestAScriptThatHasWrittenIsNotKilled: it ends by itself, here because the
// clock goes on.
func TestAScriptThatHasWrittenIsNotKilled(t *testing.T) {
	t.Parallel()
	const script = "redis.call('set', 'a', '1') local n = 0 while n < 5e6 do n = n + 1 end return 'end'"
	d := dialogue{
		runs:  []string{"EVAL", script, "0"},
		asked: [][]string{{"SCRIPT", "KILL"}, {"FUNCTION", "KILL"}, {"GET", "a"}},
	}
	got := d.hold(t, dial(t))
	want := []string{
		"SCRIPT KILL: -UNKILLABLE Sorry the script already executed write commands against the dataset. " +
			"You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
		"FUNCTION KILL: -UNKILLABLE Sorry the script already executed write commands against the dataset. " +
			"You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
		"GET a: -BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		`"end"`, "+PONG", "*2\n  \"1\"\n  (nil)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestFunctionStatsOfALongFunction: its own facts, but for the time.
func TestFunctionStatsOfALongFunction(t *testing.T) {
	t.Parallel()
	connect := dial(t)
	runner := connectTo(t, connect)
	ask(t, runner, "CONFIG", "SET", "busy-reply-threshold", "20")
	ask(t, runner, "FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('loop', function() while true do end end)")
	if err := runner.Send("FCALL", "loop", "1", "k", "a"); err != nil {
		t.Fatal(err)
	}
	awaitBusy(t, connect)
	reply, err := connectTo(t, connect).Do("FUNCTION", "STATS")
	if err != nil {
		t.Fatal(err)
	}
	running := reply.Elems[1]
	command := running.Elems[3]
	if running.Elems[1].Text != "loop" || len(command.Elems) != 5 || command.Elems[3].Text != "k" {
		t.Errorf("FUNCTION STATS says %v", reply)
	}
	ask(t, connectTo(t, connect), "FUNCTION", "KILL")
	if reply, err := runner.Receive(); err != nil || !strings.HasPrefix(reply.Text, "ERR Script killed") {
		t.Errorf("FCALL answered %v, %v", reply, err)
	}
}

// TestALongScriptIsAtomic: nobody is served in the middle of it, whoever comes in.
func TestALongScriptIsAtomic(t *testing.T) {
	t.Parallel()
	connect := dial(t)
	runner, blocked, other := connectTo(t, connect), connectTo(t, connect), connectTo(t, connect)
	ask(t, runner, "CONFIG", "SET", "busy-reply-threshold", "10")
	if err := blocked.Send("BLPOP", "list", "0"); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(ask(t, runner, "INFO", "clients"), "blocked_clients:1") {
		continue
	}
	ask(t, other, "WATCH", "list")
	const script = "redis.call('rpush', 'list', 'a') local n = 0 while n < 4e6 do n = n + 1 end " +
		"local there = redis.call('llen', 'list') redis.call('rpush', 'list', 'b') return there"
	if err := runner.Send("EVAL", script, "0"); err != nil {
		t.Fatal(err)
	}
	awaitBusy(t, connect)
	for range 3 {
		ask(t, other, "RESET") // a step that is run in the middle
	}
	if reply, err := runner.Receive(); err != nil || reply.String() != ":1" {
		t.Errorf("the script saw %v, %v: somebody took from its list", reply, err)
	}
	if reply, err := blocked.Receive(); err != nil || reply.String() != "*2\n  \"list\"\n  \"a\"" {
		t.Errorf("BLPOP answered %v, %v", reply, err)
	}
}

// TestCloseEndsAScript: however long it would run, and before it is busy.
func TestCloseEndsAScript(t *testing.T) {
	t.Parallel()
	for _, busy := range []bool{false, true} {
		e, err := engine.Open(engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if busy {
			ask(t, connectTo(t, e.Dial), "CONFIG", "SET", "busy-reply-threshold", "1")
		}
		runner := connectTo(t, e.Dial)
		if err := runner.Send("EVAL", "redis.call('set', 'a', 1) "+endless, "0"); err != nil {
			t.Fatal(err)
		}
		if busy {
			awaitBusy(t, e.Dial)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestShutdownNoSaveEndsAScript(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- e.Serve(l) }()
	connect := func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }
	runner := connectTo(t, connect)
	ask(t, runner, "CONFIG", "SET", "busy-reply-threshold", "1")
	if err := runner.Send("EVAL", "redis.call('set', 'a', 1) "+endless, "0"); err != nil {
		t.Fatal(err)
	}
	awaitBusy(t, connect)
	if reply, err := connectTo(t, connect).Do("SHUTDOWN", "NOSAVE"); !errors.Is(err, io.EOF) && err == nil {
		t.Errorf("SHUTDOWN NOSAVE answered %v, %v", reply, err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve ended with %v", err)
	}
	if _, err := e.Do(t.Context(), "PING"); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("Do after SHUTDOWN: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func TestShutdownInProcess(t *testing.T) {
	t.Parallel()
	e, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Do(t.Context(), "SHUTDOWN"); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("SHUTDOWN in process: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestBubbleLongScript: the clock of a bubble stands still while a script
// runs, and yet the script becomes busy and is killed.
func TestBubbleLongScript(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.Open(engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		if _, err := e.Do(ctx, "CONFIG", "SET", "busy-reply-threshold", "5"); err != nil {
			t.Fatal(err)
		}
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			for {
				if _, err := e.Do(ctx, "SCRIPT", "KILL"); err == nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		start := time.Now()
		_, err = e.Do(ctx, "EVAL", endless, "0")
		if err == nil || !strings.HasPrefix(err.Error(), "ERR Script killed") {
			t.Errorf("EVAL: %v", err)
		}
		<-killed
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it took %v of virtual time", took)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestWhateverAScriptDoesItIsKilled: in the middle of a function of a library, or of one instruction, too. Redis cannot.
func TestWhateverAScriptDoesItIsKilled(t *testing.T) {
	t.Parallel()
	const texts = "local s, r = string.rep('x', 4e7), string.rep('x', 4e7) "
	for name, script := range map[string]string{
		"optional characters": "return string.rep('a', 1e6):find(string.rep('a?', 30) .. string.rep('a', 30) .. 'b')",
		"a long set":          "while true do string.rep('a', 3e4):find('[' .. string.rep('b', 1e6) .. ']') end",
		"a sparse array":      "cjson.encode_sparse_array(false, 0, 0) while true do pcall(cjson.encode, {[1] = 1, [2^40] = 2}) end",
		"concatenation":       texts + "while true do local t = s .. r end",
		"comparison":          texts + "while true do local t = s < r or s == r end",
		"insertion":           "local t = {} for i = 1, 1e6 do t[i] = i end while true do table.insert(t, 1, 1) t[#t] = nil end",
		"repetition":          "while true do string.rep('x', 5e8) end",
		"a long error":        texts + "while true do pcall(error, s) end",
		"garbage":             "while true do local t = {} for i = 1, 1e5 do t[i] = {} end end",
	} {
		for _, closed := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				e, err := engine.Open(engine.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				runner := connectTo(t, e.Dial)
				ask(t, runner, "CONFIG", "SET", "busy-reply-threshold", "1")
				if err := runner.Send("EVAL", script, "0"); err != nil {
					t.Fatal(err)
				}
				awaitBusy(t, e.Dial)
				if closed { // as SIGTERM does
					if err := e.Close(); err != nil {
						t.Error(err)
					}
					return
				}
				if got := ask(t, connectTo(t, e.Dial), "SCRIPT", "KILL"); got != "+OK" {
					t.Errorf("SCRIPT KILL answered %s", got)
				}
				if reply, err := runner.Receive(); err != nil || !strings.HasPrefix(reply.Text, "ERR Script killed") {
					t.Errorf("EVAL answered %v, %v", reply, err)
				}
			})
		}
	}
}

// TestCloseLeavesNoScriptHalfDone: who stops a server does not tear what a script was about to write.
func TestCloseLeavesNoScriptHalfDone(t *testing.T) {
	t.Parallel()
	config, err := engine.ReadConfig("", "appendonly=yes")
	if err != nil {
		t.Fatal(err)
	}
	options := engine.Options{Dir: t.TempDir(), Config: config}
	const script = "redis.call('incr', 'first') local n = 0 while n < 1e5 do n = n + 1 end return redis.call('incr', 'second')"
	for range 5 {
		e, err := engine.Open(options)
		if err != nil {
			t.Fatal(err)
		}
		ran, ended := make(chan bool, 1000), make(chan error, 1)
		go func() {
			for {
				if _, err := e.Do(t.Context(), "EVAL", script, "0"); err != nil {
					ended <- err
					return
				}
				ran <- true
			}
		}()
		for range 3 {
			<-ran
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, engine.ErrClosed) && !strings.Contains(err.Error(), "killed") { // before it wrote
			t.Errorf("a script was answered %v", err)
		}
	}
	e, err := engine.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	first, err := e.Do(t.Context(), "GET", "first")
	if err != nil {
		t.Fatal(err)
	}
	second, err := e.Do(t.Context(), "GET", "second")
	if err != nil {
		t.Fatal(err)
	}
	if first.Value() != second.Value() {
		t.Errorf("%v scripts began, and %v ended", first.Value(), second.Value())
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
