package exec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
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
	// Port and UnixPath are reported by INFO and CONFIG GET; 0 and "" are none.
	Port     int
	UnixPath string
	// MaxClients is how many connections the shell accepts.
	MaxClients int
	// Process reports what only the shell can know, for INFO. May be nil.
	Process func() Process
	// Log takes messages of scripts (redis.log). May be nil.
	Log func(level int, message string)
	// Interrupt is called now and then while a script runs. It tells the time,
	// and whether the shell is closing, so that the script must end. With
	// letIn it lets others call the machine for a moment first. May be nil.
	Interrupt func(letIn bool) (nowUs int64, closing bool)
}

// Process is what INFO says of the process around the machine.
type Process struct {
	PID                   int
	UsedMemoryBytes       uint64
	RSSBytes              uint64
	CPUUserSec, CPUSysSec float64
	OS, Executable        string
}

// Machine runs commands. See the package comment.
type Machine struct {
	space    *keyspace.Space
	table    *command.Table
	config   *config
	scripts  *lua.VM
	library  libraries
	rand     *rand.Rand
	options  Options
	sessions map[int64]*Session
	nextID   int64
	broker   *broker
	stats    stats
	effects  Effects

	nowUs     int64
	startedUs int64
	blockings uint64
	current   *Session // whose request is being run
	script    *Session // runs the commands of scripts
	running   running
	contexts  []*command.Ctx
	depth     int
	executing bool   // inside EXEC
	ready     []byte // the key for which a blocked request is run again
}

type stats struct {
	commands, connections int64
	calls                 []callStats // by command.Spec.Number
}

type callStats struct{ calls, failed, rejected int64 }

// Effects is what the shell has to carry out after one or more steps.
type Effects struct {
	// Wake are other sessions that have something in their Out, or have been
	// unblocked and may have requests waiting.
	Wake []*Session
	// Close are other sessions whose connections are to be closed.
	Close []*Session
	// Shutdown asks for the end of the engine.
	Shutdown bool
}

// New returns an empty machine. nowUs is the time, in µs since the epoch.
func New(options Options, nowUs int64) *Machine {
	m := &Machine{
		space:     keyspace.NewSpace(),
		rand:      rand.New(rand.NewPCG(options.Seed, options.Seed^0x9e3779b97f4a7c15)),
		options:   options,
		sessions:  map[int64]*Session{},
		broker:    newBroker(),
		nowUs:     nowUs,
		startedUs: nowUs,
	}
	if m.options.Log == nil {
		m.options.Log = func(int, string) {}
	}
	m.config = newConfig(m)
	m.scripts = lua.New(m.options.Log)
	m.library = newLibraries(m.options.Log)
	m.script = &Session{machine: m, authenticated: true}
	m.table = command.NewTable(append(command.Data(),
		m.connectionSpecs(), m.clientSpecs(), m.transactionSpecs(), m.pubsubSpecs(),
		m.scriptingSpecs(), m.functionSpecs(), m.shutdownSpecs(), m.configSpecs(), m.infoSpecs(), m.introspectSpecs())...)
	m.stats.calls = make([]callStats, m.table.Count())
	return m
}

// Connect starts a session.
func (m *Machine) Connect(nowUs int64, addr, localAddr string) *Session {
	m.nextID++
	s := &Session{
		ID: m.nextID, Addr: addr, LocalAddr: localAddr,
		machine: m, db: m.space.DB(0), authenticated: m.options.Password == "",
		createdUs: nowUs, lastUs: nowUs,
	}
	m.sessions[s.ID] = s
	m.stats.connections++
	return s
}

// ConnectLocal starts a session for calls in process, which need no password.
func (m *Machine) ConnectLocal(nowUs int64) *Session {
	s := m.Connect(nowUs, localAddr, localAddr)
	s.authenticated = true
	return s
}

// Disconnect ends a session: it leaves every queue, subscription and watch.
func (m *Machine) Disconnect(s *Session) {
	s.leaveQueue()
	s.watch.Clear()
	m.broker.leaveAll(s)
	s.transaction = nil
	s.closing = true
	delete(m.sessions, s.ID)
}

