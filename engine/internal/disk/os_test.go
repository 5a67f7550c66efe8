package disk_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/disk"
)

func TestWhatIsWrittenIsReadByNobodyElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d := disk.At(path)
	if err := d.MakeFolder("sub"); err != nil {
		t.Fatal(err)
	}
	f, err := d.Create("sub/file")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{write(f, "hello, world"), f.Truncate(5), write(f, "!"), f.Sync(), f.Close(), d.SyncFolder("sub")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]fs.FileMode{".": 0o700, "sub": 0o700, "sub/file": 0o600} {
		info, err := os.Stat(filepath.Join(path, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v (%v)", name, info.Mode().Perm(), want, err)
		}
	}
	if err := d.Rename("sub/file", "sub/other"); err != nil {
		t.Fatal(err)
	}
	if names, err := d.List("sub"); err != nil || len(names) != 1 || names[0] != "other" {
		t.Error(names, err)
	}
	r, err := d.Open("sub/other")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != "hello!" {
		t.Errorf("%q %v", text, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open("sub/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func write(f disk.File, text string) error {
	_, err := f.Write([]byte(text))
	return err
}

func TestSecondEngineOnAFolderIsToldOfTheFirst(t *testing.T) {
	d := disk.At(t.TempDir())
	first, err := d.Lock("lock")
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Lock("lock")
	var locked *disk.LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Fatalf("%v, want that it is locked by process %d", err, os.Getpid())
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := d.Lock("lock")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// The lock of a process that was killed is free.
func TestLockEndsWithItsProcess(t *testing.T) {
	if path := os.Getenv("LOCK_AND_WAIT"); path != "" {
		if _, err := disk.At(path).Lock("lock"); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stdout.WriteString("locked\n")
		if err == nil {
			_, err = io.Copy(io.Discard, os.Stdin)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Skip("was the other process")
	}
	path := t.TempDir()
	other := exec.Command(os.Args[0], "-test.run", "^TestLockEndsWithItsProcess$")
	other.Env = append(os.Environ(), "LOCK_AND_WAIT="+path)
	stdin, err := other.StdinPipe() // stays open: the process waits
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, len("locked\n"))); err != nil {
		t.Fatal(err)
	}
	var locked *disk.LockedError
	if _, err := disk.At(path).Lock("lock"); !errors.As(err, &locked) || locked.PID != other.Process.Pid {
		t.Errorf("%v, want that it is locked by process %d", err, other.Process.Pid)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // it was killed
	lock, err := disk.At(path).Lock("lock")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSyncsAsideOfEachOther: several at once, of several files, and a folder among them. What
// cannot be synced is not said to be.
func TestSyncsAsideOfEachOther(t *testing.T) {
	d := disk.At(t.TempDir())
	var syncs sync.WaitGroup
	for i := range 8 {
		f, err := d.Create(strconv.Itoa(i))
		if err != nil {
			t.Fatal(err)
		}
		syncs.Go(func() {
			for range 10 {
				for _, err := range []error{write(f, "text"), f.SyncAside(), d.SyncFolder(".")} {
					if err != nil {
						t.Error(err)
					}
				}
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if err := f.SyncAside(); err == nil {
				t.Error("a closed file was synced")
			}
		})
	}
	syncs.Wait()
}
