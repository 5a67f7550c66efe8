package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/address"
)

// reading is what a server says of itself. What it refuses to say is nil, or missing.
type reading struct {
	checked
	info      told
	config    map[string]string // nil if CONFIG is refused
	cluster   told              // CLUSTER INFO, of a Cluster's node
	inCluster bool              // the URL is a Cluster's
	private   bool              // it is the private local engine, of which nobody sets anything
	sentinels []sentinelView    // those of the URL; nil if it has none
	moved     string            // where the data went, of a server that signalbox move has closed

	open      bool          // connections without a password may give commands
	now       time.Time     // by the server's clock
	ahead     time.Duration // the server's clock before this machine's
	uncertain time.Duration // of ahead

	missing []string // commands, with their key or channel, that this account may not give
	rights  error    // why they cannot be told

	slowest []redis.SlowLog // nil if refused
}

// read asks everything. Only a server that cannot be reached is an error.
func (r *reading) read(ctx context.Context, server *redis.Client) error {
	steps := []struct {
		what string
		ask  func(context.Context, *redis.Client) error
	}{
		{"INFO", r.readInfo},
		{"CONFIG GET", r.readConfig},
		{"GET " + address.MovedKey, r.readMoved},
		{"CLUSTER INFO", r.readCluster},
		{"TIME", r.readClock},
		{"EVAL", r.readRights},
		{"SLOWLOG GET", r.readSlowlog},
		{"PING without a password", r.readOpen},
	}
	for _, step := range steps {
		if err := step.ask(ctx, server); err != nil && !isRefused(err) {
			return fmt.Errorf("ask %s for %s: %w", addressOf(ctx, server), step.what, err)
		}
	}
	return nil
}

func (r *reading) readInfo(ctx context.Context, server *redis.Client) (err error) {
	if r.info, err = askInfo(ctx, server); err != nil {
		return err
	}
	calls, err := askInfo(ctx, server, "commandstats")
	r.info["cmdstat_evalsha"] = calls["cmdstat_evalsha"]
	return err
}

func (r *reading) readConfig(ctx context.Context, server *redis.Client) error {
	reply, err := server.Do(ctx, "config", "get", "save", "appendfsync", "protected-mode", "bind", "min-replicas-to-write").Result()
	if err != nil {
		return err
	}
	r.config = make(map[string]string)
	switch reply := reply.(type) {
	case map[any]any: // RESP3
		for name, value := range reply {
			r.config[fmt.Sprint(name)] = fmt.Sprint(value)
		}
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			r.config[fmt.Sprint(reply[i])] = fmt.Sprint(reply[i+1])
		}
	}
	return nil
}

// readMoved finds out whether it is a replica of itself, as a move leaves its source.
func (r *reading) readMoved(ctx context.Context, server *redis.Client) (err error) {
	if r.info["role"] != "slave" || r.info["master_host"] != "127.0.0.1" || r.info["master_port"] != r.info["tcp_port"] {
		return nil
	}
	if r.moved, err = server.Get(ctx, address.MovedKey).Result(); errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

func (r *reading) readCluster(ctx context.Context, server *redis.Client) error {
	if r.info["cluster_enabled"] != "1" {
		return nil
	}
	text, err := server.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	r.cluster = make(told)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		r.cluster[name] = value
	}
	return nil
}

// readClock takes the fastest of a few answers: it can be off by half of the time that it took.
func (r *reading) readClock(ctx context.Context, server *redis.Client) error {
	for i := range 5 {
		asked := time.Now()
		now, err := server.Time(ctx).Result()
		if err != nil {
			return err
		}
		half := time.Since(asked) / 2
		if i == 0 || half < r.uncertain {
			r.now, r.ahead, r.uncertain = now, now.Sub(asked.Add(half)), half
		}
	}
	return nil
}