// NeedsPassword reports whether clients must give a password; CONFIG SET may
// change it.
func (m *Machine) NeedsPassword() bool { return m.options.Password != "" }

// MaxBulkBytes bounds one argument of a request; CONFIG SET may change it.
func (m *Machine) MaxBulkBytes() int64 { return m.config.maxBulkBytes }

// Sessions is how many sessions there are.
func (m *Machine) Sessions() int { return len(m.sessions) }

// TakeEffects returns what has accumulated since the last call.
func (m *Machine) TakeEffects() Effects {
	taken := m.effects
	if taken.Wake == nil && taken.Close == nil && !taken.Shutdown {
		return taken
	}
	m.effects = Effects{}
	for _, s := range taken.Wake {
		s.woken = false
	}
	return taken
}

// wake notes that a session other than the caller has something to be written.
func (m *Machine) wake(s *Session) {
	// The one whose script runs is in the middle of its reply.
	if !s.woken && s != m.running.caller {
		s.woken = true
		m.effects.Wake = append(m.effects.Wake, s)
	}
}

// Step runs one request of a session. The reply is in s.Out, unless the
// session is blocked afterwards. args may alias the connection's buffer.
func (m *Machine) Step(nowUs int64, s *Session, args [][]byte) {
	m.nowUs = nowUs
	s.lastUs = nowUs
	m.stats.commands++
	out := s.replies()
	spec, err := m.find(args)
	if err == nil {
		s.lastCommand = spec
		err = m.allowed(s, spec)
	}
	switch {
	case err != nil:
		m.refuse(s, spec, err, out)
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
	m.current = s
	if block, ok := m.call(s, spec, args, out, true); ok {
		m.block(s, spec, args, block)
	}
	m.current = nil
	if s.pushes.Len() > 0 {
		s.Out.Raw(s.pushes.Bytes())
		s.pushes.Reset()
	}
	m.serveReady()
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
func (m *Machine) allowed(s *Session, spec *command.Spec) error {
	switch {
	case !s.Authenticated() && spec.Flags&command.NoAuth == 0:
		return command.Error("NOAUTH Authentication required.")
	case s.Subscriber() && s.Out.Proto != 3 && !worksWhileSubscribed(spec.Name):
		return command.Error("ERR Can't execute '" + spec.FullName() +
			"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
	case s.transaction != nil && spec.Flags&command.NoMulti != 0:
		return command.Error("ERR Command not allowed inside a transaction")
	case m.running.active && spec.Flags&command.AllowBusy == 0:
		return m.errBusy()
	}
	return nil
}

// call runs a handler and writes its reply, or its error, to out. It returns
// what the call wants to wait for, if it does.
func (m *Machine) call(s *Session, spec *command.Spec, args [][]byte, out *resp.Writer, canBlock bool) (command.Block, bool) {
	c := m.enter()
	c.Args, c.NowUs, c.DB, c.Out, c.Caller, c.CanBlock = args, m.nowUs, s.db, out, s, canBlock
	c.MaxStringBytes = m.config.maxBulkBytes
	c.Ready, m.ready = m.ready, nil
	start := out.Len()
	err := spec.Run(c)
	count := m.count(spec)
	count.calls++
	if err != nil {
		count.failed++
		out.Truncate(start)
		out.Error(err.Error())
	}
	block, blocked := c.TakeBlock()
	m.leave()
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

func (m *Machine) count(spec *command.Spec) *callStats { return &m.stats.calls[spec.Number()] }

// Tick does the work that no command asks for: it removes expired keys. It
// returns after a bounded time; more says that there is likely more to do.
func (m *Machine) Tick(nowUs int64) (more bool) {
	const maxRounds = 64
	if m.Busy() {
		return false
	}
	m.nowUs = nowUs
	for i := range keyspace.Databases {
		if db := m.space.DB(i); db.VolatileLen() > 0 && db.ActiveExpire(m.rand, nowUs/1000, maxRounds) {
			more = true
		}
	}
	m.serveReady()
	return more
}

// HasVolatile reports whether any key has an expiry, that is, whether Tick can
// have anything to do.
func (m *Machine) HasVolatile() bool {
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
