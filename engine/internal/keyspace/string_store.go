package keyspace

// How commands change strings. Each function takes the object that key holds, or nil for
// a key that is not there, as Lookup gave it; afterwards the key may have another object.
// None of them checks the kind, unless it says that any will do. The caller reports the
// change with Touch. O(1) beside the copying of the text.

// StoreString puts a copy of text under key, whatever was there, without an expiry. It
// writes into the memory of a string that is there, if that has about the right size.
func (db *DB) StoreString(key []byte, o *Object, text []byte, nowMs int64) *Object {
	switch {
	case o == nil:
		return db.create(key, NewString(text), nowMs)
	case o.Kind() != KindString || !(*String)(o).setText(text, 0):
		return db.overwrite(key, o, NewString(text))
	}
	db.SetExpire(key, o, 0)
	return o
}

// KeepString is StoreString for a text that is too long for a block, and which it keeps. It
// returns memory that held a text before and is not used any more, or nil.
func (db *DB) KeepString(key []byte, o *Object, text []byte, nowMs int64) (stored *Object, old []byte) {
	switch {
	case o == nil:
		return db.create(key, AdoptString(text), nowMs), nil
	case o.Kind() != KindString || o.tag&longTag == 0:
		return db.overwrite(key, o, AdoptString(text)), nil
	}
	l := (*String)(o).long()
	old, l.text = l.text, text
	l.tag &^= rawTag | floatTag
	db.SetExpire(key, o, 0)
	return o, old
}

// StoreNumber makes the string under key a number. The expiry stays.
func (db *DB) StoreNumber(key []byte, o *Object, n, nowMs int64) {
	switch {
	case o == nil:
		db.create(key, newNumber(n), nowMs)
	case !(*String)(o).setNumber(n):
		db.replace(key, o, newObject(newNumber(n)))
	}
}

// StoreFloat puts a number with a fraction, or without, under key, which OBJECT ENCODING
// never calls int. The expiry stays.
func (db *DB) StoreFloat(key []byte, o *Object, text []byte, nowMs int64) {
	switch {
	case o == nil:
		db.create(key, newString(text, floatTag), nowMs)
	case !(*String)(o).setText(text, floatTag):
		db.replace(key, o, newObject(newString(text, floatTag)))
	}
}

// EditString makes the string under key raw, and returns where its bytes are, to be changed
// and appended to until anything else is done with the key. The expiry stays.
func (db *DB) EditString(key []byte, o *Object, nowMs int64) (text *[]byte) {
	var s *String
	switch {
	case o == nil:
		s = (*String)(db.create(key, newLong(nil, rawTag), nowMs))
	case o.tag&longTag == 0:
		var digits [20]byte
		old := (*String)(o).Text(digits[:])
		long := newLong(append([]byte(nil), old...), rawTag)
		s = (*String)(db.replace(key, o, newObject(long)))
	default:
		s = (*String)(o)
		s.tag |= rawTag
	}
	return &s.long().text
}

// create puts a string under a key that Lookup did not find. While nothing expires, what
// has expired may still be there.
func (db *DB) create(key []byte, s *String, nowMs int64) *Object {
	if db.space.Frozen {
		return db.Put(key, s, nowMs)
	}
	return db.add(key, newObject(s), nowMs)
}
