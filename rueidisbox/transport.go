package rueidisbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// carrier is a transport.Transport over a rueidis client.
//
// Commands are built with Arbitrary, which rueidis takes for writes: it repeats them only when a server of a Cluster sent
// it elsewhere, or when they had not been sent.
type carrier struct {
	client rueidis.Client
	slots  slots // of a Cluster
}

// Do is part of transport.Transport.
func (c *carrier) Do(ctx context.Context, command transport.Command) (any, error) {
	ctx, done := heard(ctx)
	defer done()
	return c.value(ctx, c.client.Do(ctx, build(c.client.B(), command)))
}

// Pipeline is part of transport.Transport.
func (c *carrier) Pipeline(ctx context.Context, commands []transport.Command) []transport.Reply {
	ctx, done := heard(ctx)
	defer done()
	return c.values(ctx, c.client.DoMulti(ctx, buildAll(c.client.B(), commands)...))
}

// Server is part of transport.Transport: in a Cluster the slot, which rueidis alone knows the server of. It shares its
// connections among slots by itself.
func (c *carrier) Server(key string) string {
	if c.client.Mode() != rueidis.ClientModeCluster {
		return ""
	}
	get := c.client.B().Arbitrary("get").Keys(key).Build()
	return strconv.Itoa(int(get.Slot()))
}

// togetherMost bounds commands that belong together under a context without a deadline. rueidis lets those that may block
// take for ever; what bounds all others, ConnWriteTimeout, cannot be asked for and is this unless somebody set it.
const togetherMost = 10 * time.Second

// Together is part of transport.Transport. What may block gets a connection of the pool that rueidis has for that, so that
// nobody else is held up.
func (c *carrier) Together(ctx context.Context, commands []transport.Command) []transport.Reply {
	if len(commands) == 0 {
		return nil
	}
	ctx, done := heard(ctx)
	defer done()
	if c.client.Mode() == rueidis.ClientModeCluster {
		return c.togetherInCluster(ctx, commands)
	}
	if _, limited := ctx.Deadline(); !limited {
		ctx, done = context.WithTimeout(ctx, togetherMost)
		defer done()
	}
	first := arrange(c.client.B(), commands[0]).Blocking()
	others := buildAll(c.client.B(), commands[1:])
	return c.values(ctx, c.client.DoMulti(ctx, append([]rueidis.Completed{first}, others...)...))
}

// togetherInCluster takes a connection of its own: else rueidis would follow a key that moved with those commands only
// that have it, and a WAIT would have asked the wrong server. Now it looks where the slots are, and the caller, who is told
// that nothing was done, tries again.
func (c *carrier) togetherInCluster(ctx context.Context, commands []transport.Command) []transport.Reply {
	connection, release := c.client.Dedicate()
	defer release()
	return c.values(ctx, connection.DoMulti(ctx, buildAll(connection.B(), commands)...))
}

// EachPrimary is part of transport.Transport. A Cluster's client names its replicas, too: each node is asked what it is.
func (c *carrier) EachPrimary(ctx context.Context, visit func(context.Context, transport.Doer) error) error {
	if c.client.Mode() != rueidis.ClientModeCluster {
		return visit(ctx, c)
	}
	for _, client := range c.client.Nodes() {
		node := &carrier{client: client}
		info, err := node.Do(ctx, transport.Command{Words: []any{"info", "replication"}})
		if err != nil {
			return err
		}
		if text, _ := info.(string); !strings.Contains(text, "role:master") {
			continue
		}
		if err := visit(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

func build(builder rueidis.Builder, command transport.Command) rueidis.Completed {
	return arrange(builder, command).Build()
}

func buildAll(builder rueidis.Builder, commands []transport.Command) []rueidis.Completed {
	all := make([]rueidis.Completed, len(commands))
	for i, command := range commands {
		all[i] = build(builder, command)
	}
	return all
}

// arranged is a command to which rueidis knows the key; its own type cannot be named.
type arranged interface {
	Build() rueidis.Completed
	Blocking() rueidis.Completed
}

// arrange tells rueidis the words of a command, and which of them is the key.
func arrange(builder rueidis.Builder, command transport.Command) arranged {
	words := make([]string, len(command.Words))
	for i, word := range command.Words {
		words[i] = text(word)
	}
	key := command.Key
	if key == 0 {
		return builder.Arbitrary(words...)
	}
	return builder.Arbitrary(words[:key]...).Keys(words[key]).Args(words[key+1:]...)
}

func text(word any) string {
	switch word := word.(type) {
	case string:
		return word
	case int:
		return strconv.Itoa(word)
	case int64:
		return strconv.FormatInt(word, 10)
	}
	return fmt.Sprint(word)
}

// heard returns a context whose deadline rueidis hears. On a connection that is shared it waits for Done alone, which may
// be closed later than at the deadline, or never.
func heard(ctx context.Context) (context.Context, context.CancelFunc) {
	until, limited := ctx.Deadline()
	if !limited {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, until)
}

func (c *carrier) values(ctx context.Context, results []rueidis.RedisResult) []transport.Reply {
	replies := make([]transport.Reply, len(results))
	for i, result := range results {
		replies[i].Value, replies[i].Err = c.value(ctx, result)
	}
	return replies
}

func (c *carrier) value(ctx context.Context, result rueidis.RedisResult) (any, error) {
	value, err := result.ToAny()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	return value, c.neutral(ctx, err)
}
