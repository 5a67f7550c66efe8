-- release: ends the lease of an id and grants to the waiters that now fit.
--
-- ARGV 1 id
-- Returns  1 released   0 not held: it expired, was released, or never was   2 not held: it was forced
-- Errors   WRONGTYPE if a key of the resource is not the ledger's.
-- Cost     O(log n), and at most 1,000 expired entries and 100 grants.

--@include prelude.lua

local id = ARGV[1]

-- In the compact form.
if few and selfRecord and soonest > now then
  local ttl = tonumber(string.match(selfRecord, '^L %d+ %d+ %d+ (%d+) '))
  if ttl and ttl <= MEMORY then
    few = string.sub(few, 1, selfAt - 1) .. string.sub(few, selfAfter)
    local line = format(COMPACT, clock[1], clockAhead, token, limit, lives, few)
    if type(redis.pcall('HSET', STATE, 'clock', line)) == 'table' then
      call('HDEL', STATE, 'queue') -- without memory: FREES
      call('HSET', STATE, 'clock', line)
    end
    return HELD
  end
end

-- The fast lane: the lease is in force and without terms, nothing has to be looked for or repaired, and either nobody
-- waits, or the head of the queue is granted and then nobody fits beside it.
if selfRecord and not (few or mixed or special) and soonest > now and not (queued and seen > 0 and seen <= now) then
  local weight, ttl = string.match(selfRecord, '^L (%d+) %d+ %d+ (%d+) %- ')
  local nextID = queued and call('ZRANGE', QUEUE, 0, 0)[1]
  local nextWeight, stated, since, nextTTL, claim, owner
  local plain = weight and not nextID and tonumber(ttl) <= MEMORY
  local heard
  if weight and nextID then
    nextWeight, stated, since, nextTTL, claim, owner =
      string.match(call('HGET', STATE, nextID) or '', '^W (%d+) (%d+) (%d+) (%d+) (%d+) %- (.*)$')
    heard = tonumber(seen > 0 and call('ZSCORE', SEEN, nextID) or 0)
    plain = nextWeight and (since + claim > now or (heard > now and heard % 1 == 0)) and lives >= now + claim + TAIL
      and held - weight + nextWeight <= tonumber(stated) and held - weight + nextWeight >= most
  end
  -- The next lease is written first, so that LEASES is never empty and keeps its expiry; without memory, after: FREES.
  local expires = nextID and plain and now + claim
  local placed = expires and redis.pcall('ZADD', LEASES, 'NX', format('%d', expires), nextID)
  if plain and placed ~= 0 and call('ZREM', LEASES, id) == 1 then
    local alone = count == 1
    held, count = held - weight, count - 1
    if nextID then
      token = math.max(token + 1, nowUs)
      held, count, ends = held + nextWeight, count + 1, alone and expires or math.max(ends, expires)
      if placed ~= 1 then
        call('ZADD', LEASES, format('%d', expires), nextID)
        call('PEXPIRE', LEASES, format('%d', lives - now))
      end
      call('ZREM', QUEUE, nextID)
      if heard > 0 then
        call('ZREM', SEEN, nextID)
      end
    end
    soonest = alone and (expires or 0) or tonumber(call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')[2] or 0)
    if not nextID then
      call('HSET', STATE, 'clock', format(FULL, clock[1], clockAhead, token, held, count, ends, soonest, limit, lives, 0))
      call('HDEL', STATE, id)
      return HELD
    end
    call('HSET', STATE, 'clock', format(FULL, clock[1], clockAhead, token, held, count, ends, soonest, limit, lives, 0),
      nextID, format('L %s %d %d %s - %s', nextWeight, token, now, nextTTL, owner))
    call('HDEL', STATE, id)
--@include tell.lua
    tell(nextID, format('grant %s %d %d %s', nextID, token, now, claim))
    return HELD
  end
  if placed == 1 then
    call('ZREM', LEASES, nextID) -- the lease was lost, and the queue does not say who is next then
  end
end

--@include functions.lua

if few then
  call('HDEL', STATE, 'queue') -- FREES
end
local record = open(id)
if not leaseWeight(record) then
  finish()
  return barred(id) and FORCED or LOST
end
local _, _, _, ttl, terms = lease(record)
giveBack(id, record)
forgets = not term(terms, 'p') and ttl > MEMORY
finish()
return HELD
