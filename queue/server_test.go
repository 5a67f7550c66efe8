package queue_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// oldServer answers as a Redis 6 does when it is asked for its version, and counts what else it is asked.
func oldServer(t *testing.T) (addr string, asked *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	asked = &atomic.Int64{}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { answerAsOld(conn, asked) })
		}
	})
	t.Cleanup(func() { // before this one, clients were closed
		must(t, listener.Close())
		serving.Wait()
	})
	return listener.Addr().String(), asked
}

func answerAsOld(conn net.Conn, asked *atomic.Int64) {
	defer conn.Close()
	const info = "# Server\r\nredis_version:6.0.16\r\n"
	for in := bufio.NewReader(conn); ; {
		words, err := readRequest(in)
		if err != nil {
			return
		}
		answer := "+OK"
		switch name := strings.ToLower(words[0]); {
		case name == "hello":
			answer = "-ERR unknown command `HELLO`, with args beginning with: "
		case name == "info" && len(words) > 2:
			answer = "-ERR syntax error"
		case name == "info":
			answer = "$" + strconv.Itoa(len(info)) + "\r\n" + info
		case name != "client" && name != "subscribe": // to hear does nothing
			asked.Add(1)
		}
		if _, err := io.WriteString(conn, answer+"\r\n"); err != nil {
			return
		}
	}
}

func readRequest(in *bufio.Reader) (words []string, err error) {
	number := func() (int, error) {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line)[1:])
	}
	n, err := number()
	for i := 0; err == nil && i < n; i++ {
		var size int
		if size, err = number(); err == nil {
			word := make([]byte, size+2)
			_, err = io.ReadFull(in, word)
			words = append(words, string(word[:size]))
		}
	}
	return words, err
}

func says(t *testing.T, err, want error, texts ...string) {
	t.Helper()
	wantErr(t, err, want)
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in: %v", text, err)
		}
	}
}

// A server that is too old is told as such, with what it is, before it is asked for anything else.
func TestAnOldServerIsNamed(t *testing.T) {
	t.Parallel()
	addr, asked := oldServer(t)
	_, err := queue.Open(within(t), "redis://"+addr, "app")
	says(t, err, queue.ErrUnsupportedServer, addr, `"app"`, "6.0.16", "7.0", "Valkey")

	q := open(t, connect(t, &redis.Options{Addr: addr}))
	_, err = note.Enqueue(within(t), q, "a")
	says(t, err, queue.ErrUnsupportedServer, `"app"`, "6.0.16", "7.0")
	w := q.Worker("w")
	note.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) { return queue.None{}, nil })
	says(t, w.Run(within(t)), queue.ErrUnsupportedServer, `"app"`, "6.0.16", "7.0")
	_, err = q.Stats(within(t))
	says(t, err, queue.ErrUnsupportedServer, `"app"`)
	if n := asked.Load(); n > 0 {
		t.Errorf("%d commands to a server that is not supported", n)
	}
}

// An account that may not do all that scripts do is told what it lacks, and leaves nothing half done.
func TestAnAccountWithoutTheRightsIsToldWhichAndLeavesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		for lacks, rules := range map[string][]any{
			"PUBLISH":                {"~*", "resetchannels", "+@all"}, // as accounts are made by default
			"HINCRBY":                {"~*", "&*", "+@all", "-hincrby"},
			"ZADD, ZREM":             {"~*", "&*", "+@all", "-zadd", "-zrem"},
			"EVAL":                   {"~*", "&*", "+@all", "-eval"},
			"signalbox:queue-inbox:": {"~*", "resetchannels", "&signalbox:inbox:*", "+@all"},
		} {
			must(t, server.Do(within(t), append([]any{"acl", "setuser", "guest", "reset", "on", ">secret"}, rules...)...).Err())
			options := *server.(*redis.Client).Options()
			options.Username, options.Password = "guest", "secret"
			q := open(t, connect(t, &options))
			_, err := note.Enqueue(within(t), q, "a")
			says(t, err, queue.ErrServer, lacks, `"app"`)
			w := q.Worker("w")
			note.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) { return queue.None{}, nil })
			says(t, w.Run(within(t)), queue.ErrServer, lacks, `"app"`)
			keys, err := server.Keys(within(t), "*").Result()
			must(t, err)
			if len(keys) > 0 {
				t.Errorf("without %s: it has left %v", lacks, keys)
			}
		}
	})
}
