package command

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// exactly is what the series says, which needs no grid.
func exactly(angle float64, first int64) *big.Float {
	return series(wide().SetFloat64(angle), first)
}

// TestTrigonometryIsRounded holds sine, cosine and arc sine against their series: each is
// the nearest float64, but for one in thousands, which is the next.
func TestTrigonometryIsRounded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const tries, mostOff = 5000, 5
	for name, try := range map[string]func() (got, want float64){
		"sine": func() (float64, float64) {
			angle := random.Float64() * math.Pi / 2 * math.Pow(10, -6*random.Float64()*float64(random.IntN(2)))
			want, _ := exactly(angle, 1).Float64()
			return sine(angle), want
		},
		"cosine": func() (float64, float64) {
			angle := random.Float64() * latitudeMax * radians
			want, _ := exactly(angle, 0).Float64()
			return cosine(-angle), want
		},
		"arc sine": func() (float64, float64) {
			x := random.Float64()
			got := arcsine(x)
			rest := new(big.Float).Sub(big.NewFloat(x), exactly(got, 1)) // the sine of what is right is x
			off, _ := rest.Quo(rest, exactly(got, 0)).Float64()
			return got, got + off
		},
	} {
		off := 0
		for range tries {
			got, want := try()
			if got != want {
				off++
			}
			if math.Abs(got-want) > math.Nextafter(want, 4)-want {
				t.Fatalf("%s: %v, want %v", name, got, want)
			}
		}
		if off > mostOff {
			t.Errorf("%s: %d of %d are off by a bit", name, off, tries)
		}
	}
}

func TestAngles(t *testing.T) {
	for _, c := range []struct{ got, want float64 }{
		{sine(0), 0},
		{sine(math.Pi), 1.2246467991473532e-16},
		{sine(-math.Pi / 2), -1},
		{sine(2.5), 0.5984721441039565},
		{cosine(0), 1},
		{arcsine(0), 0},
		{arcsine(1), math.Pi / 2},
		{arcsine(0.5), 0.5235987755982989},
	} {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	if !math.IsNaN(arcsine(1.0000000000000002)) {
		t.Error("there is an arc sine of more than 1")
	}
}

// TestSearchesFindWhatIsThere compares searches, which look into a few cells, with the
// distances of all places one by one. (Beyond these latitudes Redis's cells may leave out
// a corner.)
func TestSearchesFindWhatIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newTestCtx()
		degrees := func(name string, most float64) string {
			return strconv.FormatFloat(rapid.Float64Range(-most, most).Draw(t, name), 'f', -1, 64)
		}
		n := rapid.IntRange(1, 200).Draw(t, "places")
		spread := rapid.SampledFrom([]float64{0.01, 1, 60}).Draw(t, "spread")
		for i := range n {
			run(t, c, "GEOADD", "k", degrees("longitude", spread), degrees("latitude", spread), fmt.Sprint("p", i))
		}
		radius := rapid.Float64Range(0, 2*spread*100).Draw(t, "km")
		var want []string
		for i := range n {
			member := fmt.Sprint("p", i)
			apart := call(t, c, "GEODIST", "k", "p0", member, "km").Str
			if km, err := strconv.ParseFloat(apart, 64); err == nil && km <= radius {
				want = append(want, member)
			}
		}
		var got []string
		for _, member := range call(t, c, "GEOSEARCH", "k", "FROMMEMBER", "p0", "BYRADIUS", fmt.Sprint(radius), "km").Elems {
			got = append(got, member.Str)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Fatalf("%v km: got %q, want %q", radius, got, want)
		}
	})
}
