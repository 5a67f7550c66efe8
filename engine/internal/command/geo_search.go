package command

import (
	"cmp"
	"slices"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// found is a place that a search has found.
type found struct {
	member   string
	score    float64
	place    position
	distance float64 // in metres
	number   int     // counted as they were found
}

// search makes the commands that look for places. They reply with them, or store them
// where the call says.
func (f geoForm) search(c *Ctx) error {
	r, err := f.parse(c)
	if err != nil {
		return err
	}
	var places []found
	if r.set != nil {
		places = r.choose(r.find())
	}
	if r.store != nil {
		return r.storePlaces(c, places)
	}
	r.reply(c, places)
	return nil
}

// find is all places within the area, or as many of them as are wanted if any will do,
// cell by cell, and in each by score. Cells that are the same as the one before, of a
// search half around the world, are searched once.
func (r *geoRequest) find() (places []found) {
	r.area.begin()
	full := func() bool { return r.any && int64(len(places)) >= r.count }
	var before cell
	for i, cell := range r.area.cells() {
		if cell.step == 0 || cell == before {
			continue
		}
		if i > 0 {
			before = cell
		}
		from, end := cell.scores()
		for member, score := range r.set.Ascend(r.set.CountBelow(from, false)) {
			if score >= end || full() {
				break
			}
			place := positionOf(score)
			if metres, ok := r.area.within(place); ok {
				places = append(places, found{member, score, place, metres, len(places)})
			}
		}
	}
	return places
}

func byDistance(a, b found) int {
	switch {
	case a.distance > b.distance:
		return 1
	case a.distance == b.distance:
		return 0
	}
	return -1
}

// choose orders the places and takes as many as are wanted. The nearest of a count come
// first unless the call says otherwise.
//
// Places that are equally far stay as they were found where all are wanted; otherwise the
// way of sorting decides, which is Redis's.
func (r *geoRequest) choose(places []found) []found {
	order := r.order
	if r.count > 0 && order == asFound && !r.any {
		order = nearestFirst
	}
	wanted := len(places)
	if r.count > 0 {
		wanted = int(min(r.count, int64(wanted)))
	}
	compare := byDistance
	if order == farthestFirst {
		compare = func(a, b found) int { return -byDistance(a, b) }
	}
	switch {
	case order == asFound:
	case wanted == len(places):
		slices.SortFunc(places, func(a, b found) int { return cmp.Or(compare(a, b), a.number-b.number) })
	default:
		sortPart(places, compare, 0, wanted-1)
	}
	return places[:wanted]
}

func (r *geoRequest) reply(c *Ctx, places []found) {
	parts := 1 + oneIf(r.withDistance) + oneIf(r.withScore) + oneIf(r.withPlace)
	c.Out.Array(len(places))
	for i := range places {
		p := &places[i]
		if parts > 1 {
			c.Out.Array(parts)
		}
		c.Out.BulkString(p.member)
		if r.withDistance {
			writeDistance(c, p.distance/r.area.unit)
		}
		if r.withScore {
			c.Out.Int(int64(p.score))
		}
		if r.withPlace {
			writePosition(c, p.place)
		}
	}
}

func (r *geoRequest) storePlaces(c *Ctx, places []found) error {
	result := ds.NewLargeSortedSet()
	for i := range places {
		p := &places[i]
		score := p.score
		if r.storeDistance {
			if score = p.distance / r.area.unit; score != score {
				return ErrScoreNaN
			}
		}
		result.AddBytes(bytesOf(p.member), score)
	}
	storeResult(c, r.store, result.Compact(&c.Space.Limits), r.form.event())
	return nil
}

func (f geoForm) event() keyspace.Event {
	if f.storeFirst {
		return eventGeoSearchStore
	}
	return eventGeoRadiusStore
}

// findGeoRadiusKeys is the source, and what the last STORE or STOREDIST stores to.
func findGeoRadiusKeys(args [][]byte) []int {
	keys, store := []int{1}, 0
	for i := 5; i+1 < len(args); i++ {
		if Is(args[i], "STORE") || Is(args[i], "STOREDIST") {
			i++
			store = i
		}
	}
	if store > 0 {
		keys = append(keys, store)
	}
	return keys
}

const (
	geoComplexity  = "O(N+log(M)) for N places in and around what is searched, and M in the set."
	radiusSummary  = "Returns, or stores, the places within a distance of a longitude and latitude. GEOSEARCH and GEOSEARCHSTORE do more."
	readingSummary = "Returns the places within a distance of a longitude and latitude. GEOSEARCH does more."
	membersSummary = "Returns, or stores, the places within a distance of a member. GEOSEARCH and GEOSEARCHSTORE do more."
	memberSummary  = "Returns the places within a distance of a member. GEOSEARCH does more."
)

var geoSearchSpecs = []Spec{
	{
		Name: "georadius", Arity: -6, Flags: Write | DenyOOM | MovableKeys, Keys: Key(1), FindKeys: findGeoRadiusKeys, Group: "geo", Since: "3.2.0",
		Summary: radiusSummary, Complexity: geoComplexity, Run: geoForm{around: byPlace}.search,
	},
	{
		Name: "georadius_ro", Arity: -6, Flags: ReadOnly, Keys: Key(1), Group: "geo", Since: "3.2.10",
		Summary: readingSummary, Complexity: geoComplexity, Run: geoForm{around: byPlace, readOnly: true}.search,
	},
	{
		Name: "georadiusbymember", Arity: -5, Flags: Write | DenyOOM | MovableKeys, Keys: Key(1), FindKeys: findGeoRadiusKeys, Group: "geo", Since: "3.2.0",
		Summary: membersSummary, Complexity: geoComplexity, Run: geoForm{around: byMember}.search,
	},
	{
		Name: "georadiusbymember_ro", Arity: -5, Flags: ReadOnly, Keys: Key(1), Group: "geo", Since: "3.2.10",
		Summary: memberSummary, Complexity: geoComplexity, Run: geoForm{around: byMember, readOnly: true}.search,
	},
	{
		Name: "geosearch", Arity: -7, Flags: ReadOnly, Keys: Key(1), Group: "geo", Since: "6.2.0",
		Summary: "Returns the places within a circle or a box.", Complexity: geoComplexity, Run: geoForm{}.search,
	},
	{
		Name: "geosearchstore", Arity: -8, Flags: Write | DenyOOM, Keys: Keys{1, 2, 1}, Group: "geo", Since: "6.2.0",
		Summary: "Stores the places within a circle or a box in another key.", Complexity: geoComplexity, Run: geoForm{storeFirst: true}.search,
	},
}
