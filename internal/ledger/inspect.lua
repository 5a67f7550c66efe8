-- inspect: who holds, who waits in which order, and the numbers of a resource.
--
-- ARGV 1 how many holders and how many waiters to list at most
-- Returns  {nowMs, limit (0 if no caller stated one), operator (0 if none), token, held, leases, waiters,
--           {id, record, expiresMs, ...}, {id, record, the ms by which it must be heard from, ...}}
-- Errors   WRONGTYPE if a key of the resource is not the ledger's.
-- Cost     O(log n + what is listed), and at most 1,000 expired entries and 100 grants.

--@include prelude.lua

local listable = tonumber(ARGV[1])

-- The compact form stays what it is.
if few and (count == 0 or soonest > now) then
  local list, expiries = {}, {}
  for expires, id, record in string.gmatch(few, '\n(%d+) (%S+) (L [^\n]*)') do
    expiries[#expiries + 1] = {tonumber(expires), id, record}
  end
  table.sort(expiries, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end)
  for i = 1, math.min(listable, count) do
    list[3 * i - 2], list[3 * i - 1], list[3 * i] = expiries[i][2], expiries[i][3], expiries[i][1]
  end
  return {now, limit, 0, token, held, count, 0, list, {}}
end

--@include functions.lua

open('')
finish()

local function listed(key, scores)
  local list = {}
  if listable > 0 then
    for _, id in ipairs(call('ZRANGE', key, 0, listable - 1)) do
      local record = call('HGET', STATE, id)
      local _, _, since, _, claim = waiter(record)
      list[#list + 1] = id
      list[#list + 1] = record or ''
      list[#list + 1] = tonumber(call('ZSCORE', scores, id) or (claim and since + claim) or 0)
    end
  end
  return list
end

return {
  now, limit, operator or 0, token, held, count, call('ZCARD', QUEUE),
  listed(LEASES, LEASES), listed(QUEUE, SEEN)
}
