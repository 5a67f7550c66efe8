package exec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/acl"
	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/conf"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/lua"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// Options are what the shell tells the machine about itself.
type Options struct {
	// Password that AUTH wants; empty means none is needed.
	Password string
	// Seed of everything that is random in commands and scripts.
	Seed uint64
	// RunID names this run of the engine: 40 hex digits.
	RunID string
	// Port, UnixPath and Bind are reported by INFO and CONFIG GET; 0 and "" are none.
	Port     int
	UnixPath string
	Bind     string
	// MaxClients is how many connections the shell accepts; 0 means what the
	// settings say.
	MaxClients int
	// Settings are the parameters of a configuration file; nil for Redis's
	// defaults. ConfigFile is where CONFIG REWRITE writes them; "" if there is
	// no file.
	Settings   *conf.Settings
	ConfigFile string
	// Files are the files of CONFIG REWRITE and the ACL file. May be nil.
	Files Files
	// ApplyTLS is called when a tls parameter has changed. May be nil.
	ApplyTLS func() error
	// Secret fills a password with randomness that nobody can guess. May be nil.
	Secret func(password []byte)
	// Process reports what only the shell can know, for INFO. May be nil.
	Process func() Process
	// FreeMemory gives what is not needed back to the system, for MEMORY PURGE. It
	// must not wait. May be nil.
	FreeMemory func()
	// Stopwatch reads a monotonic clock, in ns. It measures commands and decides
	// nothing. May be nil: then all take no time.
	Stopwatch func() int64
	// Log takes messages of scripts (redis.log). May be nil.
	Log func(level int, message string)
	// Interrupt is called now and then while a script runs. It tells the time,
	// and whether the shell is closing, so that the script must end. With
	// letIn it lets others call the machine for a moment first. May be nil.
	Interrupt func(letIn bool) (nowUs int64, closing bool)
	// Exchange sends requests to another server, and reads so many replies of one
	// line each, all within a time. The text of its error is shown to clients; the
	// replies before it count. May be nil.
	Exchange func(host, port string, timeoutMs int64, requests []byte, replies int) ([][]byte, error)
	// Beside does work on other memory than the machine's while a script runs. What it returns
	// waits for a moment and says whether that is done. May be nil.
	Beside func(work func()) (ended func() bool)
	// BoundMemory is called when a script may come to hold so many bytes, and what it
	// returns when the script has ended. May be nil.
	BoundMemory func(moreBytes int64) (end func())
}

// Files reads and writes whole files, for the few commands that have to do
// with any. The texts of its errors are shown to clients.
type Files interface {
	Read(path string) (string, error)
	Write(path, text string) error
}

// Process is what INFO says of the process around the machine.
type Process struct {
	PID                   int
	HeapBytes             uint64 // live objects, and garbage that was not collected yet
	HeapInUseBytes        uint64 // with what is free between them
	RSSBytes              uint64 // what the process has of the system
	Collections           uint64
	CPUUserSec, CPUSysSec float64
	OS, Executable        string
}

