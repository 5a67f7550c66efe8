package racelab

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/classic"
	"github.com/signalbox-io/signalbox/engine/stepped"
)

// A client is a goroutine that runs an algorithm, and stops wherever the lab has
// a say: at the beginning of each call, at each request, at each sleep. Either
// the lab runs or one client does, never two, and what a client does between two
// stops hangs on nothing but what it has been given. So a list of choices is a
// schedule, and the same list has the same end.

// Client is one client of an algorithm.
type Client struct {
	classic.Client
	// Name is a letter. IDs begin with it.
	Name string

	world  *world
	start  chan struct{}
	resume chan verdict
	conns  []*conn
	inbox  *stepped.Conn
	listen *listening
	mail   []string
	life   *life // that leads it, if one does

	stop    stop
	dead    bool
	served  bool // blocked, and the reply is on its way
	skew    time.Duration
	tick    int // of the clocks, at the last Begin
	begins  int
	ids     int
	history [sha256.Size]byte
	begun   time.Time // when the last call began, and when the last request was sent
	sent    time.Time
	belief  belief
	notes   []note
}

// stop is where a client stands.
type stop struct {
	kind stopKind
	op   string
	conn *conn     // of a request
	wake time.Time // of a sleep, or a wait for messages
}

type stopKind int

const (
	atBegin stopKind = iota
	atRequest
	atBlocked // the request was run, and has no reply yet
	atSleep
	atWait   // for whatever happens to its life
	atAnswer // the request was run, and its reply is on its way
	atNotice // the same, by a subscription of the algorithm's own: listen.go
	atEnd
)

// verdict is what becomes of a client that has stopped.
type verdict int

const (
	proceed verdict = iota
	broken          // the connection is lost
	crashed
)

var (
	errConnection = errors.New("connection lost")
	errCrashed    = errors.New("the client has crashed")
)

func newClient(w *world, name string) *Client {
	c := &Client{Name: name, world: w, start: make(chan struct{}), resume: make(chan verdict)}
	client := redis.NewClient(&redis.Options{
		Addr:            "127.0.0.1:6379", // never dialled
		WriteBufferSize: 1 << 20,          // a request comes in one piece, with the text of a script too
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			opened := &conn{client: c, round: -1}
			c.conns = append(c.conns, opened)
			return opened, nil
		},
		Protocol: 2, MaxRetries: -1, ConnMaxIdleTime: -1, ContextTimeoutEnabled: false,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	c.Client = classic.Client{Redis: client, Clock: clock{c}, NewID: c.newID}
	return c
}

// serve runs lives until the world ends.
func (c *Client) serve() {
	for range c.start {
		if c.world.algorithm.Life != nil {
			c.world.algorithm.Life(c)
		} else {
			live(c)
		}
		c.stop = stop{kind: atEnd}
		c.world.parked <- c
	}
}

func (c *Client) newID() string {
	c.ids++
	return fmt.Sprintf("%s-%d", c.Name, c.ids)
}

// park stops until the lab says what comes of it. One that has crashed goes on
// to its end without stopping.
func (c *Client) park(at stop) verdict {
	if c.dead {
		return crashed
	}
	at.op = c.stop.op
	c.stop = at
	c.world.parked <- c
	return <-c.resume
}

// Begin stops at the beginning of a call. It is false if the client is to end.
func (c *Client) Begin(op string) bool {
	c.stop.op = op
	return c.park(stop{kind: atBegin}) == proceed
}

// learn notes what a client has been given, which is all that it depends on.
func (c *Client) learn(kind byte, what []byte) {
	var when [17]byte
	binary.LittleEndian.PutUint64(when[0:], uint64(c.world.engine.Now().UnixMicro())) //nolint:gosec // a bit pattern
	binary.LittleEndian.PutUint64(when[8:], uint64(c.tick))                           //nolint:gosec // a bit pattern
	when[16] = kind
	sum := sha256.New()
	sum.Write(c.history[:])
	sum.Write(when[:])
	sum.Write(what)
	sum.Sum(c.history[:0])
}

// clock is what a client believes to be the time. The ticks make two calls that
// begin one after the other begin at different times.
type clock struct{ c *Client }

func (k clock) Now() time.Time {
	return k.c.world.engine.Now().Add(k.c.skew + time.Duration(k.c.tick)*time.Microsecond)
}

func (k clock) Sleep(ctx context.Context, d time.Duration) error {
	if l := k.c.listen; l != nil {
		return l.sleep(ctx, k.c.world.engine.Now().Add(d))
	}
	d = max(d, k.c.world.algorithm.Sleeps)
	if k.c.park(stop{kind: atSleep, wake: k.c.world.engine.Now().Add(d)}) != proceed {
		return errCrashed
	}
	return nil
}
