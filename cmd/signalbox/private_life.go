package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// What becomes of those who wait and those who hold when the private engine is killed. It keeps nothing, so the next one
// grants at once what is held still.
//
// Those who wait start the next one (revive), and the library queues them again. An engine that was ended on purpose
// (serve --stop, SIGTERM) is not started again: it clears engine.lock, which one that was killed cannot do.
//
// Those who hold go on until their lease ends, and hear of that with the next renewal at the latest. Meanwhile each of
// them has a file beside the socket, held-RESOURCE-ENGINE-PROCESS, and a lock on it. Who was granted the same resource by
// another engine waits until those are unlocked. The kernel unlocks them with their process. A holder whose file was
// removed can keep nobody waiting, and ends its command at once.
//
// Who removes the folder removes all of that. The engine and the holders notice within reachEvery, and those who wait start
// another engine.

// revive starts another engine whenever one was killed, until the context ends.
func (p *private) revive(ctx context.Context, say func(string)) {
	tick := time.NewTicker(10 * look)
	defer tick.Stop()
	for ctx.Err() == nil {
		p.outlive(ctx)
		switch former, err := p.startAgain(ctx); {
		case former != "" && (err == nil || ctx.Err() != nil): // who is granted by the new one at once is told, too
			say("the private local engine " + former + ", and what it knew is lost; another was started, and the queue is made anew")
		case err != nil && ctx.Err() == nil:
			say(err.Error())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// outlive returns when the engine has ended, or cannot be reached.
func (p *private) outlive(ctx context.Context) {
	conn, err := p.dial(ctx)
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_, _ = conn.Read(make([]byte, 1)) // the engine says nothing unasked: it has ended, or we have
	_ = conn.Close()
}

// startAgain starts an engine if there is none, and the last one was not ended on purpose. It returns what became of that
// one, "" if none was started.
func (p *private) startAgain(ctx context.Context) (former string, _ error) {
	if err := ownFolder(p.folder); err != nil {
		return "", p.blocked(err)
	}
	starting, err := p.lock(ctx, "start.lock")
	if err != nil {
		return "", err
	}
	defer starting.release()
	if err := p.ping(ctx); !errors.Is(err, errNotRunning) {
		return "", err
	}
	former = "was killed"
	if _, err := os.Stat(p.file("engine.lock")); errors.Is(err, fs.ErrNotExist) {
		former = "ended because its engine.lock was removed"
	}
	patience, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	life, err := p.lock(patience, "engine.lock") // it may be about to end
	if err != nil {
		return "", err
	}
	life.release()
	if p.ended() && former == "was killed" {
		return "", nil
	}
	ended, err := p.spawn()
	if err != nil {
		return "", err
	}
	return former, p.await(ctx, ended)
}

// ended reports whether the last engine was ended on purpose.
func (p *private) ended() bool {
	text, err := os.ReadFile(p.file("engine.lock"))
	return err == nil && strings.TrimSpace(string(text)) == ""
}

// generation tells engines apart: the process id of the one that runs, or was killed, "" if it was ended.
func (p *private) generation() string {
	text, err := os.ReadFile(p.file("engine.lock"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// errFormer: somebody holds the resource whom an earlier engine has granted it.
var errFormer = errors.New("held by a command that a private local engine before this one, which was killed, let in; it ends when its lease does")

// mark is the file of a holder.
type mark struct {
	path string
	lock *fileLock
}

// isGone reports whether others look for the file in vain.
func (m *mark) isGone() bool { return m.lock != nil && !m.lock.isAt(m.path) }

func (m *mark) remove() {
	if m != nil {
		_ = os.Remove(m.path) // the next who looks does so, too
		m.lock.release()
	}
}

// markHeld makes the file of a holder, and waits until nobody holds the resource by the grant of another engine.
func (p *private) markHeld(ctx context.Context, resource string, wait bool, lost <-chan struct{}) (*mark, error) {
	sum := sha256.Sum256([]byte(resource))
	prefix, generation := p.file("held-"+hex.EncodeToString(sum[:8])+"-"), p.generation()
	own := prefix + generation + "-"
	path := fmt.Sprintf("%s%d", own, os.Getpid())
	lock, err := tryLock(path)
	if err != nil {
		return nil, p.blocked(err)
	}
	m := &mark{path, lock}
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		found, err := anyLocked(prefix, own)
		if err == nil && !found {
			return m, nil
		}
		if err == nil && !wait {
			err = errFormer
		}
		if err == nil {
			select {
			case <-tick.C:
				continue
			case <-lost: // the command will not be started
				return m, nil
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		m.remove()
		return nil, err
	}
}

// anyLocked reports whether a file is locked whose name begins so, but not with own. Those that are not are removed.
func anyLocked(prefix, own string) (bool, error) {
	entries, err := os.ReadDir(filepath.Dir(prefix))
	if err != nil {
		return false, err
	}
	for _, entry := range entries {
		path := filepath.Join(filepath.Dir(prefix), entry.Name())
		if !strings.HasPrefix(path, prefix) || strings.HasPrefix(path, own) {
			continue
		}
		lock, err := tryLock(path)
		if err != nil {
			return false, err
		}
		if lock == nil {
			return true, nil
		}
		_ = os.Remove(path) // the next who looks does so, too
		lock.release()
	}
	return false, nil
}