// Machine runs commands. See the package comment.
type Machine struct {
	space    *keyspace.Space
	table    *command.Table
	docs     command.Docs // nil until somebody asks
	settings *conf.Settings
	users    *acl.Users
	denials  acl.Log
	scripts  *lua.VM
	library  libraries
	rand     *rand.Rand
	options  Options
	sessions map[int64]*Session
	nextID   int64
	broker   *broker

	notifications notifications
	tracker       *tracker
	pause         pause
	limits        limits
	monitors      []*Session
	slowLog       slowLog
	latency       latency
	memory        memory
	clients       clientMemory
	persistence   persistence
	repl          replicating
	failover      failover
	passedOn      []byte  // what the log is to have of what replicas have been told already
	ending        *ending // nil: nobody waits for replicas to end
	restored      place   // of the snapshot that was loaded at the start
	loading       *Loader // nil unless a file is being loaded
	heldOff       bool    // see HoldOff
	rates         struct{ commands, input, output rate }
	idleCheckedUs int64

	stats     stats
	debugging debugging
	effects   Effects
	journal   *command.Journal // nil: nothing is propagated
	logging   bool             // it is for a log
	snapshot  *Snapshot        // the last that was begun; may be nil
	replay    *Session         // runs the requests of a log; nil: none is replayed

	nowUs     int64
	startedUs int64
	blockings uint64
	current   *Session // whose request is being run
	script    *Session // runs the commands of scripts
	running   running
	contexts  []*command.Ctx
	depth     int
	executing bool // inside EXEC
	replyFrom int  // how much of the caller's Out is of earlier requests
	callSpec  *command.Spec
	callArgs  [][]byte // the innermost call that is not a script's
	ready     []byte   // the key for which a blocked request is run again

	maxBulkBytes int64 // proto-max-bulk-len
	busyReplyMs  int64 // busy-reply-threshold: from when on a script is busy; 0 for never
}

// New returns an empty machine. nowUs is the time, in µs since the epoch.
func New(options Options, nowUs int64) *Machine {
	m := &Machine{
		space:     keyspace.NewSpace(),
		rand:      rand.New(rand.NewPCG(options.Seed, options.Seed^0x9e3779b97f4a7c15)),
		options:   options,
		sessions:  map[int64]*Session{},
		broker:    newBroker(),
		tracker:   newTracker(),
		latency:   latency{events: map[string]*latencyEvent{}},
		clients:   clientMemory{heavy: map[*Session]struct{}{}},
		nowUs:     nowUs,
		startedUs: nowUs,
	}
	if m.options.Log == nil {
		m.options.Log = func(int, string) {}
	}
	if m.options.Secret == nil {
		m.options.Secret = func(password []byte) {
			for i := range password {
				password[i] = byte(m.rand.Uint32())
			}
		}
	}
	if m.options.Stopwatch == nil {
		m.options.Stopwatch = func() int64 { return 0 }
	}
	m.space.Rand = m.rand
	m.repl.history.Rename(m.newID())
	m.repl.history.Unused = m.streamUnused
	m.scripts = lua.New(m.options.Log)
	m.library = newLibraries(m.options.Log)
	m.script = &Session{machine: m, authenticated: true, Addr: "?:0"}
	m.table = command.NewTable(append(command.Data(),
		m.connectionSpecs(), m.clientSpecs(), m.transactionSpecs(), m.pubsubSpecs(),
		m.scriptingSpecs(), m.functionSpecs(), m.shutdownSpecs(), m.configSpecs(), m.infoSpecs(), m.waitSpecs(), m.standaloneSpecs(),
		m.replicaOfSpecs(), m.replicaSpecs(), m.failoverSpecs(),
		m.introspectSpecs(), m.persistenceSpecs(), m.aclSpecs(), m.slowLogSpecs(), m.latencySpecs(), m.monitorSpecs(), m.memorySpecs())...)
	m.stats = m.newStats()
	m.users = acl.NewUsers(m.table)
	m.settings = startSettings(options)
	m.follow()
	m.users.Default().SetPassword(m.settings.Text("requirepass"))
	return m
}

// startSettings are the settings with what the options say on top.
func startSettings(options Options) *conf.Settings {
	settings := options.Settings
	if settings == nil {
		settings = conf.New()
	}
	for name, text := range map[string]string{
		"requirepass": options.Password, "maxclients": strconv.Itoa(options.MaxClients), "unixsocket": options.UnixPath,
		"bind": options.Bind,
	} {
		if text != "" && text != "0" {
			settings.Overrule(name, text)
		}
	}
	settings.Overrule("port", strconv.Itoa(options.Port))
	return settings
}

// Connect starts a session.
func (m *Machine) Connect(nowUs int64, addr, localAddr string) *Session {
	m.nextID++
	s := &Session{
		ID: m.nextID, Addr: addr, LocalAddr: localAddr,
		machine: m, db: m.space.DB(0), user: m.users.Default(), authenticated: m.users.Default().Open(),
		createdUs: nowUs, lastUs: nowUs,
	}
	m.sessions[s.ID] = s
	m.stats.connections++
	return s
}

