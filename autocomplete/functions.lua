-- What the scripts of a dictionary share: the tree of prefixes. doc.go says what it is and why.
--
-- The keys are the same for all scripts:
-- KEYS 1 INDEX    ZSET  all scores 0: the rows of all nodes, in byte order
-- KEYS 2 NODES    HASH  inner nodes: prefix -> bound, the last place that the node's rows are complete to
-- KEYS 3 ENTRIES  HASH  id -> sink .. folded text .. NUL .. text, or "" for a text that is its own folding
--
-- sink   the weight in 8 bytes, the heavier the less in byte order
-- folded text  ends with a space and has no NUL
-- term   folded text .. NUL .. id .. NUL: what the tree branches on. None is the beginning of another
-- place  in a node: sink .. the rest of the term beyond the node's prefix
-- row    two bytes of the prefix's length .. prefix .. place
--
-- LOW, FILL, HIGH, LEAF stand before this text; see tree.go.

local INDEX, NODES, ENTRIES = KEYS[1], KEYS[2], KEYS[3]
local END = '\255\255\255\255\255\255\255\255' -- after every sink, for NaN is no weight

local byte, sub, find = string.byte, string.sub, string.find

-- before compares in byte order. The operator < would go by the server's locale.
local function before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = byte(a, i), byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

