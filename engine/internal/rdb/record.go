package rdb

// Record is one thing that a file says: an Aux, a Size, a Function or a Key.
type Record interface{ record() }

// Aux is a remark, such as the version of the server that wrote the file.
type Aux struct{ Name, Value string }

// Size announces how many keys of a database will follow, and how many of them
// expire. It is a hint, and a stranger's: do not allocate by it.
type Size struct {
	DB            int
	Keys, Expires uint64
}

// Function is the code of a library of functions.
type Function struct{ Code []byte }

// Key is a key with its value.
type Key struct {
	DB         int
	Name       []byte
	Value      any
	ExpireAtMs int64  // ms since the epoch; 0 is never
	IdleSec    uint64 // for how many seconds nobody has used it; 0 if the file does not say
	Freq       uint8  // how often it was used, as Redis counts that; 0 if the file does not say
	HasFreq    bool   // the file does say, even if Freq is 0
}

func (Aux) record()      {}
func (Size) record()     {}
func (Function) record() {}
func (Key) record()      {}
