package command

import (
	"math"
	"math/big"
)

// Sine, cosine and arc sine, rounded from a result of some 66 bits: so they are right to
// the last bit but once in thousands of times. C's libraries are right nearly as often,
// and Go's are not; a distance that is stored shows it in its last digit.
//
// An angle up to a right one is a multiple of 1/64 and a rest, r. With the sine S and the
// cosine C of the multiple, known to twice the bits of a float64,
//
//	sin = S cos r + C sin r    cos = C cos r - S sin r
//
// where cos r and sin r are a few terms of their series.

const gridSize = 64

// double is a number that is the sum of two, the second of which is less than the last
// bit of the first.
type double struct{ high, low float64 }

// quickSum is a+b, a being the larger.
func quickSum(a, b float64) double {
	sum := a + b
	return double{sum, b - (sum - a)}
}

// gridPoint is the sine and the cosine of a multiple of 1/gridSize.
type gridPoint struct{ sine, cosine double }

// grid is the multiples up to a right angle, each made of the one before.
var grid = func() (points [102]gridPoint) {
	angle := wide().SetFloat64(1. / gridSize)
	stepSine, stepCosine := series(angle, 1), series(angle, 0)
	sine, cosine := wide(), wide().SetInt64(1)
	times := func(a, b *big.Float) *big.Float { return wide().Mul(a, b) }
	for i := range points {
		points[i] = gridPoint{toDouble(sine), toDouble(cosine)}
		sine, cosine = wide().Add(times(sine, stepCosine), times(cosine, stepSine)),
			wide().Sub(times(cosine, stepCosine), times(sine, stepSine))
	}
	return points
}()

// wide is a number of more than enough bits.
func wide() *big.Float { return new(big.Float).SetPrec(160) }

// series is the Taylor series of the sine, which begins with the power 1, or of the
// cosine, which begins with the power 0.
func series(angle *big.Float, first int64) *big.Float {
	sum, term := wide(), wide().SetInt64(1)
	if first == 1 {
		term.Set(angle)
	}
	for n := first; n < 50; n += 2 {
		sum.Add(sum, term)
		term.Mul(term, angle).Mul(term, angle).Quo(term, wide().SetInt64(-(n+1)*(n+2)))
	}
	return sum
}

func toDouble(b *big.Float) (d double) {
	d.high, _ = b.Float64()
	d.low, _ = new(big.Float).Sub(b, big.NewFloat(d.high)).Float64()
	return d
}

// split is the point of the grid next to an angle from 0 to π/2, the rest r, r minus its
// sine, and 1 minus its cosine.
func split(angle float64) (p *gridPoint, r, lessSine, lessCosine float64) {
	i := int(angle*gridSize + 0.5)
	r = angle - float64(i)/gridSize
	square := r * r
	lessSine = r * square * (1./6 - square*(1./120-square*(1./5040-square/362880)))
	lessCosine = square * (0.5 - square*(1./24-square*(1./720-square/40320)))
	return &grid[i], r, lessSine, lessCosine
}

// turned is s cos r + c sin r.
func turned(s, c double, r, lessSine, lessCosine float64) double {
	product := c.high * r
	rest := math.FMA(c.high, r, -product) + (s.low + c.low*r) - (c.high*lessSine + s.high*lessCosine)
	sum := quickSum(s.high, product)
	return quickSum(sum.high, sum.low+rest)
}

// sineOf is the sine of an angle from 0 to π/2.
func sineOf(angle float64) double {
	p, r, lessSine, lessCosine := split(angle)
	return turned(p.sine, p.cosine, r, lessSine, lessCosine)
}

// sine is for angles from -π to π. Beyond a right angle it is that of what is left to π.
func sine(angle float64) float64 {
	const piHigh, piLow = 3.141592653589793116, 1.2246467991473531772e-16
	size := math.Abs(angle)
	if size <= math.Pi/2 {
		return math.Copysign(sineOf(size).high, angle)
	}
	left := quickSum(piHigh-size, piLow)
	s := sineOf(left.high)
	return math.Copysign(s.high+(s.low+left.low*math.Cos(left.high)), angle)
}

// cosine is for latitudes: angles of less than π/2.
func cosine(angle float64) float64 {
	p, r, lessSine, lessCosine := split(math.Abs(angle))
	return turned(p.cosine, double{-p.sine.high, -p.sine.low}, r, lessSine, lessCosine).high
}

// arcsine is for 0 to 1. A number above 1, which rounding can make of two places on opposite
// sides of the earth, has none. That of a large number is what twice that of a small one
// leaves of a right angle.
func arcsine(x float64) float64 {
	switch {
	case x >= 1:
		return math.Asin(x)
	case x <= 0.5:
		a := arcsineOf(double{x, 0}, math.Sqrt((1-x)*(1+x)))
		return a.high + a.low
	}
	const rightLow = 6.123233995736766036e-17 // what π/2 is more than the float64
	half := (1 - x) / 2
	root := math.Sqrt(half)
	a := arcsineOf(double{root, math.FMA(-root, root, half) / (2 * root)}, math.Sqrt(1-half))
	left := quickSum(math.Pi/2, -2*a.high)
	return left.high + (left.low + rightLow - 2*a.low)
}

// arcsineOf is the arc sine of a number, given the cosine of the result. One step of
// Newton's makes twice as many bits right.
func arcsineOf(x double, cosine float64) double {
	angle := math.Atan(x.high / cosine)
	s := sineOf(angle)
	return double{angle, (x.high - s.high + (x.low - s.low)) / cosine}
}
