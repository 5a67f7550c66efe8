package rueidisbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// neutral tells an error of rueidis in the words of package transport. What happens to connections rueidis tells in the
// words of the standard library already.
func (c *carrier) neutral(ctx context.Context, err error) error {
	var answer *rueidis.RedisError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer):
		return &transport.ServerError{Text: answer.Error(), Err: err}
	case errors.Is(err, rueidis.ErrNoSlot):
		return transport.As(transport.ErrUnsent, err)
	case errors.Is(err, rueidis.ErrClosing) && c.closed(ctx):
		return transport.As(transport.ErrClosed, err)
	case ctx.Err() == nil && errors.Is(err, context.Canceled):
		// rueidis opens a connection in the name of the first who wants it, and all who wait for it hear that his context
		// was cancelled. Theirs was not. (A deadline may be their own: the connection sees it before the context does.)
		return fmt.Errorf("another request gave the connection up: %v", err) //nolint:errorlint // told above
	}
	return err
}

// closed asks whether the client was closed. ErrClosing alone does not say so: it is also what requests end with that were
// under way on a connection which rueidis gave up, as it does with an old primary's after a failover. Those must be sent
// again, or a failover would cost every lease.
func (c *carrier) closed(ctx context.Context) bool {
	ping := c.client.B().Arbitrary("PING").Build() // rueidis would repeat its own Ping
	return errors.Is(c.client.Do(ctx, ping).Error(), rueidis.ErrClosing)
}
