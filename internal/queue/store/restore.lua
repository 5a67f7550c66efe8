-- restore: makes a queue from its history, in many calls. From the first to the last one all other transitions are refused:
-- they find no number in the clock.
--
-- ARGV: verb, who does it, and
--   begin: empties what an earlier one left that was not finished, what workers have said, settings and schedules. Returns
--          {"ok"}, or if there are jobs already {jobs, and results that are kept}.
--   put:   then the place of a key in KEYS, a command, and its words.
--   end:   the largest number that the queue ever gave out, and if its history goes on the number of the next entry, how many
--          are kept, the ID that the entry's has to be larger than, and what the entry says.
-- Returns {"ok"}, or {"other"} if somebody else has begun meanwhile, and this one has to end.

local jobs, ended, clock, history = KEYS[1], KEYS[13], KEYS[16], KEYS[19]
local call = redis.call
local verb, who = ARGV[1], ARGV[2]
local is = call('GET', clock) or '0'
local mark, given = string.match(is, '^rebuilding (%S+) (%d+)$')

if verb == 'begin' then
  if not mark then
    local there = {call('HLEN', jobs), call('HLEN', ended)}
    if there[1] + there[2] > 0 then return there end
    given = string.match(is, '^%d+')
  end
  for i = 1, #KEYS - 2 do call('UNLINK', KEYS[i]) end
  call('SET', clock, 'rebuilding ' .. who .. ' ' .. given)
  return {'ok'}
end

if mark ~= who then return {'other'} end
if verb == 'put' then
  call(ARGV[4], KEYS[tonumber(ARGV[3])], unpack(ARGV, 5))
  return {'ok'}
end

local at = call('TIME')
given = math.max(tonumber(given), tonumber(ARGV[3]), at[1] * 1000000 + at[2])
local text = string.format('%d\t0\t0', given)
if ARGV[4] ~= '' then
  local afterMs = tonumber(string.match(ARGV[6], '^%d+'))
  local ms = math.max(afterMs + 1, at[1] * 1000 + math.floor(at[2] / 1000))
  local said = {'MARK', 'history', 'rebuilt'}
  for i = 7, #ARGV do said[#said + 1] = ARGV[i] end
  call('XADD', history, string.format('%d-0', ms), 'e', cmsgpack.pack({1, ARGV[4], text, said}))
  call('SET', clock, text .. '\t' .. ARGV[4] .. '\t' .. ARGV[5])
else
  call('SET', clock, text, 'PX', '86400000')
end
return {'ok'}
