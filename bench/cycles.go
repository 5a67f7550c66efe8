package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The load of locks as they are used: each connection has a mutex of its own and acquires and releases it in turns.
// redis-benchmark sends one command only. In a pipeline of 16 go eight pairs.

type cyclesConfig struct {
	Addr             string
	Acquire, Release []string // the requests; name and id of the connection go where the marks are
	Pairs            int      // in a pipeline; 0: no pipeline
	Cycles           int      // per connection
}

// loadPatience is how long an answer may take before it is a fault.
const loadPatience = 10 * time.Second

const connectionMark = "\x00connection\x00"

// marked is the request with marks where name and id of a connection go.
func (c scriptCall) marked() []string {
	args := []string{"EVALSHA", c.digest, strconv.Itoa(len(c.keys))}
	for _, key := range c.keys {
		args = append(args, strings.Replace(key, "}", connectionMark+"}", 1))
	}
	return append(args, c.withID("load:"+connectionMark)...)
}

// runCycles lets a process of its own make n operations.
func runCycles(e effort, on *server, scripts *overheard, pipeline, n int) (loadRun, error) {
	config := cyclesConfig{
		on.addr, scripts.mutexAcquire.marked(), scripts.mutexRelease.marked(), pipeline / 2, n / 2 / loadConnections,
	}
	p, err := startRole(e.cores.client, "cycles", config)
	if err != nil {
		return loadRun{}, err
	}
	defer p.stop()
	var word string
	if err := p.hear(&word); err != nil {
		return loadRun{}, err
	}
	cpu := on.process.ran()
	var took time.Duration
	if err := errors.Join(p.tell("go"), p.hear(&took)); err != nil {
		return loadRun{}, err
	}
	cpu = on.process.ran() - cpu
	return loadRun{float64(n) / took.Seconds(), float64(cpu.Microseconds()) / float64(n)}, nil
}

func cyclesRole(_ context.Context, config []byte) error {
	var c cyclesConfig
	if err := decode(config, &c); err != nil {
		return err
	}
	conns := make([]net.Conn, loadConnections)
	for i := range conns {
		conn, err := net.Dial("tcp", c.Addr)
		if err != nil {
			return err
		}
		defer shut(conn)
		conns[i] = conn
	}
	if err := say("ready"); err != nil {
		return err
	}
	var word string
	if err := listen(&word); err != nil {
		return err
	}
	begin := time.Now()
	errs := make([]error, len(conns))
	var all sync.WaitGroup
	for i, conn := range conns {
		all.Go(func() { errs[i] = cycles(conn, c, strconv.Itoa(i)) })
	}
	all.Wait()
	return errors.Join(errors.Join(errs...), say(time.Since(begin)))
}

// The lines of the answers: *3, :1, the token and the time to an acquire; :1 to a release.
const (
	acquireLines = 4
	releaseLines = 1
	granted      = "*3\r\n:1\r\n"
	released     = ":1\r\n"
)

func cycles(conn net.Conn, c cyclesConfig, name string) error {
	acquire, release := encode(c.Acquire, name), encode(c.Release, name)
	answers := make([]byte, 0, 4096)
	exchange := func(request []byte, lines int) (err error) {
		answers, err = exchange(conn, request, answers[:0], lines)
		return err
	}
	if c.Pairs == 0 {
		for range c.Cycles {
			if err := exchange(acquire, acquireLines); err != nil || !bytes.HasPrefix(answers, []byte(granted)) {
				return fmt.Errorf("acquire: %q: %w", answers, err)
			}
			if err := exchange(release, releaseLines); err != nil || string(answers) != released {
				return fmt.Errorf("release: %q: %w", answers, err)
			}
		}
		return nil
	}
	batch := bytes.Repeat(append(bytes.Clone(acquire), release...), c.Pairs)
	for done := 0; done < c.Cycles; done += c.Pairs {
		err := exchange(batch, c.Pairs*(acquireLines+releaseLines))
		if err != nil || bytes.Count(answers, []byte(granted)) != c.Pairs {
			return fmt.Errorf("acquire and release: %q: %w", answers, err)
		}
	}
	return nil
}

// exchange sends a request and reads so many lines.
func exchange(conn net.Conn, request, answers []byte, lines int) ([]byte, error) {
	if err := conn.SetDeadline(time.Now().Add(loadPatience)); err != nil {
		return answers, err
	}
	if _, err := conn.Write(request); err != nil {
		return answers, err
	}
	for seen := 0; seen < lines; {
		before := len(answers)
		n, err := conn.Read(answers[before:cap(answers)])
		if err != nil {
			return answers, err
		}
		answers = answers[:before+n]
		seen += bytes.Count(answers[before:], []byte("\n"))
	}
	return answers, nil
}

// encode puts the connection's name into a request and makes it bytes.
func encode(args []string, name string) []byte {
	out := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		arg = strings.ReplaceAll(arg, connectionMark, name)
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return out
}
