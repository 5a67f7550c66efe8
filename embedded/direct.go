package embedded

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/transport"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// direct is a transport.Transport to an engine in the same process: commands
// are calls, with no protocol between and nothing that can be lost. Messages
// come over a connection in memory.
type direct struct {
	engine   *engine.Engine
	messages *goredis.Transport
}

// Do is part of transport.Transport. A command runs at once, so that a context
// that ends meanwhile finds it done.
func (d direct) Do(ctx context.Context, command transport.Command) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, transport.As(transport.ErrUnsent, err)
	}
	words := make([]string, len(command.Words))
	for i, word := range command.Words {
		switch word := word.(type) {
		case string:
			words[i] = word
		case int:
			words[i] = strconv.Itoa(word)
		case int64:
			words[i] = strconv.FormatInt(word, 10)
		default:
			return nil, transport.As(transport.ErrUnsent, fmt.Errorf("a word of type %T", word))
		}
	}
	reply, err := d.engine.Do(ctx, words...)
	var answer engine.Error
	switch {
	case errors.As(err, &answer):
		return nil, &transport.ServerError{Text: string(answer), Err: err}
	case errors.Is(err, engine.ErrClosed):
		return nil, transport.As(transport.ErrClosed, err)
	case err != nil:
		return nil, err
	}
	return reply.Value(), nil
}

// Pipeline is part of transport.Transport.
func (d direct) Pipeline(ctx context.Context, commands []transport.Command) []transport.Reply {
	replies := make([]transport.Reply, len(commands))
	for i, command := range commands {
		replies[i].Value, replies[i].Err = d.Do(ctx, command)
	}
	return replies
}

// Server is part of transport.Transport.
func (d direct) Server(string) string { return "" }

// Together is part of transport.Transport. There is no connection that a
// command could mean something to: WAIT finds no replicas of an engine.
func (d direct) Together(ctx context.Context, commands []transport.Command) []transport.Reply {
	return d.Pipeline(ctx, commands)
}

// Listen is part of transport.Transport.
func (d direct) Listen(ctx context.Context, channels []string, hear func(transport.Event)) error {
	return d.messages.Listen(ctx, channels, hear)
}

// EachPrimary is part of transport.Transport.
func (d direct) EachPrimary(ctx context.Context, visit func(context.Context, transport.Doer) error) error {
	return visit(ctx, d)
}
