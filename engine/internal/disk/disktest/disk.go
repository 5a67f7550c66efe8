// Package disktest is a disk in memory that knows what was synced and what was not,
// for tests of what survives. It can lose power, after any number of steps, and then
// has kept what was synced and some of the rest; it can be full, fail to sync, be slow,
// or be read-only.
//
// Two states are kept of everything: what programs see, and what is on the plates. A
// file is a list of changes since its last sync, a folder a list of names that have
// changed since its own. A power cut keeps any part of either list, in no order, the
// last kept write of a file perhaps torn: file systems promise no more.
//
// A sync that fails does as Linux does: programs go on seeing what they wrote, the
// next sync succeeds, and what was not on the plates will never get there.
//
// A new operation of disk.Disk begins with Disk.step, which counts it and fails
// without power, and says in a durable way or in a list what it has changed.
package disktest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/disk"
)

// ErrPowerCut is what every operation returns when the power is gone.
var ErrPowerCut = errors.New("the power is gone")

// Disk is a disk in memory.
type Disk struct {
	mu        sync.Mutex
	syncTime  time.Duration
	writeTime time.Duration
	folders   map[string]*folder
	locks     map[string]bool
	steps     int
	cutAfter  int // steps; negative: the power stays
	syncs     int
	writes    int
	room      int64 // bytes until it is full; negative: no end
	failSync  int
	spareDir  int // syncs of folders before those that fail
	failDir   int
	readOnly  bool
}

type folder struct {
	entries map[string]*inode
	durable map[string]*inode
	changes []func(map[string]*inode) // since the last sync
	kept    bool                      // the folder itself is durable
}

type inode struct {
	data    []byte
	durable []byte
	changes []change // since the last sync
}

// change is a write at a place, or a truncation to it.
type change struct {
	at   int
	data []byte
	cut  bool
}

func (c change) apply(to []byte) []byte {
	if c.cut {
		return slices.Grow(to, max(0, c.at-len(to)))[:c.at]
	}
	if end := c.at + len(c.data); len(to) < end {
		to = append(to, make([]byte, end-len(to))...)
	}
	copy(to[c.at:], c.data)
	return to
}

// New returns an empty disk.
func New() *Disk {
	d := &Disk{folders: map[string]*folder{}, locks: map[string]bool{}, cutAfter: -1, room: -1}
	d.folders["."] = newFolder()
	d.folders["."].kept = true
	return d
}

func newFolder() *folder {
	return &folder{entries: map[string]*inode{}, durable: map[string]*inode{}}
}

// CutAfter makes the power go after so many more steps. A step is a call that changes
// or syncs something.
func (d *Disk) CutAfter(steps int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cutAfter = d.steps + steps
}

// Steps is how many calls have changed or synced something.
func (d *Disk) Steps() int { return locked(d, &d.steps) }

// Syncs is how many syncs of files were asked for.
func (d *Disk) Syncs() int { return locked(d, &d.syncs) }

// Writes is how many writes to files there were.
func (d *Disk) Writes() int { return locked(d, &d.writes) }

func locked(d *Disk, n *int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *n
}

// FullAfter makes the disk full after so many more bytes; negative is never.
func (d *Disk) FullAfter(bytes int64) { set(d, &d.room, bytes) }

// FailSyncs makes the next n syncs of files fail.
func (d *Disk) FailSyncs(n int) { set(d, &d.failSync, n) }

// SlowSyncs makes the sync of a file take so long.
func (d *Disk) SlowSyncs(take time.Duration) { set(d, &d.syncTime, take) }

// SlowWrites makes a write take so long. What else happens meanwhile, such as a fault, comes first.
func (d *Disk) SlowWrites(take time.Duration) { set(d, &d.writeTime, take) }

// pass lets time go by. mu is held before and after.
func (d *Disk) pass(take time.Duration) {
	if take > 0 {
		d.mu.Unlock()
		time.Sleep(take)
		d.mu.Lock()
	}
}

// FailFolderSyncs makes the next n syncs of folders fail.
func (d *Disk) FailFolderSyncs(n int) { d.FailFolderSyncsAfter(0, n) }

