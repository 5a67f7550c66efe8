package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// calls is how often each command has been called, by the server's own count, calls from scripts included.
type calls map[string]int64

func countCalls(ctx context.Context, client redis.UniversalClient) (calls, error) {
	info, err := client.Info(ctx, "commandstats").Result()
	if err != nil {
		return nil, err
	}
	c := calls{}
	for line := range strings.Lines(info) {
		name, rest, isCommand := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		count, _, _ := strings.Cut(rest, ",")
		n, err := strconv.ParseInt(count, 10, 64)
		if isCommand && err == nil {
			c[name] = n
		}
	}
	return c, nil
}

// since is the difference to an earlier count. What asked for the count is not in it, nor what counts the holders of a
// semaphore.
func (c calls) since(before calls) calls {
	delta := calls{}
	for name, n := range c {
		if n -= before[name]; n > 0 && name != "info" && name != headcountCommand {
			delta[name] = n
		}
	}
	return delta
}

// sent is how many of the calls came from clients. No script here calls any of these commands, and what one calls is
// none of these, but for SET, which redsync sends and redislock's script calls. The book's older algorithms know no
// scripts: all is sent.
func (c calls) sent(kind string) int64 {
	switch kind {
	case bookKind, fairKind, fairLockedKind:
		return c.total()
	}
	n := c["evalsha"] + c["eval"] + c["subscribe"] + c["unsubscribe"] + c["ping"] + c["hello"]
	if kind == redsyncKind {
		n += c["set"]
	}
	return n
}

// inner is how many of the calls came from scripts.
func (c calls) inner(kind string) int64 { return c.total() - c.sent(kind) - c.housekeeping(kind) }

// housekeeping is what a client sends about its connection and no script calls.
func (c calls) housekeeping(kind string) int64 {
	if c.sent(kind) == c.total() {
		return 0
	}
	var n int64
	for name, some := range c {
		if strings.HasPrefix(name, "client|") || name == "script|load" || name == "flushall" {
			n += some
		}
	}
	return n
}

func (c calls) total() int64 {
	var n int64
	for _, some := range c {
		n += some
	}
	return n
}
