package ds

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestHashIsAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h, model := NewHash(), map[string]string{}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				scanned := map[string]string{}
				for cursor, first := uint64(0), true; first || cursor != 0; first = false {
					cursor = h.Scan(cursor, func(field, value string) { scanned[field] = value })
				}
				if h.Len() != len(model) || !maps.Equal(maps.Collect(h.All()), model) || !maps.Equal(scanned, model) {
					t.Fatalf("%d fields, Scan %v, want %v", h.Len(), scanned, model)
				}
				field, value, ok := h.Random(rand.New(rand.NewPCG(1, uint64(len(model)))))
				if ok != (len(model) > 0) || value != model[field] {
					t.Fatalf("Random() = %q, %q, %v", field, value, ok)
				}
			},
			"set": func(t *rapid.T) {
				field, value := keyOf(t, 40), rapid.StringN(0, 5, -1).Draw(t, "value")
				_, present := model[field]
				if h.Set([]byte(field), []byte(value)) == present {
					t.Fatalf("Set(%q) while present is %v", field, present)
				}
				model[field] = value
			},
			"get and delete": func(t *rapid.T) {
				field := keyOf(t, 40)
				want, present := model[field]
				got, ok := h.Get([]byte(field))
				if ok != present || got != want || h.Delete([]byte(field)) != present {
					t.Fatalf("Get(%q) = %q, %v, want %q", field, got, ok, want)
				}
				delete(model, field)
			},
			"clone": func(*rapid.T) {
				old := h
				h = old.Clone()
				old.Set([]byte("only in the original"), nil)
			},
		})
	})
}

func TestHashEncoding(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"field", "value"} {
		requireEncoding(t, "listpack", "hashtable", usual.HashEntries, func() (func(string), func(string), func() string) {
			h := NewHash()
			add := func(s string) { h.Set([]byte(s), nil) }
			if which == "value" {
				add = func(s string) { h.Set([]byte(s[:min(len(s), 64)]), []byte(s)) }
			}
			return add, func(s string) { h.Delete([]byte(s)) }, func() string { return h.Clone().Encoding() }
		})
	}
	h := NewHash()
	h.Set([]byte("f"), bytes.Repeat([]byte("x"), 65))
	if h.Set([]byte("f"), nil); h.Encoding() != "hashtable" {
		t.Fatalf("once had a long value: %q", h.Encoding())
	}
}
