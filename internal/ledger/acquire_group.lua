-- acquire_group: takes permits of several resources, or a place in the queue of each, all or nothing; asked again with the
-- same ids it is the retry and the waiter's heartbeat. While it waits it holds nothing. It takes its places in all
-- queues in one step, so that of two that want the same resources one is in front everywhere: they cannot wait for each
-- other. Only this transition can grant them; whoever brings one to the head of a queue where it fits asks it to look.
--
-- ARGV id, weight, limit the caller states, for each resource; then ttlMs, waitMs (0 = do not wait), claimMs, owner
-- Returns  {1, nowMs, token, ...}                granted, until nowMs + ttlMs, with a token for each resource
--          {2, waiters ahead at most, ms, nowMs} waiting; it is worth asking in ms
--          {3, which, ms, held, limit}           refused since waitMs is 0; `which` is the first that is busy
--          {4, which}                            barred: an id was cancelled or forced, or one of the leases was lost
--          {5, which, limit}                     heavy: the weight can never fit
-- Errors   WRONGTYPE if a key of a resource is not the ledger's. CROSSSLOT in a Cluster if the names have no common
--          hash tag.
-- Cost     for each resource O(log n), and at most 1,000 expired entries and 100 grants.

--@include prelude.lua
--@include functions.lua

local n = #KEYS / 4
local ttl, wait, claim, owner = tonumber(ARGV[3 * n + 1]), tonumber(ARGV[3 * n + 2]), tonumber(ARGV[3 * n + 3]),
  ARGV[3 * n + 4]

-- visit loads the i-th resource and returns what is asked of it, and the record of the id as it is now.
local function visit(i)
  first, self = 4 * i - 3, ARGV[3 * i - 2]
  --@include read.lua
  begin()
  return self, tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i]), open(self)
end

-- Look at all before anything is decided.
local ours, placed, barredAt, heavyAt, heavyLimit, busyAt, busy = 0, 0, nil, nil, nil, nil, nil
local earliest = NEVER
local fences = {}
for i = 1, n do
  local id, weight, stated, record = visit(i)
  local effective = operator or stated
  promote(id)
  if leaseWeight(record) then
    local _, fence = lease(record)
    ours, fences[i] = ours + 1, fence
  elseif barred(id) then
    barredAt = barredAt or i
  elseif weight > effective then
    heavyAt, heavyLimit = heavyAt or i, heavyLimit or effective
  else
    if waiter(record) and call('ZSCORE', QUEUE, id) then
      placed = placed + 1
    end
    if (head and head ~= id) or held + weight > effective then
      busyAt, busy = busyAt or i, busy or {nextExpiry(), held, effective}
      earliest = math.min(earliest, capped and 0 or nextExpiry())
    end
  end
  finish(id)
end

if ours == n then
  for i = 1, n do
    local id = visit(i)
    call('ZADD', LEASES, now + ttl, id)
    leasesUntil = ttl
    finish()
  end
  return {GRANTED, now, unpack(fences)}
end

if barredAt or ours > 0 or heavyAt or (busyAt and wait == 0) then
  for i = 1, n do
    local id, _, _, record = visit(i)
    if waiter(record) then
      leave(id, record)
    end
    finish()
  end
  if barredAt or ours > 0 then
    return {BARRED, barredAt or 1}
  end
  if heavyAt then
    return {HEAVY, heavyAt, heavyLimit}
  end
  return {REFUSED, busyAt, unpack(busy)}
end

if not busyAt then
  for i = 1, n do
    local id, weight, stated, record = visit(i)
    local _, _, since = waiter(record)
    if since then
      call('ZREM', QUEUE, id)
      call('ZREM', SEEN, id)
      head = call('ZRANGE', QUEUE, 0, 0)[1]
    elseif limit ~= stated then
      limit, dirty = stated, true
    end
    fences[i] = grant(id, weight, ttl, ttl, '-', owner, now - (since or now))
    finish()
  end
  return {GRANTED, now, unpack(fences)}
end

-- Places in some queues but not in all would be in another order than others': take all of them anew.
local ahead, heardMs = 0, math.min(claim, wait)
for i = 1, n do
  local id, weight, stated, record = visit(i)
  local known = waiter(record) ~= nil
  if not known then
    call('HSET', STATE, id, string.format('W %d %d %d %d %d g %s', weight, stated, now, ttl, claim, owner))
    if limit ~= stated then
      limit, dirty = stated, true
    end
    if not head then
      notice()
    end
  end
  if placed < n then
    if known then
      ended('leave', id, record)
    end
    event('wait', id, weight, 0, 0, owner)
    call('ZREM', QUEUE, id)
    enqueue(id, stated, heardMs)
    head, moved = call('ZRANGE', QUEUE, 0, 0)[1], true
  end
  hear(id, heardMs)
  cover(QUEUE, heardMs)
  ahead = math.max(ahead, call('ZRANK', QUEUE, id))
  finish(id)
end
return {WAITING, ahead, earliest, now}
