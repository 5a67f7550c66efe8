package server

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/conf"
	"github.com/signalbox-io/signalbox/engine/internal/exec"
)

// ErrClosed is returned by calls on a server that has been closed.
var ErrClosed = errors.New("engine: closed")

// Options configure a server. The zero value is an engine without a password.
type Options struct {
	// Password that clients must give with AUTH or HELLO; empty: none.
	Password string
	// MaxClients bounds the connections; 0 means 10,000.
	MaxClients int
	// Port, UnixPath and Bind are where the server listens, for INFO and CONFIG GET.
	Port     int
	UnixPath string
	Bind     string
	// Log takes messages of scripts. May be nil.
	Log func(level int, message string)
	// Settings are the parameters; nil for the defaults. ConfigFile is where
	// CONFIG REWRITE writes them; "" if there is none.
	Settings   *conf.Settings
	ConfigFile string
}

// Server is a running engine.
type Server struct {
	options Options
	tasks   sync.WaitGroup
	tls     atomic.Pointer[tls.Config] // what handshakes use; nil without TLS

	mu        sync.Mutex // the engine's lock: everything below, and all sessions
	machine   *exec.Machine
	conns     map[*conn]struct{}
	bySession map[*exec.Session]sink
	listeners map[net.Listener]struct{}
	idle      []*local
	expiry    *time.Timer
	ticking   bool
	closed    bool
	done      chan struct{}
	slow      map[*conn]struct{} // those above a soft limit
	loop      *eventLoop         // nil while it has served no socket
	stepping  looped             // whose request the machine is at, if the event loop serves it
	leave     sync.Once
	leaving   chan struct{} // closed before done, so that a script gives the lock back
	keeper    *keeper       // nil: the data is in memory only
	link      *link         // to the primary; nil: this is one
	served    int64         // batches
	syncDue   bool          // a full synchronisation is to begin, when no script is in the middle of its work
	strangers strangers

	spares spares       // has a lock of its own
	aside  atomic.Int64 // goroutines that serve a connection, or wait for the disk
}

// sink is where a session's output goes: a connection, or a call in process.
type sink interface {
	// deliver takes the session's output. The engine's lock is held, and
	// settle is called after.
	deliver()
	// hangUp ends the connection after its output. The lock is held, and
	// settle is called after.
	hangUp()
	// settle does what must not be done under the lock. It never waits.
	settle()
	// lose ends a connection that must not be told what has happened, since it is
	// not on disk. settle is called after.
	lose()
}

// New starts a server that listens nowhere yet.
func New(options Options) *Server {
	s := &Server{
		options:   options,
		conns:     map[*conn]struct{}{},
		bySession: map[*exec.Session]sink{},
		listeners: map[net.Listener]struct{}{},
		done:      make(chan struct{}),
		slow:      map[*conn]struct{}{},
		leaving:   make(chan struct{}),
	}
	began := time.Now()
	var random [28]byte
	rand.Read(random[:]) // never fails
	s.machine = exec.New(exec.Options{
		Password:    options.Password,
		Seed:        binary.LittleEndian.Uint64(random[20:]),
		RunID:       hex.EncodeToString(random[:20]),
		Port:        options.Port,
		UnixPath:    options.UnixPath,
		Bind:        options.Bind,
		MaxClients:  options.MaxClients,
		Process:     processInfo,
		FreeMemory:  func() { s.tasks.Go(func() { GiveBack(s.done) }) },
		Stopwatch:   func() int64 { return int64(time.Since(began)) },
		Log:         options.Log,
		Interrupt:   s.interrupt,
		Beside:      s.beside,
		BoundMemory: boundMemory,
		Exchange:    exchange,
		Settings:    options.Settings,
		ConfigFile:  options.ConfigFile,
		Files:       files{},
		ApplyTLS:    s.applyTLS,
		Secret:      func(password []byte) { rand.Read(password) }, // never fails
	}, nowUs())
	return s
}

