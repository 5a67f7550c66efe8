package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// socket is one connection of a pacer.
type socket struct {
	fd    int
	due   time.Time // when the request that is on its way had to be sent
	lines int       // of its answer, to come
}

// metronome is the pacer's own side.
type metronome struct {
	config  paceConfig
	poll    int
	sockets map[int32]*socket
	free    []*socket
	extra   *socket
	sent    int
	request request
	buffer  []byte
	took    latencies
}

func paceRole(_ context.Context, config []byte) error {
	m := &metronome{sockets: map[int32]*socket{}, buffer: make([]byte, 64<<10)}
	if err := decode(config, &m.config); err != nil {
		return err
	}
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	var err error
	if m.poll, err = unix.EpollCreate1(0); err != nil {
		return err
	}
	if err := m.open(); err != nil {
		return err
	}
	if err := say("ready"); err != nil {
		return err
	}
	for {
		var w paceWindow
		if listen(&w) != nil {
			return nil // the parent has enough
		}
		found, err := m.window(w)
		if err != nil {
			found.Fault = errors.Join(err, m.open()).Error()
		}
		if err := say(found); err != nil {
			return err
		}
	}
}

// open opens all connections; what was on its way on others is forgotten.
func (m *metronome) open() (err error) {
	for _, s := range m.sockets {
		_ = unix.Close(s.fd) // it may have failed
	}
	clear(m.sockets)
	m.free = m.free[:0]
	for range m.config.Connections {
		s, err := m.connect()
		if err != nil {
			return err
		}
		m.free = append(m.free, s)
	}
	m.extra, err = m.connect()
	return err
}

func (m *metronome) connect() (*socket, error) {
	address, err := net.ResolveTCPAddr("tcp", m.config.Addr)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	to := &unix.SockaddrInet4{Port: address.Port, Addr: [4]byte(address.IP.To4())}
	s := &socket{fd: fd}
	m.sockets[int32(fd)] = s
	return s, errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		unix.Connect(fd, to), unix.SetNonblock(fd, true),
		unix.EpollCtl(m.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}),
	)
}

// window sends for as long as wanted, and reads until all is answered.
func (m *metronome) window(w paceWindow) (found paced, err error) {
	m.took = make(latencies, 0, int(float64(m.config.Rate)*(w.Seconds+pacePatience.Seconds()+1))) // all that can be due
	interval := time.Second / time.Duration(m.config.Rate)
	begin, used := time.Now(), ownCPU()
	next, end := begin, begin.Add(time.Duration(w.Seconds*float64(time.Second)))
	commandAt := begin.Add(end.Sub(begin) / 4)
	asked, open := time.Time{}, len(w.Command) > 0
	for giveUp := end.Add(pacePatience); ; {
		now := time.Now()
		if now.After(giveUp) {
			return found, errors.New("no answer in time")
		}
		if open && asked.IsZero() && now.After(commandAt) {
			if err := m.ask(w); err != nil {
				return found, err
			}
			asked = now
		}
		if open && !asked.IsZero() && m.extra.lines == 0 {
			found.CommandMs, open = float64(now.Sub(asked).Microseconds())/1e3, false
			end = later(end, now.Add(end.Sub(begin)/4))
		}
		if !now.Before(end) && !open && len(m.free) == m.config.Connections {
			break
		}
		for ; len(m.free) > 0 && !next.After(now) && (open || next.Before(end)); next = next.Add(interval) {
			if err := m.send(next); err != nil {
				return found, err
			}
		}
		if err := m.receive(); err != nil {
			return found, err
		}
	}
	found.Share = (ownCPU() - used).Seconds() / time.Since(begin).Seconds()
	m.took.sort()
	found.Operations = len(m.took)
	found.P50, found.P99, found.P999 = m.took.quantile(0.5), m.took.quantile(0.99), m.took.quantile(0.999)
	found.P9999, found.Worst = m.took.quantile(0.9999), m.took.quantile(1)
	return found, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// send sends the next request, which was due then, on a free connection.
func (m *metronome) send(due time.Time) error {
	s := m.free[len(m.free)-1]
	m.free = m.free[:len(m.free)-1]
	key := scattered(m.sent, max(m.config.Keys, 1))
	switch {
	case m.config.Keys == 0:
		m.request, s.lines = append(m.request[:0], "*1\r\n$4\r\nPING\r\n"...), 1
	case m.sent%2 == 0:
		m.request, s.lines = m.request[:0].words(2).word("GET").key(key), 2
	default:
		m.request, s.lines = m.request[:0].words(3).word("SET").key(key).value(m.sent, 16), 1
	}
	m.sent++
	s.due = due
	return put(s.fd, m.request)
}

func put(fd int, bytes []byte) error {
	n, err := unix.Write(fd, bytes)
	if err == nil && n < len(bytes) {
		err = errors.New("the socket did not take a request")
	}
	return err
}

// ask sends the command. How many lines an array has is known when it begins.
func (m *metronome) ask(w paceWindow) error {
	r := request(nil).words(len(w.Command))
	for _, word := range w.Command {
		r = r.word(word)
	}
	m.extra.lines = 1
	if w.Lines {
		m.extra.lines = unknownLines
	}
	return put(m.extra.fd, r)
}

const unknownLines = -1

// receive reads what has arrived.
func (m *metronome) receive() error {
	var events [64]unix.EpollEvent
	n, err := unix.EpollWait(m.poll, events[:], 0)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	for _, event := range events[:max(n, 0)] {
		s := m.sockets[event.Fd]
		n, err := unix.Read(s.fd, m.buffer)
		switch {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			return errors.New("the server has closed the connection")
		}
		if err := m.read(s, m.buffer[:n]); err != nil {
			return err
		}
	}
	return nil
}

func (m *metronome) read(s *socket, text []byte) error {
	if s.lines == unknownLines {
		head, _, _ := bytes.Cut(text, []byte("\r\n"))
		n, err := strconv.Atoi(string(bytes.TrimPrefix(head, []byte("*"))))
		if err != nil {
			return fmt.Errorf("the server said %q", head)
		}
		s.lines = 1 + 2*n
	}
	if text[0] == '-' && s != m.extra || text[0] == '-' && s.lines == 1 {
		return fmt.Errorf("the server said %q", text[:min(len(text), 100)])
	}
	s.lines -= bytes.Count(text, []byte("\n"))
	if s.lines == 0 && s != m.extra {
		m.took = append(m.took, time.Since(s.due))
		m.free = append(m.free, s)
	}
	return nil
}
