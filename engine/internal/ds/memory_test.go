package ds

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestTheBytesOfStringsAreExact: what a Hash adds up as fields come, change and
// go is what its strings take, and so with the keys of every Dict.
func TestTheBytesOfStringsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	h := NewHash()
	for i := range 20_000 {
		field := []byte(strings.Repeat("f", r.IntN(40)) + fmt.Sprint(r.IntN(300)))
		switch r.IntN(3) {
		case 0:
			h.Delete(field)
		default:
			h.Set(field, strings.Repeat("v", r.IntN(2000)))
		}
		if i == 15_000 {
			h = h.Clone()
		}
		if i%100 != 0 {
			continue
		}
		var fields, values int
		for field, value := range h.All() {
			fields += StringBytes(len(field))
			values += StringBytes(len(value))
		}
		if h.fields.keyBytes != fields || h.valueBytes != values {
			t.Fatalf("after %d changes: %d and %d bytes are counted, %d and %d are there", i, h.fields.keyBytes, h.valueBytes, fields, values)
		}
	}
	for field := range h.Clone().All() {
		h.Delete([]byte(field))
	}
	if h.fields.keyBytes != 0 || h.valueBytes != 0 {
		t.Errorf("%d and %d bytes are left of nothing", h.fields.keyBytes, h.valueBytes)
	}
}
