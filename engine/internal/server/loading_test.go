package server_test

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/disk"
	"github.com/signalbox-io/signalbox/engine/internal/disk/disktest"
	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// slowReading is a disk whose files are read slowly.
type slowReading struct {
	*disktest.Disk
	wait time.Duration // before every read
}

func (d slowReading) Open(name string) (io.ReadCloser, error) {
	file, err := d.Disk.Open(name)
	return slowFile{file, d.wait}, err
}

type slowFile struct {
	io.ReadCloser
	wait time.Duration
}

func (f slowFile) Read(b []byte) (int, error) {
	time.Sleep(f.wait)
	return f.ReadCloser.Read(b)
}

// with returns a disk that has what commands have made.
func with(t *testing.T, parameters []string, commands ...[]string) *disktest.Disk {
	t.Helper()
	d := disktest.New()
	s := kept(t, d, parameters...)
	for _, words := range commands {
		do(t, s, words...)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return d
}

// While data is loaded clients are answered so, and what they change of the parameters
// counts from when it is there.
func TestParametersCanBeSetWhileDataIsLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := with(t, withLog["everysec"], []string{"SET", "key", "1"})
		s := keep(t, slowReading{d, time.Second}, withLog["everysec"]...)
		loaded := make(chan error)
		go func() { loaded <- s.Load(nil) }()
		synctest.Wait()
		wantText(t, s, "LOADING", "GET", "key")
		wantText(t, s, "ERR CONFIG SET failed", "CONFIG", "SET", "appendonly", "no")
		wantText(t, s, "OK", "CONFIG", "SET", "appendonly", "yes")
		wantText(t, s, "OK", "CONFIG", "SET", "appendfsync", "always")
		wantText(t, s, "OK", "CONFIG", "SET", "save", "3600 1")
		if err := <-loaded; err != nil {
			t.Fatal(err)
		}
		wantText(t, s, "1", "GET", "key")
		wantText(t, s, "OK", "SET", "key", "2")
		wantKept(t, d.PowerCut(1), map[string]string{"key": "2"}, withLog["everysec"]...)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A server that is closed while it loads ends, whenever that is, and leaves the folder as it was.
func TestCloseEndsTheLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		snapshots := []string{"appendonly", "no", "save", "3600 1"}
		d := with(t, snapshots, []string{"SET", "key", "1"})
		for ms := range 8 {
			s := keep(t, slowReading{d, time.Millisecond}, snapshots...)
			loaded := make(chan error, 1)
			if ms == 0 { // before it begins
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			go func() { loaded <- s.Load(nil) }()
			time.Sleep(time.Duration(ms) * time.Millisecond)
			if err := errors.Join(s.Close()); err != nil {
				t.Error(err)
			}
			if err := <-loaded; err != nil && !errors.Is(err, server.ErrClosed) {
				t.Errorf("after %d ms: %v", ms, err)
			}
		}
		wantKept(t, d, map[string]string{"key": "1"}, snapshots...)
	})
}

// A snapshot that is read faster than its keys can be stored is loaded all the same.
func TestALargeSnapshotIsLoadedWhileClientsAsk(t *testing.T) {
	snapshots := []string{"appendonly", "no", "save", "3600 1"}
	const keys = 30000
	var commands [][]string
	for i := range keys {
		commands = append(commands, []string{"SET", fmt.Sprint("key:", i), "1"})
	}
	var d disk.Disk = with(t, snapshots, commands...)
	s := keep(t, d, snapshots...)
	var asking sync.WaitGroup
	stop := make(chan struct{})
	for range 4 { // they keep the engine's lock busy
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					do(t, s, "PING")
				}
			}
		})
	}
	err := s.Load(nil)
	close(stop)
	asking.Wait()
	if got := do(t, s, "DBSIZE").Int; err != nil || got != keys {
		t.Errorf("%d keys are there, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// What expires while nobody is connected is gone from the log as well, though nobody has asked
// for anything since the start.
func TestKeysExpireAfterALoadThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := with(t, withLog["everysec"], []string{"SET", "key", "1", "EX", "10"})
		s := kept(t, d, withLog["everysec"]...)
		before, err := d.Size("appendonlydir/appendonly.aof.1.incr.aof")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if after, err := d.Size("appendonlydir/appendonly.aof.1.incr.aof"); err != nil || after <= before {
			t.Errorf("the log had %d bytes and has %d, %v", before, after, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
