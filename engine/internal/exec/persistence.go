package exec

import (
	"errors"
	"fmt"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/conf"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// Persistence: when files are written, and what is said of it. Writing them is
// the shell's business: it is asked to by Effects, as for all that it does.
//
// There are four jobs: a save writes a snapshot, a rewrite writes the append-only
// file anew from one, a sync sends one to replicas, a load is for DEBUG LOADAOF. One job runs at a time. Clients ask for jobs (SAVE, BGSAVE,
// BGREWRITEAOF, SHUTDOWN), and Tick does: by the save parameter, and when the
// append-only file has grown. What cannot begin because the other job runs is
// scheduled, and begins when that one has ended.

// Job is something that the shell does in the background.
type Job uint8

// The jobs.
const (
	NoJob Job = iota
	JobSave
	JobRewrite
	JobSync // a snapshot for replicas: see Machine.BeginSync
	JobLoad // the data anew from the append-only file: see debug_reload.go
)

// LogState is what INFO says of the append-only file.
type LogState struct {
	Bytes, BaseBytes int64 // as it is, and as it was after it had been written anew
	BufferBytes      int   // not handed to the system yet
	PendingSyncs     int   // 1 while the disk is asked to keep what it was handed
	DelayedSyncs     int64 // how often a writer had to wait for that
	DiscardedBytes   int64 // given up by a replica whose disk does not take them
	Err              error // why it cannot be written
}

// persistence is the machine's share in keeping the data.
type persistence struct {
	log   func() LogState // nil: data is in memory only
	rules []saveRule

	job                           Job
	begunUs                       int64
	dirtyAtBegin                  uint64 // what the save that runs will have saved
	scheduledSave, scheduledLog   bool
	waiting, next                 []waitingSave // for the end of the save that runs, and of the next
	loads                         []waitingSave // for the end of a load
	saves, rewrites, syncs        jobRecord
	reloads                       jobRecord // nobody asks for it
	savedDirty                    uint64    // how much of space.Dirty is in the last snapshot
	savedUs                       int64
	rewriteFailures               int64 // on end
	diskErr                       error // why the append-only file cannot be written
	loading                       loadProgress
	refusal                       error // why no command may write; nil if they may
	appending                     bool
	loadedKeys, loadedKeysExpired int64
}

// loadProgress is how far the loading is.
type loadProgress struct{ startedUs, loadedBytes, totalBytes int64 }

// jobRecord is what INFO remembers of a kind of job.
type jobRecord struct {
	count   int64
	failed  bool
	lastSec int64 // how long the last took; -1 if there was none
	triedUs int64
	copied  int64 // bytes of memory that the last took besides
}

// waitingSave is a client that waits for a job: SAVE, SHUTDOWN, or DEBUG LOADAOF.
type waitingSave struct {
	session         *Session // nil: the shell
	number          uint64   // of its blocking
	shutdown, force bool     // the engine ends then; even if the save has failed
}

// Keep makes the machine have its data kept. It is called once, after what was kept
// before has been loaded; log tells of the append-only file, within steps.
func (m *Machine) Keep(nowUs int64, log func() LogState) {
	p := &m.persistence
	m.nowUs = nowUs
	p.log, p.savedUs, p.savedDirty = log, nowUs, m.space.Dirty
	p.saves.lastSec, p.rewrites.lastSec = -1, -1
	p.appending = m.settings.Bool("appendonly")
	m.followSave()
}

// followPersistence makes the machine heed its parameters. Those that nothing would
// come of are refused.
func (m *Machine) followPersistence() {
	const inMemory = conf.Error("data is kept in memory only: start the engine with a folder to keep it in")
	m.heed("stop-writes-on-bgsave-error", m.judgeDisk)
	m.settings.OnChange("save", func() error {
		if !m.Kept() && !m.isLoading() && m.settings.Text("save") != "" {
			return inMemory
		}
		m.followSave()
		return nil
	})
	m.settings.OnChange("appendonly", func() error {
		switch {
		case m.heldOff && m.settings.Bool("appendonly") != m.persistence.appending:
			return errLoading // what it was at the start is being loaded
		case m.heldOff:
			return nil
		case m.Kept():
			return m.followAppendOnly()
		case m.settings.Bool("appendonly"):
			return inMemory
		}
		return nil
	})
}

// Loaded tells how many keys were loaded, and how many were not since their time was over.
func (m *Machine) Loaded(keys, expired int64) {
	m.persistence.loadedKeys, m.persistence.loadedKeysExpired = keys, expired
}

// WantRewrite has the append-only file written anew as soon as no other job runs.
func (m *Machine) WantRewrite(nowUs int64) {
	m.nowUs = nowUs
	if m.persistence.job != JobRewrite {
		m.persistence.scheduledLog = true
		m.beginScheduled()
	}
}

// LoadProgress tells how far the loading is, for INFO.
func (m *Machine) LoadProgress(startedUs, loadedBytes, totalBytes int64) {
	m.persistence.loading = loadProgress{startedUs, loadedBytes, totalBytes}
}

// Kept reports whether the data is kept on disk.
func (m *Machine) Kept() bool { return m.persistence.log != nil }

func (m *Machine) followSave() {
	m.persistence.rules = parseSaveRules(m.settings.Text("save"))
	m.judgeDisk()
}

func (m *Machine) followAppendOnly() error {
	p := &m.persistence
	on := m.settings.Bool("appendonly")
	if on == p.appending {
		return nil
	}
	p.appending, p.scheduledLog = on, on
	m.effects.EndLog = !on
	m.beginScheduled()
	return nil
}

// begin begins a job: after this step, with the data as it is then. No other runs.
func (m *Machine) begin(job Job) {
	p := &m.persistence
	p.record(job).triedUs = m.nowUs
	switch job {
	case JobSave:
		p.scheduledSave = false
		p.waiting, p.next = p.next, nil
	case JobRewrite:
		p.scheduledLog = false
	}
	p.job, p.begunUs, p.dirtyAtBegin = job, m.nowUs, m.space.Dirty
	m.effects.Begin = job
}

func (p *persistence) record(job Job) *jobRecord {
	switch job {
	case JobSave:
		return &p.saves
	case JobSync:
		return &p.syncs
	case JobLoad:
		return &p.reloads
	}
	return &p.rewrites
}

// ErrCancelled is for a job that nobody wants any more, which is no failure.
var ErrCancelled = errors.New("it was cancelled")

// JobEnded tells that the job that ran is done, has failed, or was cancelled, and how much
// memory it took besides, at most.
func (m *Machine) JobEnded(nowUs, copiedBytes int64, err error) {
	p := &m.persistence
	m.nowUs = nowUs
	job := p.job
	record := p.record(job)
	record.lastSec, record.copied = (nowUs-p.begunUs)/1e6, copiedBytes
	p.job = NoJob
	if err == nil {
		record.count++
		if job == JobSave {
			p.savedDirty, p.savedUs = p.dirtyAtBegin, nowUs
		}
	}
	cancelled := errors.Is(err, ErrCancelled)
	if !cancelled {
		record.failed = err != nil
	}
	switch {
	case cancelled:
	case job == JobRewrite && err != nil:
		p.rewriteFailures++
	case job == JobRewrite:
		p.rewriteFailures = 0
	}
	m.judgeDisk()
	switch job {
	case JobSave:
		m.answerSaves(err)
	case JobLoad:
		m.answerLoads(err)
	}
	m.beginScheduled()
}

// answerSaves answers those who waited for the save.
func (m *Machine) answerSaves(err error) {
	p := &m.persistence
	waiting := p.waiting
	p.waiting = nil
	for _, w := range waiting {
		if w.shutdown {
			m.endShutdown(w, err)
			continue
		}
		m.answer(w, func(out *resp.Writer) {
			if err != nil {
				out.Error("ERR " + oneLine(err.Error()))
				return
			}
			out.SimpleString("OK")
		})
	}
}

// answer lets a client go on that waited, if it still does.
func (m *Machine) answer(w waitingSave, write func(out *resp.Writer)) {
	if w.session == nil || w.session.blocked == nil || w.session.blocked.number != w.number {
		return
	}
	out := w.session.replies()
	write(out)
	m.unblock(w.session, out)
}

// beginScheduled begins what has waited for the end of another job.
func (m *Machine) beginScheduled() {
	p := &m.persistence
	switch {
	case p.job != NoJob:
	case len(p.loads) > 0:
		m.begin(JobLoad)
	case len(p.next) > 0 || p.scheduledSave:
		m.begin(JobSave)
	case m.syncIsDue():
		m.begin(JobSync)
	case p.scheduledLog:
		m.begin(JobRewrite)
	}
}

// tickPersistence begins the jobs that nobody asks for.
func (m *Machine) tickPersistence() {
	p := &m.persistence
	if p.log == nil || p.job != NoJob {
		return
	}
	if p.appending && m.hasGrown(p.log()) {
		p.scheduledLog = true
	}
	if m.saveIsDue() {
		p.scheduledSave = true
	}
	m.beginScheduled()
}

// needsTick reports whether time alone can make a job begin.
func (p *persistence) needsTick(dirty uint64) bool {
	return p.log != nil && (p.appending || p.scheduledSave || p.scheduledLog ||
		len(p.rules) > 0 && (dirty != p.savedDirty || p.saves.failed))
}

// saveIsDue reports whether a rule of the save parameter fires. After a failure
// five seconds go by first; if nobody may write meanwhile, no rule has to fire.
func (m *Machine) saveIsDue() bool {
	const retryUs = 5e6
	p := &m.persistence
	if p.saves.failed && m.nowUs-p.saves.triedUs <= retryUs {
		return false
	}
	if m.unsaved() {
		return true
	}
	return anyFires(p.rules, (m.nowUs-p.savedUs)/1e6, int64(m.space.Dirty-p.savedDirty))
}

// hasGrown reports whether the append-only file is to be written anew. After three
// failures on end it is tried ever less often, down to once an hour.
func (m *Machine) hasGrown(state LogState) bool {
	const patience, minuteUs, mostMinutes = 3, 60e6, 60
	p := &m.persistence
	percentage := m.settings.Int("auto-aof-rewrite-percentage")
	if percentage == 0 || state.Bytes <= m.settings.Int("auto-aof-rewrite-min-size") {
		return false
	}
	if n := p.rewriteFailures - patience; n >= 0 {
		wait := min(int64(1)<<min(n, 6), mostMinutes) * minuteUs
		if m.nowUs-p.rewrites.triedUs < wait {
			return false
		}
	}
	base := max(state.BaseBytes, 1)
	return (state.Bytes-base)/base*100+(state.Bytes-base)%base*100/base >= percentage
}

// DiskState tells whether the append-only file can be written; nil: it can.
func (m *Machine) DiskState(err error) {
	m.persistence.diskErr = err
	m.judgeDisk()
}

// judgeDisk decides whether commands may write.
func (m *Machine) judgeDisk() {
	p := &m.persistence
	p.refusal = nil
	switch {
	case p.diskErr != nil:
		p.refusal = command.Error("MISCONF Errors writing to the AOF file: " + oneLine(p.diskErr.Error()))
	case m.unsaved():
		p.refusal = errUnsaved
	}
}

// unsaved reports whether commands may not write because the last snapshot has failed.
func (m *Machine) unsaved() bool {
	p := &m.persistence
	return p.saves.failed && len(p.rules) > 0 && m.settings.Bool("stop-writes-on-bgsave-error")
}

const errUnsaved = command.Error("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
	"Commands that may modify the data set are disabled, because this instance is configured to report errors during writes " +
	"if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error.")

// mayWrite refuses a request that would change data while it cannot be kept, and with appendfsync
// always one that would show it. PING is refused too, so that health checks see it.
func (m *Machine) mayWrite(s *Session, spec *command.Spec) error {
	refused := m.needsDisk(spec) || spec.Name == "ping"
	if spec.Name == "exec" && s.transaction != nil {
		for _, call := range s.transaction.calls {
			refused = refused || m.needsDisk(call.spec)
		}
	}
	if refused {
		return m.persistence.refusal
	}
	return nil
}

// needsDisk reports whether a command is of no use while nothing can be written.
func (m *Machine) needsDisk(spec *command.Spec) bool {
	return spec.Flags&command.Write != 0 || m.HidesData() && spec.Flags&(command.Loading|command.Admin) == 0
}

// HidesData reports whether nobody is shown data: with appendfsync always none that is not on disk, and now
// nothing can be written. Then replies do not tell of any.
func (m *Machine) HidesData() bool {
	return m.persistence.diskErr != nil && m.settings.Text("appendfsync") == "always"
}

// oneLine makes a text fit for an error reply.
func oneLine(text string) string {
	return strings.NewReplacer("\r", " ", "\n", "; ").Replace(text)
}

const (
	errInMemory = command.Error("ERR data is kept in memory only: start the engine with a folder to keep it in")
	errNoLog    = command.Error("ERR the append-only file is off: BGSAVE writes a snapshot, CONFIG SET appendonly yes turns it on")
	errSaving   = command.Error("ERR Background save already in progress")
	errAnother  = command.Error("ERR Another child process is active (AOF?): can't BGSAVE right now. " +
		"Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible.")
)

func (m *Machine) persistenceSpecs() []command.Spec {
	const flags = command.Admin | command.NoScript | command.NoAsyncLoading
	return []command.Spec{
		{
			Name: "save", Arity: 1, Flags: flags | command.NoMulti, Group: "server", Since: "1.0.0",
			Summary: "Writes a snapshot, and answers when it is on disk.", Complexity: "O(N) for N keys", Run: m.save,
		},
		{
			Name: "bgsave", Arity: -1, Flags: flags, Group: "server", Since: "1.0.0",
			Summary: "Begins to write a snapshot.", Complexity: "O(1)", Run: m.backgroundSave,
		},
		{
			Name: "bgrewriteaof", Arity: 1, Flags: flags, Group: "server", Since: "1.0.0",
			Summary: "Begins to write the append-only file anew.", Complexity: "O(1)", Run: m.backgroundRewrite,
		},
		{
			Name: "lastsave", Arity: 1, Flags: command.Loading | command.Stale | command.Fast, Group: "server", Since: "1.0.0",
			Summary: "Tells when the last snapshot was on disk.", Complexity: "O(1)", Run: m.lastSave,
		},
	}
}

func (m *Machine) save(c *command.Ctx) error {
	switch {
	case !m.Kept():
		return errInMemory
	case m.persistence.job == JobSave:
		return errSaving
	}
	return m.saveFor(c, waitingSave{session: session(c), number: m.blockings + 1})
}

// saveFor makes the caller wait for the end of a save that begins now, or when the
// job that runs has ended.
func (m *Machine) saveFor(c *command.Ctx, w waitingSave) error {
	p := &m.persistence
	p.next = append(p.next, w)
	m.beginScheduled()
	return c.Block(nil, 0, func(out *resp.Writer) { out.Error("ERR the save goes on") }) // it has no end but its own
}

func (m *Machine) backgroundSave(c *command.Ctx) error {
	p := &m.persistence
	schedule := false
	if len(c.Args) > 1 {
		if len(c.Args) != 2 || !command.Is(c.Args[1], "SCHEDULE") {
			return command.ErrSyntax
		}
		schedule = true
	}
	switch {
	case !m.Kept():
		m.failToSave()
		c.Out.SimpleString("Background saving started")
		return nil
	case p.job == JobSave:
		return errSaving
	case p.job != NoJob && !schedule && !m.executing:
		return errAnother
	case p.job != NoJob || m.executing: // a transaction writes on
		p.scheduledSave = true
		c.Out.SimpleString("Background saving scheduled")
		return nil
	}
	m.begin(JobSave)
	c.Out.SimpleString("Background saving started")
	return nil
}

// failToSave is a BGSAVE that has nowhere to write to. As on a Redis whose folder cannot be
// written, it begins, and INFO and the log say that it has failed.
func (m *Machine) failToSave() {
	const warning = 3
	p := &m.persistence
	p.saves.failed, p.saves.triedUs, p.saves.lastSec = true, m.nowUs, 0
	m.options.Log(warning, "writing a snapshot: "+strings.TrimPrefix(string(errInMemory), "ERR "))
}

func (m *Machine) backgroundRewrite(c *command.Ctx) error {
	p := &m.persistence
	switch {
	case !m.Kept():
		return errInMemory
	case !p.appending:
		return errNoLog
	case p.job == JobRewrite:
		return command.Error("ERR Background append only file rewriting already in progress")
	case p.job != NoJob || m.executing:
		p.scheduledLog = true
		c.Out.SimpleString("Background append only file rewriting scheduled")
		return nil
	}
	m.begin(JobRewrite)
	c.Out.SimpleString("Background append only file rewriting started")
	return nil
}

func (m *Machine) lastSave(c *command.Ctx) error {
	c.Out.Int(max(m.persistence.savedUs, m.startedUs) / 1e6)
	return nil
}

func (m *Machine) infoPersistence(w *strings.Builder) {
	p := &m.persistence
	var log LogState
	if m.Kept() && p.appending {
		log = p.log()
	}
	seconds := func(job Job) int64 {
		if p.job != job {
			return -1
		}
		return (m.nowUs - p.begunUs) / 1e6
	}
	fields(w,
		"loading", flag(m.isLoading()), "async_loading", 0,
		"rdb_changes_since_last_save", m.space.Dirty-p.savedDirty, "rdb_bgsave_in_progress", flag(p.job == JobSave),
		"rdb_last_save_time", max(p.savedUs, m.startedUs)/1e6, "rdb_last_bgsave_status", status(!p.saves.failed),
		"rdb_last_bgsave_time_sec", p.saves.lastSec, "rdb_current_bgsave_time_sec", seconds(JobSave), "rdb_saves", p.saves.count,
		"rdb_last_cow_size", p.saves.copied,
		"rdb_last_load_keys_expired", p.loadedKeysExpired, "rdb_last_load_keys_loaded", p.loadedKeys,
		"aof_enabled", flag(p.appending), "aof_rewrite_in_progress", flag(p.job == JobRewrite), "aof_rewrite_scheduled", flag(p.scheduledLog),
		"aof_last_rewrite_time_sec", p.rewrites.lastSec, "aof_current_rewrite_time_sec", seconds(JobRewrite),
		"aof_last_bgrewrite_status", status(!p.rewrites.failed), "aof_rewrites", p.rewrites.count,
		"aof_rewrites_consecutive_failures", p.rewriteFailures, "aof_last_write_status", status(p.diskErr == nil),
		"aof_last_cow_size", p.rewrites.copied)
	if m.isLoading() {
		l := p.loading
		spentSec := max((m.nowUs-l.startedUs)/1e6, 0)
		fields(w,
			"loading_start_time", l.startedUs/1e6, "loading_total_bytes", l.totalBytes, "loading_loaded_bytes", l.loadedBytes,
			"loading_loaded_perc", fmt.Sprintf("%.2f", percent(l.loadedBytes, l.totalBytes)),
			"loading_eta_seconds", spentSec*(l.totalBytes-l.loadedBytes)/max(l.loadedBytes, 1))
	}
	if p.appending {
		fields(w,
			"aof_current_size", log.Bytes, "aof_base_size", log.BaseBytes, "aof_pending_rewrite", flag(p.scheduledLog),
			"aof_buffer_length", log.BufferBytes, "aof_pending_bio_fsync", log.PendingSyncs, "aof_delayed_fsync", log.DelayedSyncs,
			"aof_discarded_bytes", log.DiscardedBytes)
	}
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

func status(ok bool) string {
	if ok {
		return "ok"
	}
	return "err"
}
