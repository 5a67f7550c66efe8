//go:build unix

package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
)

var (
	code   = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]+`")
	called = regexp.MustCompile(`(?:^|[\s(/"'` + "`" + `])signalbox ((?:[a-z]|--)[^\n|;&)` + "`" + `]*)`)
)

// Each `signalbox …` that a page or the help shows is a command that exists, with flags that it has.
func TestDocsShowCommandsThatExist(t *testing.T) {
	root := (&app{}).root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	shown := 0
	look := func(where, text string) {
		for _, m := range called.FindAllStringSubmatch(text, -1) {
			shown++
			line, _, _ := strings.Cut(m[1], "  ") // behind it stands what it does
			if wrong := wrongCommand(root, strings.Fields(line)); wrong != "" {
				t.Errorf("%s shows signalbox %s: %s", where, line, wrong)
			}
		}
	}
	lookAtExamples(root, look)
	if shown < 30 {
		t.Errorf("only %d commands found in the help: has something moved?", shown)
	}
	inHelp := shown
	for path, text := range pages(t) {
		for _, span := range code.FindAllString(text, -1) {
			look(path, span)
		}
	}
	if shown-inHelp < 100 {
		t.Errorf("only %d commands found in the pages: has something moved?", shown-inHelp)
	}
}

func lookAtExamples(cmd *cobra.Command, look func(where, text string)) {
	look(cmd.CommandPath()+" --help", cmd.Example)
	for _, below := range cmd.Commands() {
		lookAtExamples(below, look)
	}
}

// The scripts of docs/program.md run as they stand, beside each other where there are several parts.
func TestDocsScriptsRun(t *testing.T) {
	page := pages(t)["../../docs/program.md"]
	for _, c := range []struct {
		section, says string
		parts         []string
	}{
		{"## Steps of a pipeline", "staging: released", []string{"1"}},
		{"## Rates, barriers, latches", "publish.sh ran", []string{"1", "2", "3"}},
	} {
		t.Run(c.section, func(t *testing.T) {
			t.Parallel()
			_, text, _ := strings.Cut(page, c.section)
			_, script, _ := strings.Cut(text, "```sh\n")
			script, _, found := strings.Cut(script, "```")
			if !found {
				t.Fatal("there is no script in it")
			}
			folder := standIns(t, script)
			environment := append(os.Environ(), "SIGNALBOX_URL=", "SIGNALBOX_STATE="+filepath.Join(folder, "state"), "PATH="+folder+":"+os.Getenv("PATH"))
			defer func() {
				stop := exec.Command("signalbox", "serve", "--stop")
				stop.Env = environment
				if output, err := stop.CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, output)
				}
			}()
			var running sync.WaitGroup
			defer running.Wait()
			for _, part := range c.parts {
				running.Go(func() {
					cmd := exec.Command("sh", "-e", "-c", script)
					cmd.Dir, cmd.Env = folder, slices.Concat(environment, []string{"PART=" + part, "CI_JOB_URL=https://ci.example.org/1"})
					if output, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(output), c.says) {
						t.Errorf("%v\n%s", err, output)
					}
				})
			}
		})
	}
}

// standIns is a folder with what a script calls, and the file it reads.
func standIns(t *testing.T, script string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range append(regexp.MustCompile(`[\w-]+\.sh`).FindAllString(script, -1), "wget") {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\necho \"$0 ran\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "pages"), []byte("https://example.org/1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// pages are those of the repository, but for those of clients in other languages, whose packages have our name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && (name == "clients" || name == "node_modules" || name == "testdata" || name == "results" || strings.HasPrefix(name, ".") && name != ".." && name != ".github"):
			return filepath.SkipDir
		case !entry.IsDir() && filepath.Ext(name) == ".md":
			text, err := os.ReadFile(path)
			all[path] = string(text)
			return err
		}
		return nil
	})
	if err != nil || len(all) < 50 {
		t.Fatalf("%d pages found: %v", len(all), err)
	}
	return all
}

// wrongCommand says what is wrong with a command, "" if nothing is.
func wrongCommand(root *cobra.Command, words []string) string {
	cmd := root
	for len(words) > 0 {
		below := subcommand(cmd, words[0])
		if below == nil {
			break
		}
		cmd, words = below, words[1:]
	}
	if len(words) > 0 && cmd.HasSubCommands() && regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(words[0]) {
		return "there is no command " + words[0]
	}
	for _, word := range words {
		word = strings.Trim(word, `[](),.:…"'`)
		if word == "--" || strings.HasPrefix(word, "#") {
			break
		}
		name, ok := strings.CutPrefix(word, "--")
		if name, _, _ = strings.Cut(name, "="); !ok || name == "help" || name == "version" {
			continue
		}
		if cmd.Flag(name) == nil {
			return "it has no flag --" + name
		}
	}
	return ""
}

// subcommand is a command below another one by its name, nil if there is none.
func subcommand(cmd *cobra.Command, name string) *cobra.Command {
	for _, below := range cmd.Commands() {
		if below.Name() == name {
			return below
		}
	}
	return nil
}
