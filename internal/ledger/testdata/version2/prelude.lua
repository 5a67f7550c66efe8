
-- The ledger of one resource: its keys, and their state as it is read at the start of every transition.
--
-- KEYS, all under the hash tag of the resource:
--   1 STATE   HASH  limit (the last a caller stated), operator (the operator's, absent if none), token (the last
--                   fencing token), held (sum of the leases' weights), count (number of leases), ends (the ms by which
--                   all of them expire, which tells a LEASES that expired from one that was lost), watched (the ms until
--                   which somebody watches), pace (the us at which the next paced grant is on time), clock (the
--                   server's, in s, when a lease was granted or renewed last; if it ever went back, behind a blank the ms by
--                   which the ledger's time is ahead of it), and per id a record:
--                     L weight token sinceMs ttlMs terms owner               a lease
--                     W weight limit sinceMs ttlMs claimMs terms owner       a waiter
--                   Ids hold a ':' and the other fields do not. The id of a lease that ended but whose permits rest is
--                   its holder's with a '!' in front: nobody can renew or release it.
--   2 LEASES  ZSET  id -> the ms at which the lease expires
--   3 QUEUE   ZSET  id -> ticket
--   4 SEEN    ZSET  id -> the ms by which the waiter must be heard from again; '-' .. id -> the ms until which the id
--                   is barred from acquiring (it was cancelled or forced)
--
-- Terms are what an acquisition wants besides permits, in one word: '-' for nothing, or of these, with commas between:
--   c<ms>           cool-down: permits rest for so long after the lease expired (not after it was released)
--   h<ms>           hold at least: permits rest until so long after the grant, however early the lease is released
--   p<us>:<burst>   pace: grants with a pace come so far apart, after a burst (GCRA, as in limit.lua)
--   b<n>            block: reserves n more tokens behind the lease's own
--   n               notice: tell the holder when somebody waits
--   r<n>            reweighed: the number of the last request that was applied (reweigh.lua)
--   g               group: waits for other resources too; only acquire_group.lua can grant it
--
-- Every time here is the ledger's: the server's clock, and when that went back, by as much more. So what was to expire in
-- a second does, and not an hour later; what is held becomes no shorter. That it went back shows when a grant or renewal is
-- remembered that is still to come. Less than SLACK is left alone. When the clock goes forward, nobody can tell.
--
-- All keys are read before anything is written, so that a key of the wrong type stops a transition before it has
-- changed anything (Redis does not roll scripts back).
-- Numbers are made text by %d, which a server does several times faster than %.0f or its own conversion.
-- held and count sum up the records so that nobody has to read them all; where they disagree with LEASES, repair.

local BATCH = 1000       -- expired entries taken in one call; a batch costs three commands whatever its size
local GRANTS = 100       -- handoffs in one call
local NOTICES = 100      -- holders told that somebody waits
local TAIL = 10000       -- ms a key outlives what it holds
local MEMORY = 3600000   -- ms for which an idle resource remembers its last token, at most
local SLACK = 1000       -- ms that the clock may go back without being noticed
local FIELDS = 9         -- those of STATE that are no records
local WHOLE = 2147483647 -- the highest limit there is: the weight of a lease whose record is lost

-- What transitions answer. Go has the same: codes_test.go.
local GRANTED, WAITING, REFUSED, BARRED, HEAVY = 1, 2, 3, 4, 5
local LOST, HELD, FORCED, WANTED, BUSY, STALE = 0, 1, 2, 3, 3, 4
local WAS_UNKNOWN, WAS_WAITING, WAS_HELD = 0, 1, 2

local call = redis.call
local clock = call('TIME')
local serverUs = clock[1] * 1000000 + clock[2]
local nowUs, now, stamp -- the ledger's time, and what it writes to `clock`

local STATE, LEASES, QUEUE, SEEN
local limit, operator, token, held, count, ends, watched, stateNew
local selfRecord -- of the id that the transition is about, if there is one there
local present    -- how many of LEASES, QUEUE, SEEN there are

local first, self = 1, ARGV[1]
-- Reads the resource whose keys begin at KEYS[first], and the record of the id `self`.
STATE, LEASES, QUEUE, SEEN = KEYS[first], KEYS[first + 1], KEYS[first + 2], KEYS[first + 3]
do
  local state = call('HMGET', STATE, 'limit', 'operator', 'token', 'held', 'count', 'ends', 'watched', self, 'clock')
  local last, ahead = tonumber(state[9] or 0), 0
  if not last then
    last, ahead = string.match(state[9], '^(%d+) (%d+)$')
  end
  local backMs = last * 1000 - serverUs / 1000
  stamp, nowUs = clock[1], serverUs
  if backMs > SLACK then
    ahead = ahead + math.ceil(backMs)
  end
  if ahead ~= 0 then
    stamp, nowUs = string.format('%s %d', stamp, ahead), serverUs + ahead * 1000
  end
  if backMs > SLACK then
    redis.pcall('HSET', STATE, 'clock', stamp) -- without memory for it the next call finds the same
  end
  now = math.floor(nowUs / 1000)
  limit, operator = tonumber(state[1] or nil), tonumber(state[2] or nil)
  token, held, count = tonumber(state[3] or 0), tonumber(state[4] or 0), tonumber(state[5] or 0)
  ends = tonumber(state[6] or 0)
  watched = state[7] and tonumber(state[7]) > now
  stateNew = not state[3] and not state[7]
  selfRecord = state[8] or nil
  present = call('EXISTS', LEASES, QUEUE, SEEN)
end
