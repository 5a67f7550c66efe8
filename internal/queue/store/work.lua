-- work: a worker's call: what it has done, that it lives, and what it has room for.
--
-- ARGV: worker, call, seed, lease ms (and if there is more TAB for how long it is offered jobs in ms, perhaps with " stay", TAB its name), state, room (name:limit,…), tags, kinds, info, most to claim, register (1: the worker
-- may be new), inventory (ids with commas, "-" without one), words for each job that follows (2 or 5), then for each
-- job it is done with: id, token and, unless all are done and leave nothing, verb, number, text. Verbs: done (retention, result), retry (delay, error), dead (retention, error), snooze (delay), back (it did not
-- run), cancelled (retention, cause); of an offer accept, decline, miss; and note (text) of a job that it is not done with: all that its handler has to say.
--
-- Returns {status, next ms, late ids, new jobs (id TAB token TAB record each), ids to cancel ("": it is to drain), ids that are not the worker's, jobs
-- that it holds and did not list, schedules whose tick has come (name, text each)}.
-- Status: taken, if it takes offers and another worker of its name does (next is when that one's lease ends); ok; more, if what it was given does not fit into one answer; unknown, if the lease has ended: what the worker ran is others'. A worker makes its calls one after the
-- other and numbers them: the same number again is a call whose reply was lost; what it reported counts once.
--
-- Calls of several workers together: ARGV has an empty word, and then for each call how many words it has, and these. It is answered
-- by a list of what each is answered, as if they had come one after the other at the same moment, but that only the first
-- looks at what is due. One that is refused as late is answered {late}.
--@include prelude.lua

local calls = {ARGV}
if ARGV[1] == '' then
  local at = 2
  calls = {}
  while ARGV[at] do
    local n = string.match(ARGV[at], '^%d+$')
    calls[#calls + 1] = {unpack(ARGV, at + 1, at + n)}
    at = at + 1 + n
  end
end

-- answerMost is the bound of the records in an answer, in bytes: it goes for those that are new and those that it did not list.
local answerMost = 4 * 1024 * 1024 / #calls

-- longest is the lease of the worker that is believed in for longest.
local longest

-- turn is one worker's call.
local function turn(ARGV)
  local id, callNumber, seed, state = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[5]
  local lease, offer, name = string.match(ARGV[4], '^(%d+)\t?([^\t]*)\t?(.*)$')
  lease = tonumber(lease)
  local want, register, inventory = tonumber(ARGV[10]), ARGV[11] == '1', ARGV[12]

  local w = worker(id)
  if not w then
    if not register then
      handOver(seed)
      alarm(false)
      return {'unknown', -1, {}, {}, {}, {}, {}, {}}
    end
    if name ~= '' then
      local start, process = 'n' .. T .. name .. T, string.match(id, '^[^.]*')
      for _, member in ipairs(offer ~= '' and under(links, start, 50) or {}) do
        local other = worker(string.sub(member, #start + 1))
        local left = other and other.offer ~= '' and string.match(other.id, '^[^.]*') ~= process and
          tonumber(call('ZSCORE', times, 'w' .. T .. other.id) or 0) - nowMs or 0
        if left > 0 then
          handOver(seed)
          alarm(false)
          return {'taken', left, {}, {}, {}, {}, {}, {}}
        end
      end
      call('ZADD', links, '0', start .. id)
    end
    w = {id = id, call = 0, idle = false, offer = offer, rank = '', name = name, room = {}, names = {}, tags = ARGV[7], kinds = ARGV[8], info = ARGV[9]}
    known[id] = w
    if call('ZREM', times, undrained(id)) == 1 then call('ZADD', links, '0', 'x' .. T .. id .. T) end
  end
  if tonumber(w.call) > callNumber then
    handOver(seed)
    alarm(false)
    return {'late'}
  end
  local again_ = tonumber(w.call) == callNumber
  if state == 'online' and (w.state == 'missed' or again_ and w.state == 'away') then state = 'away' end -- see endOffer
  w.info = ARGV[9]

  -- What it can do, if that has changed.
  if w.tags ~= ARGV[7] or w.kinds ~= ARGV[8] or (w.offer == '') ~= (offer == '') then
    setIdle(w, false)
    w.tags, w.kinds, w.told = ARGV[7], ARGV[8], ''
  end
  local room, names = {}, {}
  for name, limit in string.gmatch(ARGV[6], '([^,:]+):(%d+)') do
    room[name] = {used = w.room[name] and w.room[name].used or 0, limit = tonumber(limit)}
    names[#names + 1] = name
  end
  for _, name in ipairs(w.names) do
    if not room[name] and w.room[name].used > 0 then
      room[name] = {used = w.room[name].used, limit = 0}
      names[#names + 1] = name
    end
  end
  w.room, w.names, w.state, w.offer = room, names, state, offer
  if name ~= w.name then
    w.name = name
    call('ZADD', links, '0', 'n' .. T .. name .. T .. id)
  end

  -- What it has done.
  local late = {}
  local ids, each_ = {}, tonumber(ARGV[13])
  for i = 14, #ARGV, each_ do ids[#ids + 1] = ARGV[i] end
  local claimTexts = {}
  for from = 1, #ids, 1000 do
    for _, text in ipairs(call('HMGET', claims, unpack(ids, from, math.min(from + 999, #ids)))) do
      claimTexts[#claimTexts + 1] = text
    end
  end

  -- Jobs that are done and leave nothing are most: they go together.
  local gone, goneLanes, goneIn, groups, ends = {}, {}, {}, {}, {}
  local mine = id .. T
  local told = #under(links, 'x' .. T .. id .. T, 1) > 0
  local lookAfter = told or #ids > 0 and (call('EXISTS', unique) == 1 or #call('ZRANGEBYLEX', links, '[a\t', '(f\n', 'LIMIT', '0', '1') > 0)

  -- annotate keeps a note with its job, and tells it to those who wait for the end.
  local function annotate(job, text)
    local record = call('HGET', jobs, job)
    if not record then return end
    local j = parse(record)
    j.rest = string.match(j.rest, '^\n[^\n]*') .. '\n' .. text
    call('HSET', jobs, job, write(j))
    for _, member in ipairs(under(links, 'a' .. T .. job .. T, most)) do
      publish(string.sub(member, #job + 4), {'noted', job, text})
    end
  end

  -- accept has the worker's job be no offer any more, unless its time is over. It returns whether the job is the worker's.
  local function accept(job, claimText)
    local untilMs = call('ZSCORE', times, 'o' .. T .. job)
    if not untilMs then return true end
    if tonumber(untilMs) <= nowMs then
      endOffer(job, claimText, 'missed')
      return false
    end
    call('ZREM', times, 'o' .. T .. job)
    add('o', -1)
    count('accepted', split(claimText, T)[4], 1)
    local record = call('HGET', jobs, job)
    if record then freeUnique(job, parse(record), 'c') end
    return true
  end

  local function report(job, token, verb, number_, text, claimText)
    if verb == 'note' then
      annotate(job, text)
      return
    elseif verb == 'accept' then
      if not accept(job, claimText) then late[#late + 1] = job end
      return
    elseif verb == 'decline' or verb == 'miss' then
      endOffer(job, claimText, verb == 'miss' and 'missed' or 'declined')
      return
    end
    if verb == 'done' and w.offer ~= '' and not accept(job, claimText) then
      late[#late + 1] = job
      return
    end
    if verb == 'done' and number_ == 0 and not lookAfter then
      local text_ = string.sub(claimText, #mine + 18)
      local found = ends[text_]
      if not found then
        found = {string.match(text_, '^%d*\t([^\t]*\t[^\t]*\t[^\t]*\t[^\t]*)\t?(%d*)$')}
        found[3], ends[text_] = string.find(found[1], '\1', 1, true), found
      end
      if found[3] then call('ZREM', times, 'u' .. T .. job) end
      local lane, group = found[1], found[2]
      gone[#gone + 1] = job
      if group == '' then unlink(id, job) else groups[group] = (groups[group] or 0) + 1 end
      if not goneIn[lane] then goneLanes[#goneLanes + 1] = lane end
      goneIn[lane] = (goneIn[lane] or 0) + 1
      return
    end
    local j, told = unclaim(job, claimText, w)
    if not j then return end
    if verb == 'done' then
      finish(job, j, 'd', text, number_)
      count('done', j.kind, 1)
    elseif verb == 'dead' then
      j.attempts, j.error = j.attempts + 1, text
      finish(job, j, 'x', text, number_)
      count('dead', j.kind, 1)
    elseif verb == 'cancelled' then
      finish(job, j, 'k', text, number_)
      count('cancelled', j.kind, 1)
    elseif verb == 'retry' then
      j.attempts, j.error = j.attempts + 1, text
      giveBack(job, j, told, nowMs + number_)
      count('retried', j.kind, 1)
    elseif verb == 'snooze' then
      j.order = digits((nowMs + number_) * 1000 - j.boost)
      giveBack(job, j, told, nowMs + number_)
    else
      giveBack(job, j, told)
    end
  end

  for i = 14, #ARGV, each_ do
    local job, token, claimText = ARGV[i], ARGV[i + 1], claimTexts[(i - 14) / each_ + 1]
    local verb, number_, text = 'done', '0', ''
    if each_ > 2 then verb, number_, text = ARGV[i + 2], ARGV[i + 3], ARGV[i + 4] end
    if claimText and string.find(claimText, mine, 1, true) == 1 and string.sub(claimText, #mine + 1, #mine + 16) == token then
      report(job, token, verb, tonumber(number_), text, claimText)
    elseif (not again_ or verb == 'accept') and verb ~= 'note' then
      late[#late + 1] = job
    end
  end
  if #gone > 0 then
    ranged('HDEL', claims, gone)
    ranged('HDEL', jobs, gone)
    for group, n in pairs(groups) do unlink(id, nil, group, n) end
    for kind, n in pairs(stopped(w, goneLanes, goneIn)) do count('done', kind, n) end
  end

  if parents then due() end

  -- Who is not online gets nothing of what it was offered and has not accepted.
  if offer ~= '' and state ~= 'online' and get(counts, 'o') then
    local held, claimOf = holds(id)
    for _, job in ipairs(held) do
      if call('ZSCORE', times, 'o' .. T .. job) then endOffer(job, claimOf[job], 'the worker is ' .. state) end
    end
  end

  -- What it holds.
  local lost, missing = {}, {tokens = {}, offered = offer ~= ''}
  if inventory ~= '-' then
    local has = {}
    for job in string.gmatch(inventory, '[^,]+') do has[job] = true end
    local held, claimOf = holds(id)
    for _, job in ipairs(held) do
      if has[job] then
        has[job] = nil
      else
        missing[#missing + 1], missing.tokens[#missing + 1] = job, split(claimOf[job], T)[2]
      end
    end
    for job in pairs(has) do lost[#lost + 1] = job end
  end

  -- It may be a call that comes late, of a worker that has gone. So the first one claims nothing.
  local new = w.call == 0
  w.call = callNumber
  if state == 'gone' then
    call('ZREM', times, 'w' .. T .. id)
    keepWorker(w)
    bury(id, true)
    missing = {} -- it holds nothing any more
  end
  local taken = want > 0 and not new and claim(w, want) or {}
  handOver(seed, id)

  if state == 'draining' then call('ZREM', links, 'x' .. T .. id .. T) end -- it has heard
  local cancel = {}
  for i, member in ipairs(told and under(links, 'x' .. T .. id .. T, most) or {}) do cancel[i] = string.sub(member, #id + 4) end

  -- Ticks are computed by who can read schedules: a client. Should this one not come back with the next, another is asked.
  local due_ = {}
  if state ~= 'gone' then
    for _, name in ipairs(call('ZCOUNT', ticks, '-inf', nowText) > 0 and
      call('ZRANGEBYSCORE', ticks, '-inf', nowText, 'LIMIT', '0', '10') or {}) do
      local text = call('HGET', schedules, name)
      if text then
        call('ZADD', ticks, nowMs + 5000, name)
        due_[#due_ + 1], due_[#due_ + 2] = name, text
      else
        call('ZREM', ticks, name)
      end
    end
  end

  local next = -1
  if state == 'gone' then
    alarm(false)
  else
    setIdle(w, w.state == 'online' and not new and not full(w), #taken > 0 or #ids > 0)
    keepWorker(w)
    call('ZADD', times, nowMs + lease, 'w' .. T .. id)
    next = alarm(w)
  end
  longest = math.max(longest or 0, lease)
  local claimed, more = loaded(taken, answerMost)
  local held, yetMore = loaded(missing, answerMost)
  return {(more or yetMore) and 'more' or 'ok', next, late, claimed, cancel, lost, held, due_}
end

for _, words in ipairs(calls) do
  if words[11] == '1' then
    sound()
    break
  end
end
evenIfFull()
due()
local answers = {}
for i, words in ipairs(calls) do
  answers[i] = turn(words)
  touched, given = {}, math.max(given, nowUs)
end
if longest then rest(longest) end
save()
if ARGV[1] == '' then return answers end
if answers[1][1] == 'late' then return redis.error_reply('LATE a later call of this worker was answered') end
return answers[1]