// ConnectLocal starts a session for calls in process, which need no password
// and may do everything.
func (m *Machine) ConnectLocal(nowUs int64) *Session {
	s := m.Connect(nowUs, localAddr, localAddr)
	s.user, s.authenticated = nil, true
	return s
}

// Disconnect ends a session: it leaves every queue, subscription and watch.
func (m *Machine) Disconnect(s *Session) {
	s.leaveQueue()
	s.watch.Clear()
	m.broker.leaveAll(s)
	m.untrack(s)
	m.unmonitor(s)
	m.unfollow(s)
	s.transaction = nil
	s.closing = true
	m.forgetWeight(s)
	delete(m.sessions, s.ID)
}

// LoadUsers makes the users that the settings name, or those of the ACL file.
// It is called once, before the first session.
func (m *Machine) LoadUsers() error { return m.startUsers() }

// Settings are the machine's parameters; CONFIG SET may change them.
func (m *Machine) Settings() *conf.Settings { return m.settings }

// Protected reports whether only clients on this machine may connect, since
// nothing else protects the data.
func (m *Machine) Protected() bool {
	return m.users.Default().NoPassword() && m.settings.Bool("protected-mode")
}

// MaxBulkBytes bounds one argument of a request; CONFIG SET may change it.
func (m *Machine) MaxBulkBytes() int64 { return m.maxBulkBytes }

// Sessions is how many sessions there are.
func (m *Machine) Sessions() int { return len(m.sessions) }

// Step runs one request of a session. The reply is in s.Out, unless the
// session is blocked afterwards. args may alias the connection's buffer.
func (m *Machine) Step(nowUs int64, s *Session, args [][]byte) {
	m.nowUs = nowUs
	s.lastUs = nowUs
	m.rates.commands.look(nowUs, m.stats.commands)
	if m.Busy() { // s is one of those that the script has let in
		m.handle(s, args)
		return
	}
	if m.tracker.sessions > 0 {
		m.boundTracking()
	}
	if m.paused() && nowUs >= m.pause.untilUs {
		m.resume()
	}
	m.handle(s, args)
	if m.pause.ended {
		m.resume()
	}
}

// handle takes a request from its words to its reply, or to where it waits.
func (m *Machine) handle(s *Session, args [][]byte) {
	out := s.replies()
	spec, err := m.find(args)
	if err == nil {
		s.lastCommand = spec
		err = m.allowed(s, spec, args)
	}
	if err == nil && m.memory.maxBytes > 0 && !m.Busy() && !m.isLoading() {
		err = m.hasMemory(s, spec, args)
	}
	if err == nil && m.persistence.refusal != nil {
		err = m.mayWrite(s, spec)
	}
	if err == nil && m.repl.restricts {
		err = m.mayReplicate(s, spec, args)
	}
	switch {
	case err != nil:
		m.refuse(s, spec, err, out)
	case m.paused() && m.mustWait(s, spec, args):
		m.postpone(s, spec, args)
	case s.transaction != nil && !runsInsideMulti(spec):
		s.transaction.queue(spec, args)
		out.SimpleString("QUEUED")
	default:
		m.run(s, spec, args, out)
	}
	s.replied(out)
}

// run calls the handler of a request that nothing speaks against, and then
// serves those who waited for what it has done.
func (m *Machine) run(s *Session, spec *command.Spec, args [][]byte, out *resp.Writer) {
	m.current, m.replyFrom = s, s.Out.Len()
	if block, ok := m.call(s, spec, args, out, true); ok {
		m.block(s, spec, args, block)
	}
	m.hasRun(s)
	if m.tracker.sessions > 0 {
		s.forgetCaching(spec)
	}
	m.serveReady()
}

