package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1.
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/engine/stepped"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// begun is when programs begin: half a millisecond after a full one, so that what is counted in microseconds and what is
// counted in milliseconds never differ by a rounding.
var begun = epoch.Add(500 * time.Microsecond)

// steppedGround is the engine, which stands still by itself.
type steppedGround struct {
	transport.Transport
	engine *stepped.Engine
	inbox  *stepped.Conn
}

func TestTheQueueAgreesWithItsModel(t *testing.T) {
	programs(t, 100)
	e := stepped.New(begun)
	t.Cleanup(e.Close)
	agreesWithModel(t, func(string) ground {
		e.Reset(begun)
		inbox := e.Connect()
		inbox.Send([][]byte{[]byte("PSUBSCRIBE"), []byte(InboxPrefix + "*")})
		inbox.Received()
		return &steppedGround{engine: e, inbox: inbox}
	})
}

// plain are the words of a command. The seeds that a Store draws by the time of day are always the same, so that a program
// comes again as it was.
func plain(command transport.Command) []string {
	words := make([]string, len(command.Words))
	for i, word := range command.Words {
		words[i] = fmt.Sprint(word)
	}
	switch words[1] {
	case configureScript.digest, configureScript.text:
		words[3+len(keyNames)+1] = "seed"
	case changeScript.digest, changeScript.text:
		words[3+len(keyNames)+2] = "seed"
	case enqueueScript.digest, enqueueScript.text:
		if n := len(keyNames) + 3; words[2] == strconv.Itoa(n) { // of a plain list
			words[3+n+1] = "seed"
		}
	}
	return words
}

func (g *steppedGround) Do(_ context.Context, command transport.Command) (any, error) {
	return g.raw(plain(command)...)
}

func (g *steppedGround) raw(words ...string) (any, error) { return parseReply(g.engine.Do(words...)) }
func (g *steppedGround) now() int64                       { return g.engine.Now().UnixMicro() }
func (g *steppedGround) pass(d time.Duration)             { g.engine.Advance(d) }

func (g *steppedGround) EachPrimary(ctx context.Context, visit func(context.Context, transport.Doer) error) error {
	return visit(ctx, g)
}

func (g *steppedGround) messages() (list [][]string, err error) {
	in := bufio.NewReader(bytes.NewReader(g.inbox.Received()))
	for {
		value, err := readReply(in)
		if errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		words, _ := texts(value)
		message, err := parsePublished(words[2], words[3])
		if err != nil {
			return nil, err
		}
		list = append(list, message)
	}
}

func parsePublished(channel, payload string) ([]string, error) {
	words, ok := ParseMessage(payload)
	if !ok {
		return nil, fmt.Errorf("a message that does not parse: %q", payload)
	}
	return append([]string{strings.TrimPrefix(channel, InboxPrefix)}, words...), nil
}

// redisGround is a real server. Its scripts are told a time of our own: what they say of TIME is replaced by it. Keys
// expire by the server's clock, which is a moment in all of a program; but that of rates, which are kept for seconds, may be over
// where the machine is busy.
type redisGround struct {
	transport.Transport
	client *redis.Client
	inbox  *redis.PubSub
	us     int64
	ours   map[string]string // digest of a script -> its text, with our time
}

func TestTheQueueAgreesWithItsModelOnRedis(t *testing.T) {
	programs(t, 20)
	client := redis.NewClient(&redis.Options{
		Addr: difftest.Redis(t).Addr, MaxRetries: -1, Protocol: 2,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	inbox := client.PSubscribe(t.Context(), InboxPrefix+"*")
	t.Cleanup(func() {
		if err := errors.Join(inbox.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})
	if _, err := inbox.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	agreesWithModel(t, func(string) ground {
		return &redisGround{client: client, inbox: inbox, us: begun.UnixMicro(), ours: map[string]string{}}
	})
}

func (g *redisGround) Do(_ context.Context, command transport.Command) (any, error) {
	words := plain(command)
	if !strings.HasPrefix(words[0], "eval") {
		return g.raw(words...)
	}
	if text, known := g.ours[words[1]]; known {
		words[0], words[1] = "eval", text
	} else if words[0] == "evalsha" {
		return nil, &transport.ServerError{Text: "NOSCRIPT"}
	} else {
		ours := strings.ReplaceAll(words[1], "call('TIME')", "{0, redis.call('GET', 'time')}")
		ours = strings.ReplaceAll(ours, "call('PEXPIRE', rates, left)", "call('PEXPIRE', rates, 86400000)")
		if ours == words[1] {
			return nil, errors.New("a script that asks for no TIME")
		}
		sum := sha1.Sum([]byte(words[1])) //nolint:gosec // Redis names scripts by their SHA-1.
		g.ours[hex.EncodeToString(sum[:])], words[1] = ours, ours
	}
	if err := g.client.Set(context.Background(), "time", g.us, 0).Err(); err != nil {
		return nil, err
	}
	return g.raw(words...)
}

func (g *redisGround) raw(words ...string) (any, error) {
	args := make([]any, len(words))
	for i, word := range words {
		args[i] = word
	}
	value, err := g.client.Do(context.Background(), args...).Result()
	var refused redis.Error
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case errors.As(err, &refused):
		return nil, &transport.ServerError{Text: err.Error()}
	}
	return value, err
}

func (g *redisGround) now() int64           { return g.us }
func (g *redisGround) pass(d time.Duration) { g.us += d.Microseconds() }

func (g *redisGround) EachPrimary(ctx context.Context, visit func(context.Context, transport.Doer) error) error {
	return visit(ctx, g)
}

// messages are those before one of our own.
func (g *redisGround) messages() (list [][]string, err error) {
	if err := g.client.Publish(context.Background(), InboxPrefix, "end").Err(); err != nil {
		return nil, err
	}
	for {
		message, err := g.inbox.ReceiveMessage(context.Background())
		if err != nil || message.Payload == "end" {
			return list, err
		}
		words, err := parsePublished(message.Channel, message.Payload)
		if err != nil {
			return nil, err
		}
		list = append(list, words)
	}
}
