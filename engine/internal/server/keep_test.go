package server_test

import (
	"errors"
	"io/fs"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/conf"
	"github.com/signalbox-io/signalbox/engine/internal/disk"
	"github.com/signalbox-io/signalbox/engine/internal/disk/disktest"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// What the engine does when its disk does not do its part. Time is virtual.

// keep makes a server that keeps its data on a disk, with parameters given as name and
// value. It is not loaded yet.
func keep(t *testing.T, d disk.Disk, parameters ...string) *server.Server {
	t.Helper()
	return keepWith(t, d, func(message string) { t.Log(message) }, parameters...)
}

// keepWith is keep with a log of the caller's.
func keepWith(t *testing.T, d disk.Disk, log func(message string), parameters ...string) *server.Server {
	t.Helper()
	settings := conf.New()
	for i := 0; i < len(parameters); i += 2 {
		if err := settings.Directive(parameters[i : i+2]); err != nil {
			t.Fatal(err)
		}
	}
	s := server.New(server.Options{Settings: settings, Log: func(_ int, message string) { log(message) }})
	if err := s.Keep(d); err != nil {
		t.Fatal(err)
	}
	return s
}

// kept is keep with what the disk has loaded.
func kept(t *testing.T, d disk.Disk, parameters ...string) *server.Server {
	t.Helper()
	s := keep(t, d, parameters...)
	if err := s.Load(nil); err != nil {
		t.Fatal(errors.Join(err, s.Close()))
	}
	return s
}

// wantText runs a command and compares the beginning of its reply.
func wantText(t *testing.T, s *server.Server, want string, words ...string) {
	t.Helper()
	if got := do(t, s, words...); !strings.HasPrefix(got.Text(), want) && !strings.HasPrefix(got.Str, want) {
		t.Errorf("%q is answered %v, want %s", words, got, want)
	}
}

// wantKept compares what is on a disk after a restart.
func wantKept(t *testing.T, d disk.Disk, want map[string]string, parameters ...string) {
	t.Helper()
	s := kept(t, d, parameters...)
	for key, value := range want {
		wantText(t, s, value, "GET", key)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

var withLog = map[string][]string{
	"always":   {"appendonly", "yes", "appendfsync", "always", "save", ""},
	"everysec": {"appendonly", "yes", "appendfsync", "everysec", "save", ""},
	"no":       {"appendonly", "yes", "appendfsync", "no", "save", ""},
}

// A sync that fails while nobody waits for it is found out: writes are refused until a
// rewrite has made everything durable, and then nothing is missing.
func TestASyncThatFailsInTheBackgroundIsNotSwallowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disktest.New()
		s := kept(t, d, withLog["everysec"]...)
		d.FailSyncs(1)
		wantText(t, s, "OK", "SET", "lost by the sync", "1")
		time.Sleep(1500 * time.Millisecond)
		wantText(t, s, "MISCONF", "SET", "refused", "1")
		wantText(t, s, "1", "GET", "lost by the sync")
		time.Sleep(3 * time.Second)
		wantText(t, s, "OK", "SET", "after", "2")
		time.Sleep(2 * time.Second)
		wantKept(t, d.PowerCut(1), map[string]string{"lost by the sync": "1", "after": "2", "refused": ""}, withLog["everysec"]...)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A disk that is full has writes refused, and nothing is lost once there is room again.
func TestAFullDiskRefusesWritesUntilThereIsRoom(t *testing.T) {
	for _, policy := range []string{"everysec", "no"} {
		synctest.Test(t, func(t *testing.T) {
			d := disktest.New()
			s := kept(t, d, withLog[policy]...)
			wantText(t, s, "OK", "SET", "before", "1")
			wantText(t, s, "OK", "SET", "expiring", "1", "PX", "100")
			wantText(t, s, "OK", "DEBUG", "SET-ACTIVE-EXPIRE", "0")
			writer, subscriber, reader := dial(t, s), dial(t, s), dial(t, s)
			subscriber.send("SUBSCRIBE", "channel")
			subscriber.skipTo(":1\r\n")
			d.FullAfter(10)
			writer.send("EVAL", "redis.call('SET', 'in memory', '2') return redis.call('PUBLISH', 'channel', 'm')", "0")
			writer.expectClosed()     // it is not told what the next crash could take back,
			subscriber.expectClosed() // and neither is whoever hears of it
			wantText(t, s, "MISCONF", "SET", "refused", "3")
			wantText(t, s, "2", "GET", "in memory")
			reader.send("GET", "in memory")
			reader.expect("$1\r\n2\r\n")
			time.Sleep(time.Second)
			late := dial(t, s) // whoever finds out that a key has expired has written nothing
			late.send("GET", "expiring")
			late.expect("$-1\r\n")
			late.send("EVAL", "redis.call('SET', 'refused', '4')", "0")
			late.expect("-MISCONF ")
			d.FullAfter(-1)
			time.Sleep(2 * time.Second)
			wantText(t, s, "OK", "SET", "after", "4")
			wantKept(t, d.Killed(), map[string]string{"before": "1", "in memory": "2", "refused": "", "after": "4"}, withLog[policy]...)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What a sync has failed for is in the system's memory, where the next process finds it; but no sync brings it to the
// disk any more. So that one writes everything anew before it serves.
func TestAfterAFailedSyncAndAKillTheNextStartMakesAllDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disktest.New()
		s := kept(t, d, withLog["everysec"]...)
		d.FailSyncs(1)
		wantText(t, s, "OK", "SET", "lost by the sync", "1")
		time.Sleep(1500 * time.Millisecond)
		wantText(t, s, "MISCONF", "SET", "refused", "1")
		d.ReadOnly(true) // it is killed
		if err := s.Close(); err == nil {
			t.Error("the end says that all is safe")
		}
		next := d.Restart()
		s = kept(t, next, withLog["everysec"]...)
		wantText(t, s, "OK", "SET", "after", "2")
		time.Sleep(2 * time.Second)
		for seed := range uint64(10) {
			wantKept(t, next.PowerCut(seed), map[string]string{"lost by the sync": "1", "after": "2"}, withLog["everysec"]...)
		}
		if names, err := next.List("appendonlydir"); err != nil || strings.Contains(strings.Join(names, " "), "unsynced") {
			t.Errorf("what says that something failed stays: %q, %v", names, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What was shown to readers while the disk failed, and could not be written, is durable before writes are taken again:
// it is older than the second that everysec may lose.
func TestAfterAFailureWritesAreTakenAgainWhenWhatWasShownIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for phase := range 20 {
			d := disktest.New()
			d.SlowSyncs(30 * time.Millisecond)
			s := kept(t, d, withLog["everysec"]...)
			time.Sleep(time.Duration(phase) * 50 * time.Millisecond)
			d.FullAfter(10)
			if _, err := s.Do(t.Context(), args("SET", "in memory", "2")); !errors.Is(err, server.ErrNotSafe) {
				t.Errorf("a write that failed ends with %v", err)
			}
			wantText(t, s, "2", "GET", "in memory")
			time.Sleep(5 * time.Second)
			d.FullAfter(-1)
			for do(t, s, "SET", "after", "4").Str != "OK" {
				time.Sleep(time.Millisecond)
			}
			for seed := range uint64(5) {
				wantKept(t, d.PowerCut(seed), map[string]string{"in memory": "2"}, withLog["everysec"]...)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// With always nothing is acknowledged that is not on disk, whatever the client asks; and
// clients are served again when the disk works.
func TestNothingIsAcknowledgedThatAlwaysCannotKeep(t *testing.T) {
	for name, fail := range map[string]func(d *disktest.Disk){
		"a sync fails": func(d *disktest.Disk) { d.FailSyncs(1) },
		"it is full":   func(d *disktest.Disk) { d.FullAfter(5) },
	} {
		synctest.Test(t, func(t *testing.T) {
			d := disktest.New()
			s := kept(t, d, withLog["always"]...)
			reader := dial(t, s)
			fail(d)
			writer := dial(t, s)
			writer.send("SET", "key", "1")
			writer.expectClosed()
			wantText(t, s, "MISCONF", "GET", "key")
			wantText(t, s, "MISCONF", "EVAL", "return redis.call('GET', 'key')", "0")
			if got := do(t, s, "INFO", "persistence").Text(); !strings.Contains(got, "aof_last_write_status:err") {
				t.Errorf("%s: INFO says %q", name, got)
			}
			reader.send("GET", "key")
			reader.expect("-MISCONF ")
			d.FullAfter(-1)
			time.Sleep(4 * time.Second)
			wantText(t, s, "OK", "SET", "after", "2")
			wantKept(t, d.PowerCut(3), map[string]string{"key": "1", "after": "2"}, withLog["always"]...)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Who has the append-only file turned on has it, or is told that it cannot be kept, until it
// can: writes go on as soon as the disk works, or when it is turned off again.
func TestTurningTheLogOnSucceedsWhenTheDiskDoes(t *testing.T) {
	inMemory := []string{"appendonly", "no", "save", ""}
	for name, fail := range map[string]func(d *disktest.Disk, on bool){
		"full": func(d *disktest.Disk, on bool) {
			if d.FullAfter(0); !on {
				d.FullAfter(-1)
			}
		},
		"read-only": func(d *disktest.Disk, on bool) { d.ReadOnly(on) },
	} {
		synctest.Test(t, func(t *testing.T) {
			d := disktest.New()
			s := kept(t, d, inMemory...)
			wantText(t, s, "OK", "SET", "before", "1")
			fail(d, true)
			wantText(t, s, "OK", "CONFIG", "SET", "appendonly", "yes")
			time.Sleep(time.Second / 2)
			wantText(t, s, "MISCONF", "SET", "refused", "2")
			if why := do(t, s, "SET", "refused", "2").Str; !strings.Contains(why, syscall.ENOSPC.Error()) && !strings.Contains(why, syscall.EROFS.Error()) {
				t.Errorf("it does not say what is the matter: %s", why)
			}
			wantText(t, s, "OK", "CONFIG", "SET", "appendonly", "no")
			time.Sleep(2 * time.Second)
			wantText(t, s, "OK", "SET", "off", "3")
			wantText(t, s, "OK", "CONFIG", "SET", "appendonly", "yes")
			time.Sleep(5 * time.Second)
			wantText(t, s, "MISCONF", "SET", "refused", "4")
			fail(d, false)
			time.Sleep(3 * time.Second)
			wantText(t, s, "OK", "SET", "on", "5")
			wantKept(t, d.Killed(), map[string]string{"before": "1", "off": "3", "on": "5", "refused": ""}, withLog["no"]...)
			if err := s.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// What is in the append-only file of old does not come back when a new one is begun.
func TestALogThatIsTurnedOnReplacesTheOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disktest.New()
		s := kept(t, d, withLog["everysec"]...)
		wantText(t, s, "OK", "SET", "old", "1")
		wantText(t, s, "OK", "CONFIG", "SET", "appendonly", "no")
		wantText(t, s, "1", "DEL", "old")
		wantText(t, s, "OK", "SET", "new", "1")
		wantText(t, s, "OK", "CONFIG", "SET", "appendonly", "yes")
		synctest.Wait()
		wantText(t, s, "OK", "CONFIG", "SET", "appendonly", "no")
		wantText(t, s, "OK", "SET", "new", "2")
		wantText(t, s, "OK", "CONFIG", "SET", "appendonly", "yes")
		wantText(t, s, "OK", "CONFIG", "SET", "appendonly", "no")
		wantText(t, s, "OK", "CONFIG", "SET", "appendonly", "yes")
		time.Sleep(time.Second)
		wantText(t, s, "OK", "SET", "newer", "3")
		wantKept(t, d.Killed(), map[string]string{"old": "", "new": "2", "newer": "3"}, withLog["everysec"]...)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// brokenRename is a disk on which names cannot be changed for a while.
type brokenRename struct {
	*disktest.Disk
	broken atomic.Bool
}

func (d *brokenRename) Rename(from, to string) error {
	if d.broken.Load() {
		return &fs.PathError{Op: "rename", Path: from, Err: syscall.EIO}
	}
	return d.Disk.Rename(from, to)
}

// A snapshot that cannot be put in its place leaves the old one, and stops writes if it is to.
func TestASnapshotThatFailsStopsWrites(t *testing.T) {
	parameters := []string{"appendonly", "no", "save", "1 1"}
	synctest.Test(t, func(t *testing.T) {
		d := &brokenRename{Disk: disktest.New()}
		s := kept(t, d, parameters...)
		wantText(t, s, "OK", "SET", "key", "1")
		wantText(t, s, "OK", "SAVE")
		d.broken.Store(true)
		wantText(t, s, "OK", "SET", "key", "2")
		wantText(t, s, "ERR", "SAVE")
		wantText(t, s, "MISCONF", "SET", "key", "3")
		if names, err := d.List("."); err != nil || strings.Join(names, " ") != "dump.rdb" {
			t.Errorf("the folder has %q, %v", names, err)
		}
		wantKept(t, d.Killed(), map[string]string{"key": "1"}, parameters...)
		wantText(t, s, "OK", "CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
		wantText(t, s, "OK", "SET", "key", "4")
		wantText(t, s, "OK", "CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")
		wantText(t, s, "MISCONF", "SET", "key", "5")
		d.broken.Store(false)
		time.Sleep(10 * time.Second) // it tries again by itself
		wantText(t, s, "OK", "SET", "key", "6")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		wantKept(t, d.Killed(), map[string]string{"key": "6"}, parameters...)
	})
}

// After a failed snapshot it is tried again soon, though the rules ask for one an hour after the
// last: nothing can be written meanwhile.
func TestAFailedSnapshotIsTriedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &brokenRename{Disk: disktest.New()}
		s := kept(t, d, "appendonly", "no", "save", "3600 1")
		d.broken.Store(true)
		wantText(t, s, "ERR", "SAVE") // with nothing to save, too
		wantText(t, s, "MISCONF", "SET", "key", "1")
		time.Sleep(time.Minute)
		wantText(t, s, "MISCONF", "SET", "key", "1")
		d.broken.Store(false)
		time.Sleep(10 * time.Second)
		wantText(t, s, "OK", "SET", "key", "2")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// An end that cannot bring everything to the disk says so.
func TestCloseTellsWhatIsNotOnDisk(t *testing.T) {
	for name, parameters := range map[string][]string{"log": withLog["everysec"], "snapshot": {"appendonly", "no", "save", "1 1"}} {
		synctest.Test(t, func(t *testing.T) {
			d := disktest.New()
			s := kept(t, d, parameters...)
			d.FullAfter(0)
			_, _ = s.Do(t.Context(), args("SET", "key", "1")) // with a log it says so, too
			if err := s.Close(); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s: Close returns %v", name, err)
			}
		})
	}
}

// A request behind a long script in one pipeline does not make the snapshot that was asked for
// before it fail.
func TestASnapshotWaitsForTheEndOfAScript(t *testing.T) {
	s := kept(t, disktest.New(), "appendonly", "no", "save", "", "busy-reply-threshold", "1")
	other := dial(t, s)
	one := dial(t, s)
	pipeline := resp.AppendCommand(nil, "BGSAVE")
	pipeline = resp.AppendCommand(pipeline, "EVAL", longScript, "0")
	if _, err := one.conn.Write(pipeline); err != nil {
		t.Fatal(err)
	}
	other.send("PING")
	for line := ""; !strings.HasPrefix(line, "-BUSY"); { // until the script lets others in
		line, _ = other.read.ReadString('\n')
		other.send("PING")
	}
	one.expect("+Background saving started\r\n:1\r\n")
	for info := ""; !strings.Contains(info, "rdb_bgsave_in_progress:0"); {
		info = do(t, s, "INFO", "persistence").Str
	}
	if info := do(t, s, "INFO", "persistence").Str; !strings.Contains(info, "rdb_last_bgsave_status:ok") || !strings.Contains(info, "rdb_saves:1") {
		t.Errorf("the snapshot has failed: %s", info)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// longScript runs long enough to be called busy, and ends by itself.
const longScript = "for i = 1, 3000000 do redis.setresp(2) end return 1"

// TestAStuckDiskDoesNotPileUpGoroutines: the engine looks after expired keys ten times a
// second, and each time what that has changed is to be on disk.
func TestAStuckDiskDoesNotPileUpGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disktest.New()
		s := kept(t, d, withLog["always"]...)
		do(t, s, "SET", "later", "v", "EX", "100000")
		d.SlowSyncs(time.Hour)
		written := make(chan struct{})
		go func() {
			defer close(written)
			do(t, s, "SET", "key", "v")
		}()
		synctest.Wait()
		before := runtime.NumGoroutine()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := runtime.NumGoroutine(); n > before+2 {
			t.Errorf("%d goroutines, and %d before", n, before)
		}
		<-written
		d.SlowSyncs(0)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
