package ledger

import (
	"fmt"
	"strings"
	"time"
)

// Terms are what an acquisition wants besides permits. The zero value wants nothing.
type Terms struct {
	Cool   time.Duration // for which permits rest after the lease has expired
	Hold   time.Duration // for which permits are held at least
	Pace   time.Duration // between grants, in us, after a burst
	Burst  int           // of the pace
	Block  int           // tokens reserved behind the lease's own
	Notice bool          // the holder is told when somebody waits
}

// word is how the scripts read them: prelude.lua.
func (t Terms) word() string {
	if t == (Terms{}) {
		return "-"
	}
	var word []string
	add := func(text string, wanted bool) {
		if wanted {
			word = append(word, text)
		}
	}
	add(fmt.Sprintf("c%d", t.Cool.Milliseconds()), t.Cool > 0)
	add(fmt.Sprintf("h%d", t.Hold.Milliseconds()), t.Hold > 0)
	add(fmt.Sprintf("p%d:%d", t.Pace.Microseconds(), t.Burst), t.Pace > 0)
	add(fmt.Sprintf("b%d", t.Block), t.Block > 0)
	add("n", t.Notice)
	return strings.Join(word, ",")
}

// person is an owner and a label in one, as records hold them.
func person(owner, label string) string {
	owner, label = strings.ReplaceAll(owner, "\t", " "), strings.ReplaceAll(label, "\t", " ")
	if label == "" {
		return owner
	}
	return owner + "\t" + label
}
