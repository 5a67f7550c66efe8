package command

import (
	"math/rand/v2"
	"sync"

	"pgregory.net/rapid"

	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// testTable is the table of all data commands; it is only read.
var testTable = sync.OnceValue(func() *Table { return NewTable(Data()...) })

// newTestCtx is an empty space at a fixed time, with a fixed seed. Tests move
// c.NowUs and c.DB as they like.
func newTestCtx() *Ctx {
	space := keyspace.NewSpace()
	return &Ctx{
		NowUs: 1_700_000_000_000_000,
		Space: space,
		DB:    space.DB(0),
		Out:   &resp.Writer{},
		Rand:  rand.New(rand.NewPCG(1, 2)),
	}
}

// call runs one command as the engine would and returns its reply. A call that
// blocks returns a zero Value; ask c.TakeBlock.
func call(t rapid.TB, c *Ctx, args ...string) resp.Value {
	t.Helper()
	c.Args = c.Args[:0]
	for _, arg := range args {
		c.Args = append(c.Args, []byte(arg))
	}
	spec, ok := testTable().Lookup(c.Args[0])
	if ok && spec.Sub != nil && len(args) > 1 {
		spec, ok = spec.Subcommand(c.Args[1])
	}
	if !ok || !spec.AcceptsArity(len(args)) {
		t.Fatalf("no such command, or wrong number of arguments: %q", args)
	}
	c.Out.Reset()
	if err := spec.Run(c); err != nil {
		c.Out.Reset()
		c.Out.Error(err.Error())
	}
	if c.Out.Len() == 0 {
		return resp.Value{}
	}
	value, n, err := resp.Parse(c.Out.Bytes())
	if err != nil || n != c.Out.Len() {
		t.Fatalf("%q wrote %q: not exactly one reply (%v)", args, c.Out.Bytes(), err)
	}
	return value
}

// run is call with the reply as redis-cli shows it: (integer) 1, "a", (nil),
// (error) ERR ...
func run(t rapid.TB, c *Ctx, args ...string) string {
	t.Helper()
	return call(t, c, args...).String()
}

// expect runs a command and fails unless its reply, as of run, is want.
func expect(t rapid.TB, c *Ctx, want string, args ...string) {
	t.Helper()
	if got := run(t, c, args...); got != want {
		t.Errorf("%q: got %s, want %s", args, got, want)
	}
}
