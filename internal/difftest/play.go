package difftest

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// player plays one transcript. Its own connection, control, is not among the
// transcript's: it flushes, and asks how many clients are blocked, which is
// how a request on one connection is known to come before one on another
// without waiting for any length of time.
type player struct {
	dial    Dial
	control *Conn
	conns   map[string]*Conn
	ids     map[string]string // client ids of connections whose id is asked for
	blocked map[string]bool
	proto   string
}

// play returns the reply to each entry, as the entry shows it; empty if it has
// none. After an error the replies up to the error are returned with it.
func play(entries []entry, dial Dial) ([]string, error) {
	control, err := Connect(dial)
	if err != nil {
		return nil, err
	}
	p := &player{
		dial: dial, control: control, ids: map[string]string{},
		conns: map[string]*Conn{}, blocked: map[string]bool{},
	}
	defer p.close()
	for _, e := range entries {
		for _, word := range e.words {
			if m := idWord.FindStringSubmatch(word); m != nil {
				p.ids[m[1]] = ""
			}
		}
	}
	replies := make([]string, 0, len(entries))
	for i := range entries {
		reply, err := p.step(&entries[i])
		if err != nil {
			return replies, fmt.Errorf("line %d: %w", entries[i].line, err)
		}
		replies = append(replies, reply)
	}
	return replies, p.checkNothingLeft()
}

func (p *player) close() {
	// The server may have hung up first; there is nothing to learn from that.
	_ = p.control.Close()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
}

func (p *player) step(e *entry) (string, error) {
	switch e.kind {
	case request:
		return p.request(e)
	case reception:
		conn, ok := p.conns[e.conn]
		if !ok {
			return "", fmt.Errorf("connection %s is not open", e.conn)
		}
		delete(p.blocked, e.conn)
		return receive(conn, e)
	case action:
		return "", p.act(e.words[0], e.words[1])
	}
	return "", nil
}

// request sends and, unless the entry says otherwise, receives.
func (p *player) request(e *entry) (string, error) {
	conn, err := p.open(e.conn)
	if err != nil {
		return "", err
	}
	if e.raw {
		err = conn.SendRaw([]byte(e.words[0]))
	} else {
		words := make([]string, len(e.words))
		for i, word := range e.words {
			words[i] = word
			if m := idWord.FindStringSubmatch(word); m != nil {
				words[i] = p.ids[m[1]]
			}
		}
		err = conn.Send(words...)
	}
	switch {
	case err != nil && hungUp(err):
		return "(closed)", nil
	case err != nil || e.silent:
		return "", err
	case e.blocks:
		p.blocked[e.conn] = true
		return "", p.awaitBlocked()
	}
	reply, err := receive(conn, e)
	if !e.again {
		return reply, err
	}
	return reply, p.await("to a reply that matches", func() (bool, error) {
		if err != nil || reply == matched {
			return true, err
		}
		if err = conn.Send(e.words...); err == nil {
			reply, err = receive(conn, e)
		}
		return false, err
	})
}

func receive(conn *Conn, e *entry) (string, error) {
	v, err := conn.Receive()
	if hungUp(err) {
		return "(closed)", nil
	}
	if err != nil {
		return "", err
	}
	return e.show(v), nil
}

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// open returns the connection of that name, opened if it is not yet.
func (p *player) open(name string) (*Conn, error) {
	if conn, ok := p.conns[name]; ok {
		return conn, nil
	}
	conn, err := Connect(p.dial)
	if err != nil {
		return nil, err
	}
	p.conns[name] = conn
	if _, asked := p.ids[name]; asked {
		v, err := conn.Do("CLIENT", "ID")
		if err != nil {
			return nil, err
		}
		p.ids[name] = v.Text
	}
	if p.proto != "" {
		_, err = conn.Do("HELLO", p.proto)
	}
	return conn, err
}

// act performs a directive that acts by itself.
func (p *player) act(name, argument string) error {
	switch name {
	case "flush":
		if _, err := p.control.Do("SCRIPT", "FLUSH"); err != nil {
			return err
		}
		_, err := p.control.Do("FLUSHALL")
		return err
	case "proto":
		p.proto = argument
		for _, conn := range p.conns {
			if _, err := conn.Do("HELLO", argument); err != nil && !hungUp(err) {
				return err
			}
		}
		return nil
	}
	conn, ok := p.conns[argument]
	if !ok {
		return fmt.Errorf("connection %q is not open", argument)
	}
	before, err := p.connected()
	if err != nil {
		return err
	}
	delete(p.conns, argument)
	delete(p.blocked, argument)
	if err := conn.Close(); err != nil {
		return err
	}
	return p.await("to have fewer clients", func() (bool, error) {
		now, err := p.connected()
		return now < before, err
	})
}

// connected is how many clients the server says it has.
func (p *player) connected() (n int, err error) {
	v, err := p.control.Do("INFO", "clients")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(v.Text, "connected_clients:")
	line, _, _ := strings.Cut(rest, "\r\n")
	return strconv.Atoi(line)
}

// awaitBlocked returns when the server says that as many clients are blocked
// as the transcript has left waiting.
func (p *player) awaitBlocked() error {
	want := "blocked_clients:" + strconv.Itoa(len(p.blocked)) + "\r\n"
	return p.await("to say "+strconv.Quote(want), func() (bool, error) {
		v, err := p.control.Do("INFO", "clients")
		return strings.Contains(v.Text, want), err
	})
}

// await asks the server until it is as it should be.
func (p *player) await(what string, arrived func() (bool, error)) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if ok, err := arrived(); ok || err != nil {
			return err
		}
	}
	return fmt.Errorf("the server does not come %s", what)
}

// checkNothingLeft finds replies that the transcript did not expect: the next
// one on each connection has to be that to a PING.
func (p *player) checkNothingLeft() error {
	for name, conn := range p.conns {
		if p.blocked[name] {
			continue
		}
		v, err := conn.Do("PING")
		if err != nil && !hungUp(err) {
			return fmt.Errorf("connection %s: %w", name, err)
		}
		text := strings.ToUpper(v.String())
		expected := err != nil || v.Kind == Error || strings.Contains(text, "PONG") || text == "+QUEUED"
		if !expected {
			return fmt.Errorf("connection %s has an unread reply:\n%s", name, v)
		}
	}
	return nil
}
