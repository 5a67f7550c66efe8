// Package logging writes what happens to acquisitions and leases to a slog.Logger, one record each:
//
//	box, err := signalbox.Open(ctx, url, logging.Observer(logger))
//
// It keeps no state but the time of the last record about a late renewal. Every record carries the context of the
// acquisition or lease, so that a handler finds a trace's id in it. To have something new logged, give its Happening a level
// in defaults and a message in text.
//
// Names of resources are written in full: keep secrets and personal data out of them, or replace the attribute in the
// handler (slog.HandlerOptions.ReplaceAttr).
package logging

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox"
)

// Off is a level at which nothing is logged, for Level.
const Off = slog.Level(1 << 20)

// Option changes an Observer.
type Option func(*observer)

// Level sets the level of one kind of happening. The defaults: Begun is Off; Granted, Refused and Released are Debug; Failed
// Renewed and Warned are Warn; Lost is Error. It does not change the level of a grant that had to wait, which SlowLevel sets.
func Level(what signalbox.Happening, level slog.Level) Option {
	return func(o *observer) { o.levels[what] = level }
}

// Slow sets from which wait on a grant is logged at the level of SlowLevel; the default is a second.
func Slow(wait time.Duration) Option {
	return func(o *observer) { o.slow = wait }
}

// SlowLevel sets the level of a grant that had to wait as long as Slow says; the default is Info.
func SlowLevel(level slog.Level) Option {
	return func(o *observer) { o.slowLevel = level }
}

// Late sets from which lag on a renewal is logged. The default is a third of the lease's ttl, at which half of the time that
// was left for renewing it is gone.
func Late(lag time.Duration) Option {
	return func(o *observer) { o.late = func(time.Duration) time.Duration { return lag } }
}

// LateEvery sets how far apart records about late renewals are at least; the default is ten seconds. A server that stalls
// makes all leases late at once; the next record tells how many were left out.
func LateEvery(interval time.Duration) Option {
	return func(o *observer) { o.interval = interval }
}

// Observer returns the option that has a Box log to a logger; nil is slog.Default(). Records are written by the goroutine to
// which something happens: the handler should not be slow.
func Observer(logger *slog.Logger, options ...Option) signalbox.Option {
	if logger == nil {
		logger = slog.Default()
	}
	o := &observer{
		logger: logger, levels: defaults(), slow: time.Second, slowLevel: slog.LevelInfo, interval: 10 * time.Second,
		late: func(ttl time.Duration) time.Duration { return ttl / 3 },
	}
	for _, option := range options {
		option(o)
	}
	return signalbox.Observe(o.observe)
}

func defaults() map[signalbox.Happening]slog.Level {
	return map[signalbox.Happening]slog.Level{
		signalbox.Begun: Off, signalbox.Granted: slog.LevelDebug, signalbox.Refused: slog.LevelDebug,
		signalbox.Failed: slog.LevelWarn, signalbox.Renewed: slog.LevelWarn, signalbox.Released: slog.LevelDebug,
		signalbox.Lost: slog.LevelError, signalbox.Warned: slog.LevelWarn,
	}
}

// observer is written by options alone, but for what mu guards.
type observer struct {
	logger    *slog.Logger
	levels    map[signalbox.Happening]slog.Level
	slow      time.Duration
	slowLevel slog.Level
	late      func(ttl time.Duration) time.Duration
	interval  time.Duration

	mu      sync.Mutex
	lastLag time.Time // when a late renewal was logged
	leftOut int       // late renewals since
}

func (o *observer) observe(seen signalbox.Observation) {
	level, known := o.levels[seen.What]
	if seen.What == signalbox.Granted && seen.Wait >= o.slow {
		level = o.slowLevel
	}
	if !known || level >= Off || !o.logger.Enabled(seen.Context, level) {
		return
	}
	var leftOut int
	if seen.What == signalbox.Renewed {
		var due bool
		if leftOut, due = o.lateDue(&seen); !due {
			return
		}
	}
	// A lease's context has ended when its end is told of, and handlers may heed that.
	o.logger.LogAttrs(context.WithoutCancel(seen.Context), level, text(seen.What), attributes(&seen, leftOut)...)
}

// lateDue says whether a renewal is so late that it is logged, and how many that were late have not been since the last.
func (o *observer) lateDue(seen *signalbox.Observation) (leftOut int, due bool) {
	if seen.Lag < o.late(seen.TTL) {
		return 0, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.lastLag.IsZero() && seen.At.Sub(o.lastLag) < o.interval {
		o.leftOut++
		return 0, false
	}
	leftOut, o.leftOut, o.lastLag = o.leftOut, 0, seen.At
	return leftOut, true
}

func text(what signalbox.Happening) string {
	switch what {
	case signalbox.Begun:
		return "acquisition begun"
	case signalbox.Granted:
		return "lease granted"
	case signalbox.Refused:
		return "acquisition refused"
	case signalbox.Failed:
		return "acquisition failed"
	case signalbox.Renewed:
		return "lease renewed late"
	case signalbox.Released:
		return "lease released"
	case signalbox.Lost:
		return "lease lost"
	case signalbox.Warned:
		return "server to be wary of"
	}
	return string(what)
}

// attributes are those that the kind of happening gives a meaning, and of the others those that are set.
func attributes(seen *signalbox.Observation, leftOut int) []slog.Attr {
	if seen.What == signalbox.Warned { // of no resource
		return []slog.Attr{slog.String("error", seen.Err.Error())}
	}
	all := []slog.Attr{slog.String("resource", seen.Resource)}
	if seen.ID != "" {
		all = append(all, slog.String("id", seen.ID), slog.Int64("token", seen.Token))
	}
	if seen.Label != "" {
		all = append(all, slog.String("label", seen.Label))
	}
	if seen.Weight != 1 {
		all = append(all, slog.Int("weight", seen.Weight))
	}
	switch seen.What {
	case signalbox.Granted, signalbox.Refused, signalbox.Failed:
		all = append(all, slog.Duration("wait", seen.Wait))
	case signalbox.Renewed:
		all = append(all, slog.Duration("lag", seen.Lag), slog.Duration("ttl", seen.TTL))
		if leftOut > 0 {
			all = append(all, slog.Int("left_out", leftOut))
		}
	case signalbox.Released, signalbox.Lost:
		all = append(all, slog.Duration("hold", seen.Hold))
	case signalbox.Begun, signalbox.Warned:
	}
	if seen.Err != nil {
		all = append(all, slog.String("error", seen.Err.Error()))
	}
	return all
}
