-- check: looks for what no transition leaves behind: the state is torn if a script was stopped on its way, keys were lost, or
-- somebody wrote to them. What it finds it mends towards "runs again", if it is told to.
--
-- ARGV: mend (1 or 0), part, cursor ("0" at first), lease ms. A part walks over one key, some hundred entries a call, and
-- "sums" over the claims at once: it is the only one that takes as long as there are jobs that run.
-- Returns {next cursor, "0" at the end, findings}, each finding "what TAB where". Two are none: "held TAB id TAB n" is a job
-- that waits for n others, and "child TAB id" a link by which it will hear of one of them. Who has seen all of both asks for
-- the part "orphan", with id TAB n TAB links as its cursor, where they differ.
--@include prelude.lua

local mend, part, cursor, lease = ARGV[1] == '1', ARGV[2], ARGV[3], tonumber(ARGV[4])
local findings = {}

local function finding(what, where) findings[#findings + 1] = what .. T .. where end

local function scan(command, key)
  local got = call(command, key, cursor, 'COUNT', 200)
  cursor = got[1]
  return got[2]
end

-- scored walks over a sorted set whose scores are all 0, by its order.
local function scored(key)
  local found = call('ZRANGEBYLEX', key, cursor == '0' and '-' or '(' .. cursor, '+', 'LIMIT', 0, 200)
  cursor = #found == 200 and found[200] or '0'
  return found
end

local function fields(text) return split(text, T) end

local parts = {}

-- A job stands in exactly one place (Q1), and a claim has a worker.
function parts.jobs()
  local flat = scan('HSCAN', jobs)
  for i = 1, #flat, 2 do
    local id, j = flat[i], parse(flat[i + 1])
    local entry = j.lane .. T .. j.order .. T .. id
    local claimText = call('HGET', claims, id)
    local waits, delayed = call('ZSCORE', waiting, entry), call('ZSCORE', times, 'j' .. T .. id)
    local places = (claimText and 1 or 0) + (waits and 1 or 0) + (delayed and 1 or 0)
    local held = not claimText and j.state == 'h'
    if places + (held and 1 or 0) ~= 1 then
      finding(places == 0 and 'job in no place' or 'job in two places', id)
      if mend and claimText then
        call('ZREM', waiting, entry)
        call('ZREM', times, 'j' .. T .. id)
        if waits then touch(j.lane) end
      elseif mend then
        call('ZREM', times, 'j' .. T .. id)
        enter(id, j)
      end
    elseif not claimText and j.state ~= (waits and 'w' or delayed and 'l' or 'h') then
      finding('state that is not where the job is', id)
      if mend then
        j.state = waits and 'w' or 'l'
        call('HSET', jobs, id, write(j))
      end
    end
    local left = held and string.match(j.error, '^%a+ (%d+) %a+$')
    if left then finding('held', id .. T .. left) end
    if waits and not get(lanes, j.lane) then
      finding('lane that is nowhere', j.lane)
      if mend then touch(j.lane) end
    end
  end
end

-- A job that waits for others hears of all of them, or it waits for no more than it hears of.
function parts.orphan()
  local f = fields(cursor)
  cursor = '0'
  local id, left, links_ = f[1], f[2], f[3]
  local record = call('HGET', jobs, id)
  local j = record and parse(record)
  local mode, now, failure = string.match(j and j.state == 'h' and j.error or '', '^(%a+) (%d+) (%a+)$')
  if now ~= left then return end -- one of them has ended meanwhile
  finding('held job that nothing frees', id)
  if mend and links_ == '0' then
    j.error = ''
    enter(id, j, math.floor((tonumber(j.order) + j.boost) / 1000))
  elseif mend then
    j.error = mode .. ' ' .. links_ .. ' ' .. failure
    call('HSET', jobs, id, write(j))
  end
end

-- linked says that a link tells of a claim.
local function linked(id, f)
  local link = 'h' .. T .. f[1] .. T
  if not f[8] then return call('ZSCORE', links, link .. id) end
  local several = under(links, link .. f[8] .. T, 1)[1]
  return several and string.find(string.sub(several, #link + #f[8] + 1):gsub('\t', ',') .. ',', ',' .. id .. ',', 1, true)
end

function parts.claims()
  local flat = scan('HSCAN', claims)
  for i = 1, #flat, 2 do
    local id, f = flat[i], fields(flat[i + 1])
    local holder = f[1]
    if call('HEXISTS', jobs, id) == 0 then
      finding('claim without a job', id)
      if mend then unclaim(id, flat[i + 1], worker(holder)) end
    elseif not worker(holder) then
      finding('claim without a worker', id)
      if mend then
        local j, told = unclaim(id, flat[i + 1])
        giveBack(id, j, told)
      end
    elseif not linked(id, f) then
      finding('claim that its worker does not hold', id)
      if mend then
        call('ZADD', links, 0, 'h' .. T .. holder .. T .. id)
        call('HSET', claims, id, table.concat(f, T, 1, 7))
      end
    end
    if worker(holder) and mend then keepWorker(worker(holder)) end
  end
end

function parts.waiting()
  for _, entry in ipairs(scored(waiting)) do
    local f = fields(entry)
    local id, lane = f[6], table.concat(f, T, 1, 4)
    local record = call('HGET', jobs, id)
    local j = record and parse(record)
    if not j or j.lane .. T .. j.order .. T .. id ~= entry then
      finding('waiting without a job', id or entry)
      if mend then
        call('ZREM', waiting, entry)
        touch(lane)
      end
    end
  end
end

-- hasRoom says that a key holds nothing up, and nobody is about to bring its lanes back.
local function hasRoom(key)
  local k = ofKey(key)
  if k.paused or call('ZSCORE', times, 'y' .. T .. key) then return false end
  return not k.limit or k.limit > tonumber(get(counts, 'y' .. T .. key) or 0)
end

function parts.lanes()
  local flat = scan('HSCAN', lanes)
  for i = 1, #flat, 2 do
    local lane, where = flat[i], flat[i + 1]
    local class, key = classOf(lane)
    local head, wrong = headOf(lane), nil
    if not head then
      wrong = 'lane without jobs'
    elseif where == 'parked' then
      if call('ZSCORE', links, 'p' .. T .. key .. T .. lane) then
        if hasRoom(key) then wrong = 'lane that nothing holds up' end
      elseif not call('ZSCORE', times, 'l' .. T .. lane) then
        wrong = 'lane that nothing brings back'
      end
    elseif not call('ZSCORE', index, class .. T .. where .. T .. key) then
      wrong = 'lane that is not in the index'
    elseif not turns and where ~= head then
      wrong = 'lane in a wrong order'
    end
    if wrong then
      finding(wrong, lane)
      if mend and where == 'parked' then
        call('ZREM', links, 'p' .. T .. key .. T .. lane)
        unpark(lane)
      elseif mend then
        call('ZREM', index, class .. T .. where .. T .. key)
        put(lanes, lane, false)
        touch(lane)
      end
    end
  end
end

function parts.index()
  for _, entry in ipairs(scored(index)) do
    local f = fields(entry)
    local lane = f[1] .. T .. f[2] .. T .. f[3] .. T .. f[5]
    if get(lanes, lane) ~= f[4] then
      finding('index entry without a lane', lane)
      if mend then
        call('ZREM', index, entry)
        touch(lane)
      end
    end
  end
end

-- What a link speaks of is there, or the link is of no use.
function parts.links()
  for _, member in ipairs(scored(links)) do
    local f = fields(member)
    local what, gone = f[1], false
    if what == 'x' and f[3] == '' then
      gone = not worker(f[2])
    elseif what == 'h' then
      gone = true
      for _, id in ipairs(split(f[4] or f[3], ',')) do
        local claim = fields(call('HGET', claims, id) or '')
        gone = gone and not (claim[1] == f[2] and claim[8] == (f[4] and f[3]))
      end
    elseif what == 'x' then
      local claimText = call('HGET', claims, f[3])
      gone = not claimText or fields(claimText)[1] ~= f[2]
    elseif what == 'i' then
      gone = not worker(f[4]) or not worker(f[4]).idle
    elseif what == 'r' then
      gone = not worker(f[6]) or string.match(worker(f[6]).rank, ' (%d+)$') ~= f[5]
    elseif what == 'n' then
      gone = not worker(f[3]) or worker(f[3]).name ~= f[2]
    elseif what == 'p' or what == 'q' then
      gone = get(lanes, table.concat(f, T, 3)) ~= 'parked'
    elseif what == 'f' then
      local child = call('HGET', jobs, f[3])
      local waits = child and parse(child).order == f[4] -- else it was deleted, and goes with its parent
      if waits then finding('child', f[3]) end
      if call('HEXISTS', jobs, f[2]) == 0 then
        local told = false
        for _, state in ipairs({'d', 'x', 'k'}) do told = told or call('ZSCORE', times, 'f' .. T .. f[2] .. T .. state) end
        gone = not told and not waits
        if not told and not gone then
          finding('parent that is gone', f[2])
          local text = call('HGET', ended, f[2])
          if mend then again('f' .. T .. f[2] .. T .. (text and string.sub(text, 1, 1) or 'd'), nowMs) end
        end
      end
    elseif what == 'a' then
      gone = call('HEXISTS', jobs, f[2]) == 0
    end
    if gone then
      finding('link to what is gone', member)
      if mend then call('ZREM', links, member) end
    end
  end
end

-- A worker is in times, and uses what its claims cost.
function parts.workers()
  local flat = scan('HSCAN', workers)
  for i = 1, #flat, 2 do
    local id = flat[i]
    local w = id ~= '' and worker(id)
    if w then
      if not call('ZSCORE', times, 'w' .. T .. id) then
        finding('worker without a lease', id)
        if mend then again('w' .. T .. id, nowMs + lease) end
      end
      local used = {}
      local _, claimOf = holds(id)
      for _, claimText in pairs(claimOf) do
        for _, cost in ipairs(costOf(fields(claimText)[6])) do
          used[cost[1]] = (used[cost[1]] or 0) + cost[2]
        end
      end
      for name, room in pairs(w.room) do
        if room.used ~= (used[name] or 0) then
          finding('capacity that is used by nothing, or twice', id .. T .. name)
          room.used = used[name] or 0
        end
      end
      if w.name ~= '' and not call('ZSCORE', links, 'n' .. T .. w.name .. T .. id) then
        finding('worker that nobody finds by its name', id)
        if mend then call('ZADD', links, 0, 'n' .. T .. w.name .. T .. id) end
      end
      local kind = w.idle and string.match(w.kinds, '^[^,]+')
      local capacity, rank = string.match(w.rank, '^([^,]+).* (%d+)$')
      if kind and rank and not call('ZSCORE', links, table.concat({'r', kind, capacity, '', rank, id}, T)) then
        finding('idle worker that nobody finds by its rank', id)
        if mend then
          ranked(w, '')
          setIdle(w, true, true)
        end
      end
      if kind and not call('ZSCORE', links, 'i' .. T .. kind .. T .. T .. id) then
        finding('idle worker that nobody finds', id)
        if mend then
          w.idle = false
          setIdle(w, true)
          for name in string.gmatch(w.kinds, '[^,]+') do touchAll(name) end
        end
      end
      if mend then keepWorker(w) end
    end
  end
end

function parts.schedules()
  local flat = scan('HSCAN', schedules)
  for i = 1, #flat, 2 do
    if not call('ZSCORE', ticks, flat[i]) then
      finding('schedule without a tick', flat[i])
      if mend then call('ZADD', ticks, string.match(flat[i + 1], '^%d+'), flat[i]) end
    end
  end
end

-- Limits of keys and kinds hold if it is counted that there are some. Whoever configures next counts them.
function parts.settings()
  local some = {}
  for _, field in ipairs(call('HKEYS', settings)) do
    if string.find(field, '\tk\t', 1, true) then some.perKind = true end
    if string.find(field, '\ty\t', 1, true) or string.find(field, '\te$') then some.keyed = true end
  end
  if (some.keyed and not keyed) or (some.perKind and not perKind) then finding('settings that are not counted', '') end
end

function parts.times()
  local got = call('ZSCAN', times, cursor, 'COUNT', 200)
  cursor = got[1]
  for i = 1, #got[2], 2 do
    local member = got[2][i]
    local what, id, gone = string.sub(member, 1, 1), string.sub(member, 3), false
    if what == 'j' then
      local record = call('HGET', jobs, id)
      gone = not record or call('HEXISTS', claims, id) == 1
    elseif what == 'o' then
      gone = call('HEXISTS', claims, id) == 0
    elseif what == 'w' then
      gone = not worker(id) and #under(links, 'h' .. T .. id .. T, 1) == 0
    end
    if gone then
      finding('time of what is gone', member)
      if mend then call('ZREM', times, member) end
    end
  end
end

function parts.unique()
  local flat = scan('HSCAN', unique)
  for i = 1, #flat, 2 do
    if call('HEXISTS', jobs, flat[i + 1]) == 0 and call('HEXISTS', ended, flat[i + 1]) == 0 then
      finding('fingerprint of a job that is gone', flat[i])
      if mend then call('HDEL', unique, flat[i]) end
    end
  end
end

function parts.ended()
  local flat = scan('HSCAN', ended)
  for i = 1, #flat, 2 do
    local id = flat[i]
    if not call('ZSCORE', endings, id) then
      finding('ended without an ending', id)
      if mend then call('ZADD', endings, nowMs + day, id) end
    end
    if call('HEXISTS', jobs, id) == 1 then
      finding('job that has ended and has not', id)
      if mend then
        call('HDEL', ended, id)
        call('ZREM', endings, id)
      end
    end
  end
end

function parts.endings()
  local got = call('ZSCAN', endings, cursor, 'COUNT', 200)
  cursor = got[1]
  for i = 1, #got[2], 2 do
    if call('HEXISTS', ended, got[2][i]) == 0 then
      finding('ending of nothing', got[2][i])
      if mend then call('ZREM', endings, got[2][i]) end
    end
  end
end

-- counts are the sums over claims (Q4).
function parts.sums()
  local sums = {}
  for _, text in ipairs(call('HVALS', claims)) do
    local f = fields(text)
    local of = {'q', 'k' .. T .. f[4]}
    if f[7] ~= '' then of[#of + 1] = 'y' .. T .. f[7] end
    if f[8] then of[#of + 1] = 'b' .. T .. f[1] .. T .. f[8] end
    for _, field in ipairs(of) do sums[field] = (sums[field] or 0) + 1 end
  end
  local flat = call('HGETALL', counts)
  for i = 1, #flat, 2 do sums[flat[i]] = sums[flat[i]] or 0 end
  sums.o, sums.r = 0, nil -- r is no count
  for _, id in ipairs(call('HKEYS', claims)) do
    if call('ZSCORE', times, 'o' .. T .. id) then sums.o = sums.o + 1 end
  end
  for field, n in pairs(sums) do
    if tonumber(get(counts, field) or 0) ~= n then
      finding('count that is not the sum', field)
      if mend then
        put(counts, field, n > 0 and n)
        if string.sub(field, 1, 1) == 'y' then
          unparkKey(string.sub(field, 3))
        else
          touchAll('')
        end
      end
    end
  end
end

parts[part]()
if mend then
  handOver('', nil)
  alarm(false)
  save()
end
return {cursor, findings}
