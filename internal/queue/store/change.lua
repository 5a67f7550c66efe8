-- change: an operator's hand on jobs, at most 500.
--
-- ARGV: verb, seed, text, states, ids. Jobs in other states than those, by their letters, are left alone; "" is all.
-- Verbs: drain (the ids are workers': they are to finish what they run, and end), cancel (one that runs is told to stop, with text as the cause), delete, retry (dead, cancelled and done ones that
-- are kept run again, as new; a delayed or held one runs now).
-- Returns an outcome for each id: ok; told, its worker was; running, it cannot be deleted; ended, it is over; unique, there
-- is another with its fingerprint; other, it is in another state; unknown.
--@include prelude.lua

local verb, seed, text, states = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
evenIfFull()
due()

-- withdraw takes a job that does not run out of the place where it is.
local function withdraw(id, j)
  if j.state == 'w' then
    call('ZREM', waiting, j.lane .. T .. j.order .. T .. id)
    touch(j.lane)
  elseif j.state == 'l' then
    call('ZREM', times, 'j' .. T .. id)
  end
end

local function alive(id, j)
  local claimText = call('HGET', claims, id)
  if verb == 'retry' then
    if claimText or j.state == 'w' then return 'ok' end
    withdraw(id, j)
    j.error = ''
    j.order = digits(math.min(tonumber(j.order), number() - j.boost))
    enter(id, j)
    return 'ok'
  end
  if claimText then
    if call('ZSCORE', times, 'o' .. T .. id) then
      local j_ = endOffer(id, claimText, 'canceled')
      finish(id, j_, 'k', text, verb == 'delete' and 0 or math.max(j_.retention, 60000))
      count('cancelled', j_.kind, 1)
      return 'ok'
    end
    if verb == 'delete' then return 'running' end
    local holder = split(claimText, T)[1]
    call('ZADD', links, 0, 'x' .. T .. holder .. T .. id)
    publish(string.match(holder, '^[^/]*'), {'cancel', holder, id, text})
    return 'told'
  end
  withdraw(id, j)
  finish(id, j, 'k', text, verb == 'delete' and 0 or math.max(j.retention, 60000)) -- as long as one that was running
  count('cancelled', j.kind, 1)
  return 'ok'
end

local function over(id, kept)
  if verb == 'cancel' then return 'ended' end
  local _, stop, length = string.find(kept, '^%a\t%d+\t(%d+)\n')
  local j = parse(string.sub(kept, stop + 1 + tonumber(length)))
  if verb == 'retry' and j.uniqueField ~= '' then
    local other = call('HGET', unique, j.kind .. T .. j.uniqueField)
    if other and other ~= id then return 'unique' end
  end
  call('HDEL', ended, id)
  call('ZREM', endings, id)
  freeUnique(id, j, '-')
  if verb == 'retry' then
    j.attempts, j.crashes, j.error = 0, 0, ''
    rouse()
    enter(id, j)
    count('replayed', j.kind, 1)
  end
  return 'ok'
end

local function drain(id)
  if not worker(id) then return 'unknown' end
  call('ZADD', links, 0, 'x' .. T .. id .. T)
  for _, key in ipairs({times, links, workers}) do -- it may be out of reach, and the queue idle
    local left = call('PTTL', key)
    if left >= 0 and left < 3600000 then call('PEXPIRE', key, 3600000) end
  end
  publish(string.match(id, '^[^/]*'), {'cancel', id, '', text})
  return 'told'
end

local function change(id)
  if verb == 'drain' then return drain(id) end
  local record = call('HGET', jobs, id)
  local kept = not record and call('HGET', ended, id)
  if not record and not kept then return 'unknown' end
  local claimed = record and call('HEXISTS', claims, id) == 1
  local state = claimed and (call('ZSCORE', times, 'o' .. T .. id) and 'o' or 'c') or string.sub(record or kept, 1, 1)
  if states ~= '' and not string.find(states, state, 1, true) then return 'other' end
  if record then return alive(id, parse(record)) end
  return over(id, kept)
end

local outcomes = {}
for i = 5, #ARGV do outcomes[i - 4] = change(ARGV[i]) end
if parents then due() end
handOver(seed)
alarm(false)
save()
return outcomes