// hasRun ends the run of a session's request, whose reply is written. What it was to be told
// meanwhile comes after that.
func (m *Machine) hasRun(s *Session) {
	m.current = nil
	m.endGroup(true)
	if m.repl.feeding {
		s.sawUpTo = m.streamEnd()
	}
	if s.pushes.Len() > 0 {
		s.Out.Raw(s.pushes.Bytes())
		s.pushes.Reset()
	}
	if m.tracker.sessions > 0 {
		m.tellCaller(s)
	}
}

// refuse answers a request that is not run. It spoils the transaction that it
// was meant for; a refused EXEC ends it.
func (m *Machine) refuse(s *Session, spec *command.Spec, err error, out *resp.Writer) {
	text := err.Error()
	if spec != nil {
		m.count(spec).rejected++
	}
	if s.transaction != nil {
		s.transaction.aborted = true
	}
	if spec != nil && spec.Name == "exec" {
		s.transaction = nil
		s.watch.Clear()
		text = "EXECABORT Transaction discarded because of: " + strings.TrimPrefix(text, "ERR ")
	}
	out.Error(text)
	m.countError([]byte(text))
}

// find returns the record of a request, its subcommand's if it has one.
func (m *Machine) find(args [][]byte) (*command.Spec, error) {
	spec, ok := m.table.Lookup(args[0])
	if !ok {
		return nil, unknownCommand(args)
	}
	if spec.Sub != nil && len(args) > 1 {
		sub, ok := spec.Subcommand(args[1])
		if !ok {
			return nil, command.Error(fmt.Sprintf("ERR unknown subcommand '%s'. Try %s HELP.",
				clip(args[1]), strings.ToUpper(spec.Name)))
		}
		spec = sub
	}
	if !spec.AcceptsArity(len(args)) {
		return spec, command.Error("ERR wrong number of arguments for '" + spec.FullName() + "' command")
	}
	return spec, nil
}

