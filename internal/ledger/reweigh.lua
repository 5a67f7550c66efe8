-- reweigh: changes the weight of a lease that is held. Less is always possible, and granted on at once; the token stays.
-- More is possible if it fits at this moment and nobody waits, and comes with a new token: a holder that waited for
-- others to leave would deadlock with another that does the same.
--
-- The holder numbers its requests. The record remembers the last number that was applied, as a term, so that a request
-- which arrives late undoes nothing, and one that is sent again does nothing twice.
--
-- ARGV 1 id  2 weight  3 limit the caller states  4 number: 1, 2, 3…, below 2^53; if it is left out, the next
-- Returns  {1, token, weight}  done, now or before
--          {0}                 not held: it expired, was released, or never was
--          {2}                 not held: it was forced
--          {3, held, limit}    refused: the additional permits are held or waited for; the number may be tried again
--          {4, weight}         stale: a higher number was applied, and made it this weight
-- Errors   WRONGTYPE if a key of the resource is not the ledger's.
-- Cost     O(log n), and at most 1,000 expired entries and 100 grants.

--@include prelude.lua
--@include functions.lua

-- numbered returns the terms with the number applied last.
local function numbered(terms, number)
  local mark = 'r' .. integer(number)
  if terms == '-' then
    return mark
  end
  local others, found = string.gsub(terms, 'r%d+', mark)
  return found > 0 and others or terms .. ',' .. mark
end

local id, new, stated = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local record = open(id)
if not leaseWeight(record) then
  finish()
  return {barred(id) and FORCED or LOST}
end
local old, fence, since, ttl, terms, owner = lease(record)
local last = term(terms, 'r') or 0
local number = tonumber(ARGV[4] or last + 1)
if number <= last then
  finish()
  return number < last and {STALE, old} or {HELD, fence, old}
end
if new > old then
  promote()
  if head or held - old + new > (operator or stated) then
    finish()
    return {BUSY, held, operator or stated}
  end
  fence = math.max(token + 1, nowUs)
  token = fence
end
write(id, string.format('L %d %d %d %d %s %s', new, fence, since, ttl, numbered(terms, number), owner))
if new ~= old then
  held, dirty, moved = held - old + new, true, true
  event('reweigh', id, new, fence, now - since, owner)
end
finish()
return {HELD, fence, new}
