package command

import "github.com/signalbox-io/signalbox/engine/internal/ds"

// trimMostOut is how many entries a trim with ~ removes at most, unless LIMIT says
// otherwise: a hundred full chunks.
const trimMostOut = 100 * 100

// trimOptions are the options of XTRIM, which XADD has too: MAXLEN or MINID, with = or ~,
// and LIMIT.
type trimOptions struct {
	ds.StreamTrim
	given      bool
	limitGiven bool
}

// parse takes in one option at the front of args, and returns how many arguments it is; 0
// if there is none.
func (o *trimOptions) parse(args [][]byte) (taken int, err error) {
	switch {
	case len(args) < 2:
		return 0, nil
	case Is(args[0], "LIMIT"):
		limit, ok := ParseInt(args[1])
		if !ok {
			return 0, ErrNotInteger
		}
		if limit < 0 {
			return 0, Error("ERR The LIMIT argument must be >= 0.")
		}
		o.MostOut, o.limitGiven = limit, true
		return 2, nil
	case Is(args[0], "MAXLEN"), Is(args[0], "MINID"):
		if o.given {
			return 0, Error("ERR syntax error, MAXLEN and MINID options at the same time are not compatible")
		}
		o.given = true
		o.ByID = Is(args[0], "MINID")
		taken = 2
		if mark := string(args[1]); len(args) >= 3 && (mark == "~" || mark == "=") {
			o.Whole = mark == "~"
			taken = 3
		}
		return taken, o.parseThreshold(args[taken-1])
	default:
		return 0, nil
	}
}

func (o *trimOptions) parseThreshold(arg []byte) (err error) {
	if o.ByID {
		o.MinID, err = parseStreamID(arg, 0)
		return err
	}
	var ok bool
	if o.MaxLen, ok = ParseInt(arg); !ok {
		return ErrNotInteger
	}
	if o.MaxLen < 0 {
		return Error("ERR The MAXLEN argument must be >= 0.")
	}
	return nil
}

// check looks at the options as a whole, and fills in the limit if there has to be one.
func (o *trimOptions) check() error {
	switch {
	case o.MostOut > 0 && !o.given:
		return Error("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")
	case o.limitGiven && !o.Whole:
		return Error("ERR syntax error, LIMIT cannot be used without the special ~ option")
	case o.Whole && !o.limitGiven:
		o.MostOut = trimMostOut
	}
	return nil
}

func parseXtrim(args [][]byte) (o trimOptions, err error) {
	for i := 2; i < len(args); {
		taken, err := o.parse(args[i:])
		if err != nil {
			return o, err
		}
		if taken == 0 {
			return o, ErrSyntax
		}
		i += taken
	}
	if !o.given && o.MostOut == 0 {
		return o, Error("ERR syntax error, XTRIM must be called with a trimming strategy")
	}
	return o, o.check()
}

func xtrim(c *Ctx) error {
	options, err := parseXtrim(c.Args)
	if err != nil {
		return err
	}
	stream, found, err := Read[*ds.Stream](c, c.Args[1])
	if err != nil {
		return err
	}
	removed := int64(0)
	if found {
		removed = stream.Trim(options.StreamTrim)
	}
	if removed > 0 {
		c.Change(c.Args[1], eventXTrim)
	}
	c.Out.Int(removed)
	return nil
}
