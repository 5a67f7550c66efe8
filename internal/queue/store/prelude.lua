-- The state of a queue, and what all transitions do with it. Every script declares all keys; they share one hash tag.
--
--   jobs      hash    id -> record (below): every job that has not ended
--   waiting   zset    lane TAB order TAB id, all with score 0: the jobs that may run, sorted by lane and then by order
--   index     zset    class TAB order TAB key, all with score 0: the lanes that may be served, sorted by class and order
--   lanes     hash    lane -> where it is: its order in the index, or "parked"; every lane with a waiting job has one
--   claims    hash    id -> worker TAB token TAB since TAB lane: every job that runs; of several that were claimed at once there is
--                     a TAB and the token of the first behind it
--   links     zset    pairs, all with score 0:
--               h TAB worker TAB id           a job that the worker holds, or
--               h TAB worker TAB token TAB id,id…  several that it was given at once, as long as it holds one of them
--               i TAB kind TAB tag TAB worker  a worker that has room, under each of its kinds and tags, and under no tag
--               r TAB kind TAB capacity TAB tag TAB rank TAB worker  the same by rank, where a placement is set: under each
--                                             capacity that it has room of
--               n TAB name TAB worker          the workers of a name
--               p TAB key TAB lane            a lane whose key is at its limit, or paused
--               q TAB key TAB lane            a lane that a rate of its key holds up; it is in times too
--               x TAB worker TAB id           a job that its worker is to cancel; without an id, it is to drain
--               f TAB parent TAB child TAB order  a job that waits for another, with the order of the child: one that takes the
--                                             id of a job that was deleted does not wait for the parents of that
--               a TAB id TAB inbox            a process that waits for the end of a job
--   times     zset    what happens by itself, by ms: j TAB id (a delayed job), w TAB worker (its lease ends),
--                     o TAB id (till then its worker may accept it; a claim without it was accepted, or not offered),
--                     u TAB id (then it is anybody's: reserved no more, and declined by nobody),
--                     l TAB lane (a rate lets it go on), r TAB kind (a rate lets the kind go on, "" is all kinds; then
--                     perhaps TAB class: what of it comes behind this one), y TAB key (its lanes, if it has room),
--                     f TAB parent TAB state (it has ended, and others wait for it), d TAB worker (its lease has ended before it
--                     heard that it is to drain: till then it hears when it is back)
--   counts    hash    how many run: q, k TAB kind, y TAB key; o, how many are offered; r, 1 since a job was reserved; b TAB worker TAB token, how many are left of what it was given at once
--   rates     hash    as counts -> the time in us until which the rate is used up
--   workers   hash    worker -> call TAB state TAB idle TAB room TAB tags TAB kinds TAB info, and of one with a name TAB offer TAB rank TAB name
--                     (offer: ms, perhaps with " stay"; idle is 2 for one that is idle and takes offers), and "" -> ms TAB worker: who
--                     looks after times, and when it will next
--   settings  hash    what an operator set
--   unique    hash    kind TAB fingerprint -> id
--   ended     hash    id -> state TAB ms TAB result TAB record, of dead jobs and of those whose result is kept
--   endings   zset    id, by the ms until which it is kept
--   stats     hash    counters
--   clock     string  the largest number given out, in us TAB by how much the server's clock has gone back TAB the ms at which
--                     stats was last given its time; with a history TAB the number of its last entry TAB how many entries history
--                     keeps at most. While the queue is made from its history: "rebuilding" and who does it (restore.lua)
--   schedules hash    name -> ms of the next tick, newline, and what the client wrote
--   ticks     zset    name, by the ms at which somebody is to see to it: its tick, or later if somebody is at it
--   history   stream  what transitions wrote, an entry each (below), and a group for each sink that has taken it up to there
--   never     never there: while their slot moves in a Cluster, scripts wait for that instead of being stopped in their middle
--   producer  string  the number of the calling producer's last call, a sequence's fingerprint, and its outcomes
--
-- A lane is kind TAB tags TAB cost TAB key, a class is a lane without its key: what runs and where it can run. Jobs of one
-- lane differ in nothing that decides whether they may run, so the head of a lane speaks for it.
--
-- A job that is reserved has the byte 1, the worker's name and a comma in front of its tags: only its worker has that tag. One that was
-- declined has a comma, the byte 1 and the worker's name behind its cost: that worker has no room for it. So both have
-- lanes of their own, and nobody looks at a job in vain.
--
-- An order is a time in us, as 16 digits, minus what the priority is worth. It is a job's for life, so that whoever returns
-- (its worker died, or was told to stop) has its old place.
--
-- Invariants: Q1 an id of jobs is in exactly one of waiting, claims, times (as j) and the held (record state h).
--             Q4 counts are the sums over claims. Q7 a lane is in the index, or something in links or times brings it back.
local jobs, waiting, index, lanes, claims, links, times, counts, rates, workers, settings, unique, ended, endings, stats,
  clock, schedules, ticks, history, _, producer = unpack(KEYS)

local call = redis.call
local T = '\t'
local inboxPrefix = 'signalbox:queue-inbox:'

-- most is the bound of everything that is done in batches, looks that of lanes looked at in vain, gifts that of jobs handed
-- over. What is beyond them the worker does that looks after times, which is told to come again at once.
local most, looks, gifts = 100, 1000, 500

-- Time goes on when the server's clock goes back, by more than a second: then it is the clock's, and by as much more.
local given, back, dated, entry, keep = string.match(call('GET', clock) or '0', '^(%d+)\t?(%d*)\t?(%d*)\t?(%d*)\t?(%d*)$')
if not given then
  return redis.error_reply('TRYAGAIN the queue is being made from its history: wait until signalbox queue rebuild has ended, or run it again if it was stopped')
end
given, back, dated = tonumber(given), tonumber(back) or 0, tonumber(dated) or 0
local at = call('TIME')
local nowUs = at[1] * 1000000 + at[2] + back
if nowUs < given - 1000000 then nowUs, back = given, back + given - nowUs end
nowUs = math.max(nowUs, given)
local nowMs = math.floor(nowUs / 1000)
local nowText = string.format('%d', nowMs)
local day = 86400000

-- With a history, a transition leaves one entry of what it wrote to the keys that a queue can be made from again: the words
-- {version, number, clock, {command, key, words…}…}, packed. It is written with the clock, which every transition that
-- changes something writes last. Of links and times goes in what is not about workers. MARK is no command: it says
-- something of the history itself (history.lua, restore.lua), or what became of a worker, from which no queue is made:
-- worker, id, and what workers has of it from now on; or "" and the ms at which its lease ended.
local mark = 'MARK'

local function recorder()
  local names = {[jobs] = 'jobs', [claims] = 'claims', [links] = 'links', [times] = 'times', [rates] = 'rates',
    [settings] = 'settings', [unique] = 'unique', [ended] = 'ended', [endings] = 'endings', [schedules] = 'schedules',
    [ticks] = 'ticks', [producer] = string.match(producer, '}:(.*)$'), [clock] = 'clock', [history] = 'history'}
  local writes = {HSET = 0, HSETNX = 0, HDEL = 0, ZADD = 2, ZREM = 1, SET = 0, [mark] = 0}
  local told = {[links] = '^[fx]\t', [times] = '^[jufo]\t'}
  local words, n = {1, 0, ''}, 3
  return function(command, key, ...)
    local name, step = names[key], writes[command]
    if not name or not step then return redis.call(command, key, ...) end
    if key == clock then
      local value = ...
      if n > 3 then
        entry = string.format('%d', entry + 1)
        words[2], words[3] = entry, value
        redis.call('XADD', history, 'MAXLEN', '~', keep, '*', 'e', cmsgpack.pack(words))
        words, n = {1, 0, ''}, 3
      end
      return redis.call('SET', clock, value .. T .. entry .. T .. keep)
    end
    if step > 0 and told[key] then
      local some = {command, name}
      for i = step, select('#', ...), step do
        local member = select(i, ...)
        if string.find(member, told[key]) then
          if step == 2 then some[#some + 1] = (select(i - 1, ...)) end
          some[#some + 1] = member
        end
      end
      if #some > 2 then n, words[n + 1] = n + 1, some end
    else
      n, words[n + 1] = n + 1, {command, name, ...}
    end
    if command ~= mark then return redis.call(command, key, ...) end
  end
end

-- witness has the history hear of a worker. There is none without a history.
local witness
if entry ~= '' then
  call = recorder()
  witness = function(...) call(mark, history, 'worker', ...) end
end

-- sound looks into every key: if one of them is another program's, the first call of a process is refused before it has
-- written anything.
local function sound()
  for _, key in ipairs({jobs, lanes, claims, counts, rates, workers, settings, unique, ended, stats, schedules}) do call('HGET', key, '') end
  for _, key in ipairs({waiting, index, links, times, endings, ticks}) do call('ZSCORE', key, '') end
end

--@level
-- number returns a new one, larger than all before.
local function number()
  given = given < nowUs and nowUs or given + 1
  return given
end

-- An order has 16 digits, and is exact as a number.
local function digits(us) return string.format('%016d', math.min(math.max(us, 0), 9007199254740991)) end

local function split(text, by)
  local parts, from = {}, 1
  while true do
    local to = string.find(text, by, from, true)
    if not to then
      parts[#parts + 1] = string.sub(text, from)
      return parts
    end
    parts[#parts + 1] = string.sub(text, from, to - 1)
    from = to + 1
  end
end

-- under returns the members of a sorted set that begin with prefix, at most n. What follows is larger than any control
-- character.
local function under(key, prefix, n)
  return call('ZRANGEBYLEX', key, '[' .. prefix, '(' .. prefix .. '\255', 'LIMIT', '0', n == 1 and '1' or n)
end

-- counts and lanes are read once and written at the end: field -> value, false for none.
local cached, dirty = {[counts] = {}, [lanes] = {}}, {[counts] = {}, [lanes] = {}}

local function get(key, field)
  local value = cached[key][field]
  if value == nil then
    value = call('HGET', key, field)
    cached[key][field] = value
  end
  return value
end

local function put(key, field, value)
  cached[key][field], dirty[key][field] = value, true
end

-- fetch reads several at once, of those that were not read.
local function fetch(key, fields)
  local new = {}
  for _, field in ipairs(fields) do
    if cached[key][field] == nil then new[#new + 1] = field end
  end
  for from = 1, #new, 1000 do
    local values = call('HMGET', key, unpack(new, from, math.min(from + 999, #new)))
    for i = 1, #values do cached[key][new[from + i - 1]] = values[i] end
  end
end

-- ranged calls a command with very many words, in pieces.
local function ranged(command, key, words)
  for from = 1, #words, 1000 do
    call(command, key, unpack(words, from, math.min(from + 999, #words)))
  end
end

local tally = {}

-- count adds to the counters of a kind.
local function count(what, kind, n)
  local field = what .. T .. kind
  tally[field] = (tally[field] or 0) + n
end

-- moved holds the lanes whose entry in the index is an older one than lanes says: lane -> entry or false, class, key.
local moved = {}

-- move says where a lane is from now on.
local function move(lane, class, key, where)
  if not moved[lane] then
    local was = get(lanes, lane)
    moved[lane] = {was and was ~= 'parked' and class .. T .. was .. T .. key, class, key}
  end
  put(lanes, lane, where)
end

-- reindex writes the index. Whoever reads it calls this first.
local function reindex()
  if not next(moved) then return end
  local gone, new = {}, {}
  for lane, m in pairs(moved) do
    local where = cached[lanes][lane]
    local entry = where and where ~= 'parked' and m[2] .. T .. where .. T .. m[3]
    if entry ~= m[1] then
      if m[1] then gone[#gone + 1] = m[1] end
      if entry then new[#new + 1], new[#new + 2] = '0', entry end
    end
  end
  moved = {}
  ranged('ZREM', index, gone)
  ranged('ZADD', index, new)
end

-- save writes what was gathered. It is the last thing that a transition does.
local function save()
  reindex()
  for _, key in ipairs({counts, lanes}) do
    local words, gone = {}, {}
    for field in pairs(dirty[key]) do
      local value = cached[key][field]
      if value then
        words[#words + 1], words[#words + 2] = field, type(value) == 'number' and string.format('%d', value) or value
      else
        gone[#gone + 1] = field
      end
    end
    ranged('HSET', key, words)
    ranged('HDEL', key, gone)
  end
  for field, n in pairs(tally) do call('HINCRBY', stats, field, n) end
  if next(tally) and nowMs - dated > 60000 then
    call('PEXPIRE', stats, day)
    dated = nowMs
  end
  call('SET', clock, string.format('%d\t%d\t%d', math.max(given, nowUs), back, dated), 'PX', '86400000')
end

-- Without jobs nothing has to outlive the workers. What is about them expires then, unless they are heard of again. With a
-- history it stays: somebody has to find who has vanished.
local function rest(lease)
  if entry ~= '' or call('EXISTS', jobs) == 1 then return end
  for _, key in ipairs({times, links, workers, counts, lanes}) do call('PEXPIRE', key, lease * 4) end
end

local function rouse()
  if call('EXISTS', jobs) == 1 then return end
  for _, key in ipairs({times, links, workers, counts, lanes}) do call('PERSIST', key) end
end

-- A record is one line of fields, one that its producer wrote, and perhaps one of its handler's (a note):
-- state, order, boost, attempts, crashes, retention, unique states, unique field, enqueued ms, error, lane (4 fields).
-- Its state is w, or l delayed, h held back by its parents. A job that runs keeps the record it waited with.
local function parse(record)
  local stop = string.find(record, '\n', 1, true)
  local f = split(string.sub(record, 1, stop - 1), T)
  return {
    state = f[1], order = f[2], boost = tonumber(f[3]), attempts = tonumber(f[4]), crashes = tonumber(f[5]),
    retention = tonumber(f[6]), uniqueIn = f[7], uniqueField = f[8], enqueued = f[9], error = f[10],
    kind = f[11], tags = f[12], cost = f[13], key = f[14],
    class = f[11] .. T .. f[12] .. T .. f[13], lane = f[11] .. T .. f[12] .. T .. f[13] .. T .. f[14],
    rest = string.sub(record, stop),
  }
end

local function write(j)
  return table.concat({j.state, j.order, string.format('%d', j.boost), j.attempts, j.crashes,
    string.format('%d', j.retention), j.uniqueIn, j.uniqueField, j.enqueued, j.error, j.lane}, T) .. j.rest
end

-- freeUnique lets the next one of the same fingerprint in, when a job enters a state that its uniqueness does not cover.
local function freeUnique(id, j, state)
  if j.uniqueField == '' or string.find(j.uniqueIn, state, 1, true) then return end
  local field = j.kind .. T .. j.uniqueField
  if call('HGET', unique, field) == id then call('HDEL', unique, field) end
end

-- Settings. keyed, perKey and perKind count those that are about keys, about single keys and about kinds: what there is
-- none of costs nothing.
local turns, keyed, perKey, perKind, each, whole, stepUs, placement

local function readSettings()
  local set = call('EXISTS', settings) == 0 and {} or call('HMGET', settings, 'turns', 'keyed', 'perKey', 'perKind', 'pause', 'limit', 'rate', 'stepMs', 'crashes',
    'limit\te', 'rate\te', 'placement')
  turns, keyed, perKey, perKind = set[1], set[2], set[3], set[4]
  whole = {paused = set[5], limit = tonumber(set[6] or ''), rate = set[7], crashes = tonumber(set[9] or 3)}
  stepUs = tonumber(set[8] or 60000) * 1000
  each = {limit = tonumber(set[10] or ''), rate = set[11]}
  placement = set[12]
end

readSettings()

--@level
-- touched holds the classes that have something new to run.
local touched = {}

-- place brings a lane's entry in the index up to date with its first job. A lane that is parked stays so.
local function place(lane, class, key, head, served)
  local was = get(lanes, lane)
  if not head then
    if was == 'parked' then
      call('ZREM', links, 'p' .. T .. key .. T .. lane, 'q' .. T .. key .. T .. lane)
      call('ZREM', times, 'l' .. T .. lane)
    end
    if was then move(lane, class, key, false) end
    return
  end
  if was == 'parked' then return end
  local order = head
  if turns then order = (was and not served) and was or digits(number()) end
  if order ~= was then move(lane, class, key, order) end
end

local function headOf(lane)
  local first = under(waiting, lane .. T, 1)[1]
  return first and string.sub(first, #lane + 2, #lane + 17)
end

local function classOf(lane)
  local class, key = string.match(lane, '^(.*)\t([^\t]*)$')
  return class, key
end

local function touch(lane)
  local class, key = classOf(lane)
  place(lane, class, key, headOf(lane))
  touched[class] = true
end

-- joined says that a lane has a new job.
local function joined(lane, order)
  local class, key = classOf(lane)
  local was = get(lanes, lane)
  if not was or (was ~= 'parked' and not turns and order < was) then place(lane, class, key, order) end
  touched[class] = true
end

-- unpark brings a lane back, whatever held it up.
local function unpark(lane)
  if get(lanes, lane) == 'parked' then
    put(lanes, lane, false)
    touch(lane)
  end
end

-- again has the queue looked at by itself; timed says that something of that has changed.
local timed = false

local function again(member, ms)
  call('ZADD', times, ms, member)
  timed = true
end

-- parked says whether any lane waits for its key to have room, if that is known.
local parked

-- unparkKey brings the lanes of a key back, most at a time: those that find it at its limit again are parked again.
local function unparkKey(key)
  if parked == nil then parked = #under(links, 'p' .. T, 1) > 0 end
  if not parked then return end
  local prefix = 'p' .. T .. key .. T
  local found = under(links, prefix, most)
  for _, member in ipairs(found) do unpark(string.sub(member, #prefix + 1)) end
  if #found > 0 then call('ZREM', links, unpack(found)) end
  if #found == most then again('y' .. T .. key, nowMs) end
end

-- touchAll has all classes of a kind looked at, or of all kinds for "", most at a time; after is the class it stopped at.
local function touchAll(kind, after)
  reindex()
  local from, to = '-', '+'
  if kind ~= '' then from, to = '[' .. kind .. T, '(' .. kind .. '\n' end
  if after then from = '(' .. after .. T .. '\255' end
  for n = 1, most do
    local first = call('ZRANGEBYLEX', index, from, to, 'LIMIT', 0, 1)[1]
    if not first then break end
    local class = string.match(first, '^([^\t]*\t[^\t]*\t[^\t]*)\t')
    touched[class] = true
    from = '(' .. class .. T .. '\255'
    if n == most then again('r' .. T .. kind .. T .. class, nowMs) end
  end
end

--@dispatch
-- Workers.

-- A script whose first write may need memory is refused by a server that has none left. This one goes on: what workers and
-- operators say makes room.
local function evenIfFull() call('ZREM', times, '') end

-- A worker whose lease has ended begins anew with the same id, or with another behind a dot.
local function undrained(id) return 'd' .. T .. string.match(id, '^[^.]*') end

local function parseRoom(text)
  local room, names = {}, {}
  for name, used, limit in string.gmatch(text, '([^,:]+):(%d+):(%d+)') do
    room[name] = {used = tonumber(used), limit = tonumber(limit)}
    names[#names + 1] = name
  end
  return room, names
end

local known = {}

local function worker(id)
  if known[id] ~= nil then return known[id] end
  local text = call('HGET', workers, id)
  if not text then
    known[id] = false
    return false
  end
  local f = split(text, T)
  local w = {id = id, call = f[1], state = f[2], told = f[2], idle = f[3] ~= '0', tags = f[5], kinds = f[6], info = f[7], offer = f[8] or '',
    rank = f[9] or '', name = f[10] or ''}
  w.room, w.names = parseRoom(f[4])
  known[id] = w
  return w
end

-- keepWorker writes a worker down. The history hears of its state when that is another: told is what workers has, nil for one
-- that is new, and "" for one that can do something else than before. Room it does not hear of: that may change with each call.
local function keepWorker(w)
  local room = {}
  for i, name in ipairs(w.names) do
    room[i] = name .. ':' .. w.room[name].used .. ':' .. w.room[name].limit
  end
  local words = {w.call, w.state, not w.idle and '0' or w.offer == '' and '1' or '2', table.concat(room, ','), w.tags, w.kinds, w.info}
  if w.name ~= '' or w.offer ~= '' or w.rank ~= '' then words[8], words[9], words[10] = w.offer, w.rank, w.name end
  local text = table.concat(words, T)
  call('HSET', workers, w.id, text)
  if witness and w.state ~= w.told then witness(w.id, text) end
  w.told = w.state
end

-- A cost is "call=1,chat=2"; "" is one slot.
local costs = {}

local function costOf(text)
  local cost = costs[text]
  if not cost then
    cost = {}
    for name, amount in string.gmatch(text == '' and 'slot=1' or string.gsub(text, ',\1[^,]*', ''), '([^,=]+)=(%d+)') do
      cost[#cost + 1] = {name, tonumber(amount)}
    end
    costs[text] = cost
  end
  return cost
end

-- fits returns how many jobs of a cost a worker has room for.
local function fits(w, text)
  local n = most
  if string.find(text, '\1', 1, true) and string.find(text .. ',', ',\1' .. w.name .. ',', 1, true) then return 0 end
  for _, part in ipairs(costOf(text)) do
    local room = w.room[part[1]]
    if not room then return 0 end
    if part[2] > 0 then n = math.min(n, math.floor((room.limit - room.used) / part[2])) end
  end
  return math.max(n, 0)
end

local function occupy(w, text, n)
  for _, part in ipairs(costOf(text)) do
    local room = w.room[part[1]]
    if room then room.used = math.max(room.used + part[2] * n, 0) end
  end
end

local function full(w)
  for _, name in ipairs(w.names) do
    if w.room[name].used < w.room[name].limit then return false end
  end
  return true
end

local function hasTags(w, tags)
  if tags == '' then return true end
  for tag in string.gmatch(tags, '[^,]+') do
    if string.byte(tag) == 1 then
      if string.sub(tag, 2) ~= w.name then return false end
    elseif not string.find(',' .. w.tags .. ',', ',' .. tag .. ',', 1, true) then return false end
  end
  return true
end

-- ranked enters a worker under its rank, or takes it out, under each of its kinds, tags and capacities with room. The names of
-- capacities with room stand before the rank, so that what was entered can be found again.
local function ranked(w, rank)
  if w.rank == rank then return end
  for _, is in ipairs({w.rank, rank}) do
    local names, order = string.match(is, '^(.*) (%d+)$')
    local words = {}
    for kind in string.gmatch(order and w.kinds or '', '[^,]+') do
      for name in string.gmatch(names, '[^,]+') do
        for tag in string.gmatch(w.tags .. ',', '([^,]*),') do
          if is == rank then words[#words + 1] = '0' end
          words[#words + 1] = table.concat({'r', kind, name, tag, order, w.id}, T)
        end
        if w.tags ~= '' then
          if is == rank then words[#words + 1] = '0' end
          words[#words + 1] = table.concat({'r', kind, name, '', order, w.id}, T)
        end
      end
    end
    ranged(is == rank and 'ZADD' or 'ZREM', links, words)
  end
  w.rank = rank
end

-- rankOf is where a worker stands among those that are idle. It begins anew when the worker is given or ends a job.
local function rankOf(w, anew)
  local since = not anew and string.match(w.rank, '(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)$') or digits(number())
  local used, limit, names = 0, 0, {}
  for _, name in ipairs(w.names) do
    local room = w.room[name]
    used, limit = used + room.used, limit + room.limit
    if room.used < room.limit then names[#names + 1] = name end
  end
  local share = placement == 'least' and string.format('%04d', math.min(math.floor(used * 1000 / math.max(limit, 1)), 9999)) or ''
  return table.concat(names, ',') .. ' ' .. share .. since
end

-- setIdle enters a worker among those that are handed jobs, or takes it out. Anew: it was given a job, or has ended one.
local function setIdle(w, idle, anew)
  if placement or w.rank ~= '' then ranked(w, idle and placement and rankOf(w, anew or not w.idle) or '') end
  if w.idle == idle then return end
  w.idle = idle
  local words = {}
  for kind in string.gmatch(w.kinds, '[^,]+') do
    for tag in string.gmatch(',' .. w.tags .. ',', ',([^,]*)') do
      if tag ~= '' then
        if idle then words[#words + 1] = 0 end
        words[#words + 1] = 'i' .. T .. kind .. T .. tag .. T .. w.id
      end
    end
    if idle then words[#words + 1] = 0 end
    words[#words + 1] = 'i' .. T .. kind .. T .. T .. w.id
  end
  if #words > 0 then ranged(idle and 'ZADD' or 'ZREM', links, words) end
end

-- Limits and rates.

local function rateOf(text)
  local every, burst = string.match(text, '^(%d+) (%d+)$')
  return tonumber(every), tonumber(burst)
end

-- allowed returns how many may start by a rate now, and if none, when the next one may, in ms.
local function allowed(field, text)
  local every, burst = rateOf(text)
  local used = math.max(tonumber(call('HGET', rates, field) or 0), nowUs)
  if used > nowUs + burst * every then -- by another rate, which held before
    used = nowUs + burst * every
    call('HSET', rates, field, string.format('%d', used))
  end
  local n = math.floor((burst * every - (used - nowUs)) / every)
  if n > 0 then return n end
  return 0, math.ceil((used - (burst - 1) * every) / 1000)
end

local function spend(field, text, n)
  local every = rateOf(text)
  local used = math.max(tonumber(call('HGET', rates, field) or 0), nowUs) + n * every
  call('HSET', rates, field, string.format('%d', used))
  local left = math.ceil((used - nowUs) / 1000) + 1000
  if call('PTTL', rates) < left then call('PEXPIRE', rates, left) end
end

-- scope is what may still start under a limit and a rate of one name: how many, and when to look again if it is a rate.
local function scope(field, limit, rate)
  local n, again = most, nil
  if limit then n = math.min(n, limit - tonumber(get(counts, field) or 0)) end
  if rate and n > 0 then
    local allowedNow
    allowedNow, again = allowed(field, rate)
    n = math.min(n, allowedNow)
  end
  return math.max(n, 0), again
end

local kindSettings = {}

local function ofKind(kind)
  local s = kindSettings[kind]
  if s then return s end
  s = {}
  if perKind then
    local got = call('HMGET', settings, 'pause' .. T .. 'k' .. T .. kind, 'limit' .. T .. 'k' .. T .. kind,
      'rate' .. T .. 'k' .. T .. kind)
    s = {paused = got[1], limit = tonumber(got[2] or ''), rate = got[3]}
  end
  kindSettings[kind] = s
  return s
end

local function ofKey(key)
  if not perKey then return each end
  local y = T .. 'y' .. T .. key
  local got = call('HMGET', settings, 'pause' .. y, 'limit' .. y, 'rate' .. y)
  return {paused = got[1], limit = tonumber(got[2] or '') or each.limit, rate = got[3] or each.rate}
end

local function add(field, n)
  local sum = (tonumber(get(counts, field)) or 0) + n
  put(counts, field, sum > 0 and sum)
end

-- running changes how many run.
local function running(kind, key, n)
  add('q', n)
  add('k' .. T .. kind, n)
  if key ~= '' then
    add('y' .. T .. key, n)
    if n < 0 and keyed then unparkKey(key) end
  end
  if n < 0 then
    if whole.limit then
      touchAll('')
    elseif ofKind(kind).limit then
      touchAll(kind)
    end
  end
end

-- stopped notes that jobs of lanes run no more, in this order: lane -> how many. It gives back their room, and returns how many of
-- each kind.
local function stopped(w, inOrder, jobsOf)
  local classes, keys, keysInOrder, fields = {}, {}, {}, {}
  for _, lane in ipairs(inOrder) do
    local n = jobsOf[lane]
    local key = string.match(lane, '[^\t]*$')
    local class = string.sub(lane, 1, -2 - #key)
    classes[class] = (classes[class] or 0) + n
    if key ~= '' then
      if not keys[key] then
        keysInOrder[#keysInOrder + 1], fields[#fields + 1] = key, 'y' .. T .. key
      end
      keys[key] = (keys[key] or 0) + n
    end
    fields[#fields + 1] = 'k' .. T .. string.match(class, '^[^\t]*')
  end
  fields[#fields + 1] = 'q'
  fetch(counts, fields)
  for _, key in ipairs(keysInOrder) do
    add('y' .. T .. key, -keys[key])
    if keyed then unparkKey(key) end
  end
  local kinds = {}
  for class, n in pairs(classes) do
    local f = split(class, T)
    occupy(w, f[3], -n)
    running(f[1], '', -n)
    touched[class] = true
    kinds[f[1]] = (kinds[f[1]] or 0) + n
  end
  return kinds
end

-- park takes a lane out of the index, until its key has room, is resumed, or its rate allows more.
local function park(lane, class, key, until_)
  move(lane, class, key, 'parked')
  if until_ then
    again('l' .. T .. lane, until_)
    call('ZADD', links, 0, 'q' .. T .. key .. T .. lane)
  else
    call('ZADD', links, 0, 'p' .. T .. key .. T .. lane)
    parked = true
  end
end

-- Claiming.

-- heads returns the first lane of each class that a worker can run, in the order of classes. Classes whose first tag it has
-- not are not looked at, and of the others at most 1,000 for each of its kinds and tags.
local function heads(w)
  reindex()
  local found = {}
  if (w.tags ~= '' or string.find(w.kinds, ',', 1, true)) and call('EXISTS', index) == 0 then return found end
  local function among(kind, from, to)
    for _ = 1, 1000 do
      local two = call('ZRANGEBYLEX', index, '[' .. from, to, 'LIMIT', '0', '2')
      local first = two[1]
      if not first then return end
      local f = split(first, T)
      local class = f[1] .. T .. f[2] .. T .. f[3]
      if hasTags(w, f[2]) and fits(w, f[3]) > 0 then
        found[#found + 1] = {class = class, kind = kind, cost = f[3], order = f[4], key = f[5], alone = not two[2] and two}
      end
      if not two[2] then return end
      from = class .. T .. '\255'
    end
  end
  local own = w.name ~= '' and get(counts, 'r') and T .. '\1' .. w.name
  for kind in string.gmatch(w.kinds, '[^,]+') do
    if not ofKind(kind).paused then
      if own then among(kind, kind .. own .. ',', '(' .. kind .. own .. '-') end
      among(kind, kind .. T .. T, '(' .. kind .. T .. '\n')
      for tag in string.gmatch(w.tags, '[^,]+') do
        among(kind, kind .. T .. tag .. T, '(' .. kind .. T .. tag .. '\n')
        among(kind, kind .. T .. tag .. ',', '(' .. kind .. T .. tag .. '-')
      end
    end
  end
  return found
end

-- ahead makes sure that a head is the first lane of its class, with the order of the one behind it. It reads as many lanes as
-- may be served, and what these need.
local function ahead(head, n)
  local list, at = head.list, #head.class + 2
  if not list or (head.at >= #list and not head.all) then
    reindex()
    list = head.alone or under(index, head.class .. T, n + 1)
    head.list, head.at, head.all, head.alone = list, 1, #list <= n, nil
    local fields = {}
    for i, entry in ipairs(list) do
      local key = string.sub(entry, at + 17)
      local lane, field = head.class .. T .. key, 'y' .. T .. key
      if cached[lanes][lane] == nil then cached[lanes][lane] = string.sub(entry, at, at + 15) end
      if i <= n and key ~= '' then fields[#fields + 1] = field end
    end
    fetch(counts, fields)
  end
  local first, second = list[head.at], list[head.at + 1]
  if not first then return false end
  head.order, head.key = string.sub(first, at, at + 15), string.sub(first, at + 17)
  head.following = second and string.sub(second, at, at + 15)
  return true
end

-- pass goes on to the next lane of a class. The one that was served may come again.
local function pass(head, n)
  local list, at, lane = head.list, #head.class + 2, head.class .. T .. head.key
  local order = get(lanes, lane)
  head.at = head.at + 1
  if order and order ~= 'parked' then
    local i = #list
    while i >= head.at and string.sub(list[i], at, at + 15) > order do i = i - 1 end
    if i < #list or head.all then table.insert(list, i + 1, head.class .. T .. order .. T .. head.key) end
  end
  return ahead(head, n)
end

-- leave has jobs that were taken wait no more.
local function leave(taken)
  ranged('ZREM', waiting, taken.gone)
  taken.gone, taken.from = {}, {}
end

-- take claims at most n jobs of one lane for a worker, and behind the first only those before bound. It returns how many.
-- taken has ids, and in the same order tokens and lanes; gone is what still waits of them, and from which lanes.
local function take(w, head, lane, n, bound, taken)
  if taken.from[lane] then leave(taken) end
  local orderAt, tokens, of, from = #lane + 2, taken.tokens, taken.lanes, #taken
  local some = bound and math.min(n, 2) or n -- others are likely to come before more of this lane
  local found = under(waiting, lane .. T, some + 1)
  if some < n and found[some + 1] and string.sub(found[some + 1], orderAt, orderAt + 15) <= bound then
    found = under(waiting, lane .. T, n + 1)
  end
  local got = 0
  for i = 1, math.min(n, #found) do
    local member = found[i]
    if i > 1 and bound and string.sub(member, orderAt, orderAt + 15) > bound then break end
    got = i
    taken[from + i], tokens[from + i], of[from + i] = string.sub(member, orderAt + 17), string.format('%016d', number()), lane
  end
  if got > 2 then
    call('ZREMRANGEBYLEX', waiting, '[' .. found[1], '[' .. found[got])
  else
    for i = 1, got do taken.gone[#taken.gone + 1] = found[i] end
    taken.from[lane] = got > 0
  end
  if got > 0 then
    occupy(w, head.cost, got)
    running(head.kind, head.key, got)
  end
  local beyond = found[got + 1]
  place(lane, head.class, head.key, beyond and string.sub(beyond, orderAt, orderAt + 15), true)
  return got
end

-- hold writes down that a worker has what it was given. The server searches what is small from its front, unless something
-- long is or was in it: long makes it be found at once.
local long = string.rep('.', 65)

local function hold(w, taken)
  leave(taken)
  local n, tokens, of = #taken, taken.tokens, taken.lanes
  if n == 0 then return end
  local mine, since, link, group = w.id .. T, T .. nowText .. T, 'h' .. T .. w.id .. T, ''
  local words = n > 8 and {long, ''} or {}
  local at = #words
  if n > 3 then
    group = T .. tokens[1]
    call('ZADD', links, '0', link .. tokens[1] .. T .. table.concat(taken, ','))
    put(counts, 'b' .. T .. w.id .. group, n)
  end
  for i = 1, n do
    local id = taken[i]
    words[at + 1], words[at + 2] = id, mine .. tokens[i] .. since .. of[i] .. group
    at = at + 2
    if n < 4 then call('ZADD', links, '0', link .. id) end
  end
  call('HSET', claims, unpack(words))
  if n > 8 then call('HDEL', claims, long) end
  if w.offer == '' then return end
  local untilMs, until_ = string.format('%d', nowMs + string.match(w.offer, '^%d+')), {}
  for i = 1, n do until_[2 * i - 1], until_[2 * i] = untilMs, 'o' .. T .. taken[i] end
  call('ZADD', times, unpack(until_))
  add('o', n)
  for i = 1, n do count('offered', string.match(of[i], '^[^\t]*'), 1) end
  taken.offered, timed = true, true
end

-- unlink says that a worker holds n jobs of a group no more, or one that was given to it by itself.
local function unlink(id, job, group, n)
  local link = 'h' .. T .. id .. T
  if not group then
    call('ZREM', links, link .. job)
    return
  end
  local field = 'b' .. T .. id .. T .. group
  add(field, -n)
  if get(counts, field) then return end
  local member = under(links, link .. group .. T, 1)[1]
  if member then call('ZREM', links, member) end
end

-- serve takes from the first lane of a class what may run of it, before the head of any other lane comes. It returns how
-- many, and 0 with true if the kind or all of the queue has to wait.
local function serve(w, head, bound, n, taken)
  local s = ofKind(head.kind)
  local ofQueue, queueAgain = scope('q', whole.limit, whole.rate)
  local kindField = 'k' .. T .. head.kind
  local ofThis, kindAgain = scope(kindField, s.limit, s.rate)
  if queueAgain then again('r' .. T, queueAgain) end
  if kindAgain then again('r' .. T .. head.kind, kindAgain) end
  n = math.min(n, fits(w, head.cost), ofQueue, ofThis)
  if n == 0 then return 0, true end
  local lane = head.class .. T .. head.key
  local k = keyed and head.key ~= '' and ofKey(head.key) or {}
  local keyField = 'y' .. T .. head.key
  if k.paused or k.limit or k.rate then
    local ofKeyNow, keyAgain = scope(keyField, k.limit, k.rate)
    if k.paused or ofKeyNow == 0 then
      park(lane, head.class, head.key, not k.paused and keyAgain or nil)
      return 0, false
    end
    n = math.min(n, ofKeyNow)
  end
  local got = take(w, head, lane, turns and 1 or n, bound, taken)
  if whole.rate then spend('q', whole.rate, got) end
  if s.rate then spend(kindField, s.rate, got) end
  if k.rate then spend(keyField, k.rate, got) end
  return got, false
end

-- claim gives a worker what it has room for, the lowest order first, and returns it. Limits may make it look at lanes that
-- turn out to be closed; each of those is parked, so none is looked at twice.
local function claim(w, n)
  local taken = {tokens = {}, lanes = {}, gone = {}, from = {}}
  if whole.paused or w.state ~= 'online' then return taken end
  local open = heads(w)
  while #taken < n and #open > 0 do
    if looks == 0 then
      again('r' .. T, nowMs)
      break
    end
    local best, bound = 1, nil
    for i = 2, #open do
      if open[i].order < open[best].order then best = i end
    end
    for i = 1, #open do
      if i ~= best and (not bound or open[i].order < bound) then bound = open[i].order end
    end
    local head = open[best]
    local open_ = ahead(head, math.min(n - #taken, fits(w, head.cost)))
    if open_ then
      if head.following and (not bound or head.following < bound) then bound = head.following end
      local got, shut = serve(w, head, bound, n - #taken, taken)
      if got == 0 then looks = looks - 1 end
      local room = math.min(n - #taken, fits(w, head.cost))
      open_ = not shut and room > 0 and pass(head, room)
    end
    if not open_ then table.remove(open, best) end
  end
  hold(w, taken)
  return taken
end

-- loaded adds the records to what was claimed (id TAB token TAB record, each), up to so many bytes. The second value says that there are
-- more: they are the worker's, and it asks for them with its inventory.
local function loaded(taken, bytes)
  local flat = {}
  local someUnique = #taken > 0 and not taken.offered and call('EXISTS', unique) == 1
  for from = 1, #taken, 16 do
    local ids = {unpack(taken, from, math.min(from + 15, #taken))}
    for i, record in ipairs(call('HMGET', jobs, unpack(ids))) do
      local id = ids[i]
      bytes = bytes - #(record or '')
      if bytes < 0 and #flat > 0 then return flat, true end
      flat[#flat + 1] = id .. T .. taken.tokens[from + i - 1] .. T .. (record or '')
      if someUnique and record and not taken.offered then freeUnique(id, parse(record), 'c') end
    end
  end
  return flat, false
end

-- Messages are hints. A message is its words, each as length, colon, text. A process whose name begins with a ~ hears in a
-- Cluster, in the slot of the queue: other nodes learn nothing of it.
local function publish(inbox, words)
  local parts = {}
  for i, word in ipairs(words) do parts[i] = #word .. ':' .. word end
  if string.byte(inbox) == 126 then
    redis.pcall('SPUBLISH', inboxPrefix .. string.match(jobs, '{[^}]*}') .. inbox, table.concat(parts))
  else
    call('PUBLISH', inboxPrefix .. inbox, table.concat(parts))
  end
end

-- tell hands a worker what was claimed for it. What is too long it fetches.
local function tell(w, taken)
  local flat, more = loaded(taken, 65536)
  local words = {'jobs', w.id}
  if more or #flat[1] > 65536 then
    words[1] = 'look'
  else
    for _, word in ipairs(flat) do words[#words + 1] = word end
  end
  publish(string.match(w.id, '^[^/]*'), words)
end

-- candidate finds an idle worker for a class, beginning at a place that seed says, so that all have their turn.
local function candidate(class, seed, except)
  local f = split(class, T)
  local tag = string.match(f[2], '^[^,]*')
  local prefix = 'i' .. T .. f[1] .. T .. tag .. T
  local function can(id)
    local w = id ~= except and worker(id)
    if w and w.state == 'online' and hasTags(w, f[2]) and fits(w, f[3]) > 0 and
      tonumber(call('ZSCORE', times, 'w' .. T .. id) or 0) > nowMs then
      return w
    end
  end
  local function among(from, to)
    for _, member in ipairs(call('ZRANGEBYLEX', links, from, to, 'LIMIT', 0, 50)) do
      local w = can(string.sub(member, #prefix + 1))
      if w then return w end
    end
  end
  -- Those that were entered before the placement was set, or by a version which knew none, have no ranks. They are looked for
  -- as long as nobody has one: among the others would be all who are idle and have room of something else. So they are for a job
  -- that takes none of its first capacity.
  local function first()
    local capacity = string.match(f[3], '^([^,=]+)=') or 'slot'
    local start = table.concat({'r', f[1], capacity, tag, ''}, T)
    local from = '[' .. start
    for _ = 1, 20 do
      local found = call('ZRANGEBYLEX', links, from, '(' .. start .. '\255', 'LIMIT', '0', '50')
      for _, member in ipairs(found) do
        local rank, id = string.match(string.sub(member, #start + 1), '^(%d+)\t(.*)$')
        local w = can(id)
        if w and w.idle and string.sub(w.rank, -#rank) == rank then return w end
      end
      if #found < 50 then return nil end
      from = '(' .. found[50]
    end
  end
  if string.byte(tag) == 1 then
    local start = 'n' .. T .. string.sub(tag, 2) .. T
    for _, member in ipairs(under(links, start, 50)) do
      local w = can(string.sub(member, #start + 1))
      if w and w.idle and string.find(',' .. w.kinds .. ',', ',' .. f[1] .. ',', 1, true) then return w end
    end
    return nil
  end
  local w = placement and first()
  if w or placement and not string.find(f[3], '^[^,]*=0') and #under(links, 'r' .. T .. f[1] .. T, 1) > 0 then return w end
  return among('[' .. prefix .. seed, '(' .. prefix .. '\255') or among('[' .. prefix, '(' .. prefix .. seed)
end

-- handOver gives what has become ready to workers that are idle, the lowest order first.
local function handOver(seed, except)
  if not next(touched) or #under(links, 'i' .. T, 1) == 0 then return end
  reindex()
  local classes = {}
  for class in pairs(touched) do
    local first = under(index, class .. T, 1)[1]
    if first then classes[#classes + 1] = {class, split(first, T)[4]} end
  end
  table.sort(classes, function(a, b) return a[2] < b[2] end)
  for _, ready in ipairs(classes) do
    local class = ready[1]
    while true do
      reindex()
      local w = #under(index, class .. T, 1) > 0 and candidate(class, seed, except)
      if w and gifts <= 0 then
        again('r' .. T, nowMs)
        return
      end
      local taken = w and claim(w, most) or {}
      if #taken == 0 then break end
      gifts = gifts - #taken
      setIdle(w, not full(w), true)
      keepWorker(w)
      tell(w, taken)
    end
  end
end

-- parents: something has ended that others wait for.
local parents = false

-- alarm keeps one worker looking after times: it returns when the caller is to come again, in ms, if that is the caller,
-- and else wakes the one that is if it would come too late, or an idle one if there is none. All others come with their
-- heartbeats, and need not.
local function alarm(w)
  local ms
  for _, key in ipairs({times, ticks}) do
    local first = call('ZRANGE', key, '0', '0', 'WITHSCORES')[2]
    if first and (not ms or tonumber(first) < ms) then ms = tonumber(first) end
  end
  local noted = call('HGET', workers, '') or ''
  local atMs, holder = string.match(noted, '^(%d+)\t(.*)$')
  local mine = w and holder == w.id
  local alive = not mine and holder and tonumber(call('ZSCORE', times, 'w' .. T .. holder) or 0) > nowMs
  if w and not alive then
    if not ms then return -1 end
    local note = string.format('%d', ms) .. T .. w.id
    if note ~= noted then call('HSET', workers, '', note) end
    return math.max(ms - nowMs, 0)
  end
  if alive and ms and ms < tonumber(atMs) then
    call('HSET', workers, '', string.format('%d', ms) .. T .. holder)
    publish(string.match(holder, '^[^/]*'), {'wake', holder})
  elseif not alive and ms then
    local idle = string.match(under(links, 'i' .. T, 1)[1] or '', '[^\t]*$')
    if idle ~= '' then publish(string.match(idle, '^[^/]*'), {'wake', idle}) end
  end
  return -1
end

-- What becomes of jobs but the usual, and what happens by itself. Most calls need none of these functions: they are made when
-- one of them is called.
local made

local function seldom()
  -- holds returns what a worker holds, as ids in their order and id -> claim, with the links that say so: all, or those of some
  -- n jobs. The last value says that there are more.
  local function holds(id, n)
    local prefix, ids, claimOf, members = 'h' .. T .. id .. T, {}, {}, {}
    local found = under(links, prefix, n or -1)
    for i, member in ipairs(found) do
      local group, several = string.match(member, '^(%d+)\t(.*)$', #prefix + 1)
      local some = several and split(several, ',') or {string.sub(member, #prefix + 1)}
      for at, text in ipairs(call('HMGET', claims, unpack(some))) do
        local f = text and split(text, T)
        if f and f[1] == id and f[8] == group then ids[#ids + 1], claimOf[some[at]] = some[at], text end
      end
      members[i] = member
      if n and #ids >= n and i < #found then
        table.sort(ids)
        return ids, claimOf, members, true
      end
    end
    table.sort(ids)
    return ids, claimOf, members, n and #found == n
  end

  -- enter makes a job wait, for its time or for its turn. It is unique again, unless another came meanwhile.
  local function enter(id, j, dueMs)
    if j.uniqueField ~= '' then call('HSETNX', unique, j.kind .. T .. j.uniqueField, id) end
    if dueMs and dueMs > nowMs then
      j.state = 'l'
      again('j' .. T .. id, dueMs)
    else
      j.state = 'w'
      call('ZADD', waiting, '0', j.lane .. T .. j.order .. T .. id)
      touch(j.lane)
    end
    call('HSET', jobs, id, write(j))
  end

  -- unbind has a job be anybody's: reserved no more, and declined by nobody. Its lane is another then.
  local function relane(j)
    j.class = j.kind .. T .. j.tags .. T .. j.cost
    j.lane = j.class .. T .. j.key
  end

  local function unbind(j)
    j.tags, j.cost = string.gsub(j.tags, '^\1[^,]*,', ''), string.gsub(j.cost, ',\1[^,]*', '')
    if j.cost == 'slot=1' then j.cost = '' end
    relane(j)
  end

  -- finish ends a job: d done, x dead, k cancelled. It stands in jobs, and nowhere else any more. Those that wait for it
  -- are told by due.
  local function finish(id, j, state, text, retention)
    call('HDEL', jobs, id)
    if string.find(j.lane, '\1', 1, true) then
      call('ZREM', times, 'u' .. T .. id)
      unbind(j)
    end
    freeUnique(id, j, state)
    if retention > 0 then
      j.state = state
      call('HSET', ended, id, state .. T .. nowMs .. T .. #text .. '\n' .. text .. write(j))
      call('ZADD', endings, nowMs + retention, id)
      for _, key in ipairs({ended, endings}) do
        if call('PTTL', key) < retention + 60000 then call('PEXPIRE', key, retention + 60000) end
      end
    end
    local waits = under(links, 'a' .. T .. id .. T, most)
    for _, member in ipairs(waits) do
      publish(string.sub(member, #id + 4), {'ended', id, state, text})
    end
    if #waits > 0 then call('ZREM', links, unpack(waits)) end
    if #under(links, 'f' .. T .. id .. T, 1) > 0 then
      again('f' .. T .. id .. T .. state, nowMs)
      parents = true
    end
  end

  -- settle tells those that waited for a job, most at a time. A job that is held back says in the place of its error how many
  -- parents are left, and what their failure means: "all 2 cancel", "any 3 go". "failed" is one that an operator has to free.
  local function settle(parent, state)
    local found = under(links, 'f' .. T .. parent .. T, most)
    for _, member in ipairs(found) do
      local child, order = string.match(member, '^(.*)\t(%d+)$', #parent + 4)
      local record = call('HGET', jobs, child)
      local j = record and parse(record)
      local mode, left, failure
      if j and j.state == 'h' and j.order == order then mode, left, failure = string.match(j.error, '^(%a+) (%d+) (%a+)$') end
      if mode then
        left = tonumber(left) - 1
        local good = state == 'd' or failure == 'go'
        if (good and mode == 'any') or (left == 0 and good and mode == 'all') then
          j.error = ''
          enter(child, j, math.floor((tonumber(j.order) + j.boost) / 1000)) -- it may have a delay of its own
        elseif not good and (mode == 'all' or left == 0) then
          if failure == 'hold' then
            j.error = 'failed'
            call('HSET', jobs, child, write(j))
          else
            finish(child, j, 'k', 'a job that it waited for did not succeed: ' .. parent, day)
            count('cancelled', j.kind, 1)
          end
        else
          j.error = mode .. ' ' .. left .. ' ' .. failure
          call('HSET', jobs, child, write(j))
        end
      end
    end
    if #found > 0 then call('ZREM', links, unpack(found)) end
    if #found == most then again('f' .. T .. parent .. T .. state, nowMs) end
    return #found
  end

  -- unclaim takes a job from its worker, who may have gone. It returns the job, and whether it was to be canceled.
  local function unclaim(id, claimText, w)
    local f = split(claimText, T)
    call('HDEL', claims, id)
    unlink(f[1], id, f[8], 1)
    local told = call('ZREM', links, 'x' .. T .. f[1] .. T .. id) == 1
    local offered = get(counts, 'o') and call('ZREM', times, 'o' .. T .. id) == 1
    if offered then add('o', -1) end
    running(f[4], f[7], -1)
    touched[table.concat(f, T, 4, 6)] = true
    if w then occupy(w, f[6], -1) end
    local record = call('HGET', jobs, id)
    return record and parse(record), told, offered
  end

  -- giveBack has a job run again that has not ended, unless it was to be canceled meanwhile.
  local function giveBack(id, j, told, dueMs)
    if told then
      finish(id, j, 'k', 'canceled', math.max(j.retention, 60000))
      count('cancelled', j.kind, 1)
    else
      enter(id, j, dueMs)
    end
  end

  -- lapse is the end of what unbind says.
  local function lapse(id)
    local record = call('HGET', jobs, id)
    if not record then return end
    local j = parse(record)
    local waits = j.state == 'w' and call('HEXISTS', claims, id) == 0
    if waits then
      call('ZREM', waiting, j.lane .. T .. j.order .. T .. id)
      touch(j.lane)
    end
    unbind(j)
    if waits then enter(id, j) else call('HSET', jobs, id, write(j)) end
  end

  -- endOffer takes an offer back. The job has its old place; who has declined it, or let it pass and stays, is not offered
  -- it again until a minute has gone by without anybody's declining. Who has let it pass and does not stay is away; as long as
  -- it may not have heard of that, its state is missed: it says that it is online, and does not mean this. Why: declined, missed,
  -- canceled, or what the worker is.
  local function endOffer(id, claimText, why)
    local f = split(claimText, T)
    local w = worker(f[1])
    local j, told = unclaim(id, claimText, w)
    local stays = w and string.find(w.offer, 'stay', 1, true)
    if w and why == 'missed' and not stays and w.state == 'online' then w.state = 'missed' end
    if j and w and (why == 'declined' or why == 'missed' and stays) then
      j.tags = string.gsub(j.tags, '^\1[^,]*,', '') -- it was reserved for who does not take it
      j.cost = (j.cost == '' and 'slot=1' or j.cost) .. ',\1' .. w.name
      relane(j)
      again('u' .. T .. id, nowMs + 60000)
    end
    if j and why == 'canceled' then
      call('HSET', jobs, id, write(j))
    elseif j then
      giveBack(id, j, told)
    end
    if w then
      setIdle(w, w.state == 'online' and not full(w), true)
      keepWorker(w)
      if why ~= 'declined' then publish(string.match(w.id, '^[^/]*'), {'over', w.id, id, f[2], why}) end
    end
    if j then count(why == 'missed' and 'missed' or why == 'declined' and 'declined' or 'withdrawn', j.kind, 1) end
    return j
  end

  -- What happens by itself.

  -- bury returns the jobs of a worker that is gone, most at a time, and how many. One that has left has not died over them;
  -- the lease of another ended at endMs.
  local function bury(id, left, endMs)
    local ids, claimOf, members, more = holds(id, most)
    local w = worker(id)
    for _, job in ipairs(ids) do
      local j, told, offered = unclaim(job, claimOf[job], w)
      local left = left or offered -- it has not died over what it was only offered
      if j and not left then
        j.crashes = j.crashes + 1
        count('crashed', j.kind, 1)
      end
      if j and not left and not told and j.crashes >= whole.crashes then
        finish(job, j, 'x', 'its workers died: ' .. j.crashes .. ' times', 90 * day)
        count('dead', j.kind, 1)
      elseif j then
        giveBack(job, j, told)
      end
    end
    ranged('ZREM', links, members)
    if more then
      again('w' .. T .. id, nowMs)
      if w then keepWorker(w) end
      return #ids
    end
    if w then
      setIdle(w, false)
      if w.name ~= '' then call('ZREM', links, 'n' .. T .. w.name .. T .. id) end
    end
    if witness and w and w.state ~= 'gone' then witness(id, '', endMs) end
    known[id] = false
    call('HDEL', workers, id)
    if call('ZREM', links, 'x' .. T .. id .. T) == 1 and not left then again(undrained(id), nowMs + 3600000) end
    return #ids
  end

  -- enterAll has delayed jobs wait for their turn: what enter does, for all of them at once.
  local function enterAll(ids)
    if #ids == 0 then return end
    local records, entries, changed, firsts, gone = {}, {}, {}, {}, {}
    for i, record in ipairs(call('HMGET', jobs, unpack(ids))) do
      local id = ids[i]
      gone[i] = 'j' .. T .. id
      if record then
        local j = parse(record)
        if j.uniqueField ~= '' then call('HSETNX', unique, j.kind .. T .. j.uniqueField, id) end
        records[#records + 1], records[#records + 2] = id, 'w' .. string.sub(record, 2)
        entries[#entries + 1], entries[#entries + 2] = '0', j.lane .. T .. j.order .. T .. id
        local first = firsts[j.lane]
        if not first then changed[#changed + 1] = j.lane end
        if not first or j.order < first then firsts[j.lane] = j.order end
      end
    end
    call('ZREM', times, unpack(gone))
    ranged('ZADD', waiting, entries)
    ranged('HSET', jobs, records)
    fetch(lanes, changed)
    for _, lane in ipairs(changed) do joined(lane, firsts[lane]) end
  end

  -- happen does what else the time has come for, and returns for how much that counts.
  local function happen(what, id, atMs)
    if what == 'w' then
      return bury(id, false, atMs)
    elseif what == 'o' then
      local claimText = call('HGET', claims, id)
      call('ZADD', times, nowText, 'o' .. T .. id) -- unclaim takes it away, and counts it
      if claimText then endOffer(id, claimText, 'missed') else call('ZREM', times, 'o' .. T .. id) end
      return 1
    elseif what == 'u' then
      lapse(id)
      return 1
    elseif what == 'l' then
      call('ZREM', links, 'q' .. T .. select(2, classOf(id)) .. T .. id)
      unpark(id)
    elseif what == 'y' then
      if keyed and #under(links, 'p' .. T .. id .. T, 1) > 0 then
        local k = ofKey(id)
        if not k.paused and scope('y' .. T .. id, k.limit, k.rate) > 0 then unparkKey(id) end
        return most
      end
    elseif what == 'f' then
      local parent, state = string.match(id, '^(.*)\t(%a)$')
      return settle(parent, state)
    elseif what == 'r' then
      local kind, after = string.match(id, '^([^\t]*)\t?(.*)$')
      touchAll(kind, after ~= '' and after or nil)
      return most
    end
    return 0
  end

  -- due does what the time has come for, about most at a time.
  local function due()
    local left, delayed = most, {}
    for _, member in ipairs(call('ZRANGEBYSCORE', times, '-inf', nowText, 'LIMIT', '0', '100')) do
      if left <= 0 then break end
      left = left - 1
      local what, id = string.sub(member, 1, 1), string.sub(member, 3)
      if what == 'j' then
        delayed[#delayed + 1] = id
      elseif what ~= 'u' or tonumber(call('ZSCORE', times, member) or 0) <= nowMs then -- somebody may just have declined it
        enterAll(delayed)
        delayed = {}
        local atMs = what == 'w' and witness and call('ZSCORE', times, member)
        call('ZREM', times, member)
        left = left - happen(what, id, atMs)
      end
    end
    enterAll(delayed)
    local old = call('ZRANGEBYSCORE', endings, '-inf', nowText, 'LIMIT', '0', '100')
    if #old > 0 then
      for _, id in ipairs(old) do
        local text = call('HGET', ended, id)
        local j = text and parse(string.sub(text, string.find(text, '\n', 1, true) + 1 + tonumber(string.match(text, '^%a\t%d+\t(%d+)\n'))))
        if j then freeUnique(id, j, '-') end
      end
      call('HDEL', ended, unpack(old))
      call('ZREM', endings, unpack(old))
    end
  end

  made = {holds = holds, enter = enter, finish = finish, unclaim = unclaim, giveBack = giveBack, bury = bury, due = due, endOffer = endOffer}
  return made
end

local function holds(id, n) return (made or seldom()).holds(id, n) end
local function enter(id, j, dueMs) (made or seldom()).enter(id, j, dueMs) end
local function finish(id, j, state, text, retention) (made or seldom()).finish(id, j, state, text, retention) end
local function unclaim(id, claimText, w) return (made or seldom()).unclaim(id, claimText, w) end
local function giveBack(id, j, told, dueMs) (made or seldom()).giveBack(id, j, told, dueMs) end
local function endOffer(id, claimText, why) return (made or seldom()).endOffer(id, claimText, why) end
local function bury(id, left) return (made or seldom()).bury(id, left) end

local function due()
  if call('ZCOUNT', times, '-inf', nowText) > 0 or call('ZCOUNT', endings, '-inf', nowText) > 0 then (made or seldom()).due() end
end
