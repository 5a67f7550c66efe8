return (function()
-- What the transitions do, as functions. A transition calls open, does its work, calls finish. Making these functions
-- costs more than an uncontended lock does, so acquire and release have a fast lane in front of them.
--
-- All from here to the end of the transition is put into a function of its own (script.go). What the functions share of
-- prelude.lua are then variables around it, which a server finds at once; those beside it in one function it looks for
-- in a list, for each of them in each function.

local head        -- id of the first waiter, nil if none waits
local queued      -- QUEUE or SEEN exist
local capped      -- expired entries are left over for the next call
local leasesNew
local leasesUntil -- ms from now that STATE and LEASES must live for
local writes      -- fields and values for STATE
local dirty       -- held, count or token changed
local moved       -- somebody came, went or was granted: the head may have to be told
local pause       -- ms until the pace allows the head its grant
local noticed     -- ids granted in this call that want notice

-- begin makes them those of a resource that has just been read.
local function begin()
  head, queued, capped, leasesNew, leasesUntil = nil, false, false, false, 0
  writes, dirty, moved, pause, noticed = {}, false, false, 0, {}
end
begin()

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

local function lease(record)
  local weight, fence, since, ttl, terms, owner = string.match(record, '^L (%d+) (%d+) (%d+) (%d+) (%S+) (.*)$')
  return tonumber(weight), tonumber(fence), tonumber(since), tonumber(ttl), terms, owner
end

local function waiter(record)
  local weight, own, since, ttl, claim, terms, owner =
    string.match(record or '', '^W (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (.*)$')
  return tonumber(weight), tonumber(own), tonumber(since), tonumber(ttl), tonumber(claim), terms, owner
end

-- term returns the number behind a letter of the terms, nil if it is not among them.
local function term(terms, letter)
  return tonumber(string.match(terms, letter .. '(%d+)'))
end

-- event tells those who watch what became of an id: `ms` is for how long it held, or had waited.
local function event(kind, id, weight, fence, ms, owner)
  if watched then
    call('PUBLISH', STATE .. ':events',
      string.format('%s %d %s %d %d %d %s', kind, now, id, weight, fence, math.max(ms, 0), owner))
  end
end

-- ended is the event of a lease or of a waiter that is no more.
local function ended(kind, id, record)
  if not watched or not record then
    return
  end
  local weight, fence, since, _, _, owner = lease(record)
  if weight then
    event(kind, id, weight, fence, now - since, owner)
    return
  end
  local queuedWeight, _, queuedSince, _, _, _, queuedOwner = waiter(record)
  if queuedWeight then
    event(kind, id, queuedWeight, 0, now - queuedSince, queuedOwner)
  end
end

-- paceDue is the ms until the pace of the terms allows the next grant, 0 if it does now.
local function paceDue(terms)
  local interval, burst = string.match(terms, 'p(%d+):(%d+)')
  if not interval then
    return 0
  end
  local paced = tonumber(call('HGET', STATE, 'pace') or 0)
  return math.max(0, math.ceil((paced - (burst - 1) * interval - nowUs) / 1000))
end

-- grant puts a lease down for `forMs` and returns its token.
local function grant(id, weight, ttl, forMs, terms, owner, waited)
  local fence = math.max(token + 1, nowUs)
  token = fence + (term(terms, 'b') or 0)
  leasesNew = leasesNew or count == 0
  call('ZADD', LEASES, now + forMs, id)
  write(id, string.format('L %d %d %d %d %s %s', weight, fence, now, ttl, terms, owner))
  held, count, dirty, moved = held + weight, count + 1, true, true
  leasesUntil = math.max(leasesUntil, forMs + (term(terms, 'c') or 0))
  local interval = term(terms, 'p')
  if interval then
    local paced = math.max(tonumber(call('HGET', STATE, 'pace') or 0), nowUs) + interval
    call('HSET', STATE, 'pace', integer(paced))
    leasesUntil = math.max(leasesUntil, math.ceil((paced - nowUs) / 1000))
  end
  if string.find(terms, 'n', 1, true) then
    noticed[#noticed + 1] = id
  end
  event('grant', id, weight, fence, waited, owner)
  return fence
end

-- drop ends the lease of an id. kind is what watchers are told.
local function drop(id, record, kind)
  call('ZREM', LEASES, id)
  call('HDEL', STATE, id)
  held, count, dirty, moved = held - leaseWeight(record), count - 1, true, true
  ended(kind, id, record)
end

-- rest puts the permits of a lease that has ended aside for ms, as a lease that nobody can renew or release. The head of
-- the queue may know only of an expiry that is much later.
local function rest(id, record, ms)
  local weight, fence, _, _, _, owner = lease(record)
  leasesNew = leasesNew or count == 0
  call('ZADD', LEASES, now + ms, '!' .. id)
  write('!' .. id, string.format('L %d %d %d %d - %s', weight, fence, now, ms, owner))
  held, count, dirty = held + weight, count + 1, true
  leasesUntil = math.max(leasesUntil, ms)
  if head then
    tell(head, string.format('ask %s %d', head, ms))
  end
end

-- giveBack ends the lease of an id by its holder's will. What it was to hold at least rests until then.
local function giveBack(id, record)
  local _, _, since, _, terms = lease(record)
  local holdMs = term(terms, 'h') or 0
  local restMs = math.min(holdMs, since + holdMs - now) -- the clock may be a little before `since`
  drop(id, record, 'release')
  if restMs > 0 then
    rest(id, record, restMs)
  end
end

-- notice tells the holders who asked for it that somebody waits now, where nobody did.
local function notice()
  local ids = call('ZRANGE', LEASES, 0, NOTICES - 1)
  for i, record in ipairs(#ids > 0 and call('HMGET', STATE, unpack(ids)) or ids) do
    if record and string.find(record, '^L %d+ %d+ %d+ %d+ [^ ]*n') then
      tell(ids[i], 'wanted ' .. ids[i])
    end
  end
end

-- leave takes a waiter out of the queue.
local function leave(id, record)
  ended('leave', id, record)
  call('ZREM', QUEUE, id)
  call('ZREM', SEEN, id)
  call('HDEL', STATE, id)
  head, moved = call('ZRANGE', QUEUE, 0, 0)[1], true
end

-- bar refuses an id for ms: an acquire of it that is still under way must not bring it back.
local function bar(id, ms)
  call('ZADD', SEEN, now + ms, '-' .. id)
  cover(SEEN, ms)
end

local function barred(id)
  return queued and call('ZSCORE', SEEN, '-' .. id)
end

-- mend is what settle finds to do, which is seldom: its functions are made only then.
local function mend(torn, expired, dead)
  -- repair makes the records and LEASES agree again, always towards fewer permits: a lease without a record weighs all
  -- there is until it expires, a record without a lease gets one for its whole ttl, unless all leases have expired by
  -- then. Records of waiters whose queue has expired go.
  local function repair()
    local state, records = call('HGETALL', STATE), {}
    held, count, dirty, moved = 0, 0, true, true
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
        record = string.format('L %d %d %d 0 - ', WHOLE, token, now)
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

  -- reap ends leases that have expired. Those with a cool-down leave their permits resting.
  local function reap(ids)
    local bare, resting = false, {} -- bare: a lease has no record
    local records = call('HMGET', STATE, unpack(ids))
    for i, id in ipairs(ids) do
      local record = records[i]
      local weight = leaseWeight(record)
      held, bare = held - (weight or 0), bare or not weight
      local coolMs = weight and string.match(record, '^L %d+ %d+ %d+ %d+ %S*c(%d+)')
      local left = coolMs and call('ZSCORE', LEASES, id) + coolMs - now
      if left and left > 0 then
        resting[#resting + 1] = {id, record, left}
      end
      if watched and string.sub(id, 1, 1) ~= '!' then
        ended('expire', id, record)
      end
    end
    call('HDEL', STATE, unpack(ids))
    call('ZREM', LEASES, unpack(ids))
    count, dirty, moved = count - #ids, true, true
    if bare then
      repair()
    end
    for _, lost in ipairs(resting) do
      rest(lost[1], lost[2], lost[3])
    end
  end

  -- bury removes waiters that were not heard from, and bars that are over.
  local function bury(ids)
    if watched then
      for i, record in ipairs(call('HMGET', STATE, unpack(ids))) do
        ended('leave', ids[i], record)
      end
    end
    call('ZREM', SEEN, unpack(ids))
    call('ZREM', QUEUE, unpack(ids))
    call('HDEL', STATE, unpack(ids))
    head, moved = call('ZRANGE', QUEUE, 0, 0)[1], true
  end

  if torn then
    repair()
  end
  if #expired > 0 then
    reap(expired)
  end
  if #dead > 0 then
    bury(dead)
  end
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
  local found = torn or #expired + #dead > 0
  if found then
    mend(torn, expired, dead)
    capped = #expired == BATCH or #dead == BATCH
  end
  return found
end

-- open settles the ledger and returns the record of an id as it is then, nil if it has none that is in force.
local function open(id)
  if present == 0 and count == 0 and not leaseWeight(selfRecord) then
    return selfRecord
  end
  if settle() then
    selfRecord = call('HGET', STATE, id) or nil
  end
  if capped and leaseWeight(selfRecord) and tonumber(call('ZSCORE', LEASES, id)) <= now then
    return nil
  end
  return selfRecord
end

-- promote grants from the head of the queue while the head fits. If `caller` is reached it gets its full ttl and no
-- message, since it is being answered; its token is returned.
local function promote(caller)
  local own
  for _ = 1, head and GRANTS or 0 do
    local record = call('HGET', STATE, head)
    local weight, stated, since, ttl, claim, terms, owner = waiter(record)
    local most = operator or stated
    if not weight or (capped and tonumber(call('ZSCORE', SEEN, head) or now) <= now) then
      leave(head, record)
    elseif weight > most then
      tell(head, 'heavy ' .. head .. ' ' .. integer(most))
      leave(head, record)
    elseif held + weight > most then
      return own
    else
      pause = paceDue(terms)
      if pause > 0 or terms == 'g' then
        if moved and head ~= caller then
          tell(head, 'ask ' .. head .. ' ' .. integer(pause))
        end
        return own
      end
      call('ZREM', QUEUE, head)
      call('ZREM', SEEN, head)
      if head == caller then
        own = grant(head, weight, ttl, ttl, terms, owner, now - since)
      else
        local fence = grant(head, weight, ttl, claim, terms, owner, now - since)
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
  if head then
    for _, id in ipairs(noticed) do
      tell(id, 'wanted ' .. id)
    end
  end
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
    write('clock', stamp)
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

-- nextExpiry is the ms until the earliest lease expires; 0 if that is due, or if none is held. If it is the pace that
-- holds the head back, it is the ms until that is over.
local function nextExpiry()
  if pause > 0 then
    return pause
  end
  local earliest = call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')
  return math.max(0, (tonumber(earliest[2]) or now) - now)
end

