-- latch: a gate that opens when enough parties have counted down, and stays open until it is forgotten.
--
-- KEYS 1 COUNTED  SET   the parties that have
--      2 AWAITING ZSET  id -> the ms by which it must be heard from again
-- ARGV 1 'count', 'await', 'leave' or 'look'  2 the party that counts, or the id that awaits  3 parties needed
--      4 keepMs, for how long it is remembered after the last count  5 claimMs
-- An await that comes late, after its leave, and a clock that went back, leave an id in AWAITING for longer than it awaits:
-- it is told once that the latch is open, and nothing hangs on who awaits.
--
-- Returns  how many parties are still missing
-- Errors   WRONGTYPE if a key is not the ledger's.
-- Cost     O(log n), and when it opens O(m log m) for at most 1,000 that are told; the others ask.

local COUNTED, AWAITING = KEYS[1], KEYS[2]
local verb, who, parties, keepMs, claimMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local TOLD = 1000
local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local missing = math.max(0, parties - call('SCARD', COUNTED))
call('ZREMRANGEBYSCORE', AWAITING, '-inf', now)

if verb == 'count' then
  call('SADD', COUNTED, who)
  call('PEXPIRE', COUNTED, keepMs)
  missing = math.max(0, parties - call('SCARD', COUNTED))
elseif verb == 'await' and missing > 0 then
  call('ZADD', AWAITING, now + claimMs, who)
  call('PEXPIRE', AWAITING, string.format('%d', 2 * claimMs))
elseif verb == 'leave' then
  call('ZREM', AWAITING, who)
end
if missing == 0 then
--@include tell.lua
  for _, id in ipairs(call('ZRANGE', AWAITING, 0, TOLD - 1)) do
    call('ZREM', AWAITING, id)
    tell(id, 'open ' .. id .. ' 0')
  end
end
return missing
