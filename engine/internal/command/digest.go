package command

import (
	"crypto/sha1" //nolint:gosec // not for security: it must be what Redis uses
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// A digest of the whole data, by the algorithm of Redis's DEBUG DIGEST: equal
// data gives equal digests on both servers, which is how tests compare them.
//
// Two operations build it. Mixing depends on the order of what is mixed in; it
// is for what has an order: the elements of a list, a field and its value.
// Adding does not; it is for what has none: the members of a set, the keys of
// a database. Expired keys that nobody has looked at do not count.

type digest [sha1.Size]byte

// add takes data in, in no order: adding a then b is adding b then a.
func (d *digest) add(data []byte) {
	sum := sha1.Sum(data) //nolint:gosec // as above
	for i := range d {
		d[i] ^= sum[i]
	}
}

// mix takes data in, in order.
func (d *digest) mix(data []byte) {
	d.add(data)
	*d = sha1.Sum(d[:]) //nolint:gosec // as above
}

func (d *digest) mixUint32(n uint32) {
	var word [4]byte
	binary.BigEndian.PutUint32(word[:], n)
	d.mix(word[:])
}

// addPair takes in two things that belong together, such as field and value.
func (d *digest) addPair(name, value []byte) {
	var pair digest
	pair.mix(name)
	pair.mix(value)
	d.add(pair[:])
}

// Digest is the digest of all databases, as 40 hex digits. O(N) in the size of
// the data.
func Digest(space *keyspace.Space, nowMs int64) string {
	var all digest
	for i := range keyspace.Databases {
		begun := false
		space.DB(i).Each(func(key string, o *keyspace.Object) bool {
			if o.ExpireAt() != 0 && o.ExpireAt() <= nowMs {
				return true
			}
			if !begun {
				all.mixUint32(uint32(i))
				begun = true
			}
			var one digest
			one.mix([]byte(key))
			one.mixObject(o)
			all.add(one[:])
			return true
		})
	}
	return hex.EncodeToString(all[:])
}

// DigestValue is the digest of one value with its expiry, whatever its key, as
// 40 hex digits; all zeros for nil.
func DigestValue(o *keyspace.Object) string {
	var d digest
	if o != nil {
		d.mixObject(o)
	}
	return hex.EncodeToString(d[:])
}

// DigestOf is the digest of a value that is no key's, as 40 hex digits.
func DigestOf(value any) string {
	var d digest
	d.mixValue(value)
	return hex.EncodeToString(d[:])
}

func (d *digest) mixObject(o *keyspace.Object) {
	d.mixValue(o.Value())
	if o.ExpireAt() != 0 {
		d.add([]byte("!!expire!!"))
	}
}

// mixValue mixes the type first, by the number Redis has for it.
func (d *digest) mixValue(value any) {
	switch value := value.(type) {
	case *keyspace.String:
		d.mixUint32(0)
		var digits [20]byte
		d.mix(value.Text(digits[:]))
	case *ds.Deque:
		d.mixUint32(1)
		for _, element := range value.Range(0, value.Len()-1) {
			d.mix([]byte(element))
		}
	case *ds.Set:
		d.mixUint32(2)
		for member := range value.All() {
			d.add([]byte(member))
		}
	case *ds.SortedSet:
		d.mixUint32(3)
		for member, score := range value.All() {
			d.addPair([]byte(member), appendScore(nil, score))
		}
	case *ds.Stream:
		d.mixUint32(6)
		for entry := range value.Range(ds.StreamID{}, ds.MaxStreamID) {
			d.mix([]byte(strings.Replace(entry.ID.String(), "-", ".", 1)))
			for field, content := range entry.Fields() {
				d.mix(field)
				d.mix(content)
			}
		}
	case *ds.Hash:
		d.mixUint32(4)
		for field, content := range value.All() {
			d.addPair([]byte(field), []byte(content))
		}
	}
}

// appendScore formats as C's %.17g does.
func appendScore(dst []byte, score float64) []byte {
	switch {
	case math.IsInf(score, 1):
		return append(dst, "inf"...)
	case math.IsInf(score, -1):
		return append(dst, "-inf"...)
	default:
		return strconv.AppendFloat(dst, score, 'g', 17, 64)
	}
}
