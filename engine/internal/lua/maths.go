package lua

import (
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"
)

func (s *state) mathLibrary() library {
	members := s.functions(map[string]lua51.GoFunction{
		"atan2": math2(math.Atan2), "fmod": math2(mod), "mod": math2(mod),
		"pow": math2(math.Pow), "frexp": mathFrexp, "modf": mathModf, "ldexp": mathLdexp,
		"max": mathMax, "min": mathMin, "random": s.mathRandom, "randomseed": s.mathRandomseed,
	})
	for name, compute := range map[string]func(float64) float64{
		"abs": math.Abs, "acos": math.Acos, "asin": math.Asin, "atan": math.Atan, "ceil": math.Ceil,
		"cos": math.Cos, "cosh": math.Cosh, "exp": math.Exp, "floor": math.Floor, "log": math.Log,
		"log10": math.Log10, "sin": math.Sin, "sinh": math.Sinh, "sqrt": math.Sqrt, "tan": math.Tan,
		"tanh": math.Tanh,
		"deg":  func(x float64) float64 { return x / (math.Pi / 180) },
		"rad":  func(x float64) float64 { return x * (math.Pi / 180) },
	} {
		members[name] = s.function(math1(compute))
	}
	members["pi"] = lua51.Number(math.Pi)
	members["huge"] = lua51.Number(math.Inf(1))
	return members
}

func math1(compute func(float64) float64) lua51.GoFunction {
	return func(l *lua51.Thread) int {
		l.PushNumber(compute(checkNumber(l, 1)))
		return 1
	}
}

func math2(compute func(a, b float64) float64) lua51.GoFunction {
	return func(l *lua51.Thread) int {
		l.Push(lua51.Number(compute(checkNumber(l, 1), checkNumber(l, 2))))
		return 1
	}
}

func mathFrexp(l *lua51.Thread) int {
	fraction, exponent := math.Frexp(checkNumber(l, 1))
	l.PushNumber(float64(fraction))
	l.PushNumber(float64(exponent))
	return 2
}

// mod is C's fmod. Where that is no number it has the sign that the processor gives it.
func mod(x, y float64) float64 {
	if x == x && y == y && (y == 0 || math.IsInf(x, 0)) {
		return (x * y) / (x * y)
	}
	return math.Mod(x, y)
}

func mathModf(l *lua51.Thread) int {
	f := checkNumber(l, 1)
	whole, fraction := math.Modf(f)
	if math.IsInf(f, 0) {
		fraction = 0
	}
	l.PushNumber(float64(whole))
	l.PushNumber(float64(fraction))
	return 2
}

func mathLdexp(l *lua51.Thread) int {
	l.Push(lua51.Number(math.Ldexp(checkNumber(l, 1), checkInt32(l, 2))))
	return 1
}

func mathMax(l *lua51.Thread) int {
	most := checkNumber(l, 1)
	for i := 2; i <= l.Top(); i++ {
		if f := checkNumber(l, i); f > most {
			most = f
		}
	}
	l.PushNumber(most)
	return 1
}

func mathMin(l *lua51.Thread) int {
	least := checkNumber(l, 1)
	for i := 2; i <= l.Top(); i++ {
		if f := checkNumber(l, i); f < least {
			least = f
		}
	}
	l.PushNumber(least)
	return 1
}

// lcg48 is the generator of lrand48(3), which Redis carries with it so that
// scripts draw the same numbers on every machine. It goes on from script to
// script, from this start.
type lcg48 uint64

const firstRandom lcg48 = 0x1234abcd330e

func (g *lcg48) seed(n int32) { *g = lcg48(uint64(uint32(n))<<16 | 0x330e) }

func (g *lcg48) next() int32 {
	*g = (*g*0x5deece66d + 0xb) & (1<<48 - 1)
	return int32(*g >> 17)
}

func (s *state) mathRandom(l *lua51.Thread) int {
	r := float64(s.random.next()%math.MaxInt32) / math.MaxInt32
	low, high := 1, 0
	switch l.Top() {
	case 0:
		l.PushNumber(float64(r))
		return 1
	case 1:
		high = checkInt32(l, 1)
		if high < low {
			l.ArgError(1, "interval is empty")
		}
	case 2:
		low, high = checkInt32(l, 1), checkInt32(l, 2)
		if high < low {
			l.ArgError(2, "interval is empty")
		}
	default:
		l.Raise("wrong number of arguments")
	}
	l.Push(lua51.Number(math.Floor(r*float64(high-low+1)) + float64(low)))
	return 1
}

func (s *state) mathRandomseed(l *lua51.Thread) int {
	s.random.seed(int32(checkInt(l, 1)))
	return 0
}
