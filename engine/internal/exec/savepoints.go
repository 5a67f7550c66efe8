package exec

import (
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// When a snapshot is due by the rules of the parameter save: what is counted, and the
// decision. The shell asks now and then.

// saveRule wants a snapshot after so many seconds if there were so many changes.
type saveRule struct{ seconds, changes int64 }

// parseSaveRules reads pairs of seconds and changes, as the settings have checked them.
func parseSaveRules(text string) (rules []saveRule) {
	words := strings.Fields(text)
	for i := 0; i+1 < len(words); i += 2 {
		seconds, _ := command.ParseInt([]byte(words[i]))
		changes, _ := command.ParseInt([]byte(words[i+1]))
		rules = append(rules, saveRule{seconds, changes})
	}
	return rules
}

// anyFires reports whether a rule wants a snapshot when the last good one is so many
// seconds ago and there were so many changes since.
func anyFires(rules []saveRule, seconds, changes int64) bool {
	for _, rule := range rules {
		if changes >= rule.changes && seconds > rule.seconds {
			return true
		}
	}
	return false
}

// retryAfterSec is how long after a snapshot that failed the next one waits.
const retryAfterSec = 5

// saves is what is known of snapshots that were meant to last.
type saves struct {
	rules    []saveRule
	dirty    uint64 // changes that are in the last good one
	lastSec  int64  // when that was done, in s since the epoch
	triedSec int64  // when the last one was begun
	failed   bool   // the last one did
}

// SaveTried notes that a snapshot for the save rules, or for a client, begins.
func (m *Machine) SaveTried(nowUs int64) { m.saves.triedSec = nowUs / 1e6 }

// Saved notes that the snapshot is safely on the disk, or that it failed.
func (m *Machine) Saved(sn *Snapshot, nowUs int64, ok bool) {
	m.saves.failed = !ok
	if ok {
		m.saves.dirty, m.saves.lastSec = sn.dirty, nowUs/1e6
	}
}

// LastSaveSec is when the data was last saved, or the machine began, in s since the epoch.
func (m *Machine) LastSaveSec() int64 { return m.saves.lastSec }

// LastSaveFailed reports whether the last snapshot has.
func (m *Machine) LastSaveFailed() bool { return m.saves.failed }

// ChangesSinceSave counts changes that are in no snapshot on the disk.
func (m *Machine) ChangesSinceSave() int64 { return int64(m.space.Dirty - m.saves.dirty) }

// SaveDue reports whether a rule wants a snapshot now.
func (m *Machine) SaveDue(nowUs int64) bool {
	nowSec := nowUs / 1e6
	if m.saves.failed && nowSec-m.saves.triedSec <= retryAfterSec {
		return false
	}
	return anyFires(m.saves.rules, nowSec-m.saves.lastSec, m.ChangesSinceSave())
}
