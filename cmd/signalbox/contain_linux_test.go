package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// leaveOutCgroup has `run` contain its command as it does where no cgroup can be had.
func leaveOutCgroup() { withoutCgroup = os.Getenv("CONTAIN_BY") == "tree" }

func TestCgroupIsFoundAmongMounts(t *testing.T) {
	const hybrid = "31 24 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
		"40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 cgroup2 rw\n"
	const container = "41 31 0:38 /system.slice/box /sys/fs/cgroup ro - cgroup2 cgroup ro\n"
	for _, c := range []struct{ path, mounts, want string }{
		{"/", hybrid, "/sys/fs/cgroup/unified"},
		{"/user.slice/a b.scope", hybrid, "/sys/fs/cgroup/unified/user.slice/a b.scope"},
		{"/system.slice/box/one", container, "/sys/fs/cgroup/one"},
		{"/system.slice/other", container, ""},
		{"/../other", hybrid, ""},
		{"/", "", ""},
		{"/", "garbage\n - \n", ""},
	} {
		if got := findCgroup(c.path, c.mounts); got != c.want {
			t.Errorf("%q among %q: %q, want %q", c.path, c.mounts, got, c.want)
		}
	}
}

// The name of a process may contain anything, a line of another process's numbers too.
func TestStatIsParsed(t *testing.T) {
	const rest = " 1 1 0 -1 4194560 100 0 0 0 0 0 0 0 20 0 "
	for text, want := range map[string]process{
		"7 (sh) S 3" + rest + "1 0 0":           {7, 3, false},
		"7 (a) Z 1 (b) R 4) S 3" + rest + "1 0": {7, 3, false},
		"7 (sh) Z 3" + rest + "1 0":             {7, 3, true},
		"7 (sh) Z 3" + rest + "2 0":             {7, 3, false}, // other threads live
	} {
		if got, ok := parseStat(7, text); !ok || got != want {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "7", "7 (sh)", "7 (sh) S 3 1", "7 (sh) S x" + rest + "1"} {
		if got, ok := parseStat(7, text); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestProcessesAreListed(t *testing.T) {
	var found []process
	err := eachProcess(func(p process) {
		if p.id == os.Getpid() {
			found = append(found, p)
		}
	})
	want := []process{{os.Getpid(), os.Getppid(), false}}
	if diff := cmp.Diff(want, found, cmp.AllowUnexported(process{})); err != nil || diff != "" {
		t.Error(err, diff)
	}
}
