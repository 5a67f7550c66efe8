-- refund: gives back what limit.lua took for a caller that gave up before its time had come, unless somebody has been
-- promised a later time since: that promise cannot be changed.
--
-- KEYS 1 RATE  STRING  as in limit.lua
-- ARGV 1 mark  2 intervalUs  3 cost
-- Returns  1 given back   0 not
-- Errors   WRONGTYPE if the key is not the ledger's.
-- Cost     O(1)

local onTime, written = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)(%.?%d*)$')
if onTime ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], string.format('%d', ARGV[1] - ARGV[2] * ARGV[3]) .. written, 'KEEPTTL')
return 1
