-- Reads the resource whose keys begin at KEYS[first], and the record of the id `self`, in whichever form it is.
STATE, LEASES, QUEUE, SEEN = KEYS[first], KEYS[first + 1], KEYS[first + 2], KEYS[first + 3]
do
  local state = call('HMGET', STATE, 'clock', 'queue', self)
  local line, last, ahead, flag = state[1] or '', nil, nil, nil
  selfRecord, queued = state[3] or nil, state[2] ~= false
  operator, watched, special, fresh, mixed = nil, nil, false, false, false
  held, count, ends, soonest = 0, 0, 0, 0
  most, tail, seen, bars, queueLives, departures = 0, 0, 0, 0, 0, 0
  last, ahead, token, limit, lives, few = string.match(line, '^3c (%d+) (%d+) (%d+) (%d+) (%d+)(.*)\n%.$')
  if last then
    local whole = 1
    for at, expires, past, id, record, weight, after in string.gmatch(few, '()\n(%d+)() (%S+) (L (%d+) [^\n]*)()') do
      expires = tonumber(expires)
      held, count, ends = held + weight, count + 1, math.max(ends, expires)
      soonest = count == 1 and expires or math.min(soonest, expires)
      mixed, whole = mixed or at ~= whole, after
      if id == self then
        selfRecord, selfAt, selfPast, selfAfter = record, at, past, after
      end
    end
    mixed = mixed or queued or whole ~= #few + 1
  else
    last, ahead, token, held, count, ends, soonest, limit, lives, flag =
      string.match(line, '^3 (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ([01])$')
    if last then
      held, count, ends, soonest = tonumber(held), tonumber(count), tonumber(ends), tonumber(soonest)
      special = flag == '1'
    end
  end
  if last and not mixed then
    ahead, token, limit, lives = tonumber(ahead), tonumber(token), tonumber(limit), tonumber(lives)
  else
    fresh = line == '' and call('EXISTS', STATE, LEASES, QUEUE, SEEN) == 0
    mixed, queued, special, few = not fresh, not fresh, not fresh, fresh and '' or nil
    last, ahead, token, held, count, ends, soonest, limit, lives = 0, 0, 0, 0, 0, 0, 0, 0, 0
    if mixed then
      --@include adopt.lua
    end
  end
  local backMs = last * 1000 - serverUs / 1000
  if backMs > SLACK then
    ahead = ahead + math.ceil(backMs)
    -- Without memory for it the next call finds the same.
    redis.pcall('HSET', STATE, 'clock', (string.gsub(line, '^(3c?) %d+ %d+ ', format('%%1 %s %d ', clock[1], ahead))))
  end
  clockAhead, nowUs = ahead, serverUs + ahead * 1000
  now = math.floor(nowUs / 1000)
  if special then
    local two = call('HMGET', STATE, 'operator', 'watched')
    operator, watched = tonumber(two[1] or nil), (tonumber(two[2] or nil) or 0) > now
  end
  if queued then
    local m, t, s, b, l, d = string.match(state[2] or '', '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
    if m then
      most, tail, seen, bars, queueLives, departures =
        tonumber(m), tonumber(t), tonumber(s), tonumber(b), tonumber(l), tonumber(d)
    else
      mixed = true
    end
  end
end
