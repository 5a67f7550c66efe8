-- renew: moves the expiry of leases of one resource. It never brings back what has expired.
--
-- ARGV id, ttlMs, coolMs (of the lease's terms), for each lease; at most 500 leases
-- Returns  for each lease: 1 extended to now + ttlMs   3 the same, and somebody waits   0 not held   2 not held: it was
--          forced
-- Errors   WRONGTYPE if a key of the resource is not the ledger's.
-- Cost     O(log n) a lease, and at most 1,000 expired entries and 100 grants.
--@include prelude.lua
--@include functions.lua
open(ARGV[1])
local answers = {}
for i = 1, #ARGV, 3 do
  local id, ttl = ARGV[i], tonumber(ARGV[i + 1])
  local expires = tonumber(call('ZSCORE', LEASES, id) or nil)
  if expires and expires > now then
    call('ZADD', LEASES, now + ttl, id)
    leasesUntil = math.max(leasesUntil, ttl + tonumber(ARGV[i + 2]))
    answers[#answers + 1] = head and WANTED or HELD
  else
    answers[#answers + 1] = barred(id) and FORCED or LOST
  end
end
finish()
return answers
end)()
