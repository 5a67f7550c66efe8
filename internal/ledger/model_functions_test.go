package ledger_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// TestFunctionsAgreeWithModel runs the model against the transitions as functions of the library.
func TestFunctionsAgreeWithModel(t *testing.T) {
	t.Parallel()
	options := &redis.Options{Addr: difftest.Redis(t).Addr}
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	scripts := goredis.New(client)
	if _, err := ledger.New(scripts).InstallFunctions(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A script would be met with NOPERM, but for those of the test itself.
	for _, rule := range [][]any{
		{"acl", "setuser", "tester", "on", ">secret", "~*", "&*", "+@all"},
		{"acl", "setuser", "default", "-evalsha", "-eval"},
	} {
		if err := client.Do(t.Context(), rule...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	agreesWithModel(t, &redis.Options{Addr: options.Addr, Username: "tester", Password: "secret"}, ledger.New(asFunctions{scripts}), "model of functions")
}

// asFunctions is a transport that has transitions run as functions of the library.
type asFunctions struct{ transport.Transport }

func (f asFunctions) Do(ctx context.Context, c transport.Command) (any, error) {
	return f.Transport.Do(ctx, asFunction(c))
}

func (f asFunctions) Pipeline(ctx context.Context, commands []transport.Command) []transport.Reply {
	for i, c := range commands {
		commands[i] = asFunction(c)
	}
	return f.Transport.Pipeline(ctx, commands)
}

func asFunction(c transport.Command) transport.Command {
	if c.Words[0] == "evalsha" {
		c.Words[0], c.Words[1] = "fcall", ledger.FunctionOf(c.Words[1].(string))
	}
	return c
}
