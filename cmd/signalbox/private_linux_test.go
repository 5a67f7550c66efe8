package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A disk that is full is named, and so is one that is read only: on a file system of one page, in a namespace of its own.
func TestFullStateFolderIsNamed(t *testing.T) {
	program := filepath.Join(t.TempDir(), "signalbox")
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, program)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ prepare, want string }{
		"blocks":    {`head -c 8192 /dev/zero >"$1/fill" 2>/dev/null`, "no space left on device; make room there, or set SIGNALBOX_STATE"},
		"inodes":    {`for i in 1 2 3 4 5 6 7 8 9; do touch "$1/$i" 2>/dev/null; done`, "no space left on device; make room there, or set SIGNALBOX_STATE"},
		"read only": {`mount -o remount,ro "$1"`, "read-only file system; set SIGNALBOX_STATE to another folder"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			mount := exec.Command("unshare", "-rm", "sh", "-c",
				`mount -t tmpfs -o size=4k,nr_inodes=9,mode=700 none "$1" || exit 99; `+c.prepare+`; SIGNALBOX_STATE="$1" SIGNALBOX_URL= exec "$2" run x -- true`,
				"sh", folder, program)
			output, err := mount.CombinedOutput()
			switch text := string(output); {
			case mount.ProcessState == nil || mount.ProcessState.ExitCode() == 99 || strings.HasPrefix(text, "unshare:"):
				t.Skipf("no file system of its own here: %v %s", err, text)
			case mount.ProcessState.ExitCode() != exitUnavailable || !strings.Contains(text, c.want) || !strings.Contains(text, folder):
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}