func unknownCommand(args [][]byte) error {
	const most = 128
	var rest strings.Builder
	for _, a := range args[1:] {
		if rest.Len() >= most {
			break
		}
		fmt.Fprintf(&rest, "'%s' ", a[:min(len(a), most-rest.Len())])
	}
	return command.Error(fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", clip(args[0]), rest.String()))
}

func clip(b []byte) []byte { return b[:min(len(b), 128)] }

// allowed makes the checks that hold for all commands alike.
func (m *Machine) allowed(s *Session, spec *command.Spec, args [][]byte) error {
	if spec.Flags&command.Protected != 0 {
		if err := m.unprotected(s, spec); err != nil {
			return err
		}
	}
	switch {
	case spec.Flags&command.NoAuth == 0 && !s.Authenticated():
		return command.Error("NOAUTH Authentication required.")
	case s.transaction != nil && spec.Flags&command.NoMulti != 0:
		return command.Error("ERR Command not allowed inside a transaction")
	case m.running.active && spec.Flags&command.AllowBusy == 0:
		return m.errBusy()
	}
	if !s.free() {
		if err := m.permitted(s, spec, args); err != nil {
			return err
		}
	}
	if s.Subscriber() && s.Out.Proto != 3 && !worksWhileSubscribed(spec.Name) {
		return command.Error("ERR Can't execute '" + spec.FullName() +
			"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
	}
	if m.isLoading() && !worksWhileLoading(s, spec) {
		return errLoading
	}
	return nil
}

// call runs a handler and writes its reply, or its error, to out. It returns
// what the call wants to wait for, if it does.
func (m *Machine) call(s *Session, spec *command.Spec, args [][]byte, out *resp.Writer, canBlock bool) (command.Block, bool) {
	c := m.enter()
	c.Args, c.NowUs, c.DB, c.Out, c.Caller, c.CanBlock = args, m.nowUs, s.db, out, s, canBlock
	c.MaxStringBytes, c.InScript = m.maxBulkBytes, s == m.script
	c.Journal, c.Large = m.journalOf(s), s.Large
	c.Ready, m.ready = m.ready, nil
	again := c.Ready != nil // it has blocked, and has been shown then
	m.space.Unchanging = spec.Flags&command.ReadOnly != 0
	m.space.Reading = m.space.Unchanging
	m.space.NoTouch = s.noTouch && spec.Name != "touch"
	start := out.Len()
	if s != m.script {
		m.callSpec, m.callArgs = spec, args
	}
	if len(m.monitors) > 0 && spec.Flags&command.SkipMonitor != 0 {
		m.showMonitors(s, s.db.Index, spec, args) // before the commands of its script
	}
	dirty := m.space.Dirty
	began := m.options.Stopwatch()
	err := spec.Run(c)
	took := m.options.Stopwatch() - began
	c.Settle(m.space.Dirty != dirty && spec.Flags&command.Write != 0)
	m.space.Weigh()
	if m.tracker.sessions > 0 && spec.Flags&command.ReadOnly != 0 {
		m.hasRead(s, spec, args)
	}
	if err != nil {
		out.Truncate(start)
		out.Error(err.Error())
	}
	block, blocked := c.TakeBlock()
	m.leave()
	if !blocked {
		m.called(s, spec, args, took, out.Bytes()[start:])
	}
	if len(m.monitors) > 0 && spec.Flags&command.SkipMonitor == 0 && !again {
		m.showMonitors(s, s.db.Index, spec, args)
	}
	return block, blocked
}

// enter hands out a context. Calls nest (EXEC and scripts call commands), so
// there is one context per level, used again and again.
func (m *Machine) enter() *command.Ctx {
	if m.depth == len(m.contexts) {
		m.contexts = append(m.contexts, &command.Ctx{Space: m.space, Rand: m.rand})
	}
	m.depth++
	return m.contexts[m.depth-1]
}

func (m *Machine) leave() {
	m.depth--
	m.contexts[m.depth].Args = nil
}

// Tick does the work that no command asks for: it removes expired keys, ends
// pauses, and sessions that are idle for too long. It returns after a bounded
// time; more says that there is likely more to do.
func (m *Machine) Tick(nowUs int64) (more bool) {
	const maxRounds = 64
	if m.Busy() {
		return false
	}
	m.nowUs = nowUs
	m.endIdle()
	if m.isLoading() {
		return false
	}
	m.tickReplication()
	if m.paused() {
		if nowUs < m.pause.untilUs {
			return false
		}
		m.resume()
	}
	if m.memory.behind {
		m.makeRoom()
		more = m.memory.behind
	}
	began := m.options.Stopwatch()
	for i := range keyspace.Databases {
		if db := m.space.DB(i); !m.debugging.noActiveExpire && !m.space.Frozen && db.VolatileLen() > 0 && db.ActiveExpire(m.rand, nowUs/1000, maxRounds) {
			more = true
		}
	}
	m.endGroup(false)
	m.sample(eventExpireCycle, m.options.Stopwatch()-began)
	m.serveReady()
	m.tickPersistence()
	m.tickMemory()
	return more
}

// NeedsTick reports whether Tick can have anything to do, now or later.
func (m *Machine) NeedsTick() bool {
	if m.paused() || m.memory.behind || m.limits.idleSec > 0 && len(m.sessions) > 0 ||
		m.persistence.needsTick(m.space.Dirty) || m.ticksReplication() || m.memory.giveBack.owed(m.space.UsedBytes()) {
		return true
	}
	for i := range keyspace.Databases {
		if m.space.DB(i).VolatileLen() > 0 {
			return true
		}
	}
	return false
}

// Close ends the machine's scripts. Sessions are the shell's to end.
func (m *Machine) Close() {
	m.scripts.Close()
	m.library.clear()
}

// each visits the sessions in order of their ids.
func (m *Machine) each(visit func(s *Session)) {
	ids := make([]int64, 0, len(m.sessions))
	for id := range m.sessions {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		visit(m.sessions[id])
	}
}