// FailFolderSyncsAfter makes n syncs of folders fail, after some that do not.
func (d *Disk) FailFolderSyncsAfter(some, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spareDir, d.failDir = some, n
}

// ReadOnly makes the disk refuse every change, or no more.
func (d *Disk) ReadOnly(on bool) { set(d, &d.readOnly, on) }

func set[T any](d *Disk, field *T, to T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*field = to
}

// Damage changes what a file holds, in memory and on the plates.
func (d *Disk) Damage(name string, how func([]byte) []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.find(name)
	node.data = how(node.data)
	node.durable, node.changes = bytes.Clone(node.data), nil
}

// Restart returns the disk as the next process finds it when this one was killed and
// the system stayed: nothing is lost but the locks.
func (d *Disk) Restart() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := New()
	for name, f := range d.folders {
		next.folders[name] = f
	}
	return next
}

// Killed returns a copy of the disk with all that programs see on the plates, as it comes to be
// when a process is killed and the system stays. The disk itself may be used on.
func (d *Disk) Killed() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := New()
	for name, f := range d.folders {
		after := newFolder()
		after.kept = true
		for entry, node := range f.entries {
			copied := &inode{data: bytes.Clone(node.data), durable: bytes.Clone(node.data)}
			after.entries[entry], after.durable[entry] = copied, copied
		}
		next.folders[name] = after
	}
	return next
}

// PowerCut returns the disk as it is found after a power cut at this moment. What was
// not synced is kept or lost as the seed wants it.
func (d *Disk) PowerCut(seed uint64) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := rand.New(rand.NewPCG(seed, 1))
	next, nodes := New(), map[*inode]*inode{}
	for _, name := range slices.Sorted(maps.Keys(d.folders)) {
		f := d.folders[name]
		if !f.kept && r.IntN(2) == 0 {
			continue
		}
		after := newFolder()
		after.kept = true
		entries := maps.Clone(f.durable)
		for _, change := range f.changes {
			if r.IntN(2) == 0 {
				change(entries)
			}
		}
		for _, entry := range slices.Sorted(maps.Keys(entries)) {
			old := entries[entry]
			if nodes[old] == nil {
				data := old.survivors(r)
				nodes[old] = &inode{data: data, durable: bytes.Clone(data)}
			}
			after.entries[entry], after.durable[entry] = nodes[old], nodes[old]
		}
		next.folders[name] = after
	}
	return next
}

// survivors is what is left of a file.
func (n *inode) survivors(r *rand.Rand) []byte {
	data := bytes.Clone(n.durable)
	torn := false
	mode := r.IntN(3) // none, all in order up to some place, or any
	upTo := r.IntN(len(n.changes) + 1)
	for i, c := range n.changes {
		if mode == 0 || mode == 1 && i > upTo || mode == 2 && r.IntN(2) == 0 {
			continue
		}
		if last := mode == 1 && i == upTo || mode == 2 && !torn && r.IntN(4) == 0; last && !c.cut {
			c.data, torn = c.data[:r.IntN(len(c.data)+1)], true
		}
		data = c.apply(data)
	}
	return data
}

// step counts a call and says whether it can be done.
func (d *Disk) step(name string) error {
	d.steps++
	switch {
	case d.cutAfter >= 0 && d.steps > d.cutAfter:
		return ErrPowerCut
	case d.readOnly:
		return &fs.PathError{Op: "change", Path: name, Err: syscall.EROFS}
	}
	return nil
}

func (d *Disk) find(name string) *inode {
	if f := d.folders[path.Dir(name)]; f != nil {
		return f.entries[path.Base(name)]
	}
	return nil
}

func missing(name string) error {
	return &fs.PathError{Op: "find", Path: name, Err: fs.ErrNotExist}
}

// change changes the names in the folder of name, at once and later on the plates.
func (d *Disk) change(name string, do func(map[string]*inode)) error {
	f := d.folders[path.Dir(name)]
	if f == nil {
		return missing(path.Dir(name))
	}
	do(f.entries)
	f.changes = append(f.changes, do)
	return nil
}

// Create implements disk.Disk.
func (d *Disk) Create(name string) (disk.File, error) { return d.open(name, true) }

