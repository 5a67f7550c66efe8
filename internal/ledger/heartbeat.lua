-- heartbeat: says of many waiters of one resource that they are alive, as acquire does of one. It makes nobody wait and
-- grants to those alone who are at the head of the queue, as every transition does.
--
-- ARGV 1 claimMs, or claimMs,process: the process that all the ids are of says that it is there with still.lua, within each
--        claim time, and the ids stand here again within ten
--      2... ids; at most 500
-- Returns  {nowMs, ms, place of the queue's head among the ids, 0 if it is none of them, with a process the version of the
--          queue, places of the ids that do not wait}: places count from 1, the same ms as acquire's. Who does not wait was
--          granted, sent away or forgotten, or is granted by this call: acquire tells.
-- Errors   WRONGTYPE if a key of the resource is not the ledger's.
-- Cost     O(log n) an id, and at most 1,000 expired entries and 100 grants.

--@include prelude.lua
--@include functions.lua

open('')
local claim, process = string.match(ARGV[1], '^(%d+),?(.*)$')
claim = tonumber(claim)
local heardMs = process == '' and claim or CLAIMS * claim
if head then
  dirty = true -- that the clock went back is noticed soon wherever somebody waits
  stateUntil = claim
end
finish()

local deadline, marks, place = integer(now + heardMs) .. (process == '' and '' or '.5'), {}, 0
for i = 2, #ARGV do
  marks[2 * i - 3], marks[2 * i - 2] = deadline, ARGV[i]
  if ARGV[i] == head then
    place = i - 1
  end
end
local answer = {now, capped and 0 or nextExpiry(), place}
if process ~= '' then
  answer[4] = token + departures
end
local told = #answer

-- missing lists the ids that have no place in QUEUE, and puts the others into SEEN.
local function missing()
  local ids = {unpack(ARGV, 2)}
  local places, unheard = call('ZMSCORE', QUEUE, unpack(ids)), {}
  for i = 1, #ids do
    if places[i] then
      unheard[#unheard + 1] = deadline
      unheard[#unheard + 1] = ids[i]
    else
      answer[#answer + 1] = i
      call('ZREM', SEEN, ids[i])
    end
  end
  if #unheard > 0 then
    call('ZADD', SEEN, unpack(unheard))
    if seen == 0 or seen > now + heardMs then
      seen = now + heardMs
      call('HSET', STATE, 'queue', format(QUEUED, most, tail, seen, bars, queueLives, departures))
    end
  end
end

-- One count tells that all are there: CH leaves out those that have this deadline already. A QUEUE that was lost leaves
-- SEEN behind: one id, another each time, stands for all.
local n = #ARGV - 1
local changed = call('ZADD', SEEN, 'XX', 'CH', unpack(marks))
if changed < n or not call('ZSCORE', QUEUE, ARGV[2 + nowUs % n]) then
  missing()
end
if #answer - told < n then
  if process ~= '' then
    call('ZADD', SEEN, integer(now + claim), '@' .. process)
  end
  cover(QUEUE, claim)
  cover(SEEN, heardMs)
end
return answer
