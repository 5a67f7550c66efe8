package command

import "math"

// area is what is searched: a circle, or a box whose sides are great circles. A box is as
// wide at the latitude of a place as in its middle.
type area struct {
	center        position
	from          origin  // the same; see begin
	haversine     float64 // of the radius, and a margin
	box           bool
	radius        float64 // in units, as the following
	width, height float64
	unit          float64 // metres
}

// reach is how many metres the area goes beyond its center, to the sides and up and down.
func (a *area) reach() (sideways, upward float64) {
	if a.box {
		return a.unit * (a.width / 2), a.unit * (a.height / 2)
	}
	return a.unit * a.radius, a.unit * a.radius
}

// farthest is how many metres the farthest place within may be away.
func (a *area) farthest() float64 {
	if a.box {
		w, h := a.width/2, a.height/2
		return math.Sqrt(float64(w*w)+float64(h*h)) * a.unit
	}
	return a.radius * a.unit
}

// within reports how far a place is from the center, if it is within the area.
func (a *area) within(p position) (metres float64, ok bool) {
	if a.box {
		if a.from.northward(p) > a.height*a.unit/2 {
			return 0, false
		}
		aside := originAt(p)
		if aside.distance(position{a.center.longitude, p.latitude}) > a.width*a.unit/2 {
			return 0, false
		}
		return a.from.distance(p), true
	}
	most := a.radius * a.unit
	if a.from.northward(p) > most*margin { // nobody is nearer than by latitude alone
		return 0, false
	}
	metres, ok = a.from.distanceWithin(p, a.haversine)
	return metres, ok && !(metres > most) // which is also so if rounding has left no number
}

// margin is what is added to a radius for what is quick to know and not exact: more than
// rounding does.
const margin = 1.000001

// begin makes ready for within.
func (a *area) begin() {
	a.from = originAt(a.center)
	a.haversine = haversine(a.radius * a.unit * margin)
}

// frame is the bounds of the area. They may be beyond the sides of the map; and where they
// are beyond a pole they mean nothing, in Redis too.
func (a *area) frame() bounds {
	sideways, upward := a.reach()
	height := upward / earthRadius / radians
	latitude := a.center.latitude + height
	if a.center.latitude < 0 {
		latitude = a.center.latitude - height
	}
	width := sideways / earthRadius / math.Cos(latitude*radians) / radians
	return bounds{
		west: a.center.longitude - width, east: a.center.longitude + width,
		south: a.center.latitude - height, north: a.center.latitude + height,
	}
}

// steps is how small cells may be for the middle one and its neighbours to cover the area,
// nearly always.
func (a *area) steps() int {
	const mapHalf = 20037726.37 // metres
	reach := a.farthest()
	if reach == 0 {
		return stepMax
	}
	steps := -1
	for ; reach < mapHalf; reach *= 2 {
		steps++
	}
	switch latitude := math.Abs(a.center.latitude); { // towards the poles cells are narrower
	case latitude > 80:
		steps -= 2
	case latitude > 66:
		steps--
	}
	return min(max(steps, 1), stepMax)
}

// cells are the cells that cover the area, in the order in which they are searched; some
// may be none.
func (a *area) cells() (cells [9]cell) {
	frame := a.frame()
	middle := a.center.cell(a.steps())
	if middle.step > 1 && !middle.covers(frame) {
		middle = a.center.cell(middle.step - 1)
	}
	b := middle.bounds()
	for i, way := range [9]struct{ east, north int }{
		{0, 0}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1},
	} {
		needless := middle.step >= 2 && (way.north < 0 && b.south < frame.south || way.north > 0 && b.north > frame.north ||
			way.east < 0 && b.west < frame.west || way.east > 0 && b.east > frame.east)
		if !needless {
			cells[i] = middle.move(way.east, way.north)
		}
	}
	return cells
}

// covers reports whether a cell and its neighbours go as far as the frame on every side.
func (c cell) covers(frame bounds) bool {
	return !(c.move(0, 1).bounds().north < frame.north || c.move(0, -1).bounds().south > frame.south ||
		c.move(1, 0).bounds().east < frame.east || c.move(-1, 0).bounds().west > frame.west)
}
