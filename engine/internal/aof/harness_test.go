package aof_test

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/aof"
	"github.com/signalbox-io/signalbox/engine/internal/disk"
	"github.com/signalbox-io/signalbox/engine/internal/disk/disktest"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// The data of these tests is the numbers 1, 2, 3 and so on, each of them one request. So what a crash
// leaves is right if it is the numbers up to some place, in order.

func request(n int) []byte {
	return resp.AppendCommand(nil, "SET", "k"+strconv.Itoa(n), strconv.Itoa(n))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start opens a log, and fails the test if that does not go well.
func start(t testing.TB, d disk.Disk, options aof.Options) *aof.Log {
	t.Helper()
	set, err := aof.Open(d, aof.DefaultNames)
	must(t, err)
	l, err := set.Start(options)
	must(t, err)
	return l
}

// numbers loads a set, as an engine does with aof-load-truncated and, for damage at the very end, as
// the check tool with --fix. It gives the lock back.
func numbers(d disk.Disk) (found []int, err error) {
	set, err := aof.Open(d, aof.DefaultNames)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	files, err := set.Files()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		from, err := set.Open(file)
		if err != nil {
			return nil, err
		}
		r := aof.NewReader(from)
		var request aof.Request
		for request, err = r.Next(); err == nil; request, err = r.Next() {
			n, numberErr := strconv.Atoi(string(request.Args[len(request.Args)-1]))
			if numberErr != nil {
				return nil, numberErr
			}
			found = append(found, n)
		}
		var torn *aof.TornError
		var damaged *aof.FormatError
		mendable := file.Last && (errors.As(err, &torn) || errors.As(err, &damaged))
		if !errors.Is(err, io.EOF) && !mendable {
			return nil, fmt.Errorf("%s: %w", file.Name, err)
		}
	}
	return found, nil
}

// inOrder checks that what is found is 1, 2, 3 and so on, and at least so many.
func inOrder(found []int, least int) error {
	for i, n := range found {
		if n != i+1 {
			return fmt.Errorf("place %d has %d: %v", i+1, n, found)
		}
	}
	if len(found) < least {
		return fmt.Errorf("%d are there, %d were promised", len(found), least)
	}
	return nil
}

func wantNumbers(t testing.TB, d disk.Disk, n int) {
	t.Helper()
	found, err := numbers(d)
	must(t, err)
	must(t, inOrder(found, n))
	if len(found) != n {
		t.Errorf("%d are there, want %d", len(found), n)
	}
}

// work is an engine that does one thing after the other.
type work struct {
	l        *aof.Log
	last     int // appended
	promised int // committed
}

func (w *work) add(n int) (err error) {
	seq := int64(0)
	for range n {
		w.last++
		seq, _ = w.l.Append(request(w.last))
	}
	last := w.last
	if err = w.l.Commit(seq); err == nil {
		w.promised = last
	}
	return err
}

// rewrite rewrites all there is, and goes on meanwhile.
func (w *work) rewrite() error {
	r, err := w.l.Begin()
	if err != nil {
		return err
	}
	upTo := w.last
	err = w.add(1)
	base, createErr := r.Create(aof.BaseAOF)
	if err = errors.Join(err, createErr); err != nil {
		return errors.Join(err, r.Abort())
	}
	for n := 1; n <= upTo && err == nil; n++ {
		_, err = base.Write(request(n))
	}
	if err = errors.Join(err, w.add(1)); err != nil {
		return errors.Join(err, r.Abort())
	}
	return r.Finish()
}

// memory is an empty disk in memory.
func memory() *disktest.Disk { return disktest.New() }
