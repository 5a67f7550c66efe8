-- reweigh: changes the weight of a lease that is held. Less is always possible, and granted on at once; the token stays.
-- More is possible if it fits at this moment and nobody waits, and comes with a new token: a holder that waited for
-- others to leave would deadlock with another that does the same.
--
-- ARGV 1 id  2 weight  3 limit the caller states
-- Returns  {1, token}         done, or it weighs that already
--          {0}                not held: it expired, was released, or never was
--          {2}                not held: it was forced
--          {3, held, limit}   refused: the additional permits are held or waited for
-- Errors   WRONGTYPE if a key of the resource is not the ledger's.
-- Cost     O(log n), and at most 1,000 expired entries and 100 grants.

--@include prelude.lua
--@include functions.lua

local id, new, stated = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
record = open(id)
if not leaseWeight(record) then
  finish()
  return {barred(id) and 2 or 0}
end
local old, fence, since, ttl, terms, owner = lease(record)
if new > old then
  promote()
  if head or held - old + new > (operator or stated) then
    finish()
    return {3, held, operator or stated}
  end
  fence = math.max(token + 1, nowUs)
  token = fence
end
if new ~= old then
  write(id, string.format('L %d %d %d %d %s %s', new, fence, since, ttl, terms, owner))
  held, dirty, moved = held - old + new, true, true
  event('reweigh', id, new, fence, now - since, owner)
end
finish()
return {1, fence}
