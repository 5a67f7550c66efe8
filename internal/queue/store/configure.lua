-- configure: sets what an operator decides, while the queue runs.
--
-- ARGV: seed, what the call before returned ("" at first), then pairs of field and value; "" takes a setting away. Fields: turns, stepMs, crashes; pause, limit, rate for
-- the whole queue; pause TAB k TAB kind, limit TAB k TAB kind, rate TAB k TAB kind for a kind; the same with y for a key,
-- and limit TAB e, rate TAB e for every key that has none of its own. A rate is "us burst".
-- Whatever was held up by settings is looked at again, 500 lanes at a time: returns where to go on, "" at the end.
--@include prelude.lua

evenIfFull()
for i = 3, #ARGV, 2 do
  if ARGV[i + 1] == '' then call('HDEL', settings, ARGV[i]) else call('HSET', settings, ARGV[i], ARGV[i + 1]) end
end
local ofKeys, ofKinds, ofEach = 0, 0, 0
for _, field in ipairs(call('HKEYS', settings)) do
  if string.find(field, '\te$') then
    ofEach = ofEach + 1
  elseif string.find(field, '\ty\t', 1, true) then
    ofKeys = ofKeys + 1
  end
  if string.find(field, '\tk\t', 1, true) then ofKinds = ofKinds + 1 end
end
for field, n in pairs({keyed = ofKeys + ofEach, perKey = ofKeys, perKind = ofKinds}) do
  if n > 0 then call('HSET', settings, field, n) else call('HDEL', settings, field) end
end
readSettings()

due()
local found = call('ZRANGEBYLEX', links, ARGV[2] == '' and '[p' .. T or '(' .. ARGV[2], '(q\n', 'LIMIT', 0, 500)
for _, member in ipairs(found) do
  local how, lane = string.match(member, '^(%a)\t[^\t]*\t(.*)$')
  if how == 'q' then call('ZREM', times, 'l' .. T .. lane) end
  unpark(lane)
end
if #found > 0 then call('ZREM', links, unpack(found)) end
touchAll('')
handOver(ARGV[1])
alarm(false)
save()
return {#found == 500 and found[500] or ''}
