package rdb

import (
	"hash/crc64"
	"testing"
)

func TestChecksumIsThatOfTheStandard(t *testing.T) {
	t.Parallel()
	if got, want := updateCRC(0, []byte("123456789")), uint64(0xe9c6d914c4b8d9ca); got != want {
		t.Errorf("got %x, want %x", got, want)
	}
}

// The package of the standard library inverts before and after.
func TestChecksumInPieces(t *testing.T) {
	t.Parallel()
	b := make([]byte, 1000)
	for i := range b {
		b[i] = byte(i * i)
	}
	table := crc64.MakeTable(jonesReflected)
	for n := range b {
		whole := updateCRC(0, b[:n])
		if want := ^crc64.Update(^uint64(0), table, b[:n]); whole != want {
			t.Fatalf("%d bytes: got %x, want %x", n, whole, want)
		}
		if pieces := updateCRC(updateCRC(0, b[:n/3]), b[n/3:n]); pieces != whole {
			t.Fatalf("%d bytes: %x in pieces, %x at once", n, pieces, whole)
		}
	}
}
