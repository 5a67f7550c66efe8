-- still: says that a process is there whose waiters of one resource stood in a heartbeat before, and learns whether one of
-- them may have left the queue since: it costs the same however many they are.
--
-- ARGV 1 claimMs  2 process  3 version of the queue, as the last heartbeat told it
-- Returns  {nowMs, ms}  nobody has left it, and the head is the same; ms is acquire's
--          {}           somebody may have, or was forgotten: heartbeat tells
-- Errors   WRONGTYPE if a key of the resource is not the ledger's.
-- Cost     O(log n), and at most 1,000 expired entries and 100 grants.

--@include prelude.lua

local claim, mark, version = tonumber(ARGV[1]), '@' .. ARGV[2], tonumber(ARGV[3])

-- The fast lane: nothing has to be looked for or repaired.
local plain = queued and not (mixed or special) and soonest > now and seen > now and lives >= now + claim + TAIL
  and queueLives >= now + claim + TAIL
if plain and token + departures == version and call('ZCARD', QUEUE) > 0 then
  if call('ZADD', SEEN, 'XX', 'CH', format('%d', now + claim), mark) == 0 and not call('ZSCORE', SEEN, mark) then
    return {} -- it is not put there: SEEN may be new then, and would never expire
  end
  call('HSET', STATE, 'clock', format(FULL, clock[1], clockAhead, token, held, count, ends, soonest, limit, lives, 0))
  return {now, soonest - now}
end

--@include functions.lua

open('')
if not head then
  finish()
  return {}
end
dirty, stateUntil = true, claim
hear(mark, claim)
if queueLives < now + claim + TAIL then
  queueLives, requeued = now + claim + math.floor(math.min(claim / 2, TAIL)) + TAIL, true
  cover(QUEUE, queueLives - now - TAIL)
end
finish()
if token + departures ~= version then
  return {}
end
return {now, capped and 0 or nextExpiry()}
