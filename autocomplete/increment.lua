-- increment: adds to the weight of an entry.
--
-- ARGV 1 id  2 what is added, a number
-- Returns  the new sink; nil if there is no such entry; 0 if the sum is infinite, which changes nothing
-- Errors   WRONGTYPE if a key is not a dictionary's
-- Cost     as of set

-- toggled gives the bytes of a number in place of its sink, and the other way round: a weight that is not negative has
-- all bits but the sign turned.
local function toggled(bytes)
  if byte(bytes, 1) >= 128 then return bytes end
  local turned = {127 - byte(bytes, 1)}
  for i = 2, 8 do turned[i] = 255 - byte(bytes, i) end
  return string.char(unpack(turned))
end

local old = redis.call('HGET', ENTRIES, ARGV[1])
if not old then return false end
local weight = struct.unpack('>d', toggled(sub(old, 1, 8))) + tonumber(ARGV[2])
if weight == math.huge or weight == -math.huge then return 0 end
if weight == 0 then weight = 0 end -- not the negative zero
local sink = toggled(struct.pack('>d', weight))
put(ARGV[1], sink .. sub(old, 9))
return sink
