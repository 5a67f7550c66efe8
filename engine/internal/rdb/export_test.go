package rdb

// Checksum is the checksum of the format.
func Checksum(b []byte) uint64 { return updateCRC(0, b) }
