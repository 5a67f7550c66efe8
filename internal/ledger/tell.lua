-- tell sends one message to the process that an id belongs to. It is a hint: who misses it asks. A process whose name begins
-- with a ~ hears in a Cluster, in the slot of what it waits for: other nodes learn nothing of it.
local function tell(id, text)
  local process = string.match(id, '^[^:]*')
  if string.byte(process) == 126 then
    redis.pcall('SPUBLISH', 'signalbox:inbox:' .. string.match(KEYS[1], '{[^}]*}') .. process, text)
  else
    redis.call('PUBLISH', 'signalbox:inbox:' .. process, text)
  end
end
