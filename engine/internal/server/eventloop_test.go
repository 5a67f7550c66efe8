package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/disk"
	"github.com/signalbox-io/signalbox/engine/internal/disk/disktest"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// Sockets share the event loop, where there is one. What one connection does must not be felt
// by the others.

// peer is a client on a socket.
type peer struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func newPeer(t *testing.T, to net.Addr) *peer {
	t.Helper()
	conn, err := net.Dial(to.Network(), to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil { // rather than to hang
		t.Fatal(err)
	}
	return &peer{t, conn, bufio.NewReader(conn)}
}

// send writes requests with one call.
func (p *peer) send(requests ...string) {
	p.t.Helper()
	var all []byte
	for _, request := range requests {
		all = resp.AppendCommand(all, strings.Fields(request)...)
	}
	if _, err := p.conn.Write(all); err != nil {
		p.t.Error(err)
	}
}

// line is the next line of what the server says; "" when it has hung up.
func (p *peer) line() string {
	p.t.Helper()
	line, err := p.in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		p.t.Error(err)
	}
	return strings.TrimSpace(line)
}

func (p *peer) expect(lines ...string) {
	p.t.Helper()
	for _, want := range lines {
		if got := p.line(); !strings.HasPrefix(got, want) || want == "" && got != "" {
			p.t.Errorf("got %q, want %q", got, want)
		}
	}
}

// peers are several, and the server knows of all of them.
func peers(t *testing.T, to net.Addr) []*peer {
	t.Helper()
	all := make([]*peer, 8)
	for i := range all {
		all[i] = newPeer(t, to)
		all[i].send("PING")
		all[i].expect("+PONG")
	}
	return all
}

// TestALongScriptHoldsUpNobodyElse: others are told that the engine is busy, one of them ends
// the script, and what came behind it is answered.
func TestALongScriptHoldsUpNobodyElse(t *testing.T) {
	s := open(t, server.Options{})
	all := peers(t, listen(t, s))
	do(t, s, "CONFIG", "SET", "busy-reply-threshold", "1")
	for round := range 2 {
		looping := all[round]
		looping.send("EVAL while(true)do(type)(1)end 0", "ECHO behind")
		looping.send("ECHO later")
		for i, other := range all {
			if i == round {
				continue
			}
			other.send("GET key")
			for reply := other.line(); !strings.HasPrefix(reply, "-BUSY"); reply = other.line() {
				if reply != "$-1" {
					t.Fatalf("%q while a script runs", reply)
				}
				other.send("GET key")
			}
		}
		killer := all[len(all)-1]
		killer.send("SCRIPT KILL")
		killer.expect("+OK")
		looping.expect("-ERR Script killed by user", "$6", "behind", "$5", "later")
		for _, other := range all {
			other.send("PING")
			other.expect("+PONG")
		}
	}
}

