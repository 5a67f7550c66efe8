package command

import "github.com/signalbox-io/signalbox/engine/internal/resp"

// bzpop makes BZPOPMIN and BZPOPMAX.
func bzpop(highest bool) func(c *Ctx) error {
	return func(c *Ctx) error {
		last := len(c.Args) - 1
		timeoutUs, err := c.TimeoutUs(last)
		if err != nil {
			return err
		}
		r := popRequest{keys: c.Args[1:last], highest: highest, count: 1}
		key, set, err := r.first(c)
		if err != nil {
			return err
		}
		if set == nil {
			return c.Block(r.keys, timeoutUs, (*resp.Writer).NullArray)
		}
		c.Out.Array(3)
		c.Out.Bulk(key)
		r.pop(c, key, set, 1, false)
		c.Propagate(2).Word(r.popCommand()).Bytes(key)
		return nil
	}
}

func bzmpop(c *Ctx) error {
	r, err := parseMultiPop(c.Args[2:])
	if err != nil {
		return err
	}
	timeoutUs, err := c.TimeoutUs(1)
	if err != nil {
		return err
	}
	key, set, err := r.first(c)
	if err != nil {
		return err
	}
	if set == nil {
		return c.Block(r.keys, timeoutUs, (*resp.Writer).NullArray)
	}
	r.popNamed(c, key, set)
	return nil
}

// blockingSortedSetSpecs are the commands that take members out, whether they
// wait or not.
var blockingSortedSetSpecs = []Spec{
	{
		Name: "bzmpop", Arity: -5, Flags: Write | Blocking | MovableKeys, FindKeys: CountedKeys(2), Group: "sorted-set", Since: "7.0.0",
		Summary:    "Takes the lowest or highest members out of the first sorted set that exists, and waits if there is none.",
		Complexity: "O(K)+" + popComplexity + " K is the number of keys.", Run: bzmpop,
	},
	{
		Name: "bzpopmax", Arity: -3, Flags: Write | NoScript | Blocking | Fast, Keys: Keys{1, -2, 1}, Group: "sorted-set", Since: "5.0.0",
		Summary:    "Takes the member with the highest score out of the first sorted set that exists, and waits if there is none.",
		Complexity: "O(log(N))", Run: bzpop(true),
	},
	{
		Name: "bzpopmin", Arity: -3, Flags: Write | NoScript | Blocking | Fast, Keys: Keys{1, -2, 1}, Group: "sorted-set", Since: "5.0.0",
		Summary:    "Takes the member with the lowest score out of the first sorted set that exists, and waits if there is none.",
		Complexity: "O(log(N))", Run: bzpop(false),
	},
	{
		Name: "zmpop", Arity: -4, Flags: Write | MovableKeys, FindKeys: CountedKeys(1), Group: "sorted-set", Since: "7.0.0",
		Summary:    "Takes the lowest or highest members out of the first sorted set that exists.",
		Complexity: "O(K)+" + popComplexity + " K is the number of keys.", Run: zmpop,
	},
	{
		Name: "zpopmax", Arity: -2, Flags: Write | Fast, Keys: Key(1), Group: "sorted-set", Since: "5.0.0",
		Summary: "Takes out the members with the highest scores.", Complexity: popComplexity, Run: zpop(true),
	},
	{
		Name: "zpopmin", Arity: -2, Flags: Write | Fast, Keys: Key(1), Group: "sorted-set", Since: "5.0.0",
		Summary: "Takes out the members with the lowest scores.", Complexity: popComplexity, Run: zpop(false),
	},
}
