package goredis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/internal/leak"
	"github.com/signalbox-io/signalbox/internal/transport"
	"github.com/signalbox-io/signalbox/internal/transport/transporttest"
)

func TestTransport(t *testing.T) {
	defer leak.Check(t)()
	transporttest.Exercise(t, func(t *testing.T, dial func() (net.Conn, error)) (transport.Transport, func()) {
		client := redis.NewClient(&redis.Options{
			Dialer:     func(context.Context, string, string) (net.Conn, error) { return dial() },
			MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, ReadTimeout: 2 * time.Minute,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		return New(client), func() {
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestTransportInCluster(t *testing.T) {
	transporttest.ExerciseCluster(t, func(t *testing.T, addrs []string, dial func(string) (net.Conn, error)) transport.Transport {
		client := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: addrs, Dialer: func(_ context.Context, _, addr string) (net.Conn, error) { return dial(addr) },
			MaxRetries: -1, ContextTimeoutEnabled: true, ClusterStateReloadInterval: time.Hour,
		})
		t.Cleanup(func() {
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		})
		return New(client)
	})
}

// answer is what go-redis makes of an error reply.
type answer string

func (e answer) Error() string { return string(e) }
func (answer) RedisError()     {}

func TestErrorsAreTold(t *testing.T) {
	t.Parallel()
	var server *transport.ServerError
	isServer := func(err error) bool { return errors.As(err, &server) }
	is := func(kind error) func(error) bool { return func(err error) bool { return errors.Is(err, kind) } }
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, test := range []struct {
		err  error
		want func(error) bool
	}{
		{answer("NOPERM this user has no permissions"), isServer},
		{fmt.Errorf("dial: %w", answer("WRONGPASS invalid username-password pair")), isServer},
		{fmt.Errorf("all sentinels unreachable: %w", redis.Nil), is(transport.ErrUnsent)},
		{redis.ErrClosed, is(transport.ErrClosed)},
		{refused, is(refused)},
		{io.ErrUnexpectedEOF, is(io.ErrUnexpectedEOF)},
		{context.DeadlineExceeded, is(context.DeadlineExceeded)},
	} {
		told := neutral(test.err)
		if !test.want(told) || !errors.Is(told, test.err) || told.Error() != test.err.Error() {
			t.Errorf("%v was told as %#v", test.err, told)
		}
		if again := neutral(fmt.Errorf("visit: %w", told)); !test.want(again) {
			t.Errorf("%v was told again as %#v", test.err, again)
		}
	}
	if told := neutral(fmt.Errorf("dial: %w", answer("ERR max number of clients reached"))); !transport.HasPrefix(told, "max number") {
		t.Errorf("the code ERR stands in the way in %v", told)
	}
}
