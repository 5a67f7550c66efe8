package main

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/signalbox-io/signalbox"
)

// How leases, waiters and limits are told to people, alike in every command.

// who is "web1:42 nightly": the owner and the label of a lease or a waiter.
func who(owner, label string) string {
	if label != "" {
		owner += " " + label
	}
	return printable(cmp.Or(owner, "unknown"))
}

// holder is who holds a lease. Permits that rest are nobody's.
func holder(h *signalbox.Holder) string {
	if h.Resting {
		return "resting, last held by " + who(h.Owner, h.Label)
	}
	return who(h.Owner, h.Label)
}

// permits is a number of permits. Those of a read/write lock that a writer has are all there are.
func permits(n int) string {
	if n == signalbox.MaxReaders {
		return "all"
	}
	return strconv.Itoa(n)
}

// usageOf is "2 of 3 held"; for a read/write lock "held by a writer" or "held by 3 readers".
func usageOf(s *signalbox.State) string {
	switch {
	case !isReadWrite(s):
		return fmt.Sprintf("%d of %s held", s.Held, permits(s.Limit))
	case s.Held == signalbox.MaxReaders:
		return "held by a writer"
	}
	return "held by " + count(s.Held, "reader")
}

// isReadWrite says whether a resource is a read/write lock that is held.
func isReadWrite(s *signalbox.State) bool { return s.Limit == signalbox.MaxReaders && s.Held > 0 }

// oldest is the lease that has been held for longest; if permits only rest, those that have for longest; nil if nothing
// is held.
func oldest(s *signalbox.State) *signalbox.Holder {
	var first *signalbox.Holder
	for i := range s.Holders {
		h := &s.Holders[i]
		if first == nil || first.Resting && !h.Resting || first.Resting == h.Resting && h.Since.Before(first.Since) {
			first = h
		}
	}
	return first
}

// held is "web1:42 nightly (12s)".
func held(h *signalbox.Holder, now time.Time) string {
	return fmt.Sprintf("%s (%s)", holder(h), span(now.Sub(h.Since)))
}
