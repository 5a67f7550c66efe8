-- stats: counts what there is, without looking at each job.
--
-- Returns {now ms, jobs, waiting, running, kept, settings, counters (what TAB kind, how many), for each kind: its name, how
-- many wait, how many run, and the ms at which the one that is next was enqueued (0 if no lane may be served); how many of those that run are only offered}. At most
-- 1,000 kinds.
--@include prelude.lua

local seen, kinds = {}, {}

local function note(kind)
  if not seen[kind] and #kinds < 1000 then
    seen[kind], kinds[#kinds + 1] = true, kind
  end
end

local counters = call('HGETALL', stats)
for i = 1, #counters, 2 do note(split(counters[i], T)[2]) end
local from = '-'
while #kinds < 1000 do
  local first = call('ZRANGEBYLEX', waiting, from, '+', 'LIMIT', 0, 1)[1]
  if not first then break end
  local kind = string.match(first, '^[^\t]*')
  note(kind)
  from = '(' .. kind .. '\n'
end

-- nextOf returns when the job was enqueued that is next of its kind: the head of a lane that may be served.
local function nextOf(kind)
  local best, bestOrder
  local start = '[' .. kind .. T
  for _ = 1, most do
    local first = call('ZRANGEBYLEX', index, start, '(' .. kind .. '\n', 'LIMIT', 0, 1)[1]
    if not first then break end
    local f = split(first, T)
    local class = f[1] .. T .. f[2] .. T .. f[3]
    if not bestOrder or f[4] < bestOrder then best, bestOrder = class .. T .. f[5], f[4] end
    start = '(' .. class .. T .. '\255'
  end
  local head = best and under(waiting, best .. T, 1)[1]
  local record = head and call('HGET', jobs, string.sub(head, #best + 19))
  return record and parse(record).enqueued or '0'
end

local flat = {}
for _, kind in ipairs(kinds) do
  local waits = call('ZLEXCOUNT', waiting, '[' .. kind .. T, '(' .. kind .. '\n')
  flat[#flat + 1], flat[#flat + 2], flat[#flat + 3] = kind, string.format('%d', waits), get(counts, 'k' .. T .. kind) or '0'
  flat[#flat + 1] = waits > 0 and nextOf(kind) or '0'
end
return {nowMs, call('HLEN', jobs), call('ZCARD', waiting), call('HLEN', claims), call('HLEN', ended), call('HGETALL', settings),
  counters, flat, tonumber(get(counts, 'o')) or 0}
