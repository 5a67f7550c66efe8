package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The private local engine. Without a URL the commands of one user on one machine meet in an engine behind a Unix
// socket, which the first of them starts and which ends itself when it has been idle for a while. Its folder holds
//
//	engine.sock  the socket; elsewhere if the path does not fit
//	engine.lock  locked by the engine as long as it lives; holds its process id, unless it was ended
//	start.lock   locked by whoever starts or ends the engine, so that two starting at once get one engine
//	engine.log   what the last engine had to say
//	held-…       of holders, see private_life.go
//
// With --socket the socket is where it says, and the others stand beside it: whoever names the same socket meets in
// one engine, whatever else is in his environment.
//
// The locks are the kernel's (flock): they end with their process, however it ends, so nothing here can be stale but the
// socket, which the next engine replaces. A lock is on a file, not on its path: whose file was removed or replaced locks
// nobody out any more. The engine looks for that every reachEvery, and ends itself; so does what runs under a mark.
type private struct {
	folder string
	socket string
	named  bool // by --socket or SIGNALBOX_SOCKET
}

// errNotRunning: no private engine runs.
var errNotRunning = errors.New("the private local engine does not run")

const (
	startWithin = 5 * time.Second
	stopWithin  = 10 * time.Second
	pingWithin  = 2 * time.Second
	look        = 10 * time.Millisecond  // the pace of looking whether something has happened
	reachEvery  = 100 * time.Millisecond // the pace of looking whether a lock is still where others look for it
	idleExit    = 10 * time.Minute
)

// findPrivate finds the folder and makes it.
func (a *app) findPrivate() (*private, error) {
	if a.socket != "" {
		return namedPrivate("--socket", a.socket)
	}
	if socket := os.Getenv("SIGNALBOX_SOCKET"); socket != "" {
		return namedPrivate("SIGNALBOX_SOCKET", socket)
	}
	folder, err := stateFolder()
	if err == nil {
		folder, err = filepath.Abs(folder)
	}
	if err == nil {
		err = ownFolder(folder)
	}
	if err != nil {
		return nil, noPlace(err)
	}
	socket := filepath.Join(folder, "engine.sock")
	if len(socket) > maxSocketPath || strings.ContainsAny(socket, notInURL) {
		if socket, err = shortSocket(folder); err != nil {
			return nil, err
		}
	}
	return &private{folder: folder, socket: socket}, nil
}

// notInURL cannot be in the path of a socket that stands in a URL.
const notInURL = "?@,%#"

// namedPrivate is the engine behind a socket that was named.
func namedPrivate(by, name string) (*private, error) {
	socket, err := filepath.Abs(name)
	if err != nil {
		return nil, noPlace(err)
	}
	info, err := os.Stat(socket)
	switch {
	case strings.HasSuffix(name, "/") || err == nil && info.IsDir():
		return nil, usage("%s %s is a folder: give the path of a socket in it", by, printable(name))
	case len(socket) > maxSocketPath:
		return nil, usage("%s %s has %d bytes, and the path of a socket at most %d: give a shorter one",
			by, printable(socket), len(socket), maxSocketPath)
	case strings.ContainsAny(socket, notInURL) || printable(socket) != socket:
		return nil, usage("%s %s: the path of the socket must have none of %s, and nothing that cannot be printed",
			by, printable(socket), notInURL)
	case err == nil && info.Mode()&os.ModeSocket == 0:
		return nil, usage("%s %s is there already and is not a socket: give another path", by, printable(socket))
	}
	folder := filepath.Dir(socket)
	if err := ownFolder(folder); err != nil {
		return nil, noPlace(fmt.Errorf("%s: %w", by, err))
	}
	return &private{folder: folder, socket: socket, named: true}, nil
}

// noPlace says what to do when the engine cannot be where it should.
func noPlace(err error) error {
	return &exitError{exitUnavailable, fmt.Errorf("the private local engine has no place to be: %w; "+
		"set SIGNALBOX_STATE to a folder of your own, name a socket in one with --socket, or give a server with --url", err)}
}

// blocked names the folder in which something could not be written.
func (p *private) blocked(err error) error {
	advice := "set SIGNALBOX_STATE to another folder, or name a socket in one with --socket"
	if isFull(err) {
		advice = "make room there, or " + advice
	}
	return &exitError{exitUnavailable, fmt.Errorf("the private local engine cannot write to its folder %s: %w; %s", printable(p.folder), err, advice)}
}

func stateFolder() (string, error) {
	if folder := os.Getenv("SIGNALBOX_STATE"); folder != "" {
		return folder, nil
	}
	if base := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "signalbox"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state", "signalbox"), nil
}

// shortSocket is a place for the socket of a folder whose own path is too long for one, or cannot be part of a URL.
func shortSocket(folder string) (string, error) {
	base := filepath.Join(os.TempDir(), "signalbox-"+strconv.Itoa(os.Getuid()))
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); runtime != "" {
		base = filepath.Join(runtime, "signalbox")
	}
	sum := sha256.Sum256([]byte(folder))
	socket := filepath.Join(base, hex.EncodeToString(sum[:6])+".sock")
	if len(socket) > maxSocketPath {
		return "", fmt.Errorf("%s is too long a path for a socket: set SIGNALBOX_STATE to a folder with a short name", socket)
	}
	return socket, ownFolder(base)
}

// url is where the engine is reached.
func (p *private) url() string {
	u := url.URL{Scheme: "unix", Path: filepath.ToSlash(p.socket)}
	return u.String()
}

