-- limit: takes from a rate, by the generic cell rate algorithm: the state is one number, the time at which the next unit
-- would be on time if there were no burst. What cannot go at once is promised for later, in the order of asking.
--
-- KEYS 1 RATE  STRING  that time in us, and behind '.0' the us at which it was written: if that is still to come, the
--                      server's clock went back, and the time with it. Read as one number it is the time alone, for the
--                      rest is far below what a number can tell: so the version before this one reads it, and this one
--                      reads what that one wrote.
-- ARGV 1 intervalUs between units  2 burst, units  3 cost, units  4 waitUs, the longest delay that is of use
-- Returns  {1, delayUs, mark}   taken: the caller may go on in delayUs; with `mark` it can be given back
--          {0, delayUs}         refused: it would take that long
-- Errors   WRONGTYPE if the key is not the ledger's.
-- Cost     O(1)

local REFUSED, TAKEN = 0, 1
local clock = redis.call('TIME')
local nowUs = clock[1] * 1000000 + clock[2]
local intervalUs, burst, cost, waitUs = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

-- store puts down a time, and when it was.
local function store(time)
  redis.call('SET', KEYS[1], string.format('%d.0%d', time, nowUs), 'PX',
    string.format('%d', math.ceil((time - nowUs) / 1000) + 1))
end

local before, written = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)%.?0?(%d*)$')
local backUs = math.max(0, (tonumber(written) or 0) - nowUs)
before = math.max((tonumber(before) or 0) - backUs, nowUs)
local onTime = before + cost * intervalUs
local delayUs = math.max(0, onTime - burst * intervalUs - nowUs)
if delayUs > waitUs then
  if backUs > 0 then
    store(before)
  end
  return {REFUSED, delayUs}
end
store(onTime)
return {TAKEN, delayUs, onTime}
