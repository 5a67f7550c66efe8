-- raise: lifts the last token, so that the next grant's is larger than one that was made elsewhere: with a quorum of
-- servers every majority then knows the largest.
--
-- ARGV 1 id  2 token
-- Returns  1 done   0 not held: it expired, was released, or never was   2 not held: it was forced
-- Errors   WRONGTYPE if a key of the resource is not the ledger's.
-- Cost     O(log n), and at most 1,000 expired entries and 100 grants.

--@include prelude.lua
--@include functions.lua

local id = ARGV[1]
if not leaseWeight(open(id)) then
  finish()
  return barred(id) and FORCED or LOST
end
token, dirty = math.max(token, tonumber(ARGV[2])), true
finish()
return HELD
