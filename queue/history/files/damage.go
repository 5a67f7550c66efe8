package files

import (
	"fmt"
	"strings"

	"github.com/signalbox-io/signalbox/queue/history"
)

// Damage is a place where a history cannot be read. It is an error, which wraps history.ErrDamaged.
type Damage struct {
	File   string // where it is
	Offset int64  // in the file, where it begins
	Bytes  int64  // how long it is; 0 if bytes are missing
	After  string // the ID of the last entry before it, "" if it is at the beginning
	Before string // the ID of the first entry behind it, "" if none can be read
	Lost   uint64 // how many entries cannot be read; 0 if that is not known
	What   string // what is wrong there
}

func (d *Damage) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, offset %d: %s: ", d.File, d.Offset, d.What)
	if d.Lost > 0 {
		fmt.Fprintf(&b, "%d entries ", d.Lost)
	} else {
		b.WriteString("an unknown number of entries ")
	}
	if d.After == "" {
		b.WriteString("at the beginning ")
	} else {
		fmt.Fprintf(&b, "after %s ", d.After)
	}
	if d.Before != "" {
		fmt.Fprintf(&b, "and before %s ", d.Before)
	}
	fmt.Fprintf(&b, "cannot be read: %s (put the file back from a copy; or open the folder with files.Salvage to read what is left)", history.ErrDamaged)
	return b.String()
}

func (d *Damage) Unwrap() error { return history.ErrDamaged }
