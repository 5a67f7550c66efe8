package command

import (
	"iter"
	"math"
	"slices"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// Union, intersection and difference read sorted sets and plain sets, whose
// members all have the score 1, and missing keys, which are empty.

// source is one input.
type source struct {
	scored *ds.SortedSet
	plain  *ds.Set // both nil: empty
	weight float64
}

func (s source) Len() int {
	switch {
	case s.scored != nil:
		return s.scored.Len()
	case s.plain != nil:
		return s.plain.Len()
	default:
		return 0
	}
}

// packed reports whether the members lie in one row.
func (s source) packed() bool {
	return s.scored != nil && s.scored.Packed() || s.plain != nil && s.plain.Packed()
}

func (s source) score(member string) (float64, bool) {
	switch {
	case s.scored != nil:
		return s.scored.ScoreString(member)
	case s.plain != nil:
		return 1, s.plain.Has([]byte(member))
	default:
		return 0, false
	}
}

func (s source) all() iter.Seq2[string, float64] {
	if s.scored != nil {
		return s.scored.All()
	}
	return func(yield func(string, float64) bool) {
		if s.plain == nil {
			return
		}
		for member := range s.plain.All() {
			if !yield(member, 1) {
				return
			}
		}
	}
}

// weighted is score times the weight; infinity times 0 counts as 0.
func (s source) weighted(score float64) float64 {
	return zeroForNaN(score * s.weight)
}

func zeroForNaN(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return f
}

// setAlgebra is what a call of these commands asks for.
type setAlgebra struct {
	sources    []source
	aggregate  func(a, b float64) float64
	withScores bool
	limit      int64 // of ZINTERCARD; 0 is none
}

// algebraForm says what options a command takes, beside its operation.
type algebraForm struct {
	name     string
	combine  func(*setAlgebra) *ds.SortedSet
	storing  bool // into the first argument: no WITHSCORES
	counting bool // LIMIT, and nothing else
	plain    bool // no WEIGHTS and no AGGREGATE
}

// parse reads the number of keys at position at, looks the keys up, and reads
// the options after them. Redis too looks at the keys before the options, so
// that WRONGTYPE comes first.
func (f algebraForm) parse(c *Ctx, at int) (*setAlgebra, error) {
	n, err := c.Int(at)
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, Error("ERR at least 1 input key is needed for '" + f.name + "' command")
	}
	rest := c.Args[at+1:]
	if n > int64(len(rest)) {
		return nil, ErrSyntax
	}
	a := &setAlgebra{sources: make([]source, n), aggregate: sumOfScores}
	for i, key := range rest[:n] {
		if a.sources[i], err = readSource(c, key); err != nil {
			return nil, err
		}
	}
	for options := rest[n:]; len(options) > 0; {
		if options, err = f.parseOption(a, options); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func readSource(c *Ctx, key []byte) (source, error) {
	s := source{weight: 1}
	c.Space.Reading = true // also where the result is stored
	o := c.DB.Lookup(key, c.NowMs())
	if o == nil {
		return s, nil
	}
	switch value := o.Value().(type) {
	case *ds.SortedSet:
		s.scored = value
	case *ds.Set:
		s.plain = value
	default:
		return s, ErrWrongType
	}
	return s, nil
}

// parseOption takes in the option that args begin with and returns what comes
// after it.
func (f algebraForm) parseOption(a *setAlgebra, args [][]byte) ([][]byte, error) {
	weighing := !f.plain && !f.counting
	switch {
	case weighing && len(args) > len(a.sources) && Is(args[0], "WEIGHTS"):
		return args[1+len(a.sources):], a.parseWeights(args[1:])
	case weighing && len(args) > 1 && Is(args[0], "AGGREGATE"):
		return args[2:], a.parseAggregate(args[1])
	case !f.storing && !f.counting && Is(args[0], "WITHSCORES"):
		a.withScores = true
		return args[1:], nil
	case f.counting && len(args) > 1 && Is(args[0], "LIMIT"):
		limit, ok := ParseInt(args[1])
		if !ok || limit < 0 {
			return nil, Error("ERR LIMIT can't be negative")
		}
		a.limit = limit
		return args[2:], nil
	default:
		return nil, ErrSyntax
	}
}

func (a *setAlgebra) parseWeights(args [][]byte) error {
	for i := range a.sources {
		weight, ok := ParseFloat(args[i])
		if !ok {
			return Error("ERR weight value is not a float")
		}
		a.sources[i].weight = weight
	}
	return nil
}

func (a *setAlgebra) parseAggregate(arg []byte) error {
	switch {
	case Is(arg, "SUM"):
		a.aggregate = sumOfScores
	case Is(arg, "MIN"):
		a.aggregate = lowerScore
	case Is(arg, "MAX"):
		a.aggregate = higherScore
	default:
		return ErrSyntax
	}
	return nil
}

// sumOfScores is the sum, where infinity and minus infinity give 0.
func sumOfScores(a, b float64) float64 { return zeroForNaN(a + b) }

// lowerScore keeps a when b is not a number, unlike min.
func lowerScore(a, b float64) float64 {
	if b < a {
		return b
	}
	return a
}

func higherScore(a, b float64) float64 {
	if b > a {
		return b
	}
	return a
}

// smallestFirst sorts the sources by size. It saves work in an intersection;
// in a union it fixes, as Redis does, the order in which floats are added up.
func (a *setAlgebra) smallestFirst() {
	slices.SortStableFunc(a.sources, func(x, y source) int { return x.Len() - y.Len() })
}

func unionOf(a *setAlgebra) *ds.SortedSet {
	a.smallestFirst()
	result := ds.NewLargeSortedSet()
	for _, s := range a.sources {
		packed := s.packed()
		for member, score := range s.all() {
			score = s.weighted(score)
			if old, ok := result.ScoreString(member); ok {
				if score = a.aggregate(old, score); score == 0 {
					result.RemoveString(member) // so that the sign is the new one's
				}
			}
			if packed {
				result.AddBytes(bytesOf(member), score) // the string would hold all of its row
			} else {
				result.Add(member, score)
			}
		}
	}
	return result
}

// intersect visits the members that all sources have, with their scores
// combined.
func (a *setAlgebra) intersect(visit func(member string, score float64) bool) {
	a.smallestFirst()
members:
	for member, score := range a.sources[0].all() {
		score = a.sources[0].weighted(score)
		for _, s := range a.sources[1:] {
			other, ok := s.score(member)
			if !ok {
				continue members
			}
			score = a.aggregate(score, other*s.weight)
		}
		if !visit(member, score) {
			return
		}
	}
}

func intersectionOf(a *setAlgebra) *ds.SortedSet {
	result := ds.NewLargeSortedSet()
	a.intersect(func(member string, score float64) bool {
		result.Add(member, score)
		return true
	})
	return result
}

func differenceOf(a *setAlgebra) *ds.SortedSet {
	result := ds.NewLargeSortedSet()
members:
	for member, score := range a.sources[0].all() {
		for _, s := range a.sources[1:] {
			if _, ok := s.score(member); ok {
				continue members
			}
		}
		result.Add(member, score)
	}
	return result
}

// zcombine makes the commands that reply with the result.
func zcombine(f algebraForm) func(c *Ctx) error {
	return func(c *Ctx) error {
		a, err := f.parse(c, 1)
		if err != nil {
			return err
		}
		result := f.combine(a)
		writeRange(c, result, 0, result.Len()-1, false, a.withScores)
		return nil
	}
}

// zcombinestore makes the commands that store the result.
func zcombinestore(f algebraForm, event keyspace.Event) func(c *Ctx) error {
	f.storing = true
	return func(c *Ctx) error {
		a, err := f.parse(c, 2)
		if err != nil {
			return err
		}
		storeResult(c, c.Args[1], f.combine(a).Compact(&c.Space.Limits), event)
		return nil
	}
}

func zintercard(c *Ctx) error {
	a, err := algebraForm{name: "zintercard", counting: true}.parse(c, 1)
	if err != nil {
		return err
	}
	var n int64
	a.intersect(func(string, float64) bool {
		n++
		return n != a.limit
	})
	c.Out.Int(n)
	return nil
}

const (
	unionComplexity        = "O(N)+O(M*log(M)) for N members in all sources and M in the result."
	intersectionComplexity = "O(N*K)+O(M*log(M)) for K sources, the smallest with N members, and M in the result."
	differenceComplexity   = "O(N*K)+O(M*log(M)) for K sources, the first with N members, and M in the result."
)

var sortedSetStoreSpecs = []Spec{
	{
		Name: "zdiff", Arity: -3, Flags: ReadOnly | MovableKeys, FindKeys: CountedKeys(1), Group: "sorted-set", Since: "6.2.0",
		Summary:    "Returns the members of the first sorted set that no other has.",
		Complexity: differenceComplexity, Run: zcombine(algebraForm{name: "zdiff", combine: differenceOf, plain: true}),
	},
	{
		Name: "zdiffstore", Arity: -4, Flags: Write | DenyOOM | MovableKeys, Keys: Key(1), FindKeys: CountedKeys(2, 1), Group: "sorted-set", Since: "6.2.0",
		Summary:    "Stores the members of the first sorted set that no other has in another key.",
		Complexity: differenceComplexity, Run: zcombinestore(algebraForm{name: "zdiffstore", combine: differenceOf, plain: true}, eventZDiffStore),
	},
	{
		Name: "zinter", Arity: -3, Flags: ReadOnly | MovableKeys, FindKeys: CountedKeys(1), Group: "sorted-set", Since: "6.2.0",
		Summary:    "Returns the members that all the sorted sets have.",
		Complexity: intersectionComplexity, Run: zcombine(algebraForm{name: "zinter", combine: intersectionOf}),
	},
	{
		Name: "zintercard", Arity: -3, Flags: ReadOnly | MovableKeys, FindKeys: CountedKeys(1), Group: "sorted-set", Since: "7.0.0",
		Summary:    "Counts the members that all the sorted sets have.",
		Complexity: "O(N*K) for K sources, the smallest with N members.", Run: zintercard,
	},
	{
		Name: "zinterstore", Arity: -4, Flags: Write | DenyOOM | MovableKeys, Keys: Key(1), FindKeys: CountedKeys(2, 1), Group: "sorted-set", Since: "2.0.0",
		Summary:    "Stores the members that all the sorted sets have in another key.",
		Complexity: intersectionComplexity, Run: zcombinestore(algebraForm{name: "zinterstore", combine: intersectionOf}, eventZInterStore),
	},
	{
		Name: "zunion", Arity: -3, Flags: ReadOnly | MovableKeys, FindKeys: CountedKeys(1), Group: "sorted-set", Since: "6.2.0",
		Summary:    "Returns the members of all the sorted sets.",
		Complexity: unionComplexity, Run: zcombine(algebraForm{name: "zunion", combine: unionOf}),
	},
	{
		Name: "zunionstore", Arity: -4, Flags: Write | DenyOOM | MovableKeys, Keys: Key(1), FindKeys: CountedKeys(2, 1), Group: "sorted-set", Since: "2.0.0",
		Summary:    "Stores the members of all the sorted sets in another key.",
		Complexity: unionComplexity, Run: zcombinestore(algebraForm{name: "zunionstore", combine: unionOf}, eventZUnionStore),
	},
}
