package racelab

import (
	"bytes"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/engine/stepped"
)

// conn is a connection from a client library to the engine, through the lab. What
// is written is a request; the client stops when it wants to read the reply. The
// greetings of a new connection pass without a stop.
type conn struct {
	client  *Client
	remote  *stepped.Conn
	round   int // of the world, when remote was opened
	lost    bool
	request [][][]byte // sent and not run: one command, or a pipeline
	last    string     // the command that was run last
	watches []string   // what is watched, until EXEC,
	watched []string   // and what the last EXEC has looked at
	reply   []byte     // not read yet
	listen  *listening // of a subscription
}

func (k *conn) Write(p []byte) (int, error) {
	switch {
	case k.client.dead:
		return 0, errCrashed
	case k.lost:
		return 0, errConnection
	}
	if k.listen != nil {
		return len(p), nil // a sign of life, which nobody needs here
	}
	k.connect()
	commands, err := parseRequests(p)
	if err != nil {
		return 0, err
	}
	if name := strings.ToLower(string(commands[0][0])); name == "hello" || name == "client" {
		k.run(commands)
		k.reply = append(k.reply, k.remote.Received()...)
		return len(p), nil
	}
	k.request = append(k.request, commands...)
	return len(p), nil
}

func (k *conn) Read(p []byte) (int, error) {
	for len(k.reply) == 0 {
		switch {
		case k.listen != nil:
			if !k.listen.read() {
				return 0, errConnection
			}
			continue
		case k.lost:
			return 0, errConnection
		}
		switch k.client.park(stop{kind: atRequest, conn: k}) {
		case crashed:
			return 0, errCrashed
		case broken:
			k.lost = true
			return 0, errConnection
		}
	}
	n := copy(p, k.reply)
	k.reply = k.reply[n:]
	return n, nil
}

// connect opens the engine's end, anew in every run.
func (k *conn) connect() {
	if w := k.client.world; k.round != w.round {
		k.remote, k.round, k.request, k.watches, k.reply = w.engine.Connect(), w.round, nil, nil, nil
	}
}

func (k *conn) run(commands [][][]byte) {
	for _, command := range commands {
		k.remote.Send(command)
	}
}

// drop ends the engine's end. The client's end is of use again in the next run.
func (k *conn) drop() {
	if k.round == k.client.world.round && !k.lost {
		k.remote.Close()
	}
	k.round = -1
}

// hangUp ends both ends.
func (k *conn) hangUp() {
	k.drop()
	k.lost = true
}

func (k *conn) Close() error {
	k.hangUp()
	if k.listen != nil {
		k.listen.close()
	}
	return nil
}

func (k *conn) LocalAddr() net.Addr              { return address{} }
func (k *conn) RemoteAddr() net.Addr             { return address{} }
func (k *conn) SetDeadline(time.Time) error      { return nil } // time is the lab's
func (k *conn) SetReadDeadline(time.Time) error  { return nil }
func (k *conn) SetWriteDeadline(time.Time) error { return nil }

type address struct{}

func (address) Network() string { return "lab" }
func (address) String() string  { return "lab" }

var errRequest = errors.New("racelab: a client has sent what is no request")

// parseRequests reads arrays of bulk strings, which is all that clients send.
func parseRequests(p []byte) (commands [][][]byte, err error) {
	p = bytes.Clone(p)
	for len(p) > 0 {
		var n int
		if n, p, err = header(p, '*'); err != nil {
			return nil, err
		}
		words := make([][]byte, n)
		for i := range words {
			var size int
			if size, p, err = header(p, '$'); err != nil {
				return nil, err
			}
			if size < 0 || len(p) < size+2 {
				return nil, errRequest
			}
			words[i], p = p[:size:size], p[size+2:]
		}
		commands = append(commands, words)
	}
	return commands, nil
}

func header(p []byte, kind byte) (n int, rest []byte, err error) {
	line, rest, found := bytes.Cut(p, []byte("\r\n"))
	if !found || len(line) < 2 || line[0] != kind {
		return 0, nil, errRequest
	}
	n, err = strconv.Atoi(string(line[1:]))
	if err != nil {
		return 0, nil, errRequest
	}
	return n, rest, nil
}
