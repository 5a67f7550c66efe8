package ledger

import (
	"context"
	"fmt"
	"time"
)

// FenceRequest runs a command on a key with a token; Command may be empty.
type FenceRequest struct {
	Key     string
	Token   int64
	Keep    time.Duration
	Command string
	Args    []any // strings, ints and int64s
}

// The codes of fence.lua.
const (
	fenceRefused = iota
	fenceDone
)

// Fence runs fence.lua once. If the token is too old it returns the newest seen.
func (l *Ledger) Fence(ctx context.Context, r *FenceRequest) (reply any, newest int64, err error) {
	keys := []any{r.Key, fenceKey(r.Key)}
	args := append([]any{r.Token, r.Keep.Milliseconds(), r.Command}, r.Args...)
	answer, err := l.run(ctx, newCall(fenceScript, keys, args...))
	if err != nil {
		return nil, 0, classify(fmt.Sprintf("write %q", r.Key), err)
	}
	elements, _ := answer.([]any)
	if len(elements) == 1 { // a nil at the end of a table of Lua is not there
		elements = append(elements, nil)
	}
	if len(elements) == 2 {
		if n, refused := elements[1].(int64); refused && elements[0] == int64(fenceRefused) {
			return nil, n, nil
		}
		if elements[0] == int64(fenceDone) {
			return elements[1], 0, nil
		}
	}
	return nil, 0, unexpected("write", r.Key, answer)
}

// fenceKey lies in the slot of the key it guards.
func fenceKey(key string) string {
	tag := hashTag(key)
	if tag == "" {
		tag = key
	}
	return "signalbox:fence:{" + tag + "}:" + key
}
