-- history: what is about the history of a queue, and not about its jobs.
--
-- ARGV: verb, and
--   on: how many entries the stream keeps at most. Writes a mark that a walk begins; returns {its ID, its number}.
--   walk: key (as the prelude names it), cursor ("0" at first). Writes again what is there, some fifty fields a call, so that a
--         history that began late has it too, and of workers who is there; returns {next cursor}, "0" at the end.
--   producer: writes again what is there of the producer's last call.
--   walked: the number of the mark. All keys were walked over.
--   took: sink, ID. The sink has all entries up to there; what every sink has is removed, but for the last one.
--   forget: sink. Nothing is kept for it any more; returns {1 if it was known}.
--   off: there is no history any more.
--   state: returns {number of the last entry, "" if there is no history; entries kept at most, entries there, then for each
--         sink its name and the ID up to which it has them}.
--@include begin

local verb, word, value = ARGV[1], ARGV[2], ARGV[3]

local function save() call('SET', clock, string.format('%d\t%d\t%d', math.max(given, nowUs), back, dated)) end

local function sinks()
  local found = {}
  for _, group in ipairs(call('EXISTS', history) == 1 and call('XINFO', 'GROUPS', history) or {}) do
    local name, id
    for i = 1, #group, 2 do
      if group[i] == 'name' then name = group[i + 1] elseif group[i] == 'last-delivered-id' then id = group[i + 1] end
    end
    found[#found + 1], found[#found + 2] = name, id
  end
  return found
end

-- before says that an ID is smaller than another.
local function before(a, b)
  local aMs, aSeq = string.match(a, '^(%d+)-(%d+)$')
  local bMs, bSeq = string.match(b, '^(%d+)-(%d+)$')
  return tonumber(aMs) < tonumber(bMs) or aMs == bMs and tonumber(aSeq) < tonumber(bSeq)
end

if verb == 'state' then
  local state = {entry, keep, call('XLEN', history)}
  for _, text in ipairs(sinks()) do state[#state + 1] = text end
  return state
elseif verb == 'on' then
  keep = word
  if entry == '' then
    call('DEL', history)
    entry = '0'
    call = recorder()
  end
  for _, key in ipairs({times, links, workers, counts, lanes}) do call('PERSIST', key) end -- see rest
  call(mark, history, 'walk', keep)
  save()
  return {call('XREVRANGE', history, '+', '-', 'COUNT', '1')[1][1], entry}
elseif verb == 'took' then
  local first, command = value, 'CREATE'
  local all = sinks()
  for i = 1, #all, 2 do
    if all[i] == word then
      command = 'SETID'
    elseif before(all[i + 1], first) then
      first = all[i + 1]
    end
  end
  call('XGROUP', command, history, word, value)
  return {call('XTRIM', history, 'MINID', first)}
elseif verb == 'forget' then
  return {call('EXISTS', history) == 1 and call('XGROUP', 'DESTROY', history, word) or 0}
elseif entry == '' then
  return {'0'}
elseif verb == 'off' then
  call = redis.call
  call('DEL', history)
  if call('EXISTS', jobs) == 0 then
    for _, key in ipairs({times, links, workers, counts, lanes}) do call('PEXPIRE', key, '86400000') end
  end
  call('SET', clock, string.format('%d\t%d\t%d', math.max(given, nowUs), back, dated), 'PX', '86400000')
  return {'0'}
elseif verb == 'walked' then
  call(mark, history, 'walked', word)
  save()
  return {'0'}
end

if verb == 'producer' then
  local last, ttl = call('GET', producer), call('PTTL', producer)
  if ttl >= 0 then
    call('SET', producer, last, 'PX', ttl)
  elseif last then
    call('SET', producer, last)
  end
  save()
  return {'0'}
end

-- No queue is made from workers: those that are there are told, as here.
if word == 'workers' then
  local step = call('HSCAN', workers, value, 'COUNT', '50')
  for i = 1, #step[2], 2 do
    if step[2][i] ~= '' then call(mark, history, 'worker', step[2][i], step[2][i + 1], 'here') end
  end
  save()
  return {step[1]}
end

local hashes = {jobs = jobs, claims = claims, rates = rates, settings = settings, unique = unique, ended = ended, schedules = schedules}
local sets = {links = links, times = times, endings = endings, ticks = ticks}
local step = call(hashes[word] and 'HSCAN' or 'ZSCAN', hashes[word] or sets[word], value, 'COUNT', '50')
local words = step[2]
if sets[word] then
  for i = 1, #words, 2 do words[i], words[i + 1] = words[i + 1], words[i] end
end
for from = 1, #words, 1000 do
  call(hashes[word] and 'HSET' or 'ZADD', hashes[word] or sets[word], unpack(words, from, math.min(from + 999, #words)))
end
save()
return {step[1]}
