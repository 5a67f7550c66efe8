package command

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What a string is after each request, and what requests answer, say the transcripts and
// the fuzzer, against Redis. Here is what must hold of registers, however they are kept.

// registersUnder is what PFDEBUG GETREG says of a copy.
func registersUnder(t rapid.TB, c *Ctx, key string) (r registers) {
	t.Helper()
	s, err := readSketch(c, []byte(key))
	if err != nil || s == nil || !r.merge(s) {
		t.Fatalf("%s is no sketch: %v", key, err)
	}
	return r
}

func TestSketchesMatchModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newTestCtx()
		models := map[string]*registers{}
		keys := rapid.SampledFrom([]string{"a", "b", "c"})
		add := func(key string, elements ...string) {
			if models[key] == nil {
				models[key] = &registers{}
			}
			for _, element := range elements {
				register, value := place([]byte(element))
				models[key][register] = max(models[key][register], value)
			}
			run(t, c, append([]string{"PFADD", key}, elements...)...)
		}
		t.Repeat(map[string]func(*rapid.T){
			"some": func(t *rapid.T) { add(keys.Draw(t, "key"), rapid.SliceOf(rapid.String()).Draw(t, "elements")...) },
			"many": func(t *rapid.T) {
				prefix, n := rapid.StringMatching("[a-z]").Draw(t, "prefix"), rapid.IntRange(1, 1000).Draw(t, "n")
				elements := make([]string, n)
				for i := range elements {
					elements[i] = prefix + strconv.Itoa(i)
				}
				add(keys.Draw(t, "key"), elements...)
			},
			"merge": func(t *rapid.T) {
				to, from := keys.Draw(t, "to"), keys.Draw(t, "from")
				expect(t, c, "OK", "PFMERGE", to, from)
				add(to)
				if models[from] != nil {
					models[to].mergeRegisters(models[from])
				}
			},
			"bytes": func(t *rapid.T) {
				c.Space.Limits.HyperLogLogBytes = rapid.SampledFrom([]int{0, 30, 3000, 6000}).Draw(t, "bytes")
			},
			"": func(t *rapid.T) {
				for key, want := range models {
					if registersUnder(t, c, key) != *want {
						t.Fatalf("%s: other registers", key)
					}
					h := want.histogram()
					expect(t, c, "(integer) "+strconv.FormatUint(h.estimate(), 10), "PFCOUNT", key)
				}
			},
		})
	})
}

func (r *registers) mergeRegisters(other *registers) {
	for i, value := range other {
		r[i] = max(r[i], value)
	}
}

// A million distinct elements are counted as Redis 7.0.15 counts them.
func TestAMillionElements(t *testing.T) {
	c := newTestCtx()
	args := []string{"PFADD", "h"}
	for i := range 1_000_000 {
		if args = append(args, strconv.Itoa(i)); len(args) == 1002 {
			run(t, c, args...)
			args = args[:2]
		}
	}
	expect(t, c, "(integer) 1009972", "PFCOUNT", "h")
}

// FuzzSketches makes a HyperLogLog of any bytes, and has all commands work on it: none
// fails but with one of Redis's errors, and what was valid stays so.
func FuzzSketches(f *testing.F) {
	header := "HYLL\x01" + strings.Repeat("\x00", 10) + "\x80"
	dense := "HYLL\x00" + strings.Repeat("\x00", 10) + "\x80"
	for _, text := range []string{
		"", "HYLL", header, header + "\x7f\xff", header + "\x7f", header + "\x7f\xff\x83", header + "\x44\x00\x83\xff\x80\x3f", "17",
		dense + strings.Repeat("\xff", denseBytes-registersAt), dense + strings.Repeat("\x33\xcf\x3c", registerCount/4),
		header + strings.Repeat("\x83", registerCount/4), header + strings.Repeat("\x80", registerCount),
	} {
		f.Add([]byte(text), "element", 3000)
	}
	allowed := []string{
		string(errNotSketch), string(errCorruptSketch), "ERR HLL encoding is not sparse",
	}
	requests := []string{
		"PFADD k", "PFCOUNT k", "PFADD k %", "PFADD k a b c d e", "PFCOUNT k k other", "PFMERGE other k", "PFMERGE k other",
		"PFDEBUG DECODE k", "PFDEBUG ENCODING k", "PFDEBUG GETREG k", "PFDEBUG TODENSE k",
	}
	f.Fuzz(func(t *testing.T, text []byte, element string, sparseBytes int) {
		valid := sketch(text).valid()
		for _, request := range requests {
			c := newTestCtx()
			c.Space.Limits.HyperLogLogBytes = max(sparseBytes, 0)
			run(t, c, "PFADD", "other", element)
			run(t, c, "SET", "k", string(text))
			for _, request := range []string{request, "PFADD k % %a %b", "PFCOUNT k"} {
				words := strings.Fields(request)
				for j := range words {
					words[j] = strings.ReplaceAll(words[j], "%", element)
				}
				reply := run(t, c, words...)
				if message, isError := strings.CutPrefix(reply, "(error) "); isError && !slices.Contains(allowed, message) {
					t.Fatalf("%q answers %s", request, reply)
				}
				if s, err := readSketch(c, []byte("k")); valid && (err != nil || s == nil) {
					t.Fatalf("%q leaves no sketch: %v", request, err)
				}
			}
		}
	})
}

func TestEstimatesOfImpossibleRegisters(t *testing.T) {
	var h histogram
	h[registerMax] = registerCount
	if got := int64(h.estimate()); got != math.MinInt64 {
		t.Errorf("got %d", got)
	}
}

func BenchmarkPFAdd(b *testing.B) {
	for _, elements := range []int{100, 1000, 100_000} {
		b.Run(strconv.Itoa(elements), func(b *testing.B) {
			c := newTestCtx()
			for i := range elements {
				run(b, c, "PFADD", "h", strconv.Itoa(i))
			}
			spec, _ := testTable().Lookup([]byte("pfadd"))
			element := make([]byte, 0, 20)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.Out.Reset()
				element = strconv.AppendInt(element[:0], int64(i%elements), 10)
				c.Args = append(c.Args[:2], element)
				if err := spec.Run(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
