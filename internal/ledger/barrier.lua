-- barrier: lets a party through when enough of them have come, all at once, and begins anew for the next.
--
-- KEYS 1 ARRIVED ZSET  id -> the ms by which it must be heard from again
--      2 PASSED  ZSET  id -> the round with which it passed, for those who missed the message
--      3 LEFT    ZSET  id -> the ms until which it is barred: an arrive of it that is late must not count
-- ARGV 1 'arrive' or 'leave'  2 id  3 parties  4 claimMs, the same for all parties
-- Returns  {1, round}     passed; rounds are the server's clock in us, and increase
--          {0, arrived}   not yet; so many have arrived
--          {2}            barred: the id has left
-- Errors   WRONGTYPE if a key is not the ledger's.
-- Cost     O(log n), and O(n log n) for the last of n parties.

local ARRIVED, PASSED, LEFT = KEYS[1], KEYS[2], KEYS[3]
local verb, id, parties, claimMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local WAITING, PASSES, BARRED = 0, 1, 2
local KEEP = 10 -- claim times for which a round is remembered, and who left
local BATCH = 1000
local call = redis.call
local clock = call('TIME')
local nowUs = clock[1] * 1000000 + clock[2]
local now = math.floor(nowUs / 1000)

local keepMs = string.format('%d', KEEP * claimMs)
local last = tonumber(call('ZRANGE', PASSED, -1, -1, 'WITHSCORES')[2] or 0)
local left = tonumber(call('ZSCORE', LEFT, id) or 0) > now
call('ZREMRANGEBYSCORE', ARRIVED, '-inf', now)
-- Nobody has so long, unless the server's clock went back: who is alive arrives again, and counts again.
call('ZREMRANGEBYSCORE', ARRIVED, string.format('%d', now + 2 * claimMs), '+inf')
local round = call('ZSCORE', PASSED, id)
if round then
  return {PASSES, tonumber(round)}
end
if verb == 'leave' then
  call('ZREM', ARRIVED, id)
  local over = call('ZRANGE', LEFT, '-inf', now, 'BYSCORE', 'LIMIT', 0, BATCH)
  if #over > 0 then
    call('ZREM', LEFT, unpack(over))
  end
  call('ZADD', LEFT, string.format('%d', now + KEEP * claimMs), id)
  call('PEXPIRE', LEFT, keepMs)
  return {WAITING, call('ZCARD', ARRIVED)}
end
if left then
  return {BARRED}
end
call('ZADD', ARRIVED, now + claimMs, id)
local arrived = call('ZCARD', ARRIVED)
if arrived < parties then
  call('PEXPIRE', ARRIVED, string.format('%d', 2 * claimMs))
  return {WAITING, arrived}
end
call('ZREMRANGEBYSCORE', PASSED, '-inf', string.format('(%d', nowUs - 1000 * KEEP * claimMs))
round = math.max(last + 1, nowUs)
--@include tell.lua
for _, party in ipairs(call('ZRANGE', ARRIVED, 0, -1)) do
  call('ZADD', PASSED, string.format('%d', round), party)
  if party ~= id then
    tell(party, string.format('open %s %d', party, round))
  end
end
call('DEL', ARRIVED)
-- The round is remembered until the clock, which may have gone back, has passed it: the next must be larger.
call('PEXPIRE', PASSED, string.format('%d', KEEP * claimMs + (round - nowUs) / 1000))
return {PASSES, round}
