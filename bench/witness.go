package main

import (
	"context"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/redis/go-redis/v9"
)

// witness is the memory that all contenders share, by which they see that nobody shares the lock: one word counts who
// is inside, another has the last fencing token.
type witness struct {
	inside, token, overlaps, disorders atomic.Int64
}

func openWitness(path string) (*witness, error) {
	if path == "" {
		return new(witness), nil
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer shut(file)
	memory, err := mapShared(file.Fd(), int(unsafe.Sizeof(witness{})))
	if err != nil {
		return nil, err
	}
	return (*witness)(unsafe.Pointer(unsafe.SliceData(memory))), nil
}

func (w *witness) enter(token int64) {
	if w.inside.Add(1) != 1 {
		w.overlaps.Add(1)
	}
	if before := w.token.Swap(token); token != 0 && token <= before {
		w.disorders.Add(1)
	}
}

func (w *witness) exit() { w.inside.Add(-1) }

// headcount counts the holders of a semaphore on the server, apart from the semaphore. A holder is counted only after
// it was granted a permit and until before it gives it back, so a count above the limit is a broken limit.
type headcount struct {
	client *redis.Client
	key    string
}

// headcountCommand is one that no lock here uses, so that it can be left out of the count of commands.
const headcountCommand = "incrbyfloat"

func (h headcount) enter(ctx context.Context) (int, error) {
	n, err := h.client.IncrByFloat(ctx, h.key, 1).Result()
	return int(n), err
}

func (h headcount) exit(ctx context.Context) error { return h.client.IncrByFloat(ctx, h.key, -1).Err() }
