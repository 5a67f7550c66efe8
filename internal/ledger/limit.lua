-- limit: takes from a rate, by the generic cell rate algorithm: the state is one number, the time at which the next unit
-- would be on time if there were no burst. What cannot go at once is promised for later, in the order of asking.
--
-- KEYS 1 RATE  STRING  that time in us
-- ARGV 1 intervalUs between units  2 burst, units  3 cost, units  4 waitUs, the longest delay that is of use
-- Returns  {1, delayUs, mark}   taken: the caller may go on in delayUs; with `mark` it can be given back
--          {0, delayUs}         refused: it would take that long
-- Errors   WRONGTYPE if the key is not the ledger's.
-- Cost     O(1)

local clock = redis.call('TIME')
local nowUs = clock[1] * 1000000 + clock[2]
local intervalUs, burst, cost, waitUs = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local onTime = math.max(tonumber(redis.call('GET', KEYS[1]) or 0) or 0, nowUs) + cost * intervalUs
local delayUs = math.max(0, onTime - burst * intervalUs - nowUs)
if delayUs > waitUs then
  return {0, delayUs}
end
redis.call('SET', KEYS[1], string.format('%d', onTime), 'PX', string.format('%d', math.ceil((onTime - nowUs) / 1000) + 1))
return {1, delayUs, onTime}
