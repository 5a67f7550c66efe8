-- workers: lists workers, in steps.
--
-- ARGV: cursor.
-- Returns {cursor, now ms, for each: id, what prelude.lua keeps of it, ms at which its lease ends, how many jobs it is offered}. The cursor is "0" at the
-- end.
--@include prelude.lua

local step = call('HSCAN', workers, ARGV[1], 'COUNT', 100)
local found = {step[1], nowMs}
for i = 1, #step[2], 2 do
  local id = step[2][i]
  if id ~= '' then
    found[#found + 1], found[#found + 2] = id, step[2][i + 1]
    found[#found + 1] = call('ZSCORE', times, 'w' .. T .. id) or '0'
    local offered, w = 0, worker(id)
    if w and w.offer ~= '' and get(counts, 'o') then
      for _, job in ipairs((holds(id))) do
        if call('ZSCORE', times, 'o' .. T .. job) then offered = offered + 1 end
      end
    end
    found[#found + 1] = offered
  end
end
return found