// LoadUsers makes the users that the settings or the ACL file name. It is
// called once, before anything is served.
func (s *Server) LoadUsers() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.LoadUsers()
}

func nowUs() int64 { return time.Now().UnixMicro() }

// Serve accepts connections from l until l or the server is closed. It closes
// l, and returns nil after Close.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errors.Join(ErrClosed, l.Close())
	}
	s.listeners[l] = struct{}{}
	s.tasks.Add(1)
	s.mu.Unlock()
	defer s.tasks.Done()
	for {
		nc, err := l.Accept()
		if isShortage(err) && s.pause() {
			continue
		}
		if err != nil {
			s.mu.Lock()
			delete(s.listeners, l)
			closed := s.closed
			s.mu.Unlock()
			if closed {
				return nil
			}
			return fmt.Errorf("engine: accepting on %s: %w", l.Addr(), errors.Join(err, l.Close()))
		}
		c, err := s.admit(nc, s.adopt)
		if err != nil {
			s.tasks.Go(func() { _ = refuse(nc, err) }) // the peer has been told; nobody else asks
			continue
		}
		c.begin()
	}
}

// isShortage reports whether accepting has failed for want of something that
// comes back by itself, such as file descriptors.
func isShortage(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary() && !errors.Is(err, os.ErrDeadlineExceeded)
}

// pause waits before the next attempt, and reports whether to make one.
func (s *Server) pause() bool {
	select {
	case <-time.After(50 * time.Millisecond):
		return true
	case <-s.done:
		return false
	}
}

// ServeConn serves one connection until either end closes it. It closes nc.
func (s *Server) ServeConn(nc net.Conn) error {
	c, err := s.admit(nc, nil)
	if err != nil {
		return refuse(nc, err)
	}
	c.serve()
	return nil
}

// Dial returns the client's end of a new connection in memory.
func (s *Server) Dial() (net.Conn, error) {
	client, server := Pipe()
	c, err := s.admit(server, nil)
	if err != nil {
		return nil, errors.Join(refuse(server, err), client.Close())
	}
	c.begin()
	return client, nil
}

// admit takes a connection in, or says why not. One that is in is counted in
// tasks, for whoever serves it to count it out. adopt may put another in nc's place.
func (s *Server) admit(nc net.Conn, adopt func(net.Conn) net.Conn) (*conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, ErrClosed
	case int64(len(s.conns)) >= s.machine.MaxClients():
		s.machine.Refused()
		return nil, refusal("ERR max number of clients reached")
	case s.machine.Protected() && isForeign(nc):
		return nil, protectedMode
	}
	keepAlive(nc, s.machine.KeepAliveSec())
	if adopt != nil {
		nc = adopt(nc)
	}
	c := newConn(s, nc)
	c.session = s.machine.Connect(nowUs(), address(nc.RemoteAddr()), address(nc.LocalAddr()))
	c.session.Unread = c.unread
	s.conns[c] = struct{}{}
	s.bySession[c.session] = c
	s.tasks.Add(1)
	return c, nil
}

// keepAlive makes the system probe a connection that is silent for sec seconds,
// so that a peer that has vanished is noticed; 0 is never.
func keepAlive(nc net.Conn, sec int64) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	idle := time.Duration(sec) * time.Second
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{ // a connection without it is still one
		Enable: sec > 0, Idle: idle, Interval: max(idle/3, time.Second), Count: 3,
	})
}

// refusal is the error reply to a connection that is not let in.
type refusal string

func (r refusal) Error() string { return "engine: connection refused: " + string(r) }

// refuse tells the peer why, if it cares to listen, and closes the connection.
// It may take a moment, so no lock may be held.
func refuse(nc net.Conn, why error) error {
	var text refusal
	var err error
	if errors.As(why, &text) {
		if err = nc.SetDeadline(time.Now().Add(time.Second)); err == nil {
			_, err = nc.Write([]byte("-" + string(text) + "\r\n"))
		}
	}
	return errors.Join(why, err, nc.Close())
}

