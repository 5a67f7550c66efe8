package goredis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/transport"
)

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

func command(words ...any) transport.Command { return transport.Command{Words: words, Key: 1} }

func TestRepliesArePlainValues(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: difftest.Redis(t).Addr, MaxRetries: -1})
	defer client.Close()
	over := New(client)
	commands := []transport.Command{
		command("set", "key", 7),
		command("get", "key"),
		command("get", "nothing"),
		command("incrby", "key", int64(1)),
		command("mget", "key", "nothing"),
		command("lpush", "key", "x"),
		{Words: []any{"wait", 0, 1}},
	}
	want := []transport.Reply{{Value: "OK"}, {Value: "7"}, {}, {Value: int64(8)}, {Value: []any{"8", nil}}, {}, {Value: int64(0)}}
	for how, send := range map[string]func(context.Context, []transport.Command) []transport.Reply{
		"pipeline": over.Pipeline, "together": over.Together, "one by one": oneByOne(over),
	} {
		got := send(t.Context(), commands)
		if !transport.HasPrefix(got[5].Err, "WRONGTYPE") {
			t.Errorf("%s: lpush to a string: %v", how, got[5].Err)
		}
		got[5].Err = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", how, diff)
		}
	}
}

func oneByOne(over *Transport) func(context.Context, []transport.Command) []transport.Reply {
	return func(ctx context.Context, commands []transport.Command) (replies []transport.Reply) {
		for _, c := range commands {
			value, err := over.Do(ctx, c)
			replies = append(replies, transport.Reply{Value: value, Err: err})
		}
		return replies
	}
}

func TestServerOutOfReachFailsEveryCommand(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1})
	defer client.Close()
	for i, reply := range New(client).Pipeline(t.Context(), []transport.Command{command("get", "a"), command("get", "b")}) {
		var dial *net.OpError
		if !errors.As(reply.Err, &dial) || dial.Op != "dial" {
			t.Errorf("command %d: %v", i, reply.Err)
		}
	}
}

func TestListenHearsAndTellsTheLoss(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: difftest.Redis(t).Addr, MaxRetries: -1})
	defer client.Close()
	over := New(client)
	heard := make(chan transport.Event, 10)
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go func() { ended <- over.Listen(ctx, []string{"channel"}, func(e transport.Event) { heard <- e }) }()
	if got, want := <-heard, (transport.Event{Channel: "channel", Subscribed: true}); got != want {
		t.Fatalf("heard %+v first", got)
	}
	client.Publish(ctx, "channel", "news")
	if got, want := <-heard, (transport.Event{Channel: "channel", Payload: "news"}); got != want {
		t.Fatalf("heard %+v, want %+v", got, want)
	}
	client.Do(ctx, "client", "kill", "type", "pubsub")
	if err := <-ended; err == nil || ctx.Err() != nil {
		t.Fatalf("a connection that was lost: %v", err)
	}
	go func() { ended <- over.Listen(ctx, []string{"channel"}, func(e transport.Event) { heard <- e }) }()
	<-heard
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("a context that ended: %v", err)
	}
}
