-- barrier: lets a party through when enough of them have come, all at once, and begins anew for the next.
--
-- KEYS 1 ARRIVED ZSET  id -> the ms by which it must be heard from again
--      2 PASSED  ZSET  id -> the round with which it passed, for those who missed the message
-- ARGV 1 'arrive' or 'leave'  2 id  3 parties  4 claimMs
-- Returns  {1, round}     passed; rounds are the server's clock in us, and increase
--          {0, arrived}   not yet; so many have arrived
-- Errors   WRONGTYPE if a key is not the ledger's.
-- Cost     O(log n), and O(n log n) for the last of n parties.

local ARRIVED, PASSED = KEYS[1], KEYS[2]
local verb, id, parties, claimMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local KEEP = 10 -- claim times for which a round is remembered
local call = redis.call
local clock = call('TIME')
local nowUs = clock[1] * 1000000 + clock[2]
local now = math.floor(nowUs / 1000)

local last = tonumber(call('ZRANGE', PASSED, -1, -1, 'WITHSCORES')[2] or 0)
call('ZREMRANGEBYSCORE', ARRIVED, '-inf', now)
local round = call('ZSCORE', PASSED, id)
if round then
  return {1, tonumber(round)}
end
if verb == 'leave' then
  call('ZREM', ARRIVED, id)
  return {0, call('ZCARD', ARRIVED)}
end
call('ZADD', ARRIVED, now + claimMs, id)
local arrived = call('ZCARD', ARRIVED)
if arrived < parties then
  call('PEXPIRE', ARRIVED, string.format('%d', 2 * claimMs))
  return {0, arrived}
end
call('ZREMRANGEBYSCORE', PASSED, '-inf', string.format('(%d', nowUs - 1000 * KEEP * claimMs))
round = math.max(last + 1, nowUs)
for _, party in ipairs(call('ZRANGE', ARRIVED, 0, -1)) do
  call('ZADD', PASSED, string.format('%d', round), party)
  if party ~= id then
    call('PUBLISH', 'signalbox:inbox:' .. string.match(party, '^[^:]*'),
      string.format('open %s %d', party, round))
  end
end
call('DEL', ARRIVED)
call('PEXPIRE', PASSED, string.format('%d', KEEP * claimMs))
return {1, round}
