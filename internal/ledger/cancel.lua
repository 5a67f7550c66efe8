-- cancel: takes an acquisition back in whatever state it is, and bars its id from acquiring for a while, so that an
-- acquire still under way leaves nothing behind.
--
-- ARGV 1 id  2 barMs  3 '1' if a holder takes back what he has held, so that it rests if it was to be held longer
-- Returns  0 unknown   1 it was waiting   2 it held a lease, which is released
-- Errors   WRONGTYPE if a key of the resource is not the ledger's.
-- Cost     O(log n), and at most 1,000 expired entries and 100 grants.

--@include prelude.lua
--@include functions.lua

local id, barMs = ARGV[1], tonumber(ARGV[2])
if few then
  call('HDEL', STATE, 'queue') -- FREES
end
local record = open(id)
local was = WAS_UNKNOWN
if leaseWeight(record) then
  if ARGV[3] == '1' then
    giveBack(id, record)
  else
    drop(id, record, 'release')
  end
  was = WAS_HELD
elseif waiter(record) then
  leave(id, record)
  was = WAS_WAITING
end
bar(id, barMs)
finish()
return was
