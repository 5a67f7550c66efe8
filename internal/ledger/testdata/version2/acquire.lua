-- acquire: takes permits for an id, or a place in the queue; asked again by the same id it is the retry, the waiter's
-- heartbeat and the confirmation of a grant, and never grants twice.
--
-- ARGV 1 id  2 weight  3 limit the caller states  4 ttlMs  5 waitMs, 0 = do not wait  6 claimMs  7 terms  8 owner
-- Returns  {1, token, nowMs}                     granted, until nowMs + ttlMs
--          {2, waiters ahead, ms, nowMs}         waiting; the earliest lease expires, or the pace is over, in ms
--          {3, ms, held, limit}                  refused, since waitMs is 0; the same ms
--          {4}                                   barred: the id was cancelled or forced
--          {5, limit}                            heavy: the weight can never fit
-- Errors   WRONGTYPE if a key of the resource is not the ledger's.
-- Cost     O(log n) in holders and waiters, and at most 1,000 expired entries and 100 grants of others.
--@include prelude.lua

local id, weight, stated, ttl = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local wait, claim, terms, owner = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8]

-- The fast lane: nobody holds, nobody waits, nobody watches, there is nothing to repair, and no terms to keep.
if present == 0 and count == 0 and not selfRecord and not watched and terms == '-' and weight <= (operator or stated) then
  token = math.max(token + 1, nowUs)
  local lifeMs, expires = string.format('%d', ttl + TAIL), string.format('%d', now + ttl)
  call('ZADD', LEASES, expires, id)
  call('PEXPIRE', LEASES, lifeMs)
  call('HSET', STATE, 'limit', ARGV[3], 'token', string.format('%d', token), 'held', ARGV[2], 'count', '1',
    'ends', expires, 'clock', stamp, id, string.format('L %d %d %d %d - %s', weight, token, now, ttl, owner))
  if stateNew then
    call('PEXPIRE', STATE, lifeMs)
  elseif not operator then
    call('PEXPIRE', STATE, lifeMs, 'GT')
  end
  return {GRANTED, token, now}
end

--@include functions.lua
local record = open(id)

if leaseWeight(record) then
  local _, fence, _, _, agreed = lease(record)
  call('ZADD', LEASES, now + ttl, id)
  leasesUntil = ttl + (term(agreed, 'c') or 0)
  finish()
  return {GRANTED, fence, now}
end

if barred(id) then
  finish()
  return {BARRED}
end

local queuedWeight, queuedStated = waiter(record)
local waits = queuedWeight ~= nil
weight, stated = queuedWeight or weight, queuedStated or stated
local effective = operator or stated

if weight > effective then
  if waits then
    leave(id, record)
  end
  finish()
  return {HEAVY, effective}
end

if not waits then
  if limit ~= stated then
    write('limit', integer(stated))
  end
  promote()
  if not head and held + weight <= effective then
    pause = paceDue(terms)
    if pause == 0 then
      local fence = grant(id, weight, ttl, ttl, terms, owner, 0)
      finish()
      return {GRANTED, fence, now}
    end
  end
  if wait == 0 then
    finish()
    return {REFUSED, nextExpiry(), held, effective}
  end
  call('HSET', STATE, id, string.format('W %d %d %d %d %d %s %s', weight, stated, now, ttl, claim, terms, owner))
  event('wait', id, weight, 0, 0, owner)
  if not head then
    notice()
  end
end

if not waits or not call('ZSCORE', QUEUE, id) then
  local last = call('ZRANGE', QUEUE, -1, -1, 'WITHSCORES')
  call('ZADD', QUEUE, (tonumber(last[2]) or 0) + 1, id)
  head = head or id
end
local seen = math.min(claim, wait)
call('ZADD', SEEN, now + seen, id)

local fence = finish(id)
if fence then
  return {GRANTED, fence, now}
end
cover(QUEUE, seen)
cover(SEEN, seen)
cover(STATE, seen)
return {WAITING, call('ZRANK', QUEUE, id) or 0, capped and 0 or nextExpiry(), now}
end)()
