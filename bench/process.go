package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// cores says where processes run; nil leaves it to the scheduler.
type cores struct {
	server, client []int
}

// availableCores gives the server the first core and the clients all others. With a single core all share it.
func availableCores() cores {
	all := allowedCores()
	switch len(all) {
	case 0:
		return cores{}
	case 1:
		return cores{all, all}
	}
	return cores{all[:1], all[1:]}
}

// process is a child that was started here.
type process struct {
	command *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Reader
	ended   chan struct{}
}

// stopPatience is how long a child may take to end by itself.
const stopPatience = 3 * time.Second

// start runs a program on the given cores.
func start(on []int, path string, args ...string) (*process, error) {
	p := &process{command: exec.Command(path, args...), ended: make(chan struct{})}
	input, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.input, p.output = input, bufio.NewReaderSize(read, 1<<20)
	p.command.Stdout, p.command.Stderr = write, os.Stderr
	err = startPinned(p.command, on)
	if closed := write.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", path, err), read.Close())
	}
	go func() {
		// How a child ended shows in what it said, or did not say.
		_ = p.command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// startRole runs this program again in a role.
func startRole(on []int, name string, config any) (*process, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	return start(on, path, "role", name, string(encoded))
}

// tell writes one line to a role, hear reads one from it.
func (p *process) tell(message any) error {
	encoded, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = p.input.Write(append(encoded, '\n'))
	return err
}

func (p *process) hear(message any) error {
	line, err := p.output.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s ended before it answered: %w", strings.Join(p.command.Args[1:3], " "), err)
	}
	return json.Unmarshal(line, message)
}

// stop ends the process: it is asked to by the end of its input, then killed.
func (p *process) stop() {
	_ = p.input.Close() // it may have ended already
	select {
	case <-p.ended:
	case <-time.After(stopPatience):
		_ = p.command.Process.Kill() // as above
		<-p.ended
	}
}

// kill ends a process that does not listen to its input.
func (p *process) kill() {
	_ = p.command.Process.Kill() // it may have ended already
	<-p.ended
}

// cpu is the processor time the process has used, user and system. It is 0 where /proc does not tell.
func (p *process) cpu() time.Duration {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.command.Process.Pid) + "/stat")
	if err != nil {
		return 0
	}
	// The second field is the program's name in brackets and may hold blanks; utime and stime are the 14th and 15th.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	const tick = 10 * time.Millisecond // Linux tells user space 100 a second, whatever its own clock does
	return time.Duration(ticks) * tick
}

// memory is how many bytes of memory the process and its children take, what they share counted once. It is 0 where
// /proc does not tell.
func (p *process) memory() int64 {
	pid := strconv.Itoa(p.command.Process.Pid)
	all := pssOf(pid)
	children, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
	if err != nil {
		return all
	}
	for child := range strings.FieldsSeq(string(children)) {
		all += pssOf(child)
	}
	return all
}

// pssOf is the proportional share of a process that may have ended.
func pssOf(pid string) int64 {
	text, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "Pss: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}

// The child's side of tell and hear.

var roleInput = bufio.NewReader(os.Stdin)

func say(message any) error {
	return json.NewEncoder(os.Stdout).Encode(message)
}

func listen(message any) error {
	line, err := roleInput.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, message)
}

// dismissed returns when the parent closes the input, or has ended.
func dismissed() {
	_, _ = io.Copy(io.Discard, roleInput) // any end is an end
}

// shut closes what has nothing left to tell.
func shut(c io.Closer) { _ = c.Close() }
