package racelab

import (
	"slices"
	"strings"

	"github.com/signalbox-io/signalbox/engine/stepped"
)

// footprint is what a step has read and changed. Two steps whose footprints are
// apart end in the same state in either order, so that one order is enough.
type footprint struct {
	client  int
	keys    []string
	changed bool // some of the keys; else all were only read
	clock   bool // time has passed
	begins  bool // a client has read its clock
	belief  bool // somebody holds who did not, or the other way round
	woke    []int
}

// reach notes the keys of a request before it is run.
func (f *footprint) reach(e *stepped.Engine, k *conn) {
	for _, command := range k.request {
		switch strings.ToLower(string(command[0])) {
		case "multi":
			continue
		case "exec", "unwatch", "discard":
			f.keys = append(f.keys, k.watched...)
			continue
		case "publish", "subscribe":
			f.keys = append(f.keys, "channel "+string(command[1]))
			f.changed = true
			continue
		}
		words := []string{"COMMAND", "GETKEYS"}
		for _, word := range command {
			words = append(words, string(word))
		}
		f.keys = append(f.keys, bulks(e.Do(words...))...)
	}
}

// touches says whether a request may have touched keys without changing them,
// which whoever watches them is told all the same: EXPIRE by what was left. A
// reply of 0 says that nothing was done.
func touches(e *stepped.Engine, request [][][]byte, reply []byte) bool {
	return string(reply) != ":0\r\n" && slices.ContainsFunc(request, func(command [][]byte) bool {
		return strings.Contains(string(e.Do("COMMAND", "INFO", string(command[0]))), "+write")
	})
}

// watching keeps what a connection watches, which EXEC reads.
func (k *conn) watching() {
	for _, command := range k.request {
		switch strings.ToLower(string(command[0])) {
		case "watch":
			for _, key := range command[1:] {
				k.watches = append(k.watches, string(key))
			}
		case "exec", "unwatch", "discard":
			k.watched, k.watches = k.watches, nil
		}
	}
}

// apart says whether the order of two steps matters to nobody.
func (f *footprint) apart(g *footprint) bool {
	switch {
	case f.clock || g.clock, f.client == g.client, f.belief && g.belief, f.begins && g.begins:
		return false
	case slices.Contains(f.woke, g.client), slices.Contains(g.woke, f.client):
		return false
	case !f.changed && !g.changed:
		return true
	}
	return !slices.ContainsFunc(f.keys, func(key string) bool { return slices.Contains(g.keys, key) })
}
