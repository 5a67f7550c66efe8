//go:build !linux

package disk

import "os"

// Operations of syncAside.
const (
	wholeSync = iota
	dataSync
)

// syncAside is otherwise: only Linux can be told to sync.
func syncAside(_ *os.File, _ uint16, otherwise func() error) error { return otherwise() }
