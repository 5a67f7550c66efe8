package command

import (
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// randomFields is what HRANDFIELD with a count asks for.
type randomFields struct {
	count      int64 // negative: with repetition
	withValues bool
}

func parseRandomFields(c *Ctx) (request randomFields, err error) {
	if len(c.Args) == 3 {
		request.count, err = c.signedCount(2)
		return request, err
	}
	if request.count, err = c.Int(2); err != nil {
		return request, err
	}
	if len(c.Args) > 4 || !Is(c.Args[3], "WITHVALUES") {
		return request, ErrSyntax
	}
	// The reply has two elements for each field, as many as can be counted.
	request.withValues = true
	if request.count < -math.MaxInt64/2 || request.count > math.MaxInt64/2 {
		return request, ErrOutOfRange
	}
	_, err = c.signedCount(2)
	return request, err
}

func hrandfield(c *Ctx) error {
	if len(c.Args) > 2 {
		return hrandfields(c)
	}
	hash, found, err := Read[*ds.Hash](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found {
		c.Out.Null()
		return nil
	}
	field, _, _ := hash.Random(c.Rand)
	c.Out.BulkString(field)
	return nil
}

func hrandfields(c *Ctx) error {
	request, err := parseRandomFields(c)
	if err != nil {
		return err
	}
	hash, found, err := Read[*ds.Hash](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found {
		c.Out.Array(0)
		return nil
	}
	if request.count < 0 {
		request.header(c, int(-request.count))
		for range -request.count {
			field, value, _ := hash.Random(c.Rand)
			request.write(c, field, value)
		}
		return nil
	}
	n := int(min(request.count, int64(hash.Len())))
	request.header(c, n)
	distinct(c.Rand, n, hash.Len(), hash.All(), hash.Random, func(field, value string) {
		request.write(c, field, value)
	})
	return nil
}

// header opens the reply for n fields: with their values one flat array in
// RESP2, an array of pairs in RESP3.
func (r *randomFields) header(c *Ctx, n int) {
	if r.withValues && c.Out.Proto != 3 {
		n *= 2
	}
	c.Out.Array(n)
}

func (r *randomFields) write(c *Ctx, field, value string) {
	if !r.withValues {
		c.Out.BulkString(field)
		return
	}
	if c.Out.Proto == 3 {
		c.Out.Array(2)
	}
	writeFieldAndValue(c, field, value)
}

var hashRandomSpecs = []Spec{
	{
		Name: "hrandfield", Arity: -2, Flags: ReadOnly, Keys: Key(1), Group: "hash", Since: "6.2.0",
		Summary:    "Shows random fields of a hash: one, several distinct ones, or several with repetition.",
		Complexity: "O(N), N being the count without its sign; O(1) without a count.",
		Run:        hrandfield,
	},
}
