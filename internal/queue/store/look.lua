-- look: reads what there is to know of one job.
--
-- ARGV: id, the inbox that is to hear of its end ("" for none).
-- Returns {state, record, claim, place of its lane, jobs before it in its lane, lanes of its class that go before its own, due ms,
-- now ms, for the queue, its kind and its key: paused, limit, how many run, ms until which the rate is used up; what its
-- worker says of itself, ms at which the worker's lease ends, ms until which it is reserved or declined}, or {"unknown"}. A job that has ended is {"ended", kept, now}.
--@include prelude.lua

local id, inbox = ARGV[1], ARGV[2]
local record = call('HGET', jobs, id)
if not record then
  local kept = call('HGET', ended, id)
  if kept then return {'ended', kept, nowMs} end
  return {'unknown'}
end
if inbox ~= '' then call('ZADD', links, 0, 'a' .. T .. id .. T .. inbox) end
local j = parse(record)
local claimText = call('HGET', claims, id)
local before, ahead = 0, 0
local offered = claimText and call('ZSCORE', times, 'o' .. T .. id)
local lane = call('HGET', lanes, j.lane)
if not claimText and j.state == 'w' then
  before = call('ZLEXCOUNT', waiting, '[' .. j.lane .. T, '(' .. j.lane .. T .. j.order .. T .. id)
  if lane and lane ~= 'parked' then
    local from, to = '[' .. j.class .. T, '(' .. j.class .. T .. lane .. T .. j.key
    ahead = call('ZLEXCOUNT', index, from, to)
    -- Lanes that are paused, or have used up their limit or rate, stand in the index until somebody has looked. They let it pass.
    for _, entry in ipairs(keyed and call('ZRANGEBYLEX', index, from, to, 'LIMIT', 0, looks) or {}) do
      local key = string.sub(entry, #j.class + 19)
      local k = key ~= '' and ofKey(key) or {}
      if k.paused or scope('y' .. T .. key, k.limit, k.rate) == 0 then ahead = ahead - 1 end
    end
  end
end

local scopes = {}

local function tellScope(field, s)
  local _, untilMs
  if s.rate then _, untilMs = allowed(field, s.rate) end
  for _, word in ipairs({s.paused or '', s.limit or '', get(counts, field) or 0, untilMs or 0}) do
    scopes[#scopes + 1] = type(word) == 'number' and string.format('%d', word) or word
  end
end

tellScope('q', whole)
tellScope('k' .. T .. j.kind, ofKind(j.kind))
tellScope('y' .. T .. j.key, j.key == '' and {} or ofKey(j.key))

local holder = claimText and split(claimText, T)[1]
local text = holder and call('HGET', workers, holder)
return {offered and 'o' or claimText and 'c' or j.state, record, claimText or '', lane or '', before, ahead,
  offered or call('ZSCORE', times, 'j' .. T .. id) or '', nowMs, scopes, text and split(text, T)[7] or '',
  holder and call('ZSCORE', times, 'w' .. T .. holder) or '', call('ZSCORE', times, 'u' .. T .. id) or ''}
