package main

import (
	"io"
	"strings"
	"testing"
)

// Command lines that make no sense are refused before anything is asked, with a word on what to do. That of `run` and those
// that look are in testdata/script/usage.txtar.
func TestUsage(t *testing.T) {
	t.Setenv("SIGNALBOX_URL", "redis://127.0.0.1:1") // nobody is to be asked
	for line, want := range map[string]string{
		"lock":                                   "which resource? signalbox lock NAME",
		"lock --pace 1s a b":                     "--pace is for one resource, not 2",
		"run a a -- true":                        "a is named twice",
		"elect a b -- true":                      "one name before --, not 2: signalbox elect NAME -- COMMAND",
		"elect a":                                "a: which command shall run? signalbox elect a -- COMMAND",
		"limit x -- true":                        "--rate says how many may pass in a time, such as --rate 10/s",
		"limit --rate fast x":                    "the rate must be as 10/s, 100/m or 5/2s, not fast",
		"limit --rate 1/s":                       "one name, not 0: signalbox limit --rate 10/s NAME -- COMMAND",
		"limit --rate 1/s x --":                  "the command is missing behind --",
		"limit --rate 1/s --burst 0 x":           "--burst must be at least 1, not 0",
		"limit --rate 1/s --cost 0 x":            "--cost must be at least 1, not 0",
		"limit --rate 1/s --no-wait --cost 2":    "one name, not 0",
		"limit --rate 1/s --no-wait --cost 2 x":  "--cost 2 is more than --burst 1, and could never pass without waiting",
		"limit --rate 1/s --wait 1s --no-wait x": "--wait and --no-wait exclude each other",
		"barrier b":                              "--parties must be 1 to 100000, not 0",
		"barrier --parties 2":                    "signalbox barrier takes NAME, got 0",
		"latch --parties 2 --done= l":            "--done must be a word that tells this party from the others",
		"acquire --ttl 1h x":                     "give --detach: nothing renews the lease; signalbox lock x holds it until a signal comes",
		"acquire --detach x":                     "--ttl says when the lease ends if nobody releases it, such as --ttl 1h",
		"release x --all --token 1":              "--all and --token exclude each other",
		"release x --token soon":                 `--token must be a whole number, not "soon"`,
		"why":                                    "signalbox why takes NAME, got 0",
	} {
		root := (&app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}).root()
		root.SetArgs(strings.Fields(line))
		err := root.ExecuteContext(t.Context())
		if status(err) != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("signalbox %s: status %d: %v; want %d: %s", line, status(err), err, exitUsage, want)
		}
	}
}
