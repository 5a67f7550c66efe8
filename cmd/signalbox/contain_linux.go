package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent has the kernel kill the child when the thread that started it dies, so that it cannot outlive a
// signalbox that was killed, and with it the lease. It does not reach the child's own children, and the kernel forgets
// it when the child runs a program with more rights (setuid).
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }

// A containment holds together all that the command starts, also what leaves its process group (setsid, daemons): at the
// end of the lease none of it may be left. There are two ways.
//
//	cgroup  the command is started in a group of its own below ours, and the kernel kills whatever is in there at once.
//	        It takes cgroup v2, Linux 5.14, and the right to make a group: root has it, and who was delegated one.
//	tree    signalbox becomes the parent of those whose parent has ended (child subreaper), so all that the command has
//	        started stays below it, and is found in /proc and killed until nobody is left.
//
// Neither reaches what others start at the command's request: systemd-run, a container engine, cron, another machine.
//
// A cgroup that is not empty when the command has ended stays until a later signalbox removes it.
type containment struct {
	cgroup string       // its folder, "" without one
	before map[int]bool // the children that signalbox had before the command, such as the private engine
	proc   bool         // /proc can be read
}

// cgroupPrefix is followed by the process id of the signalbox, and a random number.
const cgroupPrefix = "signalbox-run-"

// withoutCgroup is set by tests.
var withoutCgroup bool

func newContainment() *containment {
	k := &containment{before: map[int]bool{}}
	if !withoutCgroup {
		k.cgroup = makeCgroup()
	}
	if k.cgroup == "" {
		k.adopt()
	}
	return k
}

// adopt makes signalbox the parent of the orphans among its descendants.
func (k *containment) adopt() {
	err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	k.proc = err == nil && eachProcess(func(p process) {
		if p.parent == os.Getpid() {
			k.before[p.id] = true
		}
	}) == nil
}

// start starts the command inside.
func (k *containment) start(start func(*syscall.SysProcAttr) error) error {
	attributes := func() *syscall.SysProcAttr {
		a := &syscall.SysProcAttr{Setpgid: true}
		dieWithParent(a)
		return a
	}
	if k.cgroup == "" {
		return start(attributes())
	}
	folder, err := os.Open(k.cgroup)
	if err == nil {
		inside := attributes()
		inside.UseCgroupFD, inside.CgroupFD = true, int(folder.Fd())
		err = start(inside)
		_ = folder.Close() // nothing was written
	}
	if err == nil {
		return nil
	}
	// A sandbox may forbid the system call, or the group may not take processes. If it is the command that cannot be
	// run, that shows again.
	k.close()
	k.cgroup = ""
	k.adopt()
	return start(attributes())
}

// reaped is whom to wait for: the command, or also the orphans.
func (k *containment) reaped(group int) int {
	if k.proc {
		return -1
	}
	return group
}

// terminate asks those to end who have left the process group.
func (k *containment) terminate(group int) {
	ask := func(id int) {
		if own, err := unix.Getpgid(id); err == nil && own != group {
			_ = unix.Kill(id, unix.SIGTERM) // it may have ended
			_ = unix.Kill(id, unix.SIGCONT)
		}
	}
	if k.cgroup != "" {
		for _, id := range readCgroup(k.cgroup) {
			ask(id)
		}
		return
	}
	k.each(func(p process) { ask(p.id) })
}

// kill kills all that is inside. It has to be repeated until nobody is left.
func (k *containment) kill(int) {
	if k.cgroup != "" {
		_ = os.WriteFile(filepath.Join(k.cgroup, "cgroup.kill"), []byte("1"), 0) // left tells
		return
	}
	// Each is killed as soon as it is seen, since it may fork meanwhile. A chain of processes that fork and end is faster
	// than a look at all of /proc: the kernel's lists of children follow it, and miss some while they change.
	const passes = 20
	for range passes {
		killed := map[int]bool{}
		for before := -1; len(killed) > before; {
			before = len(killed)
			k.eachChild(os.Getpid(), func(id int) {
				killed[id] = true
				_ = unix.Kill(id, unix.SIGKILL) // it may have ended
			})
		}
		alive := false
		k.each(func(p process) {
			alive = alive || !p.ended
			_ = unix.Kill(p.id, unix.SIGKILL)
		})
		if !alive {
			return
		}
	}
}

// eachChild calls do for the descendants of a process, from its children on down, by the lists of /proc. A kernel without
// them (CONFIG_PROC_CHILDREN) has none.
func (k *containment) eachChild(parent int, do func(int)) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent)) // the pattern is well formed
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the process may have ended
		for _, word := range strings.Fields(string(text)) {
			if id, err := strconv.Atoi(word); err == nil && !k.before[id] {
				do(id)
				k.eachChild(id, do)
			}
		}
	}
}

// collect takes note of those that have ended, once the command itself has, and lists them.
func (k *containment) collect() []int {
	var ended []int
	for k.proc {
		var status unix.WaitStatus
		id, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if id <= 0 { // or nobody is left
			break
		}
		ended = append(ended, id)
	}
	return ended
}

// left lists who is inside and alive, once the command itself has ended.
func (k *containment) left(group int) []int {
	if k.cgroup != "" {
		return readCgroup(k.cgroup)
	}
	var found []int
	if !k.proc {
		if unix.Kill(-group, 0) == nil {
			found = append(found, group)
		}
		return found
	}
	k.collect()
	k.each(func(p process) {
		if !p.ended {
			found = append(found, p.id)
		}
	})
	if len(found) == 0 {
		// Whoever ended while we looked may have forked one that we did not see. It comes to us when it ends.
		found = k.collect()
	}
	return found
}

// close removes the cgroup.
func (k *containment) close() {
	if k.cgroup != "" {
		removeCgroups(k.cgroup)
		_ = os.Remove(k.cgroup) // who is left in it runs on
	}
}

// each calls do for all descendants. One whose parent has a larger number, as happens when the numbers begin again, is
// found by the next call, if its parent was killed meanwhile.
func (k *containment) each(do func(process)) {
	if !k.proc {
		return
	}
	family := map[int]bool{os.Getpid(): true}
	_ = eachProcess(func(p process) { // it could be read before
		if family[p.parent] && !k.before[p.id] {
			family[p.id] = true
			do(p)
		}
	})
}

// process is a line of /proc.
type process struct {
	id, parent int
	ended      bool // and not yet collected
}

// eachProcess calls do for all processes of the system, by rising number.
func eachProcess(do func(process)) error {
	folder, err := os.Open("/proc")
	if err != nil {
		return err
	}
	names, err := folder.Readdirnames(-1)
	_ = folder.Close() // nothing was written
	if err != nil {
		return err
	}
	var ids []int
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/stat")
		if err != nil {
			continue // it has ended
		}
		if p, ok := parseStat(id, string(text)); ok {
			do(p)
		}
	}
	return nil
}

// parseStat reads a line of /proc: the number, the name in brackets, which may contain anything, and then state, parent
// and so on, with the number of threads as the 18th.
func parseStat(id int, text string) (process, bool) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 18 {
		return process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	// The first thread may have ended before the others.
	ended := (fields[0] == "Z" || fields[0] == "X") && (fields[17] == "0" || fields[17] == "1")
	return process{id, parent, ended}, err == nil
}
