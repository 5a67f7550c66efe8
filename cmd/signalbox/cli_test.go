//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// The scripts in testdata/script use the program as people do. Each has a private engine of its own. Beside the program
// they have
//
//	record FILE COMMAND…          run a command and write its exit status to a file
//	circle A B GATE               be two parties that wait for each other on A and B, until GATE is there
//	status N COMMAND…             run a command that must end with exit status N
//	until PATTERN COMMAND…        run a command until its output matches
//	untilfile FILE                wait for a file
//	signal SIG holder|queue NAME  signal the signalbox that holds NAME, or waits first for it
//	redis ARGUMENT…               start a redis-server, and set $REDIS to its address, $HOST and $PORT; FREEPORT is a port
//	serving FILE                  wait for the output of serve --json, and set $TCP, $TLS, $SERVER (its process id)
//	certificate NAME              make NAME.pem and NAME.key, for 127.0.0.1
//	postgres start|kill|restart   have a PostgreSQL of their own, with an empty database: $POSTGRES is its URL

// patience passes in full only if a test fails.
const patience = time.Minute

func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" { // the detector would have each of the programs that scripts start sleep for a second at its end
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // it is a name and a value
	}
	testscript.Main(m, map[string]func(){
		"signalbox": func() {
			leaveOutCgroup()
			os.Exit(Main(context.Background(), os.Args[1:]))
		},
		"record": record,
		"circle": circle,
	})
}

func TestScripts(t *testing.T) {
	params := scriptParams(t, "")
	params.Dir = "testdata/script"
	testscript.Run(t, params)
}

// TestQueueScriptsOnRedis runs the scripts about queues once more, on a server.
func TestQueueScriptsOnRedis(t *testing.T) {
	files, err := filepath.Glob("testdata/script/queue-*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			params := scriptParams(t, "redis://"+difftest.Redis(t).Addr)
			params.Files = []string{file}
			testscript.Run(t, params)
		})
	}
}

func scriptParams(t *testing.T, url string) testscript.Params {
	return testscript.Params{
		Setup: func(env *testscript.Env) error {
			env.Setenv("SIGNALBOX_STATE", filepath.Join(env.WorkDir, "state"))
			env.Setenv("SIGNALBOX_URL", url)
			withPostgres(env)
			env.Defer(func() { stopEngine(t, env) })
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status": exitsWith, "until": until, "untilfile": untilFile, "signal": signalOwner, "serving": serving,
			"postgres": postgres(t), "report": checkReport, "picture": checkPicture,
			// certificate NAME writes NAME.pem and NAME.key.
			"certificate": func(ts *testscript.TestScript, _ bool, args []string) {
				difftest.Certificate(t, ts.Getenv("WORK"), args[0])
			},
			"redis": func(ts *testscript.TestScript, _ bool, args []string) {
				for i, arg := range args {
					if arg == "FREEPORT" {
						args[i] = difftest.FreePort(t)
						ts.Setenv("FREEPORT", args[i])
					}
				}
				addr := difftest.Redis(t, args...).Addr
				host, port, err := net.SplitHostPort(addr)
				ts.Check(err)
				ts.Setenv("REDIS", addr)
				ts.Setenv("HOST", host)
				ts.Setenv("PORT", port)
			},
		},
	}
}

func stopEngine(t *testing.T, env *testscript.Env) {
	stop := exec.Command("signalbox", "serve", "--stop")
	stop.Env = append(os.Environ(), env.Vars...)
	if output, err := stop.CombinedOutput(); err != nil {
		t.Errorf("the private engine could not be ended: %v: %s", err, output)
	}
}

// record passes signals on, so that a script that is cut short ends what it has started.
func record() {
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	err := cmd.Start()
	if err == nil {
		go func() {
			for s := range signals {
				_ = cmd.Process.Signal(s) // it may have ended
			}
		}()
		err = cmd.Wait()
	}
	code := cmd.ProcessState.ExitCode()
	if w, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		code = 128 + int(w.Signal())
	}
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		// Written whole or not at all: scripts wait for it.
		err = os.WriteFile(os.Args[1]+".new", []byte(strconv.Itoa(code)+"\n"), 0o600)
	}
	if err == nil {
		err = os.Rename(os.Args[1]+".new", os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// circle is two parties of which each holds what the other waits for.
func circle() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var parties sync.WaitGroup
	hold := sync.WaitGroup{}
	hold.Add(2)
	for i, names := range [][]string{{os.Args[1], os.Args[2]}, {os.Args[2], os.Args[1]}} {
		parties.Go(func() {
			box, err := signalbox.Open(ctx, os.Getenv("SIGNALBOX_URL"), signalbox.Owner("party"))
			if err == nil {
				label := signalbox.Label(strconv.Itoa(i + 1))
				if _, err = box.Mutex(names[0]).Acquire(ctx, label); err == nil {
					hold.Done()
					hold.Wait()
					_, err = box.Mutex(names[1]).Acquire(ctx, label)
				}
				err = errors.Join(err, box.Close())
			}
			if ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, err)
			}
		})
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(os.Args[3]); err == nil {
			break
		}
		<-tick.C
	}
	cancel()
	parties.Wait()
}

func exitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command…")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Check(err)
		}
		got = exit.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit status %d, want %s\n%s%s", got, args[0], ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// poll tries until it is done. Between two tries it leaves the machine to what is waited for, for as long as a try takes.
func poll(ts *testscript.TestScript, what string, done func() bool) {
	deadline := time.Now().Add(patience)
	for {
		began := time.Now()
		if done() {
			return
		}
		if time.Now().After(deadline) {
			tellStuck(ts)
			ts.Fatalf("%s: not within %v", what, patience)
		}
		<-time.After(max(20*time.Millisecond, time.Since(began)))
	}
}

// tellStuck has the programs of a script that has run out of patience say what their goroutines do, and end by that. They say
// it on stderr: the log of the test has what those in the background said, and here is what went into files.
func tellStuck(ts *testscript.TestScript) {
	environments, err := filepath.Glob("/proc/[0-9]*/environ") // none elsewhere than on Linux
	ts.Check(err)
	var told []string
	for _, path := range environments {
		environ, _ := os.ReadFile(path) // it may have ended, or be another user's
		if bytes.Contains(environ, []byte("SIGNALBOX_STATE="+ts.Getenv("SIGNALBOX_STATE")+"\x00")) {
			id, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if ts.Check(err); syscall.Kill(id, syscall.SIGABRT) == nil {
				told = append(told, path)
			}
		}
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Second); len(told) > 0 && time.Now().Before(deadline); {
		if environ, _ := os.ReadFile(told[0]); len(environ) == 0 {
			told = told[1:]
			continue
		}
		<-tick.C
	}
	files, err := filepath.Glob(ts.MkAbs("*"))
	ts.Check(err)
	for _, path := range files {
		if text, err := os.ReadFile(path); err == nil && len(text) < 1<<16 {
			ts.Logf("%s:\n%s", path, text)
		}
	}
}

func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until pattern command…")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	poll(ts, strings.Join(args, " "), func() bool {
		return ts.Exec(args[1], args[2:]...) == nil && pattern.MatchString(ts.ReadFile("stdout"))
	})
}

func untilFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: untilfile file")
	}
	poll(ts, args[0], func() bool {
		_, err := os.Stat(ts.MkAbs(args[0]))
		return err == nil
	})
}

func signalOwner(ts *testscript.TestScript, neg bool, args []string) {
	numbers := map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "USR1": syscall.SIGUSR1, "KILL": syscall.SIGKILL,
		"STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
	}
	if neg || len(args) != 3 || numbers[args[0]] == 0 {
		ts.Fatalf("usage: signal SIG holder|queue NAME")
	}
	ts.Check(ts.Exec("signalbox", "inspect", "--json", args[2]))
	var state stateJSON
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &state))
	owner := ""
	switch {
	case args[1] == "holder" && len(state.Holders) > 0:
		owner = state.Holders[0].Owner
	case args[1] == "queue" && len(state.Queue) > 0:
		owner = state.Queue[0].Owner
	}
	match := regexp.MustCompile(`:(\d+)\b`).FindStringSubmatch(owner)
	if match == nil {
		ts.Fatalf("no %s of %s: %q", args[1], args[2], owner)
	}
	id, err := strconv.Atoi(match[1])
	ts.Check(err)
	ts.Check(syscall.Kill(id, numbers[args[0]]))
}

func serving(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serving file")
	}
	var found struct {
		TCP string `json:"tcp"`
		TLS string `json:"tls"`
		PID int    `json:"pid"`
	}
	poll(ts, args[0], func() bool {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && json.Unmarshal(text, &found) == nil
	})
	ts.Setenv("TCP", found.TCP)
	ts.Setenv("TLS", found.TLS)
	ts.Setenv("SERVER", strconv.Itoa(found.PID))
}
