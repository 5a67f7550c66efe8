package command

import (
	"bytes"
	"math"
	"strconv"
	"unsafe"

	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// SCAN and its relatives SSCAN, HSCAN and ZSCAN walk a table in steps that the
// client asks for, with a cursor that needs no memory on this side. What the
// four share is here; a family adds its own by
//
//	scanCollection(c, width, func(set *ds.Set, cursor uint64, emit func(name, value string)) uint64 { ... })
//
// with the signatures
//
//	func scanCollection[T interface{ Encoding() string }](c *Ctx, width int, step func(collection T, cursor uint64, emit func(name, value string)) (next uint64)) error
//	func (c *Ctx) scanReply(from scanRequest, width int, step func(cursor uint64, emit func(name, value string)) (next uint64))
//
// where step takes one step of the table and emits what it finds there: with
// width 1 the name alone counts (a member), with width 2 both (field and
// value, member and score). MATCH looks at the name.
//
// COUNT is how much work one call does at least: steps are taken until that
// many elements were visited, whatever the filters let through. As in Redis, a
// collection in its small encoding comes in one piece whatever COUNT says.

// scanRequest is what a call of the SCAN family asks for.
type scanRequest struct {
	cursor  uint64
	count   int
	pattern []byte // nil matches everything
	kind    string // of SCAN's TYPE; empty is any
}

// scanCollection runs SSCAN, HSCAN or ZSCAN on the collection of type T under
// the key at argument 1.
func scanCollection[T interface{ Encoding() string }](
	c *Ctx, width int, step func(collection T, cursor uint64, emit func(name, value string)) (next uint64),
) error {
	cursor, err := parseCursor(c.Args[2])
	if err != nil {
		return err
	}
	collection, found, err := Read[T](c, c.Args[1])
	if err != nil {
		return err
	}
	if !found {
		writeScan(c, 0, nil)
		return nil
	}
	request, err := c.scanOptions(3, false)
	if err != nil {
		return err
	}
	request.cursor = cursor
	if encoding := collection.Encoding(); encoding == "listpack" || encoding == "intset" {
		request.cursor, request.count = 0, math.MaxInt
	}
	c.scanReply(request, width, func(cursor uint64, emit func(name, value string)) uint64 {
		return step(collection, cursor, emit)
	})
	return nil
}

// scanReply walks by step and writes the reply: the next cursor, then what was
// found and matches.
func (c *Ctx) scanReply(
	request scanRequest, width int, step func(cursor uint64, emit func(name, value string)) (next uint64),
) {
	var found []string
	cursor := request.walk(step, func(name, value string) {
		if !request.matches(name) {
			return
		}
		found = append(found, name)
		if width == 2 {
			found = append(found, value)
		}
	})
	writeScan(c, cursor, found)
}

// walk takes steps until COUNT elements were visited, or ten times as many
// steps were taken, should most of them find nothing.
func (r *scanRequest) walk(
	step func(cursor uint64, emit func(name, value string)) (next uint64), visit func(name, value string),
) (cursor uint64) {
	visited := 0
	emit := func(name, value string) {
		visited++
		visit(name, value)
	}
	cursor = step(r.cursor, emit)
	for steps := 1; cursor != 0 && visited < r.count && steps/10 < r.count; steps++ {
		cursor = step(cursor, emit)
	}
	return cursor
}

func (r *scanRequest) matches(name string) bool {
	return r.pattern == nil || Glob(r.pattern, unsafe.Slice(unsafe.StringData(name), len(name)), false)
}

func writeScan(c *Ctx, cursor uint64, found []string) {
	c.Out.Array(2)
	c.Out.BulkString(strconv.FormatUint(cursor, 10))
	c.Out.Array(len(found))
	for _, s := range found {
		c.Out.BulkString(s)
	}
}

// parseCursor reads a cursor as strtoul does: a sign is allowed, and nothing
// at all is 0.
func parseCursor(arg []byte) (uint64, error) {
	digits := arg
	negative := len(arg) > 1 && arg[0] == '-'
	if negative || (len(arg) > 1 && arg[0] == '+') {
		digits = arg[1:]
	}
	if len(arg) == 0 {
		return 0, nil
	}
	cursor, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		return 0, ErrCursor
	}
	if negative {
		cursor = -cursor
	}
	return cursor, nil
}

// scanOptions reads MATCH, COUNT and, for the keyspace, TYPE from argument i on.
func (c *Ctx) scanOptions(i int, keyspace bool) (scanRequest, error) {
	request := scanRequest{count: 10}
	for ; i+1 < len(c.Args); i += 2 {
		option, value := c.Args[i], c.Args[i+1]
		switch {
		case Is(option, "COUNT"):
			count, ok := ParseInt(value)
			if !ok {
				return request, ErrNotInteger
			}
			if count < 1 {
				return request, ErrSyntax
			}
			request.count = int(count)
		case Is(option, "MATCH"):
			request.pattern = value
			if string(value) == "*" {
				request.pattern = nil
			}
		case Is(option, "TYPE") && keyspace:
			request.kind = string(bytes.ToLower(value))
		default:
			return request, ErrSyntax
		}
	}
	if i < len(c.Args) {
		return request, ErrSyntax
	}
	return request, nil
}

func scan(c *Ctx) error {
	cursor, err := parseCursor(c.Args[1])
	if err != nil {
		return err
	}
	request, err := c.scanOptions(2, true)
	if err != nil {
		return err
	}
	request.cursor = cursor
	var found, expired []string
	step := func(cursor uint64, emit func(name, kind string)) uint64 {
		return c.DB.Scan(cursor, func(key string, o *keyspace.Object) {
			if c.DB.Expired(o, c.NowMs()) {
				expired = append(expired, key)
				return
			}
			emit(key, o.Kind().String())
		})
	}
	next := request.walk(step, func(key, kind string) {
		if (request.kind == "" || request.kind == kind) && request.matches(key) {
			found = append(found, key)
		}
	})
	c.removeExpired(expired)
	writeScan(c, next, found)
	return nil
}

// removeExpired removes keys found expired on a walk, during which the table
// must not change.
func (c *Ctx) removeExpired(keys []string) {
	for _, key := range keys {
		c.DB.RemoveExpired([]byte(key), c.NowMs())
	}
}

var scanSpecs = []Spec{
	{
		Name: "scan", Arity: -2, Flags: ReadOnly, Group: "generic", Since: "2.8.0",
		Summary:    "Walks the keys of the database in steps, with a cursor.",
		Complexity: "O(1) for every call. O(N) for a complete walk, N being the number of keys.", Run: scan,
	},
}
