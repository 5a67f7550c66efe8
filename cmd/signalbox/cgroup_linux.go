package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The cgroups of commands under `run` are children of the one that signalbox is in.

// makeCgroup makes one. It returns "" if that is not possible, which has many reasons and is no error.
func makeCgroup() string {
	parent := ownCgroup()
	if parent == "" {
		return ""
	}
	removeCgroups(parent)
	folder, err := os.MkdirTemp(parent, fmt.Sprintf("%s%d-", cgroupPrefix, os.Getpid()))
	if err != nil {
		return ""
	}
	if _, err := os.Stat(filepath.Join(folder, "cgroup.kill")); err != nil { // before Linux 5.14
		_ = os.Remove(folder) // a later signalbox does so, too
		return ""
	}
	return folder
}

// removeCgroups removes the cgroups whose signalbox has ended, if nobody is in there any more: it may have been killed,
// or the command may have left something running.
func removeCgroups(parent string) {
	entries, err := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*"))
	if err != nil {
		return
	}
	for _, folder := range entries {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(folder), cgroupPrefix), "-")
		id, err := strconv.Atoi(number)
		if err == nil && errors.Is(unix.Kill(id, 0), unix.ESRCH) {
			_ = os.Remove(folder) // the kernel refuses as long as somebody is in there
		}
	}
}

// ownCgroup is the folder of our cgroup v2, "" if there is none.
func ownCgroup() string {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(groups)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return findCgroup(path, string(mounts))
		}
	}
	return ""
}

// findCgroup finds a cgroup among the mounts. Each line is: id, parent, device, what of the file system is mounted,
// where, options, until a -, and the type of the file system.
func findCgroup(path, mounts string) string {
	if strings.HasPrefix(path, "/..") { // outside of what this container sees
		return ""
	}
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		_, kind, found := strings.Cut(line, " - ")
		if !found || len(fields) < 5 || !strings.HasPrefix(kind, "cgroup2 ") {
			continue
		}
		within, err := filepath.Rel(fields[3], path)
		if err == nil && filepath.IsLocal(within) {
			return filepath.Join(fields[4], within)
		}
	}
	return ""
}

// readCgroup lists the processes in a cgroup and in those below it. Dead ones are not listed.
func readCgroup(folder string) []int {
	events, err := os.ReadFile(filepath.Join(folder, "cgroup.events"))
	if err != nil || strings.Contains(string(events), "populated 0") {
		return nil
	}
	var found []int
	_ = filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil //nolint:nilerr // a group below that was removed meanwhile
		}
		text, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for _, line := range strings.Fields(string(text)) {
			if id, errNumber := strconv.Atoi(line); err == nil && errNumber == nil {
				found = append(found, id)
			}
		}
		return nil
	})
	return found
}
