package lua

import (
	"math"

	glua "github.com/yuin/gopher-lua"
)

func (s *state) mathLibrary() library {
	members := s.functions(map[string]glua.LGFunction{
		"atan2": math2("atan2", math.Atan2), "fmod": math2("fmod", math.Mod), "mod": math2("mod", math.Mod),
		"pow": math2("pow", math.Pow), "frexp": mathFrexp, "modf": mathModf, "ldexp": mathLdexp,
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
		members[name] = s.function(math1(name, compute))
	}
	members["pi"] = glua.LNumber(math.Pi)
	members["huge"] = glua.LNumber(math.Inf(1))
	return members
}

func math1(name string, compute func(float64) float64) glua.LGFunction {
	return func(l *glua.LState) int {
		l.Push(value(glua.LNumber(compute(float64(checkNumber(l, 1, name))))))
		return 1
	}
}

func math2(name string, compute func(a, b float64) float64) glua.LGFunction {
	return func(l *glua.LState) int {
		l.Push(glua.LNumber(compute(float64(checkNumber(l, 1, name)), float64(checkNumber(l, 2, name)))))
		return 1
	}
}

func mathFrexp(l *glua.LState) int {
	fraction, exponent := math.Frexp(float64(checkNumber(l, 1, "frexp")))
	l.Push(glua.LNumber(fraction))
	l.Push(glua.LNumber(exponent))
	return 2
}

func mathModf(l *glua.LState) int {
	f := float64(checkNumber(l, 1, "modf"))
	whole, fraction := math.Modf(f)
	if math.IsInf(f, 0) {
		fraction = 0
	}
	l.Push(glua.LNumber(whole))
	l.Push(glua.LNumber(fraction))
	return 2
}

func mathLdexp(l *glua.LState) int {
	l.Push(glua.LNumber(math.Ldexp(float64(checkNumber(l, 1, "ldexp")), checkInt(l, 2, "ldexp"))))
	return 1
}

func mathMax(l *glua.LState) int {
	most := checkNumber(l, 1, "max")
	for i := 2; i <= l.GetTop(); i++ {
		if f := checkNumber(l, i, "max"); f > most {
			most = f
		}
	}
	l.Push(most)
	return 1
}

func mathMin(l *glua.LState) int {
	least := checkNumber(l, 1, "min")
	for i := 2; i <= l.GetTop(); i++ {
		if f := checkNumber(l, i, "min"); f < least {
			least = f
		}
	}
	l.Push(least)
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

func (s *state) mathRandom(l *glua.LState) int {
	r := float64(s.random.next()%math.MaxInt32) / math.MaxInt32
	low, high := 1, 0
	switch l.GetTop() {
	case 0:
		l.Push(glua.LNumber(r))
		return 1
	case 1:
		high = checkInt(l, 1, "random")
		if high < low {
			argError(l, 1, "random", "interval is empty")
		}
	case 2:
		low, high = checkInt(l, 1, "random"), checkInt(l, 2, "random")
		if high < low {
			argError(l, 2, "random", "interval is empty")
		}
	default:
		raise(l, "wrong number of arguments")
	}
	l.Push(glua.LNumber(math.Floor(r*float64(high-low+1)) + float64(low)))
	return 1
}

func (s *state) mathRandomseed(l *glua.LState) int {
	s.random.seed(int32(checkInt(l, 1, "randomseed")))
	return 0
}
