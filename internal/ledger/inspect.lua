-- inspect: who holds, who waits in which order, and the numbers of a resource.
--
-- ARGV 1 how many holders and how many waiters to list at most
-- Returns  {nowMs, limit (0 if no caller stated one), operator (0 if none), token, held, leases, waiters,
--           {id, record, expiresMs, ...}, {id, record, the ms by which it must be heard from, ...}}
-- Errors   WRONGTYPE if a key of the resource is not the ledger's.
-- Cost     O(log n + what is listed), and at most 1,000 expired entries and 100 grants.

--@include prelude.lua
--@include functions.lua

local most = tonumber(ARGV[1])
open('')
finish()

local function listed(key, scores)
  local list = {}
  if most > 0 then
    for _, id in ipairs(call('ZRANGE', key, 0, most - 1)) do
      list[#list + 1] = id
      list[#list + 1] = call('HGET', STATE, id) or ''
      list[#list + 1] = tonumber(call('ZSCORE', scores, id) or 0)
    end
  end
  return list
end

return {
  now, limit or 0, operator or 0, token, held, count, call('ZCARD', QUEUE),
  listed(LEASES, LEASES), listed(QUEUE, SEEN)
}
