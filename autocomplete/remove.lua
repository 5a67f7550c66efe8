-- remove: removes entries.
--
-- ARGV   ids
-- Returns  how many were there
-- Errors   WRONGTYPE if a key is not a dictionary's
-- Cost     as of set; now and then one that merges the rows of a node's children

local removed = 0
for _, id in ipairs(ARGV) do
  local old = redis.call('HGET', ENTRIES, id)
  if old then
    mend(withdraw(sub(old, 1, 8), termOf(id, old)))
    redis.call('HDEL', ENTRIES, id)
    removed = removed + 1
  end
end
return removed
