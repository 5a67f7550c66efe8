-- watch: has the transitions publish what they do on the channel STATE .. ':events', for a while, and brings the ledger
-- up to this moment, which publishes what has expired.
--
-- The messages are "kind nowMs id weight token ms owner": grant (ms waited), wait, leave (waited; gave up, died or was
-- sent away), release, expire, force (held), reweigh (held so far), resize (the limit as weight, no id).
--
-- ARGV 1 ms
-- Returns  {nowMs, ms until the earliest lease expires, 0 if none is held}
-- Errors   WRONGTYPE if a key of the resource is not the ledger's.
-- Cost     O(log n), and at most 1,000 expired entries and 100 grants.

--@include prelude.lua
--@include functions.lua

local forMs = tonumber(ARGV[1])
open('')
watched = true
write('watched', integer(now + forMs))
stateUntil = forMs
finish()
return {now, capped and 1 or (count > 0 and math.max(1, nextExpiry()) or 0)}
