-- release: ends the lease of an id and grants to the waiters that now fit.
--
-- ARGV 1 id
-- Returns  1 released   0 not held: it expired, was released, or never was   2 not held: it was forced
-- Errors   WRONGTYPE if a key of the resource is not the ledger's.
-- Cost     O(log n), and at most 1,000 expired entries and 100 grants.
--@include prelude.lua

local id = ARGV[1]

-- The fast lane: this is the only lease, it is in force and without terms, and nobody waits or watches.
if present == 1 and count == 1 and selfRecord and not watched and tonumber(call('ZSCORE', LEASES, id) or 0) > now then
  local ttl = tonumber(string.match(selfRecord, '^L %d+ %d+ %d+ (%d+) %- '))
  if ttl and ttl <= MEMORY then
    call('ZREM', LEASES, id)
    call('HDEL', STATE, id, 'held', 'count')
    return HELD
  end
end

--@include functions.lua
local record = open(id)
if not leaseWeight(record) then
  finish()
  return barred(id) and FORCED or LOST
end
local _, _, _, ttl, terms = lease(record)
giveBack(id, record)
finish()
if count == 0 and not head and not operator and not term(terms, 'p') and ttl > MEMORY then
  call('PEXPIRE', STATE, MEMORY, 'LT')
end
return HELD
end)()
