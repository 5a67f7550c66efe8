-- fence: runs one command on a key unless a newer holder has been there: a token older than the newest seen is refused.
--
-- KEYS 1 the guarded key
--      2 NEWEST STRING  the newest token seen
-- ARGV 1 token  2 keepMs, for how long the newest token is remembered after this  3 command, '' = none
--      4... its arguments behind the key
-- Returns  {1, reply of the command}   {0, newest token}  refused
-- Errors   those of the command, which then has done nothing, and the token does not count as seen.
-- Cost     that of the command

local REFUSED, DONE = 0, 1
local token, keepMs = tonumber(ARGV[1]), tonumber(ARGV[2])
local newest = tonumber(redis.call('GET', KEYS[2]) or 0)
-- Both are whole numbers below 2 ^ 53, so that they compare as numbers.
if newest > token then
  return {REFUSED, newest}
end
-- What makes SET fail is looked for before the command runs: once that has written, a server whose memory is full, or
-- that may not write, has refused it, and refuses nothing more.
if not (keepMs > 0 and keepMs < 2 ^ 52) then
  return redis.error_reply('ERR fence: keepMs is ' .. ARGV[2])
end
local reply = false
if ARGV[3] ~= '' then
  reply = redis.pcall(ARGV[3], KEYS[1], unpack(ARGV, 4))
  if type(reply) == 'table' and reply.err then
    return reply
  end
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return {DONE, reply}
