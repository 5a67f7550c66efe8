package feed

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/replication"
)

// Next returns the next request that changes something, or tells subscribers something, with the transaction around it
// (MULTI, EXEC). SELECT is left out: DB says where a request works. nil is returned when nothing has come for a second,
// or when only the offset has moved. The arguments are good until the next call. waiting is called before it waits: for
// what gathers in batches.
func (f *Feed) Next(waiting func() error) ([][]byte, error) {
	for {
		args, ok, err := f.requests.Next()
		switch {
		case err != nil:
			return nil, fmt.Errorf("the stream is damaged at offset %d: %w", f.Offset(), err)
		case ok:
			return f.request(args)
		}
		if err := waiting(); err != nil {
			return nil, err
		}
		if more, err := f.read(); !more || err != nil {
			return nil, err
		}
	}
}

func (f *Feed) request(args [][]byte) ([][]byte, error) {
	switch {
	case command.Is(args[0], "PING"):
		return nil, nil
	case command.Is(args[0], "REPLCONF"):
		return nil, f.acknowledge()
	case command.Is(args[0], "SELECT") && len(args) == 2:
		db, err := strconv.Atoi(string(args[1]))
		if err != nil || db < 0 {
			return nil, fmt.Errorf("the stream is damaged at offset %d: SELECT %q", f.Offset(), args[1])
		}
		f.db = db
		return nil, nil
	}
	return args, nil
}

// DB is the database of the request that Next has returned.
func (f *Feed) DB() int { return f.db }

// read waits for more of the stream, for a second at most.
func (f *Feed) read() (more bool, err error) {
	if !time.Now().Before(f.ackDue) {
		if err := f.acknowledge(); err != nil {
			return false, err
		}
	}
	n, err := f.from.Read(f.requests.Space())
	if n > 0 {
		f.silent = time.Now()
		f.heard += int64(n)
		f.requests.Advance(n)
		return true, nil
	}
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return false, lost(err)
	case time.Since(f.silent) > silence:
		return false, fmt.Errorf("the server was silent for %v", silence)
	}
	return false, f.acknowledge()
}

// Applied tells how far the stream has taken effect, for those who WAIT at the server. It is told once a second.
func (f *Feed) Applied(offset int64) { f.applied.Store(offset) }

// acknowledge tells the server how far we are, and sets when to look up from reading the next time.
func (f *Feed) acknowledge() error {
	now := time.Now()
	if f.silent.IsZero() {
		f.silent = now
	}
	f.ackDue = now.Add(ackEvery)
	if f.heard == 0 {
		f.ackDue = now.Add(beginEvery)
	}
	if err := f.nc.SetWriteDeadline(now.Add(silence)); err != nil {
		return lost(err)
	}
	ack := replication.AppendRequest(nil, "REPLCONF", "ACK", strconv.FormatInt(f.applied.Load(), 10))
	if _, err := f.nc.Write(ack); err != nil {
		return lost(err)
	}
	if err := f.nc.SetReadDeadline(f.ackDue); err != nil {
		return lost(err)
	}
	return nil
}
