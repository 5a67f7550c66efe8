package difftest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long anything may take that happens at once on a healthy
// machine. It is generous because it only ever passes in full on failure.
const patience = time.Minute

// portAttempts bounds how often a server is started again on another port
// because somebody else took the first one meanwhile.
const portAttempts = 5

// Server is a real redis-server that lives as long as a test.
type Server struct {
	// Addr is the host:port it listens on, the same after Restart.
	Addr string

	t       testing.TB
	args    []string
	process *os.Process
	exited  chan struct{} // closed when the process has been waited for
	output  tail
}

// Redis starts a redis-server on a free port of the loopback interface, in an
// empty directory, without persistence and with DEBUG allowed. The extra
// arguments, such as "--appendonly", "yes", come last and win; a first one that
// ends in .conf is a configuration file to start with. It returns when
// the server answers PING. The server is killed and reaped at the end of the
// test, or with the test process if that dies first.
func Redis(t testing.TB, extraArgs ...string) *Server {
	t.Helper()
	command := []string{RedisServer(t)}
	if len(extraArgs) > 0 && strings.HasSuffix(extraArgs[0], ".conf") {
		command, extraArgs = append(command, extraArgs[0]), extraArgs[1:]
	}
	dir := t.TempDir()
	return Start(t, func(port string) []string {
		return slices.Concat(command, []string{
			"--bind", "127.0.0.1", "--port", port, "--dir", dir, "--daemonize", "no",
			"--save", "", "--appendonly", "no", "--enable-debug-command", "yes",
		}, extraArgs)
	})
}

// RedisServer is the path of the program that tests start as a real server: redis-server, or what the environment variable
// REDIS_SERVER names, such as valkey-server. Whoever starts one by Start has it from here.
func RedisServer(t testing.TB) string {
	t.Helper()
	name := cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server")
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("the server of the tests: %v; install redis-server 7.0 (Debian: apt-get install redis-server), or name another by REDIS_SERVER", err)
	}
	return path
}

// Start runs the server that a command line starts, for one that Redis has no
// place for. The line is asked for with a port that is free; where somebody else
// can take that meanwhile, it is asked for again with another. Like Redis it
// returns when the server answers, and ends it with the test.
func Start(t testing.TB, command func(port string) []string) *Server {
	t.Helper()
	for attempt := 1; ; attempt++ {
		port := FreePort(t)
		s := &Server{Addr: "127.0.0.1:" + port, t: t, args: command(port)}
		err := s.start()
		if err == nil {
			t.Cleanup(s.Kill)
			return s
		}
		if attempt == portAttempts || !strings.Contains(err.Error(), "in use") {
			t.Fatalf("start redis-server: %v", err)
		}
	}
}

// FreePort returns a port of the loopback interface at which a server may listen
// until the end of the test. On Linux nobody else comes to listen there, not
// even while the server is down: else a client that tries to reach it again
// could meet the server of another test, and leave its locks there.
func FreePort(t testing.TB) string {
	t.Helper()
	port, release, err := reserve()
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	t.Cleanup(func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	})
	return port
}

// start runs the process and returns when it answers, or why it does not.
func (s *Server) start() error {
	s.output.reset()
	started := make(chan error, 1)
	exited := make(chan struct{})
	go s.run(started, exited)
	if err := <-started; err != nil {
		return err
	}
	s.exited = exited
	if err := s.awaitReady(); err != nil {
		s.Kill()
		return fmt.Errorf("%w; its last words:\n%s", err, s.output.String())
	}
	return nil
}

// run starts the process and waits for its end on one thread. The system
// sends the parent-death signal when the thread that started the process
// ends, not the whole parent, so that thread has to stay.
func (s *Server) run(started chan<- error, exited chan<- struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(s.args[0], s.args[1:]...)
	cmd.SysProcAttr = childAttributes()
	cmd.Stdout, cmd.Stderr = &s.output, &s.output
	err := cmd.Start()
	s.process = cmd.Process
	started <- err
	if err == nil {
		// How a killed server ends is of no interest.
		_ = cmd.Wait()
		close(exited)
	}
}

// awaitReady returns when the server answers PING.
func (s *Server) awaitReady() error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for {
		err := s.ping()
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return errors.New("redis-server ended at once")
		case <-deadline.C:
			return fmt.Errorf("redis-server is not ready after %v: %w", patience, err)
		case <-again.C:
		}
	}
}

// ping succeeds when the server is ready for commands. A server that wants a
// password is.
func (s *Server) ping() error {
	conn, err := Connect(s.Dial)
	if err != nil {
		return err
	}
	defer conn.Close()
	reply, err := conn.Do("PING")
	if err != nil {
		return err
	}
	if reply.Text != "PONG" && !strings.HasPrefix(reply.Text, "NOAUTH") {
		return errors.New(reply.Text)
	}
	return nil
}

// Dial connects to the server.
func (s *Server) Dial() (net.Conn, error) {
	return net.DialTimeout("tcp", s.Addr, patience)
}

// Kill ends the server without warning, as a crash would, and returns when it
// is gone. Killing it again does nothing.
func (s *Server) Kill() {
	if err := s.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Errorf("kill redis-server: %v", err)
		return
	}
	<-s.exited
}

// Restart kills the server, if it still runs, and starts it again with the
// same port, directory and arguments.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if err := s.start(); err != nil {
		s.t.Fatalf("restart redis-server: %v", err)
	}
}

// Pause stops the server's process in its tracks, as a suspended machine or a
// partition would: connections stay open and nothing is answered.
func (s *Server) Pause() {
	s.t.Helper()
	pause, _ := pauseSignals()
	s.signal(pause)
}

// Resume lets a paused server go on.
func (s *Server) Resume() {
	s.t.Helper()
	_, resume := pauseSignals()
	s.signal(resume)
}

// Output returns the last of what the server wrote, for failure messages.
func (s *Server) Output() string { return s.output.String() }

func (s *Server) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.process.Signal(sig); err != nil {
		s.t.Fatalf("send %v to redis-server: %v", sig, err)
	}
}

// tailBytes is how much of a server's output is kept for failure messages.
const tailBytes = 1500

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf, p...)
	if extra := len(w.buf) - tailBytes; extra > 0 {
		w.buf = w.buf[extra:]
	}
	return len(p), nil
}

func (w *tail) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(bytes.TrimSpace(w.buf))
}