// needed are the commands of the library and its scripts, with arguments of the kind that they have there. The scripts
// give those on keys; a test compares.
var needed = []string{
	"EVALSHA", "EVAL", "INFO", "PING", "SCAN 0", "WAIT 0 0", "SUBSCRIBE signalbox:inbox:doctor", "SUBSCRIBE signalbox:queue-inbox:doctor",
	"TIME", "PUBLISH signalbox:inbox:doctor m", "PUBLISH signalbox:queue-inbox:doctor m",
	"DEL KEY", "EXISTS KEY", "GET KEY", "PERSIST KEY", "PEXPIRE KEY 1", "PTTL KEY", "SET KEY v",
	"HDEL KEY f", "HEXISTS KEY f", "HGET KEY f", "HGETALL KEY", "HINCRBY KEY f 1", "HKEYS KEY", "HLEN KEY", "HMGET KEY f",
	"HSCAN KEY 0", "HSET KEY f v", "HSETNX KEY f v", "HVALS KEY",
	"LRANGE KEY 0 1", "LTRIM KEY 0 1", "RPUSH KEY v", "SADD KEY m", "SCARD KEY",
	"ZADD KEY 1 m", "ZCARD KEY", "ZCOUNT KEY 0 1", "ZLEXCOUNT KEY - +", "ZMSCORE KEY m", "ZRANGE KEY 0 1", "ZRANGEBYLEX KEY - +",
	"ZRANGEBYSCORE KEY 0 1", "ZRANK KEY m", "ZREM KEY m", "ZREMRANGEBYLEX KEY - +", "ZREMRANGEBYSCORE KEY 0 1", "ZSCAN KEY 0", "ZSCORE KEY m",
	"UNLINK KEY", "XADD KEY * e v", "XGROUP CREATE KEY g 0-0", "XINFO GROUPS KEY", "XLEN KEY", "XRANGE KEY - +", "XREAD STREAMS KEY 0-0",
	"XREVRANGE KEY + -", "XTRIM KEY MINID 0-0",
}

// neededInCluster are those besides, in a Cluster.
var neededInCluster = []string{
	"SPUBLISH signalbox:inbox:doctor m", "SPUBLISH signalbox:queue-inbox:doctor m",
	"SSUBSCRIBE signalbox:inbox:doctor", "SSUBSCRIBE signalbox:queue-inbox:doctor",
}

// rightsScript returns which of its arguments this account may not give. It gives none.
const rightsScript = `
if not redis.acl_check_cmd then
  return redis.error_reply('ERR it is too old to say')
end
local missing = {}
for _, request in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(request, '%S+') do
    words[#words + 1] = word == 'KEY' and 'signalbox:{doctor}' or word
  end
  local known, allowed = pcall(redis.acl_check_cmd, unpack(words))
  if not (known and allowed) then
    missing[#missing + 1] = words[1]
  end
end
return missing`

func (r *reading) readRights(ctx context.Context, server *redis.Client) error {
	requests := needed
	if r.inCluster {
		requests = slices.Concat(needed, neededInCluster)
	}
	args := make([]any, len(requests))
	for i, request := range requests {
		args[i] = request
	}
	r.missing, r.rights = server.Eval(ctx, rightsScript, nil, args...).StringSlice()
	return r.rights
}

func (r *reading) readSlowlog(ctx context.Context, server *redis.Client) (err error) {
	r.slowest, err = server.SlowLogGet(ctx, 128).Result()
	return err
}

// readOpen tries what somebody may do who has no password.
func (r *reading) readOpen(ctx context.Context, server *redis.Client) error {
	options := *server.Options()
	password := options.Password
	if options.CredentialsProvider != nil {
		_, password = options.CredentialsProvider()
	}
	if password == "" {
		r.open = true
		return nil
	}
	options.Username, options.Password, options.CredentialsProvider = "", "", nil
	stranger := redis.NewClient(&options)
	r.open = stranger.Ping(ctx).Err() == nil
	return stranger.Close()
}

// software is what the server is, as far as it says.
func (r *reading) software() string {
	switch version := r.info["redis_version"]; {
	case r.info["valkey_version"] != "":
		return "Valkey " + r.info["valkey_version"]
	case r.private:
		return "the private local engine, as Redis " + version
	case r.info["server_name"] == "signalbox":
		return "Signalbox's engine, as Redis " + version
	case version != "":
		return "Redis " + version
	}
	return "a server that does not say what it is"
}
