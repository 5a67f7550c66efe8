package command

import "github.com/signalbox-io/signalbox/engine/internal/ds"

// trimMostOut is how many entries a trim with ~ removes at most, unless LIMIT says
// otherwise: a hundred full chunks, within reason.
func trimMostOut(limits *ds.Limits) int64 {
	const chunks, usual, most = 100, 10_000, 1_000_000
	if limits.StreamChunkEntries <= 0 {
		return usual
	}
	return min(int64(limits.StreamChunkEntries), most/chunks) * chunks
}

// trimOptions are the options of XTRIM, which XADD has too: MAXLEN or MINID, with = or ~,
// and LIMIT.
type trimOptions struct {
	ds.StreamTrim
	given      bool
	limitGiven bool
	markAt     int  // the argument that is ~
	exact      bool // a log says what was trimmed, and may have the limit beside it
}

// parse takes in one option at argument at, and returns how many arguments it is; 0 if
// there is none.
func (o *trimOptions) parse(all [][]byte, at int) (taken int, err error) {
	switch args := all[at:]; {
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
			taken, o.markAt = 3, at+1
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
func (o *trimOptions) check(limits *ds.Limits) error {
	switch {
	case o.exact:
		o.MostOut = 0
	case o.MostOut > 0 && !o.given:
		return Error("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")
	case o.limitGiven && !o.Whole:
		return Error("ERR syntax error, LIMIT cannot be used without the special ~ option")
	case o.Whole && !o.limitGiven:
		o.MostOut = trimMostOut(limits)
	}
	return nil
}

// propagate writes down a call that has trimmed. How much ~ leaves depends on how the
// stream is stored, so it becomes what is left. instead, if not nil, writes another
// argument than the one that was given, and says that it has.
func (o *trimOptions) propagate(c *Ctx, stream *ds.Stream, instead func(i int, request Request) bool) {
	request := c.Propagate(len(c.Args))
	for i, arg := range c.Args {
		switch {
		case instead != nil && instead(i, request):
		case o.Whole && i == o.markAt:
			request.Word("=")
		case o.Whole && i == o.markAt+1 && !o.ByID:
			request.Int(int64(stream.Len()))
		case o.Whole && i == o.markAt+1 && stream.Len() > 0:
			request.ID(stream.FirstID())
		case o.Whole && i == o.markAt+1:
			request.ID(ds.MaxStreamID)
		default:
			request.Bytes(arg)
		}
	}
}

func parseXtrim(c *Ctx) (o trimOptions, err error) {
	args := c.Args
	o.exact = c.Space.Loading
	for i := 2; i < len(args); {
		taken, err := o.parse(args, i)
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
	return o, o.check(&c.Space.Limits)
}

func xtrim(c *Ctx) error {
	options, err := parseXtrim(c)
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
		if options.Whole {
			options.propagate(c, stream, nil)
		}
	}
	c.Out.Int(removed)
	return nil
}
