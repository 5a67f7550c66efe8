package rdb

import (
	"math"
	"strconv"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

// value reads a value of the type with the given number; nil after a failure. A
// collection may be empty, which the format allows and a keyspace does not.
func (d *decoder) value(kind byte) any {
	v := d.decode(kind)
	if d.failed() {
		return nil
	}
	return v
}

// isEmptyCollection reports whether v is a collection that must not be empty, and
// is. A stream may be.
func isEmptyCollection(v any) bool {
	if _, isStream := v.(*ds.Stream); isStream {
		return false
	}
	c, ok := v.(interface{ Len() int })
	return ok && c.Len() == 0
}

// stringValue is text as the value of a key.
func (d *decoder) stringValue() *keyspace.String {
	b, owned := d.text()
	if owned {
		return keyspace.AdoptString(b)
	}
	return keyspace.NewString(b)
}

func (d *decoder) decode(kind byte) any {
	switch kind {
	case typeString:
		return d.stringValue()
	case typeList:
		return d.list()
	case typeQuicklist, typeQuicklist2:
		return d.quicklist(kind)
	case typeSet:
		return d.set()
	case typeHash:
		return d.hash()
	case typeSortedSetText:
		return d.sortedSet(d.decimalScore)
	case typeSortedSet:
		return d.sortedSet(d.binaryScore)
	case typeListZiplist:
		list := ds.NewDeque()
		d.pushAll(list, newZiplist(d.piece()))
		return list
	case typeSetInts:
		return d.packedSet(newIntset(d.piece()))
	case typeSetListpack:
		return d.packedSet(newListpack(d.piece()))
	case typeHashZipmap:
		return d.packedHash(newZipmap(d.piece()), d.limits) // converted if large
	case typeHashZiplist:
		return d.packedHash(newZiplist(d.piece()), &unlimited)
	case typeHashListpack:
		return d.packedHash(newListpack(d.piece()), &unlimited)
	case typeSortedSetZiplist:
		return d.packedSortedSet(newZiplist(d.piece()))
	case typeSortedSetPack:
		return d.packedSortedSet(newListpack(d.piece()))
	case typeStream, typeStream2, typeStream3:
		return d.stream(kind)
	case typeModuleOld, typeModule:
		d.failModule("a value")
		return nil
	}
	d.fail("no such type of value: " + strconv.Itoa(int(kind)))
	return nil
}

// unlimited holds for a collection while it is read that arrives packed: its elements
// may be of any size.
var unlimited = ds.Limits{
	HashEntries: math.MaxInt, HashBytes: math.MaxInt, SortedSetEntries: math.MaxInt, SortedSetBytes: math.MaxInt,
}

// piece reads the string that holds a packed collection. It is valid until the
// next read.
func (d *decoder) piece() []byte {
	b, _ := d.text()
	return b
}

// list reads a list that is written one string after the other.
func (d *decoder) list() *ds.Deque {
	list := ds.NewDeque()
	for n := d.length(); n > 0 && !d.failed(); n-- {
		list.PushBack(d.goString())
	}
	return list
}

// quicklist reads a list that is written as nodes.
func (d *decoder) quicklist(kind byte) *ds.Deque {
	list := ds.NewDeque()
	for n := d.length(); n > 0 && !d.failed(); n-- {
		if kind == typeQuicklist {
			d.pushAll(list, newZiplist(d.piece()))
			continue
		}
		switch node := d.length(); node {
		case nodePlain:
			element := d.goString()
			if element == "" {
				d.fail("a large element of a list is empty")
			}
			list.PushBack(element)
		case nodePacked:
			d.pushAll(list, newListpack(d.piece()))
		default:
			d.fail("no such kind of list node: " + strconv.FormatUint(node, 10))
		}
	}
	return list
}

func (d *decoder) pushAll(list *ds.Deque, p packed) {
	for e, ok := p.next(); ok && !d.failed(); e, ok = p.next() {
		list.PushBack(e.String())
	}
	d.conclude(p)
}

// conclude fails if the walk over p found something wrong.
func (d *decoder) conclude(p packed) {
	if fault := p.fault(); fault != "" {
		d.fail(fault)
	}
}

func (d *decoder) newSet() *ds.Set {
	set := ds.NewSet()
	set.Within(d.limits)
	return set
}

func (d *decoder) set() *ds.Set {
	set := d.newSet()
	for n := d.length(); n > 0 && !d.failed(); n-- {
		if member, _ := d.text(); !set.Add(member) {
			d.fail("a set has a member twice")
		}
	}
	return set
}

func (d *decoder) packedSet(p packed) *ds.Set {
	set := d.newSet()
	var buf [20]byte
	for e, ok := p.next(); ok && !d.failed(); e, ok = p.next() {
		if !set.Add(e.bytes(&buf)) {
			d.fail("a set has a member twice")
		}
	}
	d.conclude(p)
	return set
}

func (d *decoder) hash() *ds.Hash {
	hash := ds.NewHash()
	hash.Within(d.limits)
	for n := d.length(); n > 0 && !d.failed(); n-- {
		field := d.goString()
		item := d.item
		value, _ := d.text()
		if !d.failed() && !hash.Set(viewBytes(field), value) {
			d.item = item
			d.fail("a hash has a field twice")
		}
	}
	return hash
}

func (d *decoder) packedHash(p packed, limits *ds.Limits) *ds.Hash {
	hash := ds.NewHash()
	hash.Within(limits)
	var fieldBuf, valueBuf [20]byte
	d.pairs(p, func(field, value element) {
		if !hash.Set(field.bytes(&fieldBuf), value.bytes(&valueBuf)) {
			d.fail("a hash has a field twice")
		}
	})
	if hash.Len() > d.limits.HashEntries {
		hash.Enlarge()
	}
	hash.Within(d.limits)
	return hash
}

// pairs visits the elements of p by twos.
func (d *decoder) pairs(p packed, visit func(first, second element)) {
	for first, ok := p.next(); ok && !d.failed(); first, ok = p.next() {
		second, ok := p.next()
		if !ok && p.fault() == "" {
			d.fail("a collection of pairs has half of one")
		}
		if !ok {
			break
		}
		visit(first, second)
	}
	d.conclude(p)
}

// sortedSet reads a sorted set that is written one member after the other. Redis
// makes a skip list of it first, and packs that if it is small.
func (d *decoder) sortedSet(readScore func() float64) *ds.SortedSet {
	z := ds.NewLargeSortedSet()
	for n := d.length(); n > 0 && !d.failed(); n-- {
		member := d.goString()
		item := d.item
		score := readScore()
		if d.failed() {
			return nil
		}
		d.addMember(z, member, score, item)
	}
	return z.Compact(d.limits)
}

func (d *decoder) packedSortedSet(p packed) *ds.SortedSet {
	z := ds.NewSortedSet()
	z.Within(&unlimited)
	d.pairs(p, func(member, score element) {
		number, ok := score.score()
		if !ok {
			d.fail("a score is no number")
			return
		}
		d.addMember(z, member.String(), number, d.item)
	})
	if z.Len() > d.limits.SortedSetEntries {
		z.Enlarge()
	}
	z.Within(d.limits)
	return z
}

func (d *decoder) addMember(z *ds.SortedSet, member string, score float64, item int64) {
	_, present := z.ScoreString(member)
	d.item = item
	switch {
	case math.IsNaN(score):
		d.fail("a score is no number")
	case present:
		d.fail("a sorted set has a member twice")
	default:
		z.Add(member, score)
	}
}
