// Package over opens a signalbox.Box over a transport: what carries it to the servers when that is not go-redis.
//
// Package signalbox does not export it. What a transport must get right about errors (L7 rests on it) only the conformance
// suite can tell, and the seam still grows: so it is for packages of this repository. Those whose import path lies below
// signalbox's may import this package, also where they are modules of their own.
package over

import (
	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// New returns a Box over a transport.
func New(t transport.Transport, options ...signalbox.Option) *signalbox.Box {
	return newBox(t, options...)
}

var newBox, _ = transport.NewBox.(func(transport.Transport, ...signalbox.Option) *signalbox.Box) // signalbox has set it: it is imported
