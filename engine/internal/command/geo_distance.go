package command

import "math"

// Distances are those of great circles on a sphere, by the haversine formula.

const (
	earthRadius = 6372797.560856 // metres
	radians     = math.Pi / 180
)

// origin is a place that distances are taken from.
type origin struct {
	longitude, latitude float64 // in radians
	cosine              float64 // of the latitude
}

func originAt(p position) origin {
	o := origin{longitude: p.longitude * radians, latitude: p.latitude * radians}
	o.cosine = cosine(o.latitude)
	return o
}

func distance(a, b position) float64 {
	from := originAt(a)
	return from.distance(b)
}

// distance is how many metres it is to a place.
func (o *origin) distance(p position) float64 {
	metres, _ := o.distanceWithin(p, math.Inf(1))
	return metres
}

// distanceWithin is distance for a place whose haversine is not more than most; to know
// that the angle need not be known.
func (o *origin) distanceWithin(p position, most float64) (metres float64, ok bool) {
	v := sine((float64(p.longitude*radians) - o.longitude) / 2)
	if v == 0 {
		return o.northward(p), true
	}
	latitude := p.latitude * radians
	u := sine((latitude - o.latitude) / 2)
	a := float64(u*u) + float64(o.cosine*cosine(latitude)*v*v)
	if a > most {
		return 0, false
	}
	return 2 * earthRadius * arcsine(math.Sqrt(a)), true
}

// haversine is that of a distance, which half around the earth is as large as any.
func haversine(metres float64) float64 {
	half := metres / (2 * earthRadius)
	if half >= math.Pi/2 {
		return math.Inf(1)
	}
	return math.Sin(half) * math.Sin(half)
}

// northward is how far it is to the latitude of a place, north or south.
func (o *origin) northward(p position) float64 {
	return earthRadius * math.Abs(float64(p.latitude*radians)-o.latitude)
}
