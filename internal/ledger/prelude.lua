-- The ledger of one resource: its keys, and their state as it is read at the start of every transition.
--
-- KEYS, all under the hash tag of the resource:
--   1 STATE   HASH  limit (the last a caller stated), operator (the operator's, absent if none), token (the last
--                   fencing token), held (sum of the leases' weights), count (number of leases), ends (the ms by which
--                   all of them expire, which tells a LEASES that expired from one that was lost), and per id a record:
--                     L weight token sinceMs ttlMs owner               a lease
--                     W weight limit sinceMs ttlMs claimMs owner       a waiter
--                   Ids hold a ':' and the other fields do not.
--   2 LEASES  ZSET  id -> the ms at which the lease expires
--   3 QUEUE   ZSET  id -> ticket
--   4 SEEN    ZSET  id -> the ms by which the waiter must be heard from again; '-' .. id -> the ms until which the id
--                   is barred from acquiring (it was cancelled or forced)
--
-- All keys are read before anything is written, so that a key of the wrong type stops a transition before it has
-- changed anything (Redis does not roll scripts back).
-- Numbers are made text by %d, which a server does several times faster than %.0f or its own conversion.
-- held and count sum up the records so that nobody has to read them all; where they disagree with LEASES, repair.

local STATE, LEASES, QUEUE, SEEN = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local BATCH = 1000       -- expired entries taken in one call; a batch costs three commands whatever its size
local GRANTS = 100       -- handoffs in one call
local TAIL = 10000       -- ms a key outlives what it holds
local MEMORY = 3600000   -- ms for which an idle resource remembers its last token, at most
local FIELDS = 6         -- those of STATE that are no records
local WHOLE = 2147483647 -- the highest limit there is: the weight of a lease whose record is lost

local call = redis.call
local clock = call('TIME')
local nowUs = clock[1] * 1000000 + clock[2]
local now = math.floor(nowUs / 1000)

local state = call('HMGET', STATE, 'limit', 'operator', 'token', 'held', 'count', 'ends', ARGV[1])
local limit, operator = tonumber(state[1] or nil), tonumber(state[2] or nil)
local token, held, count = tonumber(state[3] or 0), tonumber(state[4] or 0), tonumber(state[5] or 0)
local ends = tonumber(state[6] or 0)
local stateNew = not state[3]
local record = state[7] or nil                        -- of the id in ARGV[1], if there is one there
local present = call('EXISTS', LEASES, QUEUE, SEEN)   -- how many of these there are
