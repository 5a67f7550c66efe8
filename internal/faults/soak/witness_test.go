//go:build unix

package soak_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
)

// The witness is a server of its own, on which every holder writes itself down: after its grant and before its release.
// A holder that is killed does not sign off, so each entry counts until the deadline that its holder believed in. All
// processes are on one machine, so they have one clock.

// enter notes a holder, and says who holds too much. A token of an exclusive lock is larger than all before, unless the
// lease was over on arrival.
//
// KEYS 1 holders, 2 newest token. ARGV 1 id, 2 weight, 3 deadline in µs, 4 limit, 5 token, or 0 if it need not be larger
var enter = redis.NewScript(`
	local time = redis.call('TIME')
	local now = time[1] * 1000000 + time[2]
	local sum, text, entries = 0, '', redis.call('HGETALL', KEYS[1])
	for i = 1, #entries, 2 do
		local weight, deadline = string.match(entries[i + 1], '(%d+) (%d+)')
		if tonumber(deadline) <= now then
			redis.call('HDEL', KEYS[1], entries[i])
		elseif entries[i] ~= ARGV[1] then
			sum, text = sum + weight, text .. ' ' .. entries[i] .. ' (' .. weight .. ')'
		end
	end
	if tonumber(ARGV[3]) <= now then
		return ''
	end
	redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. ARGV[3])
	if sum + ARGV[2] > tonumber(ARGV[4]) then
		return 'L1: of ' .. ARGV[4] .. ' permits ' .. ARGV[1] .. ' has ' .. ARGV[2] .. ' beside' .. text
	end
	if ARGV[5] ~= '0' then
		local newest = redis.call('GET', KEYS[2]) or '0'
		if tonumber(ARGV[5]) <= tonumber(newest) then
			return 'L2: token ' .. ARGV[5] .. ' after ' .. newest
		end
		redis.call('SET', KEYS[2], ARGV[5])
	end
	return ''
`)

type witness struct{ client *redis.Client }

func holdersOf(name string) string { return "holders:" + name }

// enter is told of a grant. exclusive says that tokens must increase from one to the next.
func (w witness) enter(ctx context.Context, lease *signalbox.Lease, weight, limit int, exclusive bool) error {
	token := int64(0)
	if exclusive {
		token = lease.Token()
	}
	name := lease.Resource()
	found, err := enter.Run(ctx, w.client, []string{holdersOf(name), "newest:" + name}, lease.ID(), weight,
		lease.Deadline().UnixMicro(), limit, token).Text()
	switch {
	case err != nil:
		return fmt.Errorf("the witness: %w", err)
	case found != "":
		return fmt.Errorf("%q: %s, at %s", name, found, time.Now().Format(time.StampMicro))
	}
	return nil
}

// leave is told before a release, and of a lease that has ended.
func (w witness) leave(ctx context.Context, lease *signalbox.Lease) error {
	return w.client.HDel(ctx, holdersOf(lease.Resource()), lease.ID()).Err()
}
