-- lookup: the heaviest entries whose folded text begins with a prefix.
--
-- ARGV 1 prefix, folded  2 how many: at most LOW
-- Returns  id, value (see ENTRIES), and so on, the heaviest first
-- Errors   WRONGTYPE if a key is not a dictionary's
-- Cost     O(length of the prefix + log n + k), with 3 or 4 commands; where the prefix ends within a leaf, its rows
--          besides: at most LEAF

local prefix, most = ARGV[1], tonumber(ARGV[2])
local node = prefix
if redis.call('HEXISTS', NODES, prefix) == 0 then
  local _, leaf = descend(prefix)
  node = sub(prefix, 1, leaf)
end
local h, rest = head(node), sub(prefix, #node + 1)

local ids, from = {}, '[' .. h
while #ids < most do
  local batch = rest == '' and most or 128
  local rows = redis.call('ZRANGEBYLEX', INDEX, from, '(' .. h .. END, 'LIMIT', 0, batch)
  for _, row in ipairs(rows) do
    if sub(row, #h + 9, #h + 8 + #rest) == rest then
      -- The id is between the last two NULs of a row. If the node's prefix has the first of them, it has a part of
      -- the id, too.
      local term = node .. sub(row, #h + 9)
      ids[#ids + 1] = sub(term, find(term, '\0', 1, true) + 1, -2)
      if #ids == most then break end
    end
  end
  if #rows < batch then break end
  from = '(' .. rows[#rows]
end
if #ids == 0 then return {} end

local answer = {}
for i, value in ipairs(redis.call('HMGET', ENTRIES, unpack(ids))) do
  answer[2 * i - 1], answer[2 * i] = ids[i], value
end
return answer
