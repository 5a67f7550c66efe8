-- Reads the resource whose keys begin at KEYS[first], and the record of the id `self`.
STATE, LEASES, QUEUE, SEEN = KEYS[first], KEYS[first + 1], KEYS[first + 2], KEYS[first + 3]
local state = call('HMGET', STATE, 'limit', 'operator', 'token', 'held', 'count', 'ends', 'watched', self)
limit, operator = tonumber(state[1] or nil), tonumber(state[2] or nil)
token, held, count = tonumber(state[3] or 0), tonumber(state[4] or 0), tonumber(state[5] or 0)
ends = tonumber(state[6] or 0)
watched = state[7] and tonumber(state[7]) > now
stateNew = not state[3] and not state[7]
record = state[8] or nil
present = call('EXISTS', LEASES, QUEUE, SEEN)
