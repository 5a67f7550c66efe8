package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminalPair returns the two ends of a terminal of a size: that of the person, and that of the program.
func terminalPair(t *testing.T, columns, rows uint16) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// On a terminal the table is live, on a screen of its own; Ctrl-C gives the terminal back as it was.
func TestTopOnATerminal(t *testing.T) {
	person, program := terminalPair(t, 60, 10)
	state := filepath.Join(t.TempDir(), "state")
	environment := append(os.Environ(), "SIGNALBOX_STATE="+state, "SIGNALBOX_URL=", "TERM=xterm")
	start := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "signalbox", args...)
		cmd.Env = environment
		return cmd
	}
	t.Cleanup(func() {
		stop := exec.Command("signalbox", "serve", "--stop")
		stop.Env = environment
		if output, err := stop.CombinedOutput(); err != nil {
			t.Errorf("the private engine could not be ended: %v: %s", err, output)
		}
	})
	top := start("top", "--every", "100ms")
	top.Stdin, top.Stdout, top.Stderr = program, program, program
	top.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := top.Start(); err != nil {
		t.Fatal(err)
	}
	if err := person.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var seen bytes.Buffer
	until := func(text string) {
		t.Helper()
		buffer := make([]byte, 4096)
		for !strings.Contains(seen.String(), text) {
			n, err := person.Read(buffer)
			seen.Write(buffer[:n])
			if err != nil {
				t.Fatalf("%v before %q was seen, but\n%q", err, text, seen.String())
			}
		}
	}
	until("Nothing is held and nobody waits.")
	if output, err := start("resize", "a resource", "3").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	until("a resource     0     3*        0")
	if _, err := person.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	until(leaveScreen)
	if err := top.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if text := seen.String(); strings.Count(text, "\x1b[?1049h") != 1 || strings.Index(text, enterScreen) != 0 {
		t.Errorf("it did not keep to a screen of its own: %q", text)
	}
}

// What does not fit the screen is counted, and trouble is said without losing sight of what was known.
func TestTopFrame(t *testing.T) {
	t.Parallel()
	rows := make([]row, 20)
	for i := range rows {
		rows[i] = row{Resource: fmt.Sprint("resource ", i), Limit: 5, Held: i, Waiting: 1}
	}
	lines := strings.Split(frame(rows, os.ErrDeadlineExceeded, time.Now(), 40, 10), "\r\n")
	if len(lines) != 10 || !strings.Contains(lines[9], "… and 14 resources more") {
		t.Errorf("got %q, want 10 lines that end with what is left out", lines)
	}
	for i, line := range lines {
		line = strings.NewReplacer("\x1b[H", "", "\x1b[K", "", "\x1b[J", "").Replace(line)
		if width := len([]rune(line)); width > 40 {
			t.Errorf("line %d is %d wide, the screen 40: %q", i, width, line)
		}
	}
	if !strings.HasPrefix(lines[1], "signalbox: i/o timeout") || !strings.HasPrefix(lines[8], "resource 5 ") {
		t.Errorf("got %q", lines)
	}
}
