-- fence: runs one command on a key unless a newer holder has been there: a token older than the newest seen is refused.
--
-- KEYS 1 the guarded key
--      2 NEWEST STRING  the newest token seen
-- ARGV 1 token  2 keepMs, for how long the newest token is remembered after this  3 command, '' = none
--      4... its arguments behind the key
-- Returns  {1, reply of the command}   {0, newest token}  refused
-- Errors   those of the command. The token counts as seen all the same.
-- Cost     that of the command

local newest = redis.call('GET', KEYS[2])
-- Both are whole numbers below 2 ^ 53, so that they compare as numbers.
if newest and tonumber(newest) > tonumber(ARGV[1]) then
  return {0, tonumber(newest)}
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
if ARGV[3] == '' then
  return {1, false}
end
return {1, redis.call(ARGV[3], KEYS[1], unpack(ARGV, 4))}
