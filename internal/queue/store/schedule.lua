-- schedule: keeps schedules. What they say is the clients'; the server knows when the next tick is.
--
-- ARGV: verb; set: name, ms of the next tick, text; remove: name; list; time. Setting the same text again changes nothing, so that
-- every process may set its schedules when it starts, and no tick is lost or doubled by that.
-- Returns {1} if something has changed, for list pairs of name and text with its tick, and for time {now ms}.
--@include prelude.lua

local verb, name, ms, text = unpack(ARGV)
if verb == 'time' then return {nowMs} end
if verb == 'list' then return call('HGETALL', schedules) end
local was = call('HGET', schedules, name)
if verb == 'remove' then
  call('ZREM', ticks, name)
  local removed = call('HDEL', schedules, name)
  if removed == 1 then save() end
  return {removed}
end
if was and string.sub(was, string.find(was, '\n', 1, true) + 1) == text then return {0} end
call('HSET', schedules, name, ms .. '\n' .. text)
call('ZADD', ticks, ms, name)
alarm(false)
save()
return {1}
