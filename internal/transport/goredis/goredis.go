// Package goredis carries Signalbox over go-redis: package transport, met by a redis.UniversalClient. A client that is a
// Cluster's is asked more: which server has a key, and who the primaries are.
package goredis

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// Transport is a transport.Transport.
type Transport struct {
	client  redis.UniversalClient
	cluster cluster     // the client again, nil if it is no Cluster's
	mapped  atomic.Bool // the client of a Cluster has been told who serves which slots
}

// cluster is what only a Cluster's client can be asked.
type cluster interface {
	ForEachMaster(ctx context.Context, visit func(context.Context, *redis.Client) error) error
	MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	ReloadState(ctx context.Context)
}

// New returns a transport over a client, which stays the caller's to close.
func New(client redis.UniversalClient) *Transport {
	t := &Transport{client: client}
	t.cluster, _ = client.(cluster)
	return t
}

// Do is part of transport.Transport.
func (t *Transport) Do(ctx context.Context, command transport.Command) (any, error) {
	value, err := do(ctx, t.client, command)
	t.lookAround(ctx, err)
	return value, err
}

// lookAround has the client of a Cluster ask who serves which slots now, after a server did not answer: it may have been
// replaced, and the client would notice that by itself after ten seconds only.
func (t *Transport) lookAround(ctx context.Context, err error) {
	switch {
	case t.cluster == nil:
		return
	case err == nil:
		if !t.mapped.Load() {
			t.mapped.Store(true)
		}
		return
	}
	var answer *transport.ServerError
	if errors.As(err, &answer) || errors.Is(err, context.Canceled) {
		return
	}
	t.cluster.ReloadState(ctx)
}

// once is a command that its client must not send again by itself, as those of Clusters like to do and as others may be
// told to. A call that was run and whose reply got lost would be run twice, and the second answer be taken for the first:
// a release that found nothing, an acquire that nobody knows to be still under way.
type once struct{ *redis.Cmd }

// NoRetry is part of redis.Cmder.
func (once) NoRetry() bool { return true }

// processor is a client of any kind.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

func do(ctx context.Context, client processor, command transport.Command) (any, error) {
	cmd := newCmd(ctx, command)
	// The error is the command's own, too.
	_ = client.Process(ctx, cmd)
	return result(cmd.Cmd)
}

func newCmd(ctx context.Context, command transport.Command) once {
	cmd := redis.NewCmd(ctx, command.Words...)
	if command.Key > 0 {
		cmd.SetFirstKeyPos(int8(command.Key)) //nolint:gosec // no command has its first key so far behind
	}
	return once{cmd}
}

// Pipeline is part of transport.Transport.
func (t *Transport) Pipeline(ctx context.Context, commands []transport.Command) []transport.Reply {
	replies := exec(ctx, t.client.Pipeline(), commands)
	for _, reply := range replies {
		t.lookAround(ctx, reply.Err)
		if reply.Err != nil {
			break
		}
	}
	return replies
}

func exec(ctx context.Context, pipeline redis.Pipeliner, commands []transport.Command) []transport.Reply {
	sent := make([]once, len(commands))
	for i, command := range commands {
		sent[i] = newCmd(ctx, command)
		// A pipeline only takes note of it.
		_ = pipeline.Process(ctx, sent[i])
	}
	// The first error of any command; each command keeps its own.
	_, err := pipeline.Exec(ctx)
	replies := make([]transport.Reply, len(sent))
	for i, cmd := range sent {
		reply := &replies[i]
		reply.Value, reply.Err = result(cmd.Cmd)
		if cmd.Err() == nil && cmd.Val() == nil {
			reply.Err = neutral(err) // it was not reached
		}
	}
	return replies
}

// Server is part of transport.Transport: the address of the node. Before the first answer the client would have to ask for
// the slots, which may take long.
func (t *Transport) Server(key string) string {
	if !t.mapped.Load() {
		return ""
	}
	node, err := t.cluster.MasterForKey(context.Background(), key)
	if err != nil {
		return "" // whoever sends a command is told
	}
	return node.Options().Addr
}

// Together is part of transport.Transport. A Cluster's client may spread the commands over its connections, and may follow
// a key that moved with some of them only: so the server is asked directly. If it was the wrong one, the client looks where
// the slots are now, and the caller, who is told that nothing was done, tries again. Hooks of the Cluster's client do not
// see these commands; those of its nodes do.
func (t *Transport) Together(ctx context.Context, commands []transport.Command) []transport.Reply {
	if t.cluster == nil || len(commands) == 0 {
		return t.Pipeline(ctx, commands)
	}
	key, _ := commands[0].Words[commands[0].Key].(string)
	node, err := t.cluster.MasterForKey(ctx, key)
	if err != nil {
		return transport.Failed(len(commands), neutral(err))
	}
	replies := exec(ctx, node.Pipeline(), commands)
	if _, moved := redis.IsMovedError(replies[0].Err); moved {
		t.cluster.ReloadState(ctx)
	}
	t.lookAround(ctx, replies[0].Err)
	return replies
}

// EachPrimary is part of transport.Transport.
func (t *Transport) EachPrimary(ctx context.Context, visit func(context.Context, transport.Doer) error) error {
	if t.cluster == nil {
		return visit(ctx, t)
	}
	turn := make(chan struct{}, 1) // go-redis visits all at once
	err := t.cluster.ForEachMaster(ctx, func(ctx context.Context, client *redis.Client) error {
		turn <- struct{}{}
		defer func() { <-turn }()
		return visit(ctx, node{client})
	})
	return neutral(err)
}

// node is one server of a Cluster.
type node struct{ client *redis.Client }

// Do is part of transport.Doer.
func (n node) Do(ctx context.Context, command transport.Command) (any, error) {
	return do(ctx, n.client, command)
}