-- head begins every row of a node.
local function head(prefix)
  return string.char(math.floor(#prefix / 256), #prefix % 256) .. prefix
end

local function countRows(prefix)
  local h = head(prefix)
  return redis.call('ZLEXCOUNT', INDEX, '[' .. h, '(' .. h .. END)
end

local function addRows(rows)
  for from = 1, #rows, 100 do
    local args = {}
    for i = from, math.min(from + 99, #rows) do
      args[#args + 1] = 0
      args[#args + 1] = rows[i]
    end
    redis.call('ZADD', INDEX, unpack(args))
  end
end

-- descend goes down the inner nodes on the way of a term or a prefix: bounds by depth, and the depth of the first
-- prefix that is none, which is a leaf, if any row is there; #term + 1 if all are inner.
local function descend(term)
  local bounds, depth = {}, 0
  while depth <= #term do
    local prefixes = {}
    for d = depth, math.min(depth + 11, #term) do prefixes[#prefixes + 1] = sub(term, 1, d) end
    for i, bound in ipairs(redis.call('HMGET', NODES, unpack(prefixes))) do
      if not bound then return bounds, depth + i - 1 end
      bounds[depth + i - 1] = bound
    end
    depth = depth + #prefixes
  end
  return bounds, depth
end

-- bind makes the row after so many the last of an inner node.
local function bind(prefix, count)
  local h = head(prefix)
  local last = redis.call('ZRANGEBYLEX', INDEX, '[' .. h, '(' .. h .. END, 'LIMIT', count - 1, 1)[1]
  redis.call('ZREMRANGEBYLEX', INDEX, '(' .. last, '(' .. h .. END)
  redis.call('HSET', NODES, prefix, sub(last, #h + 1))
end

-- split makes a leaf an inner node, and everything down to where its terms part: those nodes have one child each.
local function split(prefix)
  local h = head(prefix)
  local rows = redis.call('ZRANGEBYLEX', INDEX, '[' .. h, '(' .. h .. END)
  local places = {}
  local first, common = sub(rows[1], #h + 9), #rows[1]
  for i, row in ipairs(rows) do
    places[i] = sub(row, #h + 1)
    local rest, n = sub(row, #h + 9), 0
    while n < common and byte(rest, n + 1) == byte(first, n + 1) do n = n + 1 end
    common = n
  end
  for n = 1, common + 1 do
    local moved = {}
    for i = 1, n <= common and FILL or #places do
      local sink, rest = sub(places[i], 1, 8), sub(places[i], 9)
      moved[i] = head(prefix .. sub(rest, 1, n)) .. sink .. sub(rest, n + 1)
    end
    addRows(moved)
    if n <= common then bind(prefix .. sub(first, 1, n), FILL) end
  end
  bind(prefix, FILL)
end

-- insert adds a term that is not there. Every node on its way takes it that could show it.
local function insert(sink, term)
  local bounds, leaf = descend(term)
  for depth = 0, leaf do
    local prefix, place = sub(term, 1, depth), sink .. sub(term, depth + 1)
    if depth == leaf or not before(bounds[depth], place) then
      redis.call('ZADD', INDEX, 0, head(prefix) .. place)
      local count = countRows(prefix)
      if depth < leaf and count > HIGH then bind(prefix, FILL) end
      if depth == leaf and count > LEAF then split(prefix) end
    end
  end
end

-- more gives more of a child's rows, as places in its parent, heaviest first; whether there is any.
local function more(child)
  local rows = redis.call('ZRANGEBYLEX', INDEX, child.from, '(' .. child.head .. END, 'LIMIT', 0, 8)
  child.places, child.at = {}, 1
  for i, row in ipairs(rows) do
    local place = sub(row, #child.head + 1)
    child.places[i] = sub(place, 1, 8) .. child.letter .. sub(place, 9)
    child.from = '(' .. row
  end
  return #rows > 0
end

-- children of an inner node, each with its first rows, the one with the heaviest last. They are found by jumping from
-- one to the next.
local function children(prefix)
  local h = string.char(math.floor((#prefix + 1) / 256), (#prefix + 1) % 256) .. prefix
  local found, from = {}, '[' .. h
  while true do
    local row = redis.call('ZRANGEBYLEX', INDEX, from, '(' .. h .. '\255', 'LIMIT', 0, 1)[1]
    if not row then break end
    local letter = sub(row, #h + 1, #h + 1)
    local child = {letter = letter, head = h .. letter, from = '[' .. row}
    more(child)
    found[#found + 1] = child
    from = '(' .. h .. letter .. END
  end
  table.sort(found, function(a, b) return before(b.places[1], a.places[1]) end)
  return found, h
end

-- heaviest merges the first places of all children, as many as FILL. It ends early where an inner child has shown all
-- its rows, because that one has more below its bound; those are LOW at least.
local function heaviest(found)
  local places = {}
  while #found > 0 and #places < FILL do
    local child = table.remove(found)
    places[#places + 1] = child.places[child.at]
    child.at = child.at + 1
    if child.places[child.at] or more(child) then
      local place, low, high = child.places[child.at], 1, #found + 1
      while low < high do
        local middle = math.floor((low + high) / 2)
        if before(place, found[middle].places[found[middle].at]) then low = middle + 1 else high = middle end
      end
      table.insert(found, low, child)
    elseif redis.call('HEXISTS', NODES, sub(child.head, 3)) == 1 then
      break
    end
  end
  return places
end

-- refill gives an inner node rows from its children's; with fewer than LOW in all it becomes a leaf. Its children are
-- leaves then, because an inner node has at least LOW.
local function refill(prefix)
  local found, below = children(prefix)
  local places, rows, h = heaviest(found), {}, head(prefix)
  for i, place in ipairs(places) do rows[i] = h .. place end
  addRows(rows)
  if #places < LOW then
    redis.call('HDEL', NODES, prefix)
    redis.call('ZREMRANGEBYLEX', INDEX, '[' .. below, '(' .. below .. '\255')
  else
    redis.call('HSET', NODES, prefix, places[#places])
  end
end

-- withdraw removes a term that is there, and returns the inner nodes that had it, the deepest first.
local function withdraw(sink, term)
  local bounds, leaf = descend(term)
  local had = {}
  for depth = leaf, 0, -1 do
    local place = sink .. sub(term, depth + 1)
    if depth == leaf or not before(bounds[depth], place) then
      local prefix = sub(term, 1, depth)
      redis.call('ZREM', INDEX, head(prefix) .. place)
      if depth < leaf then had[#had + 1] = prefix end
    end
  end
  return had
end

-- mend refills those of the nodes that have become too short.
local function mend(had)
  for _, prefix in ipairs(had) do
    if countRows(prefix) < LOW then refill(prefix) end
  end
end

local function termOf(id, value)
  return sub(value, 9, find(value, '\0', 9, true)) .. id .. '\0'
end

-- put gives an id a value, whatever it had. Whether anything has changed.
local function put(id, value)
  local old = redis.call('HGET', ENTRIES, id)
  if old == value then return false end
  local oldTerm, term = old and termOf(id, old), termOf(id, value)
  if not old or oldTerm ~= term or sub(old, 1, 8) ~= sub(value, 1, 8) then
    local had = old and withdraw(sub(old, 1, 8), oldTerm) or {}
    insert(sub(value, 1, 8), term)
    mend(had)
  end
  redis.call('HSET', ENTRIES, id, value)
  return true
end