// dial returns errNotRunning if nobody listens.
func (p *private) dial(ctx context.Context) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", p.socket)
	if isNobody(err) {
		return nil, errNotRunning
	}
	if err != nil {
		return nil, fmt.Errorf("the private local engine in %s: %w", p.folder, err)
	}
	return conn, nil
}

// ping asks the engine for an answer. It returns errNotRunning if there is none.
func (p *private) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingWithin)
	defer cancel()
	conn, err := p.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is left to be sent
	deadline, _ := ctx.Deadline()
	line := ""
	err = errors.Join(conn.SetDeadline(deadline))
	if err == nil {
		_, err = conn.Write([]byte("PING\r\n"))
	}
	if err == nil {
		line, err = bufio.NewReader(conn).ReadString('\n')
	}
	if errors.Is(err, io.EOF) || isNobody(err) {
		return errNotRunning // it was about to end
	}
	if err != nil {
		return fmt.Errorf("the private local engine in %s does not answer: %w; end it with signalbox serve --stop", p.folder, err)
	}
	if !strings.HasPrefix(line, "+PONG") {
		return fmt.Errorf("what listens on %s is not the private local engine: it says %q", p.socket, strings.TrimSpace(line))
	}
	return nil
}

// start makes sure that the engine runs.
func (p *private) start(ctx context.Context) error {
	if err := p.ping(ctx); !errors.Is(err, errNotRunning) {
		return err
	}
	starting, err := p.lock(ctx, "start.lock")
	if err != nil {
		return err
	}
	defer starting.release()
	if err := p.ping(ctx); !errors.Is(err, errNotRunning) {
		return err // another has started it meanwhile
	}
	// The engine could not say that the disk is full: its log is on it.
	if err := starting.write(strconv.Itoa(os.Getpid()) + "\n"); err != nil {
		return p.blocked(err)
	}
	ended, err := p.spawn()
	var given *exitError
	if errors.As(err, &given) {
		return err
	}
	if err != nil {
		return &exitError{exitUnavailable, fmt.Errorf("the private local engine could not be started: %w", err)}
	}
	return p.await(ctx, ended)
}

// spawn starts the engine, on its own and out of reach of our terminal. The channel is closed if it ends again.
func (p *private) spawn() (<-chan struct{}, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.file("engine.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, p.blocked(err)
	}
	defer log.Close() //nolint:errcheck // the engine has it, we wrote nothing
	cmd := exec.Command(program)
	cmd.Args = []string{"signalbox", "serve", "--private"}
	cmd.Dir = p.folder
	// The engine lives on: it gets what it needs to find its folder, and not the secrets that may be in the rest.
	cmd.Env = []string{"SIGNALBOX_STATE=" + p.folder}
	if p.named {
		cmd.Env = []string{"SIGNALBOX_SOCKET=" + p.socket}
	}
	for _, name := range []string{"HOME", "TMPDIR", "XDG_RUNTIME_DIR"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Stderr = log
	detach(cmd)
	if err := withoutExtras(cmd.Start); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // why is in the log
	}()
	return ended, nil
}

// await waits until the engine answers.
func (p *private) await(ctx context.Context, ended <-chan struct{}) error {
	patience, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		why := ""
		select {
		case <-tick.C:
			err := p.ping(patience)
			if !errors.Is(err, errNotRunning) && patience.Err() == nil {
				return err
			}
			continue
		case <-ended:
			why = "it ended at once"
		case <-patience.Done():
			why = fmt.Sprintf("it did not answer within %v", startWithin)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &exitError{exitUnavailable, fmt.Errorf("the private local engine could not be started: %s%s", why, p.lastWords())}
	}
}

// lastWords are the last lines of the engine's log.
func (p *private) lastWords() string {
	const most = 5
	log, err := os.ReadFile(p.file("engine.log"))
	text := strings.TrimSpace(string(log))
	if err != nil || text == "" {
		return "; its log is empty: " + p.file("engine.log")
	}
	lines := strings.Split(text, "\n")
	return "; the end of its log " + p.file("engine.log") + ":\n  " + strings.Join(lines[max(0, len(lines)-most):], "\n  ")
}

func (p *private) file(name string) string {
	if p.named {
		return p.socket + "." + name
	}
	return filepath.Join(p.folder, name)
}

// lock waits for a lock of the folder.
func (p *private) lock(ctx context.Context, name string) (*fileLock, error) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		lock, err := tryLock(p.file(name))
		if err != nil {
			return nil, p.blocked(err)
		}
		if lock != nil {
			return lock, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s: %w", p.file(name), context.Cause(ctx))
		}
	}
}

// stop ends the engine and waits until it has. It returns errNotRunning if there is none.
func (p *private) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	starting, err := p.lock(ctx, "start.lock")
	if err != nil {
		return err
	}
	defer starting.release()
	life, err := tryLock(p.file("engine.lock"))
	if err != nil {
		return err
	}
	if life != nil {
		life.release()
		return errNotRunning
	}
	text, err := os.ReadFile(p.file("engine.lock"))
	if err != nil {
		return err
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || id <= 1 {
		return fmt.Errorf("%s should hold the process id of the engine, but holds %q", p.file("engine.lock"), text)
	}
	if err := terminateProcess(id); err != nil {
		return fmt.Errorf("ending the private local engine, process %d: %w", id, err)
	}
	if life, err = p.lock(ctx, "engine.lock"); err != nil {
		return fmt.Errorf("the private local engine, process %d, did not end within %v: %w", id, stopWithin, err)
	}
	life.release()
	return nil
}
