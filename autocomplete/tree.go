package autocomplete

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/redis/go-redis/v9"
)

// shape is how many rows nodes have. All who use a dictionary must agree on it.
type shape struct {
	low, fill, high int // of an inner node: at least, after it was mended, at most
	leaf            int // of a leaf, at most
}

// usual is the shape of every dictionary outside tests. low is what a lookup may ask for. A wide gap between fill and the
// other two makes mending rare; fill / leaf is what an inner level costs in rows for each entry; and leaf is what a
// lookup within a leaf looks through.
var usual = newScripts(shape{low: MaxK, fill: 64, high: 80, leaf: 256})

var (
	//go:embed functions.lua
	functionsText string
	//go:embed set.lua
	setText string
	//go:embed remove.lua
	removeText string
	//go:embed increment.lua
	incrementText string
	//go:embed lookup.lua
	lookupText string
)

// scripts are the operations on a tree of some shape.
type scripts struct {
	set, remove, increment, lookup *redis.Script
	most                           int // that a lookup may ask for
}

func newScripts(s shape) *scripts {
	script := func(text string) *redis.Script {
		return redis.NewScript(fmt.Sprintf("local LOW, FILL, HIGH, LEAF = %d, %d, %d, %d\n%s%s",
			s.low, s.fill, s.high, s.leaf, functionsText, text))
	}
	return &scripts{
		set: script(setText), remove: script(removeText), increment: script(incrementText), lookup: script(lookupText),
		most: s.low,
	}
}

// encodeTag keeps a name within its hash tag, which a closing brace would end. Percent is encoded, too, so that two names
// never meet in one key.
var encodeTag = strings.NewReplacer("%", "%25", "}", "%7D")

// treeKeys are KEYS of the scripts: INDEX, NODES, ENTRIES.
func treeKeys(name string) []string {
	stem := "autocomplete:{" + encodeTag.Replace(name) + "}:"
	return []string{stem + "index", stem + "nodes", stem + "entries"}
}

// sinkOf writes a weight down in 8 bytes whose order is the heaviest first: the bits of a number that is not negative
// rise with it, so they are turned; those of a negative one fall already. The sign bit is 0 for the first kind, so that
// they come first.
func sinkOf(weight float64) string {
	var b [8]byte
	bits := math.Float64bits(weight + 0) // -0 + 0 is 0
	if bits>>63 == 0 {
		bits ^= math.MaxInt64
	}
	binary.BigEndian.PutUint64(b[:], bits)
	return string(b[:])
}

func weightOf(sink string) float64 {
	bits := binary.BigEndian.Uint64([]byte(sink))
	if bits>>63 == 0 {
		bits ^= math.MaxInt64
	}
	return math.Float64frombits(bits)
}

// valueOf checks an entry and writes it down as ENTRIES has it.
func valueOf(e Entry) (string, error) {
	if err := checkID(e.ID); err != nil {
		return "", err
	}
	if err := checkWeight(e.Weight); err != nil {
		return "", fmt.Errorf("entry %q: %w", e.ID, err)
	}
	folded, err := foldText(e.Text)
	if err != nil {
		return "", fmt.Errorf("entry %q: %w", e.ID, err)
	}
	text := e.Text
	if text+" " == folded {
		text = ""
	}
	return sinkOf(e.Weight) + folded + "\x00" + text, nil
}

// entryOf reads it.
func entryOf(id, value string) (Entry, error) {
	if len(value) < 8 {
		return Entry{}, fmt.Errorf("entry %q: %q is not what this package writes", id, value)
	}
	folded, text, found := strings.Cut(value[8:], "\x00")
	if !found {
		return Entry{}, fmt.Errorf("entry %q: %q is not what this package writes", id, value)
	}
	if text == "" {
		text = strings.TrimSuffix(folded, " ")
	}
	return Entry{ID: id, Text: text, Weight: weightOf(value[:8])}, nil
}
