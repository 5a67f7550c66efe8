-- The ledger of one resource: its keys, and their state as it is read at the start of every transition.
--
-- KEYS, all under the hash tag of the resource:
--   1 STATE   HASH  limit (the last a caller stated), operator (the operator's, absent if none), token (the last
--                   fencing token), held (sum of the leases' weights), count (number of leases), ends (the ms by which
--                   all of them expire, which tells a LEASES that expired from one that was lost), watched (the ms until
--                   which somebody watches), pace (the us at which the next paced grant is on time), and per id a record:
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
--   g               group: waits for other resources too; only acquire_group.lua can grant it
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
local FIELDS = 8         -- those of STATE that are no records
local WHOLE = 2147483647 -- the highest limit there is: the weight of a lease whose record is lost

local call = redis.call
local clock = call('TIME')
local nowUs = clock[1] * 1000000 + clock[2]
local now = math.floor(nowUs / 1000)

local STATE, LEASES, QUEUE, SEEN
local limit, operator, token, held, count, ends, watched, stateNew
local record    -- of the id that the transition is about, if there is one there
local present   -- how many of LEASES, QUEUE, SEEN there are

local first, self = 1, ARGV[1]
--@include read.lua
