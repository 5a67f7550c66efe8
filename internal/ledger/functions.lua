-- What the transitions do, as functions. A transition calls open, does its work, calls finish. Making these functions
-- costs more than an uncontended lock does, so acquire and release have a fast lane in front of them.

local head                                -- id of the first waiter, nil if none waits
local queued = false                      -- QUEUE or SEEN exist
local capped = false                      -- expired entries are left over for the next call
local leasesNew = false
local leasesUntil = 0                     -- ms from now that STATE and LEASES must live for
local writes = {}                         -- fields and values for STATE
local dirty = false                       -- held, count or token changed

local function integer(n)
  return string.format('%d', n)
end

local function write(field, value)
  writes[#writes + 1] = field
  writes[#writes + 1] = value
end

-- cover lets key live for ms from now, or longer if it does. GT does nothing to a key that never expires, and every
-- key is born so. STATE with an operator's limit stays that way; otherwise stateNew tells when it is born.
local function cover(key, ms, new)
  if key == STATE and operator then
    return
  end
  ms = ms + TAIL
  if new or (call('PEXPIRE', key, ms, 'GT') == 0 and key ~= STATE and call('PTTL', key) == -1) then
    call('PEXPIRE', key, ms)
  end
end

-- tell sends one message to the process that an id belongs to. It is a hint: who misses it asks.
local function tell(id, text)
  call('PUBLISH', 'signalbox:inbox:' .. string.match(id, '^[^:]*'), text)
end

local function leaseWeight(record)
  return tonumber(record and string.match(record, '^L (%d+) '))
end

local function waiter(record)
  local weight, own, ttl, claim, owner = string.match(record or '', '^W (%d+) (%d+) %d+ (%d+) (%d+) (.*)$')
  return tonumber(weight), tonumber(own), tonumber(ttl), tonumber(claim), owner
end

-- grant puts a lease down for `forMs` and returns its token.
local function grant(id, weight, ttl, forMs, owner)
  token = math.max(token + 1, nowUs)
  leasesNew = leasesNew or count == 0
  call('ZADD', LEASES, now + forMs, id)
  write(id, string.format('L %d %d %d %d %s', weight, token, now, ttl, owner))
  held, count, dirty = held + weight, count + 1, true
  leasesUntil = math.max(leasesUntil, forMs)
  return token
end

-- drop ends the lease of an id.
local function drop(id, record)
  call('ZREM', LEASES, id)
  call('HDEL', STATE, id)
  held, count, dirty = held - leaseWeight(record), count - 1, true
end

-- leave takes a waiter out of the queue.
local function leave(id)
  call('ZREM', QUEUE, id)
  call('ZREM', SEEN, id)
  call('HDEL', STATE, id)
  head = call('ZRANGE', QUEUE, 0, 0)[1]
end

-- bar refuses an id for ms: an acquire of it that is still under way must not bring it back.
local function bar(id, ms)
  call('ZADD', SEEN, now + ms, '-' .. id)
  cover(SEEN, ms)
end

local function barred(id)
  return queued and call('ZSCORE', SEEN, '-' .. id)
end

-- repair makes the records and LEASES agree again, always towards fewer permits: a lease without a record weighs all
-- there is until it expires, a record without a lease gets one for its whole ttl, unless all leases have expired by
-- then. Records of waiters whose queue has expired go.
local function repair()
  local state, records = call('HGETALL', STATE), {}
  held, count, dirty = 0, 0, true
  -- A hash that loses its last field is deleted, and the expiry that it is given below with it.
  call('HSET', STATE, 'count', 0)
  for i = 1, #state, 2 do
    local id, record = state[i], state[i + 1]
    if string.find(id, ':', 1, true) and leaseWeight(record) then
      records[id] = record
    elseif waiter(record) and not call('ZSCORE', QUEUE, id) then
      call('HDEL', STATE, id)
    end
  end
  for _, id in ipairs(call('ZRANGE', LEASES, 0, -1)) do
    local record = records[id]
    if not record then
      token = math.max(token + 1, nowUs)
      record = string.format('L %d %d %d 0 ', WHOLE, token, now)
      call('HSET', STATE, id, record)
    end
    records[id] = nil
    held, count = held + leaseWeight(record), count + 1
  end
  for id, record in pairs(records) do
    local left = math.min(tonumber(string.match(record, '^L %d+ %d+ %d+ (%d+)')), ends - now)
    if left > 0 then
      call('ZADD', LEASES, now + left, id)
      cover(LEASES, left)
      held, count = held + leaseWeight(record), count + 1
    else
      call('HDEL', STATE, id)
    end
  end
  if count > 0 then
    local lifeMs = math.max(0, call('PTTL', LEASES))
    ends = math.max(ends, now + lifeMs - TAIL)
    write('ends', integer(ends))
    cover(STATE, lifeMs, stateNew)
    stateNew = false
  end
end

-- reap ends leases that have expired.
local function reap(ids)
  local torn = false
  for _, record in ipairs(call('HMGET', STATE, unpack(ids))) do
    local weight = leaseWeight(record)
    held, torn = held - (weight or 0), torn or not weight
  end
  call('HDEL', STATE, unpack(ids))
  call('ZREM', LEASES, unpack(ids))
  count, dirty = count - #ids, true
  if torn then
    repair()
  end
end

-- bury removes waiters that were not heard from, and bars that are over.
local function bury(ids)
  call('ZREM', SEEN, unpack(ids))
  call('ZREM', QUEUE, unpack(ids))
  call('HDEL', STATE, unpack(ids))
  head = call('ZRANGE', QUEUE, 0, 0)[1]
end

-- settle brings the ledger up to this moment.
local function settle()
  local card = call('ZCARD', LEASES)
  local expired = call('ZRANGE', LEASES, '-inf', now, 'BYSCORE', 'LIMIT', 0, BATCH)
  local dead = {}
  queued = present > math.min(card, 1)
  if queued then
    dead = call('ZRANGE', SEEN, '-inf', now, 'BYSCORE', 'LIMIT', 0, BATCH)
    head = call('ZRANGE', QUEUE, 0, 0)[1]
  end
  local torn = card ~= count or (not queued and call('HLEN', STATE) > card + FIELDS)
  if torn then
    repair()
  end
  if #expired > 0 then
    reap(expired)
  end
  if #dead > 0 then
    bury(dead)
  end
  capped = #expired == BATCH or #dead == BATCH
  return #expired + #dead > 0 or torn
end

-- open settles the ledger and returns the record of an id as it is then, nil if it has none that is in force.
local function open(id)
  if present == 0 and count == 0 and not leaseWeight(record) then
    return record
  end
  if settle() then
    record = call('HGET', STATE, id) or nil
  end
  if capped and leaseWeight(record) and tonumber(call('ZSCORE', LEASES, id)) <= now then
    return nil
  end
  return record
end

-- promote grants from the head of the queue while the head fits. If `caller` is reached it gets its full ttl and no
-- message, since it is being answered; its token is returned.
local function promote(caller)
  local own
  for _ = 1, head and GRANTS or 0 do
    local weight, stated, ttl, claim, owner = waiter(call('HGET', STATE, head))
    local most = operator or stated
    if not weight or (capped and tonumber(call('ZSCORE', SEEN, head) or now) <= now) then
      leave(head)
    elseif weight > most then
      tell(head, 'heavy ' .. head .. ' ' .. integer(most))
      leave(head)
    elseif held + weight > most then
      return own
    else
      call('ZREM', QUEUE, head)
      call('ZREM', SEEN, head)
      if head == caller then
        own = grant(head, weight, ttl, ttl, owner)
      else
        local fence = grant(head, weight, ttl, claim, owner)
        tell(head, string.format('grant %s %d %d %d', head, fence, now, claim))
      end
      head = call('ZRANGE', QUEUE, 0, 0)[1]
    end
    if not head then
      return own
    end
  end
  return own
end

-- finish grants what can be granted and writes STATE back.
local function finish(caller)
  local own = promote(caller)
  if dirty then
    write('token', integer(token))
    write('held', integer(held))
    write('count', integer(count))
  end
  if leasesUntil > 0 then
    ends = math.max(leasesNew and 0 or ends, now + leasesUntil)
    write('ends', integer(ends))
  end
  if #writes > 0 then
    call('HSET', STATE, unpack(writes))
  end
  if leasesUntil > 0 then
    cover(LEASES, leasesUntil, leasesNew)
  end
  if leasesUntil > 0 or (stateNew and #writes > 0) then
    cover(STATE, leasesUntil, stateNew)
  end
  return own
end

-- nextExpiry is the ms until the earliest lease expires; 0 if that is due, or if none is held.
local function nextExpiry()
  local first = call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')
  return math.max(0, (tonumber(first[2]) or now) - now)
end
