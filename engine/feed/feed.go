// Package feed hears what a server tells its replicas: all its data as of one moment, and then every change. It is for
// tools that carry the data to a place which cannot be a replica itself. The server is an engine, Redis or Valkey.
//
//	feed.go    the connection: the handshake, the snapshot
//	stream.go  the requests behind the snapshot, and what is acknowledged
//	keys.go    the keys of a request
//	value.go   whether two values are the same
//
// The order of use: Open, Snapshot once, Next until the end, Close. One goroutine reads; Applied may be called from
// another one.
package feed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
	"github.com/signalbox-io/signalbox/engine/internal/replication"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

const (
	// silence is how long a server may say nothing: Redis's repl-timeout.
	silence  = time.Minute
	ackEvery = time.Second
	// beginEvery is for until the stream flows: it begins with an acknowledgement, and Redis does not hear one that comes
	// before the process that wrote the snapshot has ended.
	beginEvery = 50 * time.Millisecond
	// mostLine bounds a line of the conversation.
	mostLine = 4 << 10
)

// ErrFormat is for a snapshot that cannot be read: of a newer server, with the data of modules, or damaged.
var ErrFormat = errors.New("the snapshot cannot be read")

// Feed is a connection to a server that takes it for a replica.
type Feed struct {
	nc   net.Conn
	in   *bufio.Reader
	from io.Reader // behind the snapshot

	id       string
	begin    int64 // the offset of the snapshot
	heard    int64 // bytes of the stream, behind begin
	requests resp.Requests
	applied  atomic.Int64
	ackDue   time.Time
	silent   time.Time // since when
	alive    time.Time // when the server was told that we read
	db       int
}

// Open makes a connection a replica's. It is closed if that fails, and when ctx ends before it has come about.
func Open(ctx context.Context, nc net.Conn, user, password string) (*Feed, error) {
	f := &Feed{nc: nc, in: bufio.NewReaderSize(nc, 256<<10)}
	f.requests.Trusted = true
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() }) // its reader sees that
	defer stop()
	if err := f.handshake(ctx, replication.Terms{User: user, Password: password}); err != nil {
		return nil, errors.Join(err, closed(nc))
	}
	return f, nil
}

// closed closes a connection that may be closed already.
func closed(nc net.Conn) error {
	if err := nc.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (f *Feed) handshake(ctx context.Context, terms replication.Terms) error {
	talk, send := replication.Begin(terms)
	for {
		if err := f.nc.SetDeadline(time.Now().Add(silence)); err != nil {
			return lost(err)
		}
		if len(send) > 0 {
			if _, err := f.nc.Write(send); err != nil {
				return lost(err)
			}
		}
		line, err := f.line()
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		var answer replication.Answer
		if send, answer, err = talk.Hear(line); err != nil {
			return err
		}
		if answer.Done {
			f.id, f.begin = answer.ID, answer.Offset
			f.applied.Store(answer.Offset)
			return nil
		}
	}
}

// line reads a line, which is bounded.
func (f *Feed) line() (string, error) {
	line, err := f.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || len(line) > mostLine {
		return "", errors.New("a line without end: is it a Redis at all?")
	}
	if err != nil {
		return "", lost(err)
	}
	return strings.TrimRight(string(line), "\r\n"), nil
}

func lost(err error) error { return fmt.Errorf("the connection was lost: %w", err) }

// ID is the replication id of the stream, Offset how many of its bytes were handed out.
func (f *Feed) ID() string { return f.id }

// Offset is how far the stream was handed out, with what stood before the last request that Next has returned.
func (f *Feed) Offset() int64 { return f.begin + f.heard - int64(f.requests.Buffered()) }

// Close ends the connection. It may be called while another goroutine reads, which gets an error.
func (f *Feed) Close() error { return closed(f.nc) }

// Key is a key of the snapshot.
type Key struct {
	DB         int
	Name       []byte
	ExpireAtMs int64 // 0 is never
	IdleSec    uint64
	Freq       uint8
	HasFreq    bool
	Bytes      int64 // that it took in the snapshot
	value      any
}

// AppendPayload appends the value as RESTORE takes it.
func (k *Key) AppendPayload(to []byte) ([]byte, error) { return rdb.AppendPayload(to, k.value) }

// Visitor takes what a snapshot has, in its order. An error ends the reading.
type Visitor struct {
	Expect  func(keys int) error // so many keys more; a hint
	Key     func(Key) error
	Library func(code []byte) error // of functions
}

// Snapshot hands out the data, and returns when the stream begins.
func (f *Feed) Snapshot(visit Visitor) error {
	frame, err := f.frame()
	if err != nil {
		return err
	}
	source := &breathing{feed: f, left: frame.Bytes}
	limits := ds.DefaultLimits()
	reader := rdb.NewReader(source, &limits)
	for {
		before := reader.Offset()
		record, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if source.err != nil {
			return fmt.Errorf("the snapshot broke off after %d bytes: %w", reader.Offset(), lost(source.err))
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrFormat, err)
		}
		if err := f.visit(visit, record, reader.Offset()-before); err != nil {
			return err
		}
	}
	source.over = true
	if frame.Bytes >= 0 {
		if f.from = f.in; reader.Offset() != frame.Bytes {
			return fmt.Errorf("%w: it ends after %d of %d bytes", ErrFormat, reader.Offset(), frame.Bytes)
		}
		return f.acknowledge()
	}
	f.from = reader.Rest()
	mark := make([]byte, len(frame.Mark))
	if _, err := io.ReadFull(f.from, mark); err != nil {
		return lost(err)
	}
	if string(mark) != frame.Mark {
		return fmt.Errorf("%w: the mark behind it is another one than was announced", ErrFormat)
	}
	return f.acknowledge()
}

