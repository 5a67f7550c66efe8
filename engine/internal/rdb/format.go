package rdb

// The numbers of the format.

const (
	magic = "REDIS" // a file begins with it and four digits: the version

	versionWritten = 10 // of Redis 7.0
	versionMax     = 11 // of Redis 7.2: the last one under a free license
	versionSummed  = 5  // files have a checksum since
)

// The types of values. A type that Redis has encoded in several ways over time
// has several numbers.
const (
	typeString           = 0
	typeList             = 1 // one string after the other
	typeSet              = 2
	typeSortedSetText    = 3 // scores are decimal
	typeHash             = 4
	typeSortedSet        = 5 // scores are binary
	typeModuleOld        = 6
	typeModule           = 7
	typeHashZipmap       = 9
	typeListZiplist      = 10
	typeSetInts          = 11
	typeSortedSetZiplist = 12
	typeHashZiplist      = 13
	typeQuicklist        = 14 // a list of ziplists
	typeStream           = 15
	typeHashListpack     = 16
	typeSortedSetPack    = 17
	typeQuicklist2       = 18 // a list of listpacks and large elements
	typeStream2          = 19 // with the counters of Redis 7.0
	typeSetListpack      = 20
	typeStream3          = 21 // with the active time of Redis 7.2
)

// The opcodes, which stand where the type of a key's value can stand.
const (
	opFunction     = 245
	opFunctionOld  = 246 // of release candidates of Redis 7.0
	opModuleAux    = 247
	opIdle         = 248
	opFreq         = 249
	opAux          = 250
	opResize       = 251
	opExpireMs     = 252
	opExpireSec    = 253
	opSelect       = 254
	opEnd          = 255
	opcodeFirst    = opFunction
	checksumLength = 8
)

// The first byte of a length: the upper two bits say which of the forms it is.
const (
	lengthIn6Bits  = 0 // the rest of the byte
	lengthIn14Bits = 1 // the rest of the byte and the next one
	lengthSpecial  = 3 // not a length: the rest of the byte says how a string is encoded
	lengthIn32Bits = 0x80
	lengthIn64Bits = 0x81
)

// How a string is encoded that is not just its bytes.
const (
	stringInt8 = iota
	stringInt16
	stringInt32
	stringCompressed
)

// The nodes of typeQuicklist2.
const (
	nodePlain  = 1 // one large element
	nodePacked = 2 // a listpack
)

// What stands for a score in typeSortedSetText where its length should be.
const (
	scoreNaN              = 253
	scoreInfinity         = 254
	scoreNegativeInfinity = 255
)
