-- resize: sets or clears the operator's limit, which is stronger than the callers'. A larger one grants at once; a
-- smaller one takes nothing away and grants nothing until what is held fits. While it is set, STATE does not expire.
--
-- ARGV 1 limit, 0 = clear
-- Returns  the operator's limit that was set before, 0 if none
-- Errors   WRONGTYPE if a key of the resource is not the ledger's.
-- Cost     O(log n), and at most 1,000 expired entries and 100 grants.

--@include prelude.lua
--@include functions.lua

local new = tonumber(ARGV[1])
open('')
local previous = operator or 0
event('resize', '-', new, 0, 0, '')
if new > 0 then
  operator = new
  dirty = true
  write('operator', integer(new))
  finish()
  call('PERSIST', STATE)
elseif operator then
  operator = nil
  call('HDEL', STATE, 'operator')
  stateUntil = math.max(0, call('PTTL', LEASES) - TAIL, call('PTTL', QUEUE) - TAIL, bars - now)
  lives, dirty = 0, true
  finish()
else
  finish()
end
return previous
