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

-- The fast lane: nothing has to be looked for or repaired, there are no terms to keep, and the answer is plain from what
-- was read.
if not (mixed or special or selfRecord) and terms == '-' and weight <= stated and (count == 0 or soonest > now)
  and not (queued and ((seen > 0 and seen <= now) or (bars > now and call('ZSCORE', SEEN, '-' .. id)))) then
  local ahead = queued and call('ZCARD', QUEUE) or 0
  local inOneLine = string.find(id, '^[^%s%z]+$') and not string.find(owner, '\n', 1, true)
  if ahead == 0 and held + weight <= stated and (not few or (count < FEW and inOneLine)) then
    local expires, alone = now + ttl, count == 0
    if alone and inOneLine and not few and (not queued or (seen == 0 and queueLives <= now + TAIL)) and call('EXISTS', LEASES) == 0 then
      few = '' -- it has been quiet for a while
      if queued then
        call('HDEL', STATE, 'queue')
      end
    end
    token, limit = math.max(token + 1, nowUs), stated
    held, count, ends = held + weight, count + 1, alone and expires or math.max(ends, expires)
    soonest = alone and expires or math.min(soonest, expires)
    local longer = lives < expires + TAIL
    if longer then
      lives = expires + math.floor(math.min(ttl / 2, TAIL)) + TAIL
    end
    if few then
      few = format('%s\n%d %s L %d %d %d %d - %s', few, expires, id, weight, token, now, ttl, owner)
      call('HSET', STATE, 'clock', format(COMPACT, clock[1], clockAhead, token, limit, lives, few))
    else
      call('ZADD', LEASES, format('%d', expires), id)
      call('HSET', STATE, 'clock', format(FULL, clock[1], clockAhead, token, held, count, ends, soonest, limit, lives, 0),
        id, format('L %d %d %d %d - %s', weight, token, now, ttl, owner))
      if longer or alone then
        call('PEXPIRE', LEASES, format('%d', lives - now))
      else
        call('PEXPIRE', LEASES, format('%d', lives - now), 'NX') -- it may have been lost, and be new
      end
    end
    if longer then
      call('PEXPIRE', STATE, format('%d', lives - now + clockAhead))
    end
    return {GRANTED, token, now}
  end
  local plain = count > 0 and limit == stated and (ahead == 0 or held >= most) and held + weight > stated
  if plain and wait == 0 then
    return {REFUSED, soonest - now, held, stated}
  end
  if plain and queued and stated <= most and lives >= now + claim + TAIL then
    local again = ahead > 0 and queueLives >= now + claim + TAIL
    if not again then
      queueLives = math.max(queueLives, now + claim + math.floor(math.min(claim / 2, TAIL)) + TAIL)
    end
    tail = tail + 1
    call('ZADD', QUEUE, tail, id)
    call('HSET', STATE, 'queue', format(QUEUED, most, tail, seen, bars, queueLives, departures),
      id, format('W %d %d %d %d %d - %s', weight, stated, now, ttl, claim, owner))
    if not again then
      call('PEXPIRE', QUEUE, format('%d', queueLives - now))
    end
    return {WAITING, ahead, soonest - now, now}
  end
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
    limit, dirty = stated, true
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
  call('HSET', STATE, id, format('W %d %d %d %d %d %s %s', weight, stated, now, ttl, claim, terms, owner))
  event('wait', id, weight, 0, 0, owner)
  if not head then
    notice()
  end
end

local heardMs = math.min(claim, wait)
if not waits or not call('ZSCORE', QUEUE, id) then
  enqueue(id, stated, heardMs)
  head = head or id
end
local named = waits and tonumber(call('ZSCORE', SEEN, id) or 0) or 0
if named % 1 > 0 and named > now + heardMs then
  hear('@' .. string.match(id, '^[^:]*'), heardMs) -- it counts for longer already, while its process does
else
  hear(id, heardMs)
end

local fence = finish(id)
if fence then
  return {GRANTED, fence, now}
end
cover(QUEUE, heardMs)
return {WAITING, call('ZRANK', QUEUE, id) or 0, capped and 0 or nextExpiry(), now}
