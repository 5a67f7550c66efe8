-- Reads what is not of this version's form, or not whole: what version 2 left, keys that outlived STATE, a line that was
-- cut by hand. What follows is in `survey`.
-- A line of any version begins with its number and a clock in s: other numbers of a line that was cut are no clock.
local version = tonumber(string.match(line, '^(%d%d?)c? %d%d%d%d%d%d%d%d%d%d? ') or VERSION)
if version > VERSION then
  error('VERSION ' .. version .. ' of the ledger keeps this resource, and this client has version ' .. VERSION ..
    ': upgrade it', 0)
end
last, ahead, token = string.match(line, '^3c? (%d%d%d%d%d%d%d%d%d%d?) (%d+) (%d+) ')
cut = state[1] ~= false
local old = call('HMGET', STATE, 'token', 'held', 'count', 'ends', 'limit')
if not last and old[1] then
  last, ahead = string.match(line, '^(%d%d%d%d%d%d%d%d%d%d?) ?(%d*)$')
  cut = cut and not last
end
last, ahead, token = tonumber(last or 0), tonumber(ahead or nil) or 0, tonumber(token or old[1] or 0)
held, count, ends, limit = tonumber(old[2] or 0), tonumber(old[3] or 0), tonumber(old[4] or 0), tonumber(old[5] or 0)
