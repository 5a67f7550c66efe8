// Package embedded is the gate house: the engine and the library in one
// process, for programs that want locks, semaphores and queues among their own
// goroutines, for single binaries, and for tests. Nothing needs to be
// installed and nothing listens. Data is in memory, or kept in a folder.
//
// The library calls the engine directly, with the same transitions as it sends
// to a Redis, so that moving to a server later is a change of one line. Opened
// inside a testing/synctest bubble, all of it runs in virtual time.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
	"github.com/signalbox-io/signalbox/internal/transport/over"
	"github.com/signalbox-io/signalbox/queue"
)

// Box is a signalbox.Box with an engine of its own.
type Box struct {
	*signalbox.Box
	engine *engine.Engine
	client *redis.Client // for messages
}

// Open starts an engine and opens a Box on it. With "" all data is in memory.
//
// Else dir is the folder to keep the data in, which is made if it is not there, and
// Open returns when what it holds is loaded: who held a permit holds it still, until
// the lease expires. A process that is killed loses nothing that was granted or
// answered; a machine that loses its power may lose the last second, unless
//
//	box.Engine().Do(ctx, "CONFIG", "SET", "appendfsync", "always")
//
// has every grant wait for the disk. One process at a time can use a folder: for
// another one the error is an [engine.InUseError].
func Open(dir string, options ...signalbox.Option) (*Box, error) {
	e, err := engine.Open(engine.Options{Dir: dir})
	if err != nil {
		return nil, fmt.Errorf("opening %q: %w", dir, err)
	}
	client := redis.NewClient(&redis.Options{
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return e.Dial() },
		MaxRetries:               -1,       // the box retries by itself, and must know of it
		Addr:                     "engine", // never dialled, nor looked up
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	return &Box{over.New(direct{e, goredis.New(client)}, options...), e, client}, nil
}

// Engine is the engine, to serve it to others or to look into it.
func (b *Box) Engine() *engine.Engine { return b.engine }

// Queue opens a queue on the engine. It is closed before the Box.
func (b *Box) Queue(name string, settings ...queue.Setting) (*queue.Queue, error) {
	return queue.New(b.client, name, settings...)
}

// Close ends every lease and acquisition, then the engine. Data that is kept in a
// folder is on disk then, or the error says why it is not; else it is gone.
func (b *Box) Close() error {
	return errors.Join(b.Box.Close(), b.client.Close(), b.engine.Close())
}
