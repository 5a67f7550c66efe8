package ledger

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// Change is what watch.lua has the transitions tell. Ms is for how long a lease was held, or a waiter had waited.
type Change struct {
	Kind   string
	At     time.Time // the server's clock
	ID     string
	Weight int // for "resize" the new limit, 0 if it was cleared
	Token  int64
	After  time.Duration
	Owner  string
	Label  string
}

// Events is the channel that the changes of a resource are published on.
func (r *Resource) Events() string { return r.state + ":events" }

// Watch has changes published for a while. It returns the time until the earliest lease expires, 0 if none is held.
func (l *Ledger) Watch(ctx context.Context, resource *Resource, during time.Duration) (next time.Duration, err error) {
	reply, err := l.run(ctx, newCall(watchScript, resource.keys, during.Milliseconds()))
	if err != nil {
		return 0, failure("watch", resource.Name, err)
	}
	n := numbers(reply)
	if len(n) != 2 {
		return 0, unexpected("watch", resource.Name, reply)
	}
	return ms(n[1]), nil
}

// ParseChange reads a message of the channel and reports whether it is one of ours: anybody may publish.
func ParseChange(text string) (Change, bool) {
	part := strings.SplitN(text, " ", 7)
	if len(part) < 7 {
		return Change{}, false
	}
	var n [4]int64
	for i, at := range [...]int{1, 3, 4, 5} {
		var err error
		if n[i], err = strconv.ParseInt(part[at], 10, 64); err != nil {
			return Change{}, false
		}
	}
	owner, label, _ := strings.Cut(part[6], "\t")
	return Change{
		Kind: part[0], At: time.UnixMilli(n[0]), ID: part[2], Weight: int(n[1]), Token: n[2], After: ms(n[3]),
		Owner: owner, Label: label,
	}, true
}
