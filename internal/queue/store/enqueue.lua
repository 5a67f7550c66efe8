-- enqueue: takes jobs in, at most 500: all of them, or none.
--
-- ARGV: call, seed, schedule (name, its tick, its next tick: "" without one), plain (1: no job has terms, 2: none has but an id of
-- the caller's), then for each job 4 words: id, lane, terms, rest (a newline and what the client wrote). Terms are "" for a job that may run at once and has none, or
-- have tabs between them: due (ms from now, or "@" and ms), priority, retention, unique states, unique field, after, and of one that is
-- reserved for whom and until when (as due).
-- after is "" or mode TAB failure TAB ids with commas: it waits for all or any of them; failure: cancel, hold, go.
-- A unique field of "id" means that the id itself is the caller's, and may be known. So may that of any other unique job: whoever
-- keeps requests may bring one again when its fingerprint is free, and it runs. And that of a tick's, which says which tick it is:
-- a schedule that is set anew by a clock behind ours comes to the same tick again.
--
-- Returns {outcomes, next}: n new, u and the id of the one that is there, s known, p and the id of a parent that failed or
-- is unknown. A producer makes its calls one after the other and numbers them: the same number again (its reply was lost)
-- is answered as before, a smaller one (it comes late) is refused, so that nothing is enqueued twice. The jobs of a tick go by
-- the tick instead, with the number 0: whoever comes second finds that it is past.
--
-- A sequence (tick: "sequence", next tick: a fingerprint of what is enqueued) is a producer of no process: whoever makes the
-- call knows its number from elsewhere. Its last call is remembered for good. A call that it is past, or that has the last
-- one's number and is another, is answered {{"past", number of the last}}, and nothing is enqueued.
--@include begin

local callNumber, seed = tonumber(ARGV[1]), ARGV[2]
if callNumber == 1 or ARGV[4] == 'sequence' and call('EXISTS', producer) == 0 then sound() end
local nothingDue = call('ZCOUNT', times, '-inf', nowText) == 0 and call('ZCOUNT', endings, '-inf', nowText) == 0
local someIdle = #call('ZRANGEBYLEX', links, '[i\t', '(i\t\255', 'LIMIT', '0', '1') > 0

-- Two fast lanes for jobs without terms, while nothing is due. They make no functions, and what is not as usual goes on below
-- before anything is written. What they leave is what the rest would have left.
local fast = (ARGV[6] == '1' or ARGV[6] == '2') and callNumber > 0 and nothingDue and nowMs - dated <= 60000

-- Nobody can be handed the jobs. The caller's ids are new ones, and a sequence has a producer that does not expire.
if fast and not someIdle then
  local format, order, last = string.format, nil, given < nowUs and nowUs - 1 or given
  local records, entries, outcomes, at = {}, {}, {}, 0
  local changed, firsts, of, usual = {}, {}, {}, true
  if ARGV[6] == '2' then
    local ids, seen = {}, {}
    for i = 7, #ARGV, 4 do
      usual, seen[ARGV[i]], ids[#ids + 1] = usual and not seen[ARGV[i]], true, ARGV[i]
    end
    for _, name in ipairs({jobs, call('EXISTS', ended) == 1 and ended or nil}) do
      for _, known in ipairs(usual and call('HMGET', name, unpack(ids)) or {}) do usual = usual and not known end
    end
  end
  local middle = '\t0\t0\t0\t0\t\t\t' .. nowText .. '\t\t'
  for i = 7, #ARGV, 4 do
    local id, lane = ARGV[i], ARGV[i + 1]
    last = last + 1
    order = format('%016d', last)
    records[at + 1], records[at + 2] = id, 'w\t' .. order .. middle .. lane .. ARGV[i + 3]
    entries[at + 1], entries[at + 2] = '0', lane .. T .. order .. T .. id
    at = at + 2
    if not of[lane] then changed[#changed + 1], firsts[lane] = lane, order end
    of[lane] = (of[lane] or 0) + 1
    outcomes[at / 2] = 'n'
  end
  local fresh, indexed = {}, {}
  for i, was in ipairs(call('HMGET', lanes, unpack(changed))) do
    local lane = changed[i]
    if not was then
      local class, key = string.match(lane, '^(.*\t)([^\t]*)$')
      fresh[#fresh + 1], fresh[#fresh + 2] = lane, firsts[lane]
      indexed[#indexed + 1], indexed[#indexed + 2] = '0', class .. firsts[lane] .. T .. key
    elseif was ~= 'parked' and firsts[lane] < was then
      usual = false
    end
  end
  if #fresh > 0 then usual = usual and call('EXISTS', jobs) == 1 and not call('HGET', settings, 'turns') end
  local first, expiry = ARGV[1] .. '\n', {'PX', '900000'}
  if ARGV[4] == 'sequence' then first, expiry = ARGV[1] .. ' ' .. ARGV[5] .. '\n', {} end
  local before = usual and call('SET', producer, first .. table.concat(outcomes, '\n'), 'GET', unpack(expiry))
  if before and tonumber(string.match(before, '^%d+')) >= callNumber then
    call('SET', producer, before, unpack(expiry))
    usual = false
  end
  if usual then
    call('HSET', jobs, unpack(records))
    call('ZADD', waiting, unpack(entries))
    if #fresh > 0 then
      call('HSET', lanes, unpack(fresh))
      call('ZADD', index, unpack(indexed))
    end
    local new = {}
    for _, lane in ipairs(changed) do
      local kind = string.match(lane, '^[^\t]*')
      new[kind] = (new[kind] or 0) + of[lane]
    end
    for kind, n in pairs(new) do call('HINCRBY', stats, 'enqueued\t' .. kind, n) end
    call('SET', clock, format('%d\t%d\t%d', last, back, dated), 'PX', '86400000')
    return {outcomes}
  end
end

-- One job is handed to an idle worker at once, where nothing of its class waits, there are no settings, and the worker's room
-- is of slots alone and has one more.
if fast and someIdle and #ARGV == 10 and ARGV[6] == '1' and ARGV[4] ~= 'sequence' and call('EXISTS', settings) == 0 then
  local id, lane = ARGV[7], ARGV[8]
  local kind, key = string.match(lane, '^([^\t]*)\t\t\t([^\t]*)$')
  local link, after = 'i' .. T .. (kind or '') .. T .. T, '(i' .. T .. (kind or '') .. T .. T .. '\255'
  local member = kind and (call('ZRANGEBYLEX', links, '[' .. link .. seed, after, 'LIMIT', '0', '1')[1] or
    call('ZRANGEBYLEX', links, '[' .. link, after, 'LIMIT', '0', '1')[1])
  local worker = member and string.sub(member, #link + 1)
  local start, used, limit, info = string.match(worker and call('HGET', workers, worker) or '', '^(%d+\tonline\t1\t)slot:(%d+):(%d+)(\t.*)$')
  local order = string.format('%016d', given < nowUs and nowUs or given + 1)
  local record = 'w\t' .. order .. '\t0\t0\t0\t0\t\t\t' .. nowText .. '\t\t' .. lane .. ARGV[10]
  local usual = used and used + 1 < tonumber(limit) and string.byte(worker) ~= 126 and #record < 60000 and
    tonumber(call('ZSCORE', times, 'w' .. T .. worker) or 0) > nowMs and not call('HGET', lanes, lane) and
    #call('ZRANGEBYLEX', index, '[' .. kind .. T .. T .. T, '(' .. kind .. T .. T .. T .. '\255', 'LIMIT', '0', '1') == 0
  local before = usual and call('SET', producer, ARGV[1] .. '\nn', 'PX', '900000', 'GET')
  if before and tonumber(string.match(before, '^%d+')) >= callNumber then
    call('SET', producer, before, 'PX', '900000')
    usual = false
  end
  if usual then
    local token = string.format('%016d', tonumber(order) + 1)
    if call('EXISTS', jobs) == 0 then
      for _, name in ipairs({times, links, workers, counts, lanes}) do call('PERSIST', name) end
    end
    call('HSET', jobs, id, record)
    call('HSET', claims, id, worker .. T .. token .. T .. nowText .. T .. lane)
    call('ZADD', links, '0', 'h' .. T .. worker .. T .. id)
    call('HINCRBY', counts, 'q', '1')
    call('HINCRBY', counts, 'k' .. T .. kind, '1')
    if key ~= '' then call('HINCRBY', counts, 'y' .. T .. key, '1') end
    call('HSET', workers, worker, start .. 'slot:' .. string.format('%d', used + 1) .. ':' .. limit .. info)
    call('HINCRBY', stats, 'enqueued' .. T .. kind, '1')
    call('SET', clock, string.format('%s\t%d\t%d', token, back, dated), 'PX', '86400000')
    record = id .. T .. token .. T .. record
    call('PUBLISH', inboxPrefix .. string.match(worker, '^[^/]*'), '4:jobs' .. #worker .. ':' .. worker .. #record .. ':' .. record)
    return {{'n'}}
  end
end
--@include state

-- dispatch is what few calls need: it is made when it is needed.
local dispatched
local function dispatch()
  if dispatched then return dispatched end
--@include dispatch
  dispatched = {due = due, handOver = handOver, alarm = alarm}
  return dispatched
end

local schedule, tick, nextTick = ARGV[3], ARGV[4], ARGV[5]
local sequence = tick == 'sequence' and nextTick
-- Lines of a list that is not the queue's own: KEYS are one more for the list and one for what is no job, and ARGV[3] to [5]
-- which lines those are (by commas), how many lines there are, and the SHA-1 of them all.
if #KEYS > 21 then
  local list, bad, n = KEYS[22], KEYS[23], tonumber(tick)
  local lines = call('LRANGE', list, 0, n - 1)
  if #lines < n or redis.sha1hex(table.concat(lines, '\n')) ~= nextTick then return {{'past'}} end
  call('LTRIM', list, n, -1)
  for at in string.gmatch(schedule, '%d+') do call('RPUSH', bad, lines[at + 1]) end
  schedule = ''
end
if schedule ~= '' then
  local text = call('HGET', schedules, schedule)
  if not text or string.match(text, '^%d+') ~= tick then return {{'past'}} end
  call('HSET', schedules, schedule, nextTick .. string.sub(text, string.find(text, '\n', 1, true), -1))
  call('ZADD', ticks, nextTick, schedule)
end
local last = callNumber > 0 and call('GET', producer)
if last then
  local n, fingerprint = string.match(last, '^(%d+) ?(%x*)')
  n = tonumber(n)
  if sequence and (n > callNumber or n == callNumber and fingerprint ~= sequence) then
    return {{'past', string.format('%d', n)}}
  end
  if n == callNumber then return {split(string.sub(last, string.find(last, '\n', 1, true) + 1), '\n'), -1} end
  if n > callNumber then return redis.error_reply('LATE a later call of this producer was answered') end
end

if not nothingDue then
  dispatch().due()
  timed = true
end

local outcomes, records, entries, changed, firsts, delayed = {}, {}, {}, {}, {}, {}

-- parentsOf returns how many parents have not ended, or the one that ended badly.
local function parentsOf(mode, failure, ids)
  local left, done = 0, 0
  for _, parent in ipairs(ids) do
    if records[parent] or call('HEXISTS', jobs, parent) == 1 then
      left = left + 1
    else
      local text = call('HGET', ended, parent)
      local state = text and string.sub(text, 1, 1) or 'd' -- done, and not kept
      if state == 'd' or failure == 'go' then
        done = done + 1
      elseif mode == 'all' then
        return nil, parent
      end
    end
  end
  if mode == 'any' and done > 0 then return 0 end
  if mode == 'any' and left == 0 then return nil, ids[1] end
  return left
end

local new, enqueued = {}, T .. nowText .. T -- of each kind; and when
for i = 7, #ARGV, 4 do
  local id, lane, rest = ARGV[i], ARGV[i + 1], ARGV[i + 3]
  local kind, terms = string.match(lane, '^[^\t]*'), split(ARGV[i + 2], T)
  local delay, priority, retention, uniqueIn, uniqueField, mode, failure, parents = '0', '0', '0', '', '', '', nil, nil
  local reservedFor, reserved
  if terms[2] then delay, priority, retention, uniqueIn, uniqueField, mode, failure, parents, reservedFor, reserved = unpack(terms) end
  local outcome = 'n'
  if (uniqueField ~= '' or schedule ~= '') and (records[id] or call('HEXISTS', jobs, id) == 1 or call('HEXISTS', ended, id) == 1) then
    outcome = 's'
  elseif uniqueField == 'id' then
    uniqueField = ''
  elseif uniqueField ~= '' then
    local other = call('HGET', unique, kind .. T .. uniqueField)
    if other then outcome = 'u' .. other else call('HSET', unique, kind .. T .. uniqueField, id) end
  end
  if outcome == 'n' then
    local dueMs = nowMs
    if delay ~= '0' then
      dueMs = string.sub(delay, 1, 1) == '@' and tonumber(string.sub(delay, 2)) + math.floor(back / 1000) or nowMs + tonumber(delay)
    end
    local untilMs = reserved and (string.sub(reserved, 1, 1) == '@' and tonumber(string.sub(reserved, 2)) + math.floor(back / 1000) or
      nowMs + tonumber(reserved)) or 0
    if untilMs > nowMs then
      lane = string.gsub(lane, '\t', function() return T .. '\1' .. reservedFor .. ',' end, 1)
      put(counts, 'r', 1)
    end
    local base, order, boost = dueMs > nowMs and dueMs * 1000 or number(), nil, '0'
    if priority == '0' then
      order = digits(base)
      if dueMs > nowMs then boost = string.format('%d', base - tonumber(order)) end
    else
      order = digits(base - tonumber(priority) * stepUs)
      boost = string.format('%d', base - tonumber(order))
    end
    local state, failed = 'w', ''
    if mode ~= '' then
      local ids = split(parents, ',')
      local left, parent = parentsOf(mode, failure, ids)
      if not left and failure == 'cancel' then
        outcome = 'p' .. parent
        freeUnique(id, {uniqueField = uniqueField, uniqueIn = uniqueIn, kind = kind}, '-')
      elseif not left then
        state, failed = 'h', 'failed'
      elseif left > 0 then
        state, failed = 'h', mode .. ' ' .. left .. ' ' .. failure
        for _, one in ipairs(ids) do
          if records[one] or call('HEXISTS', jobs, one) == 1 then call('ZADD', links, 0, 'f' .. T .. one .. T .. id .. T .. order) end
        end
      end
    end
    if outcome == 'n' then
      if untilMs > nowMs then delayed[#delayed + 1], delayed[#delayed + 2] = string.format('%d', untilMs), 'u' .. T .. id end
      if state == 'w' and dueMs > nowMs then
        state = 'l'
        delayed[#delayed + 1], delayed[#delayed + 2] = string.format('%d', dueMs), 'j' .. T .. id
      elseif state == 'w' then
        entries[#entries + 1], entries[#entries + 2] = '0', lane .. T .. order .. T .. id
        local first = firsts[lane]
        if not first then changed[#changed + 1] = lane end
        if not first or order < first then firsts[lane] = order end
      end
      records[#records + 1], records[#records + 2], records[id] = id, state .. T .. order .. T .. boost .. '\t0\t0\t' .. retention ..
        T .. uniqueIn .. T .. uniqueField .. enqueued .. failed .. T .. lane .. rest, true
      new[kind] = (new[kind] or 0) + 1
    end
  end
  outcomes[#outcomes + 1] = outcome
end

for kind, n in pairs(new) do count('enqueued', kind, n) end
if #records > 0 then rouse() end
ranged('HSET', jobs, records)
ranged('ZADD', waiting, entries)
ranged('ZADD', times, delayed)
fetch(lanes, changed)
for _, lane in ipairs(changed) do joined(lane, firsts[lane]) end
if timed or #delayed > 0 or next(touched) and someIdle then
  dispatch().handOver(seed)
  dispatched.alarm(false)
end
if sequence then
  call('SET', producer, string.format('%d', callNumber) .. ' ' .. sequence .. '\n' .. table.concat(outcomes, '\n'))
elseif callNumber > 0 then
  call('SET', producer, string.format('%d', callNumber) .. '\n' .. table.concat(outcomes, '\n'), 'PX', 900000)
end
save()
return {outcomes}