const protectedMode refusal = "DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. " +
	"In this mode connections are only accepted from the loopback interface. " +
	"If you want to connect from external computers to Redis you may adopt one of the following solutions: " +
	"1) Just disable protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface " +
	"by connecting to Redis from the same host the server is running, however MAKE SURE Redis is not publicly accessible " +
	"from internet if you do so. Use CONFIG REWRITE to make this change permanent. " +
	"2) Alternatively you can just disable the protected mode by editing the Redis configuration file, and setting the " +
	"protected mode option to 'no', and then restarting the server. " +
	"3) If you started the server manually just for testing, restart it with the '--protected-mode no' option. " +
	"4) Setup a an authentication password for the default user. " +
	"NOTE: You only need to do one of the above things in order for the server to start accepting connections from the outside."

// isForeign reports whether a connection comes from another machine.
func isForeign(nc net.Conn) bool {
	tcp, ok := nc.RemoteAddr().(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}

func address(a net.Addr) string {
	if a == nil || a.String() == "" || a.String() == "@" {
		return "unix:0"
	}
	return a.String()
}

// Connections is how many connections are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// carryOut does what a batch asks for besides its own replies. The lock is held; what
// it returns is to be settled after it is given back.
func (s *Server) carryOut() (after aftermath) {
	effects := s.machine.TakeEffects()
	s.served++
	if k := s.keeper; k != nil {
		k.append(effects.Propagate, effects.Wrote)
		after.keeper, after.seq, after.own, after.relief = k, k.reach(), k.changed, k.crowded()
	}
	for _, session := range effects.Wake {
		if sink, ok := s.bySession[session]; ok {
			sink.deliver()
			after.sinks = append(after.sinks, sink)
		}
	}
	for _, session := range effects.Close {
		if sink, ok := s.bySession[session]; ok {
			sink.hangUp()
			after.sinks = append(after.sinks, sink)
		}
	}
	if effects.Shutdown {
		_ = s.stop() // a listener that cannot be closed does not keep the engine open
	}
	if effects.Relink {
		s.relink()
	}
	if effects.Begin == exec.JobSync {
		s.syncDue, effects.Begin = true, exec.NoJob
	}
	if s.syncDue && !s.machine.Busy() {
		s.syncDue = false
		s.beginSync()
	}
	if s.keeper != nil && !s.closed {
		s.keeper.heed(effects)
	}
	s.armExpiry()
	return after
}

// note and warn tell whoever takes the engine's messages, by the levels of redis.log.
func (s *Server) note(format string, args ...any) { s.log(2, format, args...) }

func (s *Server) warn(format string, args ...any) { s.log(3, format, args...) }

func (s *Server) log(level int, format string, args ...any) {
	if s.options.Log != nil {
		s.options.Log(level, fmt.Sprintf(format, args...))
	}
}

// timeout ends the wait of a session whose time is up.
func (s *Server) timeout(session *exec.Session, number uint64) {
	s.mu.Lock()
	s.machine.Timeout(nowUs(), session, number)
	after := s.carryOut()
	s.mu.Unlock()
	after.settle()
}

// armExpiry keeps the machine ticking while it has a use for it. The lock is held.
func (s *Server) armExpiry() {
	const every = 100 * time.Millisecond
	if s.ticking || s.closed || !s.machine.NeedsTick() && len(s.slow) == 0 {
		return
	}
	s.ticking = true
	if s.expiry == nil {
		s.expiry = time.AfterFunc(every, s.tick)
		return
	}
	s.expiry.Reset(every)
}

// tick does what the machine has to do by itself. The next one comes when this one has been
// settled: a disk that is stuck does not pile them up.
func (s *Server) tick() {
	const soon = time.Millisecond
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	slow := s.checkSlow()
	if s.keeper != nil {
		s.keeper.look()
	}
	more := s.machine.Tick(nowUs())
	after := s.carryOut()
	after.sinks = append(after.sinks, slow...)
	s.mu.Unlock()
	after.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ticking = more && !s.closed; s.ticking {
		s.expiry.Reset(soon)
		return
	}
	s.armExpiry()
}

// checkSlow looks again at the connections above a soft limit, whose time may be
// up. The lock is held; those it returns are to be settled.
func (s *Server) checkSlow() (after []sink) {
	for c := range s.slow {
		c.out.Lock()
		c.bound()
		c.out.Unlock()
		after = append(after, c)
	}
	return after
}

// interrupt tells a running script the time, and whether it must end. The lock
// is held by whoever runs the script; with letIn it is given back for a moment.
func (s *Server) interrupt(letIn bool) (now int64, closing bool) {
	const moment = time.Millisecond
	if letIn {
		if s.stepping != nil {
			s.stepping.handOver()
		}
		s.mu.Unlock()
		select {
		case <-time.After(moment):
		case <-s.leaving:
		}
		s.mu.Lock()
	}
	select {
	case <-s.leaving:
		closing = true
	default:
	}
	return nowUs(), closing
}

// beside does work for a running script in a goroutine. The lock is held by whoever runs the script, which
// lets others in meanwhile as ever.
func (s *Server) beside(work func()) (ended func() bool) {
	const moment = time.Millisecond
	done := make(chan struct{})
	s.tasks.Go(func() {
		defer close(done)
		work()
	})
	return func() bool {
		select {
		case <-done:
			return true
		case <-time.After(moment):
			return false
		}
	}
}

// Close closes every listener and connection and waits until all has ended. What is
// kept is on disk then, or the error says why not. Close is safe to call more than once.
func (s *Server) Close() error { return s.Shutdown(context.Background()) }

// Shutdown is Close that gives up writing a last snapshot when ctx ends, which is an
// error if there is no append-only file. That is on disk in either case.
func (s *Server) Shutdown(ctx context.Context) error {
	s.leave.Do(func() { close(s.leaving) })
	err := s.lastSave(ctx)
	s.mu.Lock()
	err = errors.Join(err, s.stop())
	s.mu.Unlock()
	s.tasks.Wait()
	return errors.Join(err, s.closeMachine())
}

// lastSave waits for replicas that lag, and writes a snapshot if there is a rule to write any. Replicas have half of the
// time, so that the snapshot has some.
func (s *Server) lastSave(ctx context.Context) error {
	s.lockAtRest()
	k := s.keeper
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	mostUs := int64(math.MaxInt64)
	if deadline, ok := ctx.Deadline(); ok {
		mostUs = time.Until(deadline).Microseconds() / 2
	}
	if k != nil && s.machine.Kept() && k.job != nil && k.job.kind == exec.JobRewrite {
		k.job.cancel()
	}
	if !s.machine.Shutdown(nowUs(), mostUs) {
		s.mu.Unlock()
		return nil
	}
	after := s.carryOut()
	s.mu.Unlock()
	after.settle()
	select {
	case <-s.done:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case k == nil || !s.machine.Kept():
		return nil
	case s.closed:
		return k.saveErr
	case k.log != nil:
		s.warn("no snapshot was written at the end, for want of time; the append-only file has everything")
		return nil
	}
	return fmt.Errorf("engine: no snapshot was written at the end: %w", ctx.Err())
}

// stop closes every listener and connection. The lock is held.
func (s *Server) stop() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.leave.Do(func() { close(s.leaving) })
	close(s.done)
	if s.expiry != nil {
		s.expiry.Stop()
	}
	var errs []error
	for l := range s.listeners {
		errs = append(errs, l.Close())
	}
	for c := range s.conns {
		c.abandon()
	}
	s.link.end()
	s.loop.stop()
	return errors.Join(errs...)
}

func (s *Server) closeMachine() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Close()
	if s.keeper == nil {
		return nil
	}
	err := s.keeper.close()
	s.keeper = nil
	return err
}
