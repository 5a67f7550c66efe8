package store

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Who asks what an account may do asks for all that scripts do.
func TestRightsAreThoseThatTransitionsNeed(t *testing.T) {
	t.Parallel()
	all := append(strings.Fields(called), "TIME", "PUBLISH",
		"SPUBLISH",                         // a hint in a Cluster, which may be lost
		"XADD", "LRANGE", "LTRIM", "RPUSH") // not everybody's
	for _, sc := range []*script{enqueueScript, workScript, changeScript, lookScript, scheduleScript, configureScript} {
		for _, match := range regexp.MustCompile(`(?:call|ranged)\((?:[^'()]*and )?'([A-Z]+)'(?: or '([A-Z]+)')?`).FindAllStringSubmatch(sc.body, -1) {
			for _, name := range match[1:] {
				if name != "" && !slices.Contains(all, name) {
					t.Errorf("a transition calls %s, and nobody asks whether it may", name)
				}
			}
		}
	}
}
