package store

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1.
	_ "embed"
	"encoding/hex"
	"strings"
)

var (
	//go:embed prelude.lua
	prelude string
	//go:embed enqueue.lua
	enqueueText string
	//go:embed work.lua
	workText string
	//go:embed change.lua
	changeText string
	//go:embed configure.lua
	configureText string
	//go:embed look.lua
	lookText string
	//go:embed schedule.lua
	scheduleText string
	//go:embed check.lua
	checkText string
	//go:embed scan.lua
	scanText string
	//go:embed stats.lua
	statsText string
	//go:embed workers.lua
	workersText string
	//go:embed history.lua
	historyText string
	//go:embed restore.lua
	restoreText string

	enqueueScript   = newScript(enqueueText)
	workScript      = newScript(workText)
	changeScript    = newScript(changeText)
	configureScript = newScript(configureText)
	lookScript      = newScript(lookText)
	scheduleScript  = newScript(scheduleText)
	checkScript     = newScript(checkText)
	scanScript      = newScript(scanText)
	statsScript     = newScript(statsText)
	workersScript   = newScript(workersText)
	historyScript   = newScript(historyText)
	restoreScript   = newScript(restoreText)
)

// script is one transition: its text with the prelude, and the digest the server knows it by, as words of commands. The body
// is the text as a function's: see compose.
type script struct {
	text, digest any
	body         string
}

func newScript(transition string) *script {
	text := compose(transition, "")
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return &script{text, hex.EncodeToString(sum[:]), compose(transition, "KEYS, ARGV")}
}

// compose puts a transition together. What stands below a line "--@level" becomes a function within what stands above.
// A closure finds a variable of the function that it is made in by walking through all of those that any closure holds,
// and one of a function further out at once: without levels a script takes 25 µs before it does anything, with them 9.
//
// Handed are variables that each level passes on to the next. KEYS and ARGV are globals in a script, and parameters in a
// function, of which a level cannot hold as many from further out as it would need.
func compose(transition, handed string) string {
	state, dispatch, _ := strings.Cut(prelude, "--@dispatch\n")
	begin, level, _ := strings.Cut(state, "--@level\n")
	text := strings.NewReplacer("--@include prelude.lua\n", state+dispatch, "--@include begin\n", begin,
		"--@include state\n", "--@level\n"+level, "--@include dispatch\n", dispatch).Replace(transition)
	levels := strings.Count(text, "--@level\n")
	return strings.ReplaceAll(text, "--@level\n", "return (function("+handed+")\n") + strings.Repeat(" end)("+handed+")", levels)
}
