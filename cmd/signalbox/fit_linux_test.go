package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// On a terminal of 80 columns no table and no advice is wider, however long the names are, and ids stay whole.
func TestTablesFitATerminal(t *testing.T) {
	t.Setenv("SIGNALBOX_URL", "redis://"+difftest.Redis(t).Addr)
	long := strings.Repeat("a long name ", 8)
	id := strings.Repeat("0123456789", 3)
	for _, args := range [][]string{
		{"queue", "push", long, `"x"`, "--key", long, "--id", id},
		{"queue", "push", "mail", `"x"`, "--in", "1h", "--id", "2"},
		{"acquire", "--detach", "--ttl", "1h", "--label", long, "x"},
	} {
		if output, err := exec.CommandContext(t.Context(), "signalbox", args...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", args, err, output)
		}
	}
	for _, shown := range []struct {
		command string
		whole   string
	}{
		{"queue stats", "CRASH"},
		{"queue ls", id + "  waiting"},
		{"inspect x", "TOKEN"},
		{"doctor", "no append-only file"},
	} {
		text := onTerminal(t, 80, 24, strings.Fields(shown.command)...)
		if !strings.Contains(text, shown.whole) {
			t.Errorf("%s does not show %q:\n%s", shown.command, shown.whole, text)
		}
		for line := range strings.Lines(text) {
			if width := utf8.RuneCountInString(strings.TrimRight(line, "\r\n")); width > 80 {
				t.Errorf("%s has a line of %d:\n%s", shown.command, width, line)
			}
		}
	}
}

// onTerminal is what a command shows on a terminal, without what makes it bold.
func onTerminal(t *testing.T, columns, rows uint16, args ...string) string {
	t.Helper()
	person, program := terminalPair(t, columns, rows)
	cmd := exec.CommandContext(t.Context(), "signalbox", args...)
	cmd.Stdout = program
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The person's end hears of the end when nobody has the program's.
	if err := errors.Join(program.Close(), person.SetReadDeadline(time.Now().Add(patience))); err != nil {
		t.Fatal(err)
	}
	var seen bytes.Buffer
	if _, err := seen.ReadFrom(person); !errors.Is(err, syscall.EIO) {
		t.Fatalf("%q: %v", args, err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return seen.String()
}
