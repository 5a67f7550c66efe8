-- scan: finds the jobs that a filter lets through, in steps: one looks at some 100 records.
--
-- ARGV: "jobs" or "ended", cursor, then the filter, "" for any: letters of states, kind, key, tag, a part of the error,
-- enqueued since ms, until ms; and brief (1: without arguments and results).
-- Returns {cursor, now ms, for each: id, state, record or what is kept, worker, what it says of itself, ms at which the
-- worker's lease ends, its offer ends, or the job is due}. The cursor is "0" at the end.
--@include prelude.lua

local where, states, kind, key, tag, part = ARGV[1], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local since, till, brief = tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[10] == '1'

local function passes(state, j, failure)
  local enqueuedMs = tonumber(j.enqueued)
  return (states == '' or string.find(states, state, 1, true)) and (kind == '' or j.kind == kind) and
    (key == '' or j.key == key) and (tag == '' or string.find(',' .. j.tags .. ',', ',' .. tag .. ',', 1, true)) and
    (part == '' or string.find(failure, part, 1, true)) and (not since or enqueuedMs >= since) and
    (not till or enqueuedMs < till)
end

local step = call('HSCAN', where == 'jobs' and jobs or ended, ARGV[2], 'COUNT', 100)
local found = {step[1], nowMs}
local words = step[2]

local function tellJob(id, state, record, claimText)
  local holder = claimText and split(claimText, T)[1]
  local text = holder and call('HGET', workers, holder)
  local atMs = state == 'o' and call('ZSCORE', times, 'o' .. T .. id) or holder and call('ZSCORE', times, 'w' .. T .. holder) or state == 'l' and call('ZSCORE', times, 'j' .. T .. id)
  for _, word in ipairs({id, state, record, claimText or '', text and split(text, T)[7] or '', atMs or ''}) do
    found[#found + 1] = word
  end
end

local someOffered = get(counts, 'o')

local function stored()
  local ids = {}
  for i = 1, #words, 2 do ids[#ids + 1] = words[i] end
  local claimTexts = #ids > 0 and call('HMGET', claims, unpack(ids)) or {}
  for i, id in ipairs(ids) do
    local j, claimText = parse(words[2 * i]), claimTexts[i]
    local state = claimText and (someOffered and call('ZSCORE', times, 'o' .. T .. id) and 'o' or 'c') or j.state
    if passes(state, j, j.error) then
      if brief then j.rest = '\n' end
      tellJob(id, state, write(j), claimText)
    end
  end
end

local function kept()
  for i = 1, #words, 2 do
    local _, stop, state, ms, length = string.find(words[i + 1], '^(%a)\t(%d+)\t(%d+)\n')
    local text = string.sub(words[i + 1], stop + 1, stop + tonumber(length))
    local j = parse(string.sub(words[i + 1], stop + 1 + tonumber(length)))
    if passes(state, j, state == 'd' and j.error or text) then
      local record = words[i + 1]
      if brief then
        j.rest = '\n'
        record = state .. T .. ms .. T .. '0\n' .. write(j)
      end
      tellJob(words[i], state, record, false)
    end
  end
end

if where == 'jobs' then stored() else kept() end
return found
