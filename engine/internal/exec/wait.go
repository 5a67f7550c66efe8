package exec

import (
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// WAIT asks how many replicas have what this client has written, and waits for
// a number of them. There are none: it answers 0, at once if nobody is waited
// for, else when the time is up. Inside a transaction it never waits.

func (m *Machine) waitSpecs() []command.Spec {
	return []command.Spec{{
		Name: "wait", Arity: 3, Flags: command.NoScript, Group: "generic", Since: "3.0.0",
		Summary: "Waits until replicas have what the connection has written.", Complexity: "O(1)", Run: wait,
	}}
}

func wait(c *command.Ctx) error {
	replicas, err := c.Int(1)
	if err != nil {
		return err
	}
	timeoutMs, ok := command.ParseInt(c.Args[2])
	switch {
	case !ok:
		return command.Error("ERR timeout is not an integer or out of range")
	case timeoutMs < 0:
		return command.ErrNegative
	}
	none := func(out *resp.Writer) { out.Int(0) }
	if replicas <= 0 {
		none(c.Out)
		return nil
	}
	// More than a µs count can hold is as good as for ever.
	if timeoutMs > math.MaxInt64/1000 {
		timeoutMs = 0
	}
	return c.Block(nil, timeoutMs*1000, none)
}
