-- force: ends leases by hand, without their holders' consent, and bars their ids, so that renew, release and acquire
-- of them are refused. One waiter may be sent away the same way.
--
-- ARGV 1 id, '' = every lease, resting permits too (1,000 in one call)  2 barMs, at least the ttl of each
-- Returns  how many were ended
-- Errors   WRONGTYPE if a key of the resource is not the ledger's.
-- Cost     O(m log n) for m ended, and at most 1,000 expired entries and 100 grants.

--@include prelude.lua
--@include functions.lua

local barMs = tonumber(ARGV[2])
if few then
  call('HDEL', STATE, 'queue') -- FREES
end

local function expel(id, record)
  if leaseWeight(record) then
    drop(id, record, 'force')
  elseif waiter(record) then
    leave(id, record)
  else
    return 0
  end
  local ttl = tonumber(string.match(record, '^L %d+ %d+ %d+ (%d+)') or 0)
  bar(id, math.max(barMs, ttl))
  tell(id, 'force ' .. id)
  return 1
end

local forced = 0
if ARGV[1] ~= '' then
  forced = expel(ARGV[1], open(ARGV[1]))
else
  open('')
  for _, id in ipairs(call('ZRANGE', LEASES, 0, BATCH - 1)) do
    forced = forced + expel(id, call('HGET', STATE, id))
  end
end
finish()
return forced
