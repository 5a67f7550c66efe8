package command

import "github.com/signalbox-io/signalbox/engine/internal/ds"

// geoForm is what a command's name says about its search.
type geoForm struct {
	around     geoCenter
	readOnly   bool // STORE and STOREDIST are no options
	storeFirst bool // the first argument is where the result is stored
}

// geoCenter is how a call says where it searches.
type geoCenter int

const (
	byOptions geoCenter = iota // FROMMEMBER and its like
	byPlace
	byMember
)

// geoRequest is a call of one of the search commands.
type geoRequest struct {
	form   geoForm
	set    *ds.SortedSet // nil if there is no such key
	area   area
	store  []byte // the key for the result, or nil: it is the reply
	order  geoOrder
	count  int64 // 0 is all
	any    bool  // the first that are found, not the nearest
	shaped bool  // there is a radius or a box

	fromMember, fromPlace              bool
	withDistance, withScore, withPlace bool
	storeDistance                      bool
}

// geoOrder is the order of the results.
type geoOrder int

const (
	asFound geoOrder = iota
	nearestFirst
	farthestFirst
)

const errNoMember Error = "ERR could not decode requested zset member"

// parse reads a call, whose source it looks up first, since WRONGTYPE comes first.
func (f geoForm) parse(c *Ctx) (*geoRequest, error) {
	r := &geoRequest{form: f}
	args := c.Args[1:]
	if f.storeFirst {
		r.store, args = args[0], args[1:]
	}
	c.Space.Reading = true
	set, _, err := Read[*ds.SortedSet](c, args[0])
	if err != nil {
		return nil, err
	}
	r.set = set
	rest, err := r.parseFixed(args[1:])
	for len(rest) > 0 && err == nil {
		rest, err = r.parseOption(rest)
	}
	if err != nil {
		return nil, err
	}
	return r, r.check(c.Args[0])
}

// parseFixed reads the arguments that have their places. Around a member of no set nothing
// is looked at.
func (r *geoRequest) parseFixed(args [][]byte) (rest [][]byte, err error) {
	switch r.form.around {
	case byPlace:
		if r.area.center, err = parsePlace(args); err != nil {
			return nil, err
		}
		return args[4:], r.parseRadius(args[2:])
	case byMember:
		if r.set == nil {
			return args[3:], nil
		}
		if err := r.parseMember(args[0]); err != nil {
			return nil, err
		}
		return args[3:], r.parseRadius(args[1:])
	}
	return args, nil
}

func (r *geoRequest) parseMember(member []byte) error {
	if r.set == nil {
		return nil
	}
	var ok bool
	if r.area.center, ok = memberPosition(r.set, member); !ok {
		return errNoMember
	}
	return nil
}

func (r *geoRequest) parseRadius(args [][]byte) (err error) {
	var ok bool
	if r.area.radius, ok = ParseFloat(args[0]); !ok {
		return Error("ERR need numeric radius")
	}
	if r.area.radius < 0 {
		return Error("ERR radius cannot be negative")
	}
	r.area.unit, err = parseUnit(args[1])
	return err
}

func (r *geoRequest) parseBox(args [][]byte) (err error) {
	var ok bool
	if r.area.width, ok = ParseFloat(args[0]); !ok {
		return Error("ERR need numeric width")
	}
	if r.area.height, ok = ParseFloat(args[1]); !ok {
		return Error("ERR need numeric height")
	}
	if r.area.height < 0 || r.area.width < 0 {
		return Error("ERR height or width cannot be negative")
	}
	r.area.unit, err = parseUnit(args[2])
	return err
}

// parseOption takes in the option that args begin with and returns what comes after it.
func (r *geoRequest) parseOption(args [][]byte) (rest [][]byte, err error) {
	word, rest := args[0], args[1:]
	switch {
	case Is(word, "WITHDIST"):
		r.withDistance = true
	case Is(word, "WITHHASH"):
		r.withScore = true
	case Is(word, "WITHCOORD"):
		r.withPlace = true
	case Is(word, "ANY"):
		r.any = true
	case Is(word, "ASC"):
		r.order = nearestFirst
	case Is(word, "DESC"):
		r.order = farthestFirst
	case Is(word, "COUNT") && len(rest) > 0:
		return rest[1:], r.parseCount(rest[0])
	case r.form.around == byOptions:
		return r.parseSearchOption(word, rest)
	case len(rest) > 0 && !r.form.readOnly && (Is(word, "STORE") || Is(word, "STOREDIST")):
		r.store, r.storeDistance = rest[0], Is(word, "STOREDIST")
		return rest[1:], nil
	default:
		return nil, ErrSyntax
	}
	return rest, nil
}

func (r *geoRequest) parseCount(arg []byte) error {
	var ok bool
	if r.count, ok = ParseInt(arg); !ok {
		return ErrNotInteger
	}
	if r.count <= 0 {
		return Error("ERR COUNT must be > 0")
	}
	return nil
}

// parseSearchOption is parseOption for what only GEOSEARCH and GEOSEARCHSTORE have.
func (r *geoRequest) parseSearchOption(word []byte, args [][]byte) (rest [][]byte, err error) {
	box := r.shaped && r.area.box
	switch {
	case Is(word, "STOREDIST") && r.form.storeFirst:
		r.storeDistance = true
		return args, nil
	case Is(word, "FROMMEMBER") && len(args) > 0 && !r.fromPlace:
		r.fromMember = true
		return args[1:], r.parseMember(args[0])
	case Is(word, "FROMLONLAT") && len(args) > 1 && !r.fromMember:
		r.fromPlace = true
		r.area.center, err = parsePlace(args)
		return args[2:], err
	case Is(word, "BYRADIUS") && len(args) > 1 && !box:
		r.shaped = true
		return args[2:], r.parseRadius(args)
	case Is(word, "BYBOX") && len(args) > 2 && (!r.shaped || box):
		r.shaped, r.area.box = true, true
		return args[3:], r.parseBox(args)
	}
	return nil, ErrSyntax
}

// check refuses options that do not go together.
func (r *geoRequest) check(name []byte) error {
	searching := r.form.around == byOptions
	switch {
	case r.store != nil && (r.withDistance || r.withScore || r.withPlace):
		who := "STORE option in GEORADIUS"
		if r.form.storeFirst {
			who = "GEOSEARCHSTORE"
		}
		return Error("ERR " + who + " is not compatible with WITHDIST, WITHHASH and WITHCOORD options")
	case searching && !r.fromMember && !r.fromPlace:
		return Error("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for " + string(name))
	case searching && !r.shaped:
		return Error("ERR exactly one of BYRADIUS and BYBOX can be specified for " + string(name))
	case r.any && r.count == 0:
		return Error("ERR the ANY argument requires COUNT argument")
	}
	return nil
}