func (f *Feed) visit(visit Visitor, record rdb.Record, size int64) error {
	switch record := record.(type) {
	case rdb.Size:
		const believed = 1 << 40
		return visit.Expect(int(min(record.Keys, believed)))
	case rdb.Function:
		return visit.Library(record.Code)
	case rdb.Aux:
		if record.Name == "repl-stream-db" {
			db, err := strconv.Atoi(record.Value)
			if err != nil {
				return fmt.Errorf("%w: %s is %q", ErrFormat, record.Name, record.Value)
			}
			f.db = db
		}
	case rdb.Key:
		return visit.Key(Key{
			DB: record.DB, Name: record.Name, ExpireAtMs: record.ExpireAtMs, IdleSec: record.IdleSec,
			Freq: record.Freq, HasFreq: record.HasFreq, Bytes: size, value: record.Value,
		})
	}
	return nil
}

// frame waits until the snapshot begins.
func (f *Feed) frame() (replication.Snapshot, error) {
	for {
		if err := f.nc.SetDeadline(time.Now().Add(silence)); err != nil {
			return replication.Snapshot{}, lost(err)
		}
		line, err := f.line()
		if err != nil {
			return replication.Snapshot{}, err
		}
		if line != "" { // else the server is at work, and says so
			return replication.ParseSnapshot(line)
		}
	}
}

// breathing reads the snapshot, and lets the server know now and then that it does.
type breathing struct {
	feed *Feed
	left int64 // of the snapshot; -1 if it has a mark
	over bool  // the stream follows
	err  error
}

func (b *breathing) Read(p []byte) (int, error) {
	f := b.feed
	if b.over {
		return f.in.Read(p)
	}
	if now := time.Now(); now.Sub(f.alive) >= ackEvery {
		f.alive = now
		b.err = f.nc.SetDeadline(now.Add(silence))
		if b.err == nil {
			_, b.err = f.nc.Write([]byte("\n"))
		}
		if b.err != nil {
			return 0, b.err
		}
	}
	if b.left == 0 {
		return 0, io.EOF
	}
	if b.left > 0 {
		p = p[:min(int64(len(p)), b.left)]
	}
	n, err := f.in.Read(p)
	if b.left > 0 {
		b.left -= int64(n)
	}
	b.err = err
	return n, err
}