// TestWhatWasAnsweredIsOnDisk, for all who write at once: they wait for the same syncs.
func TestWhatWasAnsweredIsOnDisk(t *testing.T) {
	const batches, batch = 40, 5
	d := disktest.New()
	s := kept(t, d, withLog["always"]...)
	all := peers(t, listen(t, s))
	cut := make([]*disktest.Disk, len(all))
	var writers sync.WaitGroup
	for i, p := range all {
		writers.Go(func() {
			for j := range batches {
				requests := make([]string, batch)
				for k := range requests {
					requests[k] = fmt.Sprintf("SET %d:%d v", i, j*batch+k)
				}
				p.send(requests...)
				p.expect("+OK", "+OK", "+OK", "+OK", "+OK")
			}
			cut[i] = d.PowerCut(uint64(i))
		})
	}
	writers.Wait()
	for i := range all {
		after := kept(t, cut[i], withLog["always"]...)
		for j := range batches * batch {
			wantText(t, after, "v", "GET", fmt.Sprintf("%d:%d", i, j))
		}
		if err := after.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWhatMayBeLostIsToldNobody: when a sync has failed, the one who waits for it is
// disconnected, and whoever asks after it is told that the disk fails. The loop goes on, and ends.
func TestWhatMayBeLostIsToldNobody(t *testing.T) {
	d := disktest.New()
	s := kept(t, d, withLog["always"]...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	all := peers(t, l.Addr())
	d.FailSyncs(1)
	all[0].send("SET key 1")
	all[0].expect("")
	for _, other := range all[1:] {
		other.send("GET key")
		other.expect("-MISCONF")
	}
	if err := s.Close(); err == nil {
		t.Error("nobody is told at the end that not all is on disk")
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestRequestsBehindABlockedOneAreRunWhenItEnds, even if it ends while the loop has left it
// to the disk.
func TestRequestsBehindABlockedOneAreRunWhenItEnds(t *testing.T) {
	for name, parameters := range withLog {
		t.Run(name, func(t *testing.T) {
			s := kept(t, disktest.New(), parameters...)
			all := peers(t, listen(t, s))
			giver := newPeer(t, all[0].conn.RemoteAddr())
			for range 50 {
				for i, p := range all {
					p.send("INCR before", fmt.Sprintf("BLPOP q%d 0", i), "INCR behind")
				}
				for i := range all {
					giver.send(fmt.Sprintf("RPUSH q%d v", i))
				}
				for _, p := range all {
					giver.expect(":1")
					p.expect(":", "*2", "$", "q", "$1", "v", ":")
				}
			}
		})
	}
}

// gatedDisk is a disk whose syncs wait while its gate is shut.
type gatedDisk struct {
	*disktest.Disk
	gate    sync.RWMutex  // a sync holds it for reading
	waiting chan struct{} // takes one for each sync
}

type gatedFile struct {
	disk.File
	disk *gatedDisk
}

func (d *gatedDisk) Create(name string) (disk.File, error) {
	f, err := d.Disk.Create(name)
	return gatedFile{f, d}, err
}

func (d *gatedDisk) Append(name string) (disk.File, error) {
	f, err := d.Disk.Append(name)
	return gatedFile{f, d}, err
}

func (f gatedFile) Sync() error {
	select {
	case f.disk.waiting <- struct{}{}:
	default:
	}
	f.disk.gate.RLock()
	defer f.disk.gate.RUnlock()
	return f.File.Sync()
}

// TestOneThatLeavesDoesNotMakeTheLoopWaitForTheDisk: though what somebody has written is not
// on disk yet, what others say next is run.
func TestOneThatLeavesDoesNotMakeTheLoopWaitForTheDisk(t *testing.T) {
	d := &gatedDisk{Disk: disktest.New(), waiting: make(chan struct{}, 1)}
	ran := make(chan struct{}, 100)
	s := keepWith(t, d, func(message string) {
		if message == "ran" {
			ran <- struct{}{}
		}
	}, withLog["always"]...)
	if err := s.Load(nil); err != nil {
		t.Fatal(err)
	}
	all := peers(t, listen(t, s))
	for len(d.waiting) > 0 {
		<-d.waiting
	}
	d.gate.Lock()
	open := sync.OnceFunc(d.gate.Unlock)
	defer open()
	var writer sync.WaitGroup
	writer.Go(func() { do(t, s, "SET", "key", "v") }) // the loop does not wait for that
	<-d.waiting
	before := s.Sessions()
	stay := all[0]
	for _, p := range all[1:] {
		if err := p.conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for giveUp := time.Now().Add(20 * time.Second); s.Sessions() > before-len(all)+1; runtime.Gosched() {
		if time.Now().After(giveUp) {
			t.Fatal("the loop stands still")
		}
	}
	stay.send("EVAL redis.log(redis.LOG_WARNING,'ran') 0")
	<-ran
	open()
	stay.expect("$-1")
	writer.Wait()
}

// TestEachOfTheLoopHasItsTurn, though others always have more to say.
func TestEachOfTheLoopHasItsTurn(t *testing.T) {
	all := peers(t, listen(t, open(t, server.Options{})))
	half := len(all) / 2
	batch := []byte(strings.Repeat("PING\r\n", 10_000))
	var talkers sync.WaitGroup
	for _, p := range all[half:] {
		talkers.Go(func() { _, _ = io.Copy(io.Discard, p.conn) }) // until it is closed
		talkers.Go(func() {
			for _, err := p.conn.Write(batch); err == nil; _, err = p.conn.Write(batch) {
				continue
			}
		})
	}
	for range 20 {
		for _, p := range all[:half] {
			p.send("ECHO mine")
		}
		for _, p := range all[:half] {
			p.expect("$4", "mine")
		}
	}
	for _, p := range all[half:] {
		_ = p.conn.Close()
	}
	talkers.Wait()
}

// TestAPipelineOnASocketWaitsForItsReader: no more is answered in memory than a client may
// leave unread. Nothing is lost by that.
func TestAPipelineOnASocketWaitsForItsReader(t *testing.T) {
	const replies, size, most = 40, 8 << 20, 80 << 20
	s := open(t, server.Options{})
	p := newPeer(t, listen(t, s))
	do(t, s, "SET", "big", strings.Repeat("v", size))
	p.send(append(slices.Repeat([]string{"GET big"}, replies), "PING")...)
	for !strings.Contains(do(t, s, "INFO", "commandstats").Text(), "cmdstat_get:calls=") {
		continue // the first part is run as one batch
	}
	do(t, s, "SET", "big", "small")
	long := 0
	for range replies {
		header := p.line()
		if header == fmt.Sprintf("$%d", size) {
			long++
			if _, err := p.in.Discard(size + len("\r\n")); err != nil {
				t.Fatal(err)
			}
		} else if header != "$5" || p.line() != "small" {
			t.Fatalf("got %q", header)
		}
	}
	if long*size > most {
		t.Errorf("%d MB of replies were in memory", long*size>>20)
	}
	p.expect("+PONG")
}
