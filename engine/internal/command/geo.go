package command

import (
	"math"
	"strconv"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// Places on the earth are members of a sorted set, whose scores say where they are: any
// command on sorted sets may read them and write them. One file per concept:
//
//	geo.go           places one by one: GEOADD, GEOPOS, GEODIST, GEOHASH; units, replies
//	geo_cell.go      a score is a cell: from places to cells and back, neighbours
//	geo_distance.go  distances on a sphere
//	geo_trig.go      sine, cosine and arc sine to the last bit
//	geo_area.go      what is searched: a circle or a box, and the cells that cover it
//	geo_options.go   how a call asks for it, in seven commands
//	geo_search.go    the search, and its replies
//
// Scores, distances and the order of results are Redis's, to the digit. What goes into
// them is computed in its order; every product is converted to float64 before it is added
// to, so that no compiler makes one rounding of two.

const errUnit Error = "ERR unsupported unit provided. please use M, KM, FT, MI"

// position is a place in degrees.
type position struct{ longitude, latitude float64 }

// parsePlace reads the two arguments of a place.
func parsePlace(args [][]byte) (p position, err error) {
	var ok [2]bool
	p.longitude, ok[0] = ParseFloat(args[0])
	p.latitude, ok[1] = ParseFloat(args[1])
	switch {
	case !ok[0] || !ok[1]:
		return p, ErrNotFloat
	case math.Abs(p.longitude) > longitudeMax || math.Abs(p.latitude) > latitudeMax:
		return p, Error("ERR invalid longitude,latitude pair " + fixed(p.longitude) + "," + fixed(p.latitude))
	}
	return p, nil
}

// fixed writes a number as C's %f.
func fixed(f float64) string {
	if math.IsInf(f, 0) {
		return resp.FormatDouble(f)
	}
	return strconv.FormatFloat(f, 'f', 6, 64)
}

// parseUnit is how many metres a unit has.
func parseUnit(arg []byte) (metres float64, err error) {
	switch {
	case Is(arg, "M"):
		return 1, nil
	case Is(arg, "KM"):
		return 1000, nil
	case Is(arg, "FT"):
		return 0.3048, nil
	case Is(arg, "MI"):
		return 1609.34, nil
	}
	return 0, errUnit
}

// geoadd is a ZADD, and is propagated as one.
func geoadd(c *Ctx) error {
	var o addOptions
	places := c.Args[2:]
	for len(places) > 0 && (Is(places[0], "NX") || Is(places[0], "XX") || Is(places[0], "CH")) {
		o.set(places[0])
		places = places[1:]
	}
	if len(places)%3 != 0 || o.onlyNew && o.onlyPresent {
		return ErrSyntax
	}
	pairs := make([][]byte, 0, len(places)/3*2)
	scores := make([]byte, 0, len(places)/3*len("4503599627370496"))
	for ; len(places) > 0; places = places[3:] {
		p, err := parsePlace(places)
		if err != nil {
			return err
		}
		start := len(scores)
		scores = strconv.AppendUint(scores, p.cell(stepMax).score(), 10)
		pairs = append(pairs, scores[start:], places[2])
	}
	if len(pairs) == 0 {
		return ErrSyntax
	}
	dirty := c.Space.Dirty
	if err := addMembers(c, o, pairs); err != nil {
		return err
	}
	if c.Space.Dirty != dirty {
		propagateAdd(c, pairs)
	}
	return nil
}

func propagateAdd(c *Ctx, pairs [][]byte) {
	options := c.Args[2 : len(c.Args)-len(pairs)/2*3]
	request := c.Propagate(2 + len(options) + len(pairs)).Word("zadd").Bytes(c.Args[1])
	for _, option := range options {
		request.Bytes(option)
	}
	for _, word := range pairs {
		request.Bytes(word)
	}
}

// memberPosition is where a member of a set is.
func memberPosition(set *ds.SortedSet, member []byte) (p position, ok bool) {
	if set == nil {
		return p, false
	}
	score, ok := set.Score(member)
	return positionOf(score), ok
}

func geopos(c *Ctx) error {
	set, _, err := Read[*ds.SortedSet](c, c.Args[1])
	if err != nil {
		return err
	}
	c.Out.Array(len(c.Args) - 2)
	for _, member := range c.Args[2:] {
		if p, ok := memberPosition(set, member); ok {
			writePosition(c, p)
		} else {
			c.Out.NullArray()
		}
	}
	return nil
}

func writePosition(c *Ctx, p position) {
	c.Out.Array(2)
	writeDegrees(c, p.longitude)
	writeDegrees(c, p.latitude)
}

// writeDegrees writes 17 digits after the point, less the zeros at the end.
func writeDegrees(c *Ctx, degrees float64) {
	var digits [32]byte
	text := strconv.AppendFloat(digits[:0], degrees, 'f', 17, 64)
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	if text[len(text)-1] == '.' {
		text = text[:len(text)-1]
	}
	if string(text) == "-0" {
		text = text[1:]
	}
	if c.Out.Proto != 3 {
		c.Out.Bulk(text)
		return
	}
	c.Out.Raw([]byte{','})
	c.Out.Raw(text)
	c.Out.Raw([]byte("\r\n"))
}

// writeDistance writes four digits after the point.
func writeDistance(c *Ctx, distance float64) {
	var digits [32]byte
	tenthousandths := toInt64(math.RoundToEven(distance * 10000))
	text := digits[:0]
	if tenthousandths < 0 {
		text = append(text, '-')
	}
	whole := magnitude(tenthousandths)
	text = strconv.AppendUint(text, whole/10000, 10)
	text = append(text, '.')
	for place, rest := uint64(1000), whole%10000; place > 0; place /= 10 {
		text = append(text, '0'+byte(rest/place%10))
	}
	c.Out.Bulk(text)
}

// magnitude is n without its sign, that of the lowest integer too.
func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func geodist(c *Ctx) error {
	unit := 1.0
	if len(c.Args) > 5 {
		return ErrSyntax
	}
	if len(c.Args) == 5 {
		var err error
		if unit, err = parseUnit(c.Args[4]); err != nil {
			return err
		}
	}
	set, _, err := Read[*ds.SortedSet](c, c.Args[1])
	if err != nil {
		return err
	}
	from, ok := memberPosition(set, c.Args[2])
	to, alsoOK := memberPosition(set, c.Args[3])
	if !ok || !alsoOK {
		c.Out.Null()
		return nil
	}
	writeDistance(c, distance(from, to)/unit)
	return nil
}

// geohash writes the cells that others call by such a name: those of a grid from pole to
// pole. The last of eleven letters would need more bits than there are.
func geohash(c *Ctx) error {
	const letters = "0123456789bcdefghjkmnpqrstuvwxyz"
	set, _, err := Read[*ds.SortedSet](c, c.Args[1])
	if err != nil {
		return err
	}
	c.Out.Array(len(c.Args) - 2)
	for _, member := range c.Args[2:] {
		p, ok := memberPosition(set, member)
		if !ok {
			c.Out.Null()
			continue
		}
		bits := newCell(p, poleLatitude, stepMax).bits
		name := []byte("00000000000")
		for i := range name[:10] {
			name[i] = letters[bits>>(scoreBits-5*(i+1))&31]
		}
		c.Out.Bulk(name)
	}
	return nil
}

var geoSpecs = []Spec{
	{
		Name: "geoadd", Arity: -5, Flags: Write | DenyOOM, Keys: Key(1), Group: "geo", Since: "3.2.0",
		Summary:    "Adds places with their longitudes and latitudes, or moves those present. Creates the key if it does not exist.",
		Complexity: "O(log(N)) for each place, with N places in the set.", Run: geoadd,
	},
	{
		Name: "geodist", Arity: -4, Flags: ReadOnly, Keys: Key(1), Group: "geo", Since: "3.2.0",
		Summary: "Returns how far two places are apart.", Complexity: "O(1)", Run: geodist,
	},
	{
		Name: "geohash", Arity: -2, Flags: ReadOnly, Keys: Key(1), Group: "geo", Since: "3.2.0",
		Summary: "Returns places as geohashes of eleven letters.", Complexity: "O(1) for each place.", Run: geohash,
	},
	{
		Name: "geopos", Arity: -2, Flags: ReadOnly, Keys: Key(1), Group: "geo", Since: "3.2.0",
		Summary: "Returns the longitudes and latitudes of places.", Complexity: "O(1) for each place.", Run: geopos,
	},
}