// Append implements disk.Disk.
func (d *Disk) Append(name string) (disk.File, error) { return d.open(name, false) }

func (d *Disk) open(name string, empty bool) (disk.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(name); err != nil {
		return nil, err
	}
	node := d.find(name)
	if node == nil {
		node = &inode{}
		if err := d.change(name, func(entries map[string]*inode) { entries[path.Base(name)] = node }); err != nil {
			return nil, err
		}
	}
	if empty && len(node.data) > 0 {
		node.data = nil
		node.changes = append(node.changes, change{cut: true})
	}
	return &file{d: d, node: node, name: name}, nil
}

// Open implements disk.Disk.
func (d *Disk) Open(name string) (io.ReadCloser, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.find(name)
	if node == nil {
		return nil, missing(name)
	}
	return io.NopCloser(bytes.NewReader(bytes.Clone(node.data))), nil
}

// Size implements disk.Disk.
func (d *Disk) Size(name string) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.find(name)
	if node == nil {
		return 0, missing(name)
	}
	return int64(len(node.data)), nil
}

// Rename implements disk.Disk, within one folder.
func (d *Disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(to); err != nil {
		return err
	}
	node := d.find(from)
	if node == nil {
		return missing(from)
	}
	if path.Dir(from) != path.Dir(to) {
		return d.move(from, to, node)
	}
	return d.change(to, func(entries map[string]*inode) {
		delete(entries, path.Base(from))
		entries[path.Base(to)] = node
	})
}

// move is a rename to another folder. On the plates the old name goes after the new one has come,
// unless the old folder is synced first: then the file can be lost.
func (d *Disk) move(from, to string, node *inode) error {
	if err := d.change(to, func(entries map[string]*inode) { entries[path.Base(to)] = node }); err != nil {
		return err
	}
	source, target := d.folders[path.Dir(from)], d.folders[path.Dir(to)]
	delete(source.entries, path.Base(from))
	source.changes = append(source.changes, func(entries map[string]*inode) {
		if target.durable[path.Base(to)] == node {
			delete(entries, path.Base(from))
		}
	})
	return nil
}

// Remove implements disk.Disk.
func (d *Disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(name); err != nil {
		return err
	}
	if d.find(name) == nil {
		return missing(name)
	}
	return d.change(name, func(entries map[string]*inode) { delete(entries, path.Base(name)) })
}

// List implements disk.Disk.
func (d *Disk) List(name string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.folders[path.Clean(name)]
	if f == nil {
		return nil, missing(name)
	}
	return slices.Sorted(maps.Keys(f.entries)), nil
}

// MakeFolder implements disk.Disk.
func (d *Disk) MakeFolder(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.folders[path.Clean(name)] != nil {
		return nil
	}
	if err := d.step(name); err != nil {
		return err
	}
	d.folders[path.Clean(name)] = newFolder()
	return nil
}

// SyncFolder implements disk.Disk.
func (d *Disk) SyncFolder(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(name); err != nil {
		return err
	}
	f := d.folders[path.Clean(name)]
	if f == nil {
		return missing(name)
	}
	switch {
	case d.failDir > 0 && d.spareDir > 0:
		d.spareDir--
	case d.failDir > 0:
		d.failDir--
		return &fs.PathError{Op: "sync", Path: name, Err: syscall.EIO}
	}
	f.durable, f.changes = maps.Clone(f.entries), nil
	for child, of := range d.folders {
		of.kept = of.kept || path.Dir(child) == path.Clean(name)
	}
	return nil
}

// Lock implements disk.Disk.
func (d *Disk) Lock(name string) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.folders[path.Dir(name)] == nil {
		return nil, missing(path.Dir(name))
	}
	if d.locks[name] {
		return nil, &disk.LockedError{Name: name}
	}
	d.locks[name] = true
	return &lock{d, name}, nil
}

type lock struct {
	d    *Disk
	name string
}

func (l *lock) Close() error {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	if !l.d.locks[l.name] {
		return fmt.Errorf("%s: %w", l.name, fs.ErrClosed)
	}
	delete(l.d.locks, l.name)
	return nil
}
