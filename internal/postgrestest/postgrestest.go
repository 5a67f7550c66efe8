// Package postgrestest runs a real PostgreSQL for tests, in a folder of its own, behind a socket in it, without a port. It needs
// no driver: it talks to the server by PostgreSQL's own programs, so that the modules that test with it choose theirs.
//
// A package's tests share one server (Shared), in which each test has a database; who restarts it has one alone (Start).
package postgrestest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// patience only passes in full when something hangs.
const patience = time.Minute

// Server is a PostgreSQL.
type Server struct {
	folder   string
	programs string   // where they are
	program  []string // the server's, with the words that run it as its own user
	command  *exec.Cmd
	said     *bytes.Buffer
	ended    chan struct{}
}

// places are where Debian and others have its programs.
var places = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/bin", "/usr/local/bin", "/usr/bin"}

func findPrograms() (string, error) {
	for _, pattern := range places {
		if found, err := filepath.Glob(pattern + "/initdb"); err == nil && len(found) > 0 {
			return filepath.Dir(slices.Max(found)), nil
		}
	}
	return "", errors.New("PostgreSQL is not here: apt-get install postgresql")
}

// Start makes a server and starts it, without fsync if no setting ("fsync=on") says otherwise. It refuses to run as root:
// then it is run as the user postgres.
func Start(settings ...string) (s *Server, err error) {
	s = &Server{}
	if s.programs, err = findPrograms(); err != nil {
		return nil, err
	}
	if s.folder, err = os.MkdirTemp("", "postgres-"); err != nil { // a test's own is too long for a socket
		return nil, err
	}
	if err := s.make(settings); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.folder))
	}
	if err := s.Restart(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.folder))
	}
	return s, nil
}

func (s *Server) make(settings []string) error {
	if runtime.GOOS == "linux" {
		s.program = []string{"setpriv", "--pdeathsig", "QUIT"} // it ends with the test, whatever becomes of that
	}
	if os.Geteuid() == 0 {
		owner, err := user.Lookup("postgres")
		if err != nil {
			return err
		}
		uid, errUser := strconv.Atoi(owner.Uid)
		gid, errGroup := strconv.Atoi(owner.Gid)
		if err := errors.Join(errUser, errGroup, os.Chown(s.folder, uid, gid)); err != nil {
			return err
		}
		s.program = append(s.program, "--reuid", owner.Uid, "--regid", owner.Gid, "--clear-groups")
	}
	initialize := slices.Concat(s.program, []string{
		s.programs + "/initdb", "--pgdata", s.folder + "/data", "--auth", "trust", "--username", "test", "--no-sync", "--locale", "C.UTF-8",
	})
	if said, err := exec.Command(initialize[0], initialize[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, said)
	}
	s.program = append(s.program, s.programs+"/postgres", "-D", s.folder+"/data", "-k", s.folder)
	for _, setting := range append([]string{"listen_addresses=", "fsync=off", "max_connections=200", "logging_collector=off"}, settings...) {
		s.program = append(s.program, "-c", setting)
	}
	return nil
}

// Restart starts it after Kill, and returns when it answers.
func (s *Server) Restart() error {
	s.command, s.said, s.ended = exec.Command(s.program[0], s.program[1:]...), &bytes.Buffer{}, make(chan struct{})
	s.command.Stderr = s.said
	started := make(chan error)
	go func() {
		// The system tells a child of the end of the thread that it is a child of.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.command.Start()
		started <- err
		if err == nil {
			_ = s.command.Wait() // it was killed
			close(s.ended)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	for giveUp := time.Now().Add(patience); ; {
		err := s.run("select 1")
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("PostgreSQL has ended: %s", s.said)
		case <-time.After(20 * time.Millisecond): // until it answers
		}
		if time.Now().After(giveUp) {
			s.Kill()
			return fmt.Errorf("PostgreSQL does not answer: %w", err)
		}
	}
}

// run runs statements as its superuser.
func (s *Server) run(statements ...string) error {
	arguments := []string{"--host", s.folder, "--username", "test", "--dbname", "postgres", "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"}
	for _, statement := range statements {
		arguments = append(arguments, "--command", statement)
	}
	if said, err := exec.Command(s.programs+"/psql", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("psql: %w: %s", err, said)
	}
	return nil
}

// URL is the address of a database, in the words that all drivers understand.
func (s *Server) URL(database string) string {
	return "host=" + s.folder + " user=test dbname=" + database
}

var databases atomic.Int64

// Database returns the address of a new database. Settings ("lock_timeout = '1ms'") are its own.
func (s *Server) Database(t testing.TB, settings ...string) string {
	t.Helper()
	name := fmt.Sprintf("test%d", databases.Add(1))
	statements := []string{"create database " + name}
	for _, setting := range settings {
		statements = append(statements, "alter database "+name+" set "+setting)
	}
	if err := s.run(statements...); err != nil {
		t.Fatal(err)
	}
	return s.URL(name)
}

// Kill ends it at once, without telling its clients and without writing anything more.
func (s *Server) Kill() {
	_ = s.command.Process.Signal(syscall.SIGQUIT) // it may have ended
	<-s.ended
}

// Close ends it and removes its folder.
func (s *Server) Close() {
	s.Kill()
	_ = os.RemoveAll(s.folder) // of the system's folder for such things
}

var (
	sharedOnce sync.Once
	shared     *Server
	errShared  error
)

// Shared is the server of a package's tests, which TestMain ends by CloseShared.
func Shared(t testing.TB) *Server {
	t.Helper()
	sharedOnce.Do(func() { shared, errShared = Start() })
	if errShared != nil {
		t.Fatal(errShared)
	}
	return shared
}

// CloseShared ends the shared server, if there is one.
func CloseShared() {
	if shared != nil {
		shared.Close()
	}
}
