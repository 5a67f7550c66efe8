package exec

import (
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// When a snapshot is due by the rules of the parameter save.

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
