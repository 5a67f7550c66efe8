package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// A script that comes to a command which its account may not call is stopped there, and what it has written stays. So it is asked
// what is missing before the first one runs.

// called are the commands on keys that the transitions of producers and workers need. A history needs XADD besides, and who
// takes jobs from plain lists LRANGE, LTRIM and RPUSH.
const called = "EXISTS GET SET PERSIST PEXPIRE PTTL HDEL HEXISTS HGET HGETALL HINCRBY HKEYS HMGET HSET HSETNX " +
	"ZADD ZCOUNT ZLEXCOUNT ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZREM ZREMRANGEBYLEX ZSCORE"

// rightsText returns what the account may not call. It calls none of it.
const rightsText = `local missing = {}
local function need(name, on)
  if not redis.acl_check_cmd(name, on) then missing[#missing + 1] = name end
end
for i = 2, #ARGV do need(ARGV[i], KEYS[1]) end
need('TIME', '')
need('PUBLISH', ARGV[1])
return missing`

// CheckRights makes sure that the account which t uses may do what the queue's transitions do.
func CheckRights(ctx context.Context, t transport.Transport, queue string) error {
	channels := InboxPrefix + "*"
	words := []any{"eval", rightsText, 1, Prefix(queue) + "jobs", strings.TrimSuffix(channels, "*")}
	for _, name := range strings.Fields(called) {
		words = append(words, name)
	}
	const asking = "ask the server what this account may do"
	reply, err := t.Do(ctx, transport.Command{Words: words, Key: 3})
	if err != nil {
		return ledger.Explain(asking, err)
	}
	missing, ok := texts(reply)
	if !ok {
		return fmt.Errorf("%s: %w: an answer that no server gives: %.200q", asking, ledger.ErrServer, fmt.Sprint(reply))
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: this account may not call %s, which the queue needs on the keys %s* and the channels %s: let it (ACL SETUSER), or use another",
			ledger.ErrServer, strings.Join(missing, ", "), Prefix(queue), channels)
	}
	return nil
}
