package rdb

import "encoding/binary"

// The checksum of the format is a CRC of 64 bits with the polynomial of Jones,
// bits reflected, starting from zero and without a final inversion. The package
// hash/crc64 inverts, and sums a foreign polynomial byte by byte; this sums eight
// bytes a step, by eight tables of which the k-th says what a byte does to the sum
// when k more bytes follow it.

const jonesReflected = 0x95ac9329ac4bc9b5

var crcTables = makeCRCTables()

func makeCRCTables() *[8][256]uint64 {
	var t [8][256]uint64
	for b := range 256 {
		crc := uint64(b)
		for range 8 {
			if crc&1 == 1 {
				crc = crc>>1 ^ jonesReflected
			} else {
				crc >>= 1
			}
		}
		t[0][b] = crc
	}
	for b := range 256 {
		for k := 1; k < 8; k++ {
			before := t[k-1][b]
			t[k][b] = t[0][byte(before)] ^ before>>8
		}
	}
	return &t
}

// updateCRC returns the sum of what crc is the sum of and, after it, p.
func updateCRC(crc uint64, p []byte) uint64 {
	t := crcTables
	for len(p) >= 8 {
		crc ^= binary.LittleEndian.Uint64(p)
		crc = t[7][byte(crc)] ^ t[6][byte(crc>>8)] ^ t[5][byte(crc>>16)] ^ t[4][byte(crc>>24)] ^
			t[3][byte(crc>>32)] ^ t[2][byte(crc>>40)] ^ t[1][byte(crc>>48)] ^ t[0][byte(crc>>56)]
		p = p[8:]
	}
	for _, b := range p {
		crc = t[0][byte(crc)^b] ^ crc>>8
	}
	return crc
}
