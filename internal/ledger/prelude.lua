-- The ledger of one resource: its keys, and their state as it is read at the start of every transition.
--
-- KEYS, all under the hash tag of the resource:
--   1 STATE   HASH  of which the first two are all that is read of a resource without an operator's limit or watchers:
--                   clock     "3 clock ahead token held count ends soonest limit lives special": the version of this
--                             form; the server's clock, in s, when this was written, and the ms by which the ledger's
--                             time is ahead of it, if it ever went back; the last fencing token; the sum of the leases'
--                             weights, and their number; the ms by which all of them expire, which tells a LEASES that
--                             expired from one that was lost; the ms at which the first of them expires, 0 = look; the
--                             limit that a caller stated last; the ms until which STATE and LEASES live; 1 if there may
--                             be an operator, a watcher, or a lease that wants notice
--                   queue     "most tail seen bars lives departures", absent if QUEUE and SEEN are: the highest limit
--                             that one of those who wait stated; the last ticket; the ms before which nobody in SEEN is
--                             over, 0 = SEEN is empty; the ms after which no id is barred; the ms until which QUEUE
--                             lives; a number that grows when somebody leaves the queue without a grant
--                   operator  the operator's limit, absent if none
--                   watched   the ms until which somebody watches
--                   pace      the us at which the next paced grant is on time
--                   and per id, which has a ':' in it as no other field has, a record:
--                     L weight token sinceMs ttlMs terms owner               a lease
--                     W weight limit sinceMs ttlMs claimMs terms owner       a waiter
--                   The id of a lease that ended but whose permits rest is its holder's with a '!' in front: nobody can
--                   renew or release it.
--   2 LEASES  ZSET  id -> the ms at which the lease expires
--   3 QUEUE   ZSET  id -> ticket
--   4 SEEN    ZSET  id -> the ms by which the waiter must be heard from again, if that is not by its record: within the
--                   claim time since it came; with half a ms more, that counts only while the mark of its process does;
--                   '@' .. process -> that mark: the ms by which the process must be heard from again;
--                   '-' .. id -> the ms until which the id is barred from acquiring (it was cancelled or forced)
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
-- A key of the wrong type stops a transition before it has changed anything (Redis does not roll scripts back): the keys
-- that it writes are read before, or written first.
-- FREES: on a server whose memory is full a script may write what needs memory only after something that needs none. What
-- ends leases begins with such a write, for the compact form has no other: there is no `queue` in it; or it makes do without
-- the write that was refused.
-- The field is named `clock` because version 2 stops there: it cannot read this as a clock, and writes nothing.
-- Numbers are made text by %d, which a server does several times faster than %.0f or its own conversion.
-- held and count sum up the records so that nobody has to read them all; where they disagree with LEASES, repair.
-- soonest, seen, bars and lives only spare commands: what is earlier than true, or lost, costs one.

local BATCH = 1000       -- expired entries taken in one call; a batch costs three commands whatever its size
local GRANTS = 100       -- handoffs in one call
local NOTICES = 100      -- holders told that somebody waits
local TAIL = 10000       -- ms a key outlives what it holds
local MEMORY = 3600000   -- ms for which an idle resource remembers its last token, at most
local SLACK = 1000       -- ms that the clock may go back without being noticed
local CLAIMS = 10        -- claim times for which who stood in a heartbeat is believed in, if its process is heard from
local FEW = 4            -- leases in the compact form, at most
local FIELDS = 5         -- those of STATE that are no records
local VERSION = 3        -- of the form of STATE
local NEVER = 2 ^ 53     -- ms that do not come
local WHOLE = 2147483647 -- the highest limit there is: the weight of a lease whose record is lost

-- What transitions answer. Go has the same: codes_test.go.
local GRANTED, WAITING, REFUSED, BARRED, HEAVY = 1, 2, 3, 4, 5
local LOST, HELD, FORCED, WANTED, BUSY, STALE = 0, 1, 2, 3, 3, 4
local WAS_UNKNOWN, WAS_WAITING, WAS_HELD = 0, 1, 2

local call = redis.call
local clock = call('TIME')
local serverUs = clock[1] * 1000000 + clock[2]
local nowUs, now, clockAhead -- the ledger's time, and by how much it is ahead of the server's

local STATE, LEASES, QUEUE, SEEN
local token, held, count, ends, soonest, limit, lives, special
local queued, most, tail, seen, bars, queueLives, departures -- queued: QUEUE or SEEN may exist
local operator, watched
local selfRecord -- of the id that the transition is about, if there is one there
local few        -- the leases of the compact form as its line has them, nil if the form is the full one
local selfAt, selfPast, selfAfter -- where in it that of the id begins, its expiry ends, and it ends itself
local cut        -- the line cannot be read
local fresh      -- there is no key of the resource
local mixed      -- the fields of STATE are not of this version, or not all there: all is looked for

-- What is written to `clock` in either form, and to `queue`: in the order in which read.lua reads it.
local COMPACT = '3c %s %d %d %d %d%s\n.'
local FULL = '3 %s %d %d %d %d %d %d %d %d %d'
local QUEUED = '%d %d %d %d %d %d'
local format = string.format

local first, self = 1, ARGV[1]
--@include read.lua
