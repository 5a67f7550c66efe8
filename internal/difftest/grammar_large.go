package difftest

import "strings"

// Collections that are larger than a request makes them. Redis keeps small ones
// compactly; where it changes its mind follows from sizes, which scripts reach at
// once, and from parameters, which are set so low that every request may cross them.

// repeatScript calls ARGV[2] on KEYS[1] ARGV[1] times, with the number of the
// call for each % in the arguments.
const repeatScript = `for i = 1, tonumber(ARGV[1]) do
  local call = {ARGV[2], KEYS[1]}
  for j = 3, #ARGV do call[#call + 1] = (ARGV[j]:gsub('%%', i)) end
  redis.call(unpack(call))
end`

// scanScript goes through a whole iteration, whose steps have no order that two
// servers share, and returns everything that it saw once.
const scanScript = `local cursor, seen, all = '0', {}, {}
repeat
  local call = {ARGV[1], KEYS[1]}
  call[#call + 1] = cursor
  for i = 2, #ARGV do call[#call + 1] = ARGV[i] end
  local step = redis.call(unpack(call))
  cursor = step[1]
  for _, word in ipairs(step[2]) do
    if not seen[word] then seen[word] = true; all[#all + 1] = word end
  end
until cursor == '0'
table.sort(all)
return all`

// defaults is the parameters that requests change, as they are at the start.
var defaults = []string{
	"hash-max-listpack-entries", "128", "hash-max-listpack-value", "64", "set-max-intset-entries", "512",
	"zset-max-listpack-entries", "128", "zset-max-listpack-value", "64", "list-max-listpack-size", "-2",
	"hll-sparse-max-bytes", "3000",
}

func largeGrammar() []template {
	return []template{
		{"hash", mode{}, []string{
			"EVAL $repeat 1 $key $times {HSET f% v%|HSET % $size|HDEL f%|HINCRBY f% 3|HSETNX f% x}",
			"HSET $key $member $size", "HMGET $key f1 f60 f129 f700", "HLEN $key", "OBJECT ENCODING $key", "EVAL $scan 1 $key HSCAN {|COUNT 3|MATCH f1*|MATCH f1* COUNT 1}",
		}},
		{"set", mode{}, []string{
			"EVAL $repeat 1 $key $times {SADD %|SADD m%|SREM %|SREM m%|SADD -% x%}", "SADD $key $size", "SCARD $key", "OBJECT ENCODING $key",
			"EVAL $scan 1 $key SSCAN {|COUNT 3|MATCH m1*|MATCH 1? COUNT 100}", "SINTERCARD 2 $key $key {LIMIT 0|LIMIT 100|LIMIT -1}", "SMISMEMBER $key 1 100 513 m7",
		}},
		{"zset", mode{}, []string{
			"EVAL $repeat 1 $key $times {ZADD % m%|ZADD 1 m%|ZADD -% %|ZREM m%|ZADD XX CH 5 m%|ZINCRBY 0.1 m%}", "ZADD $key $score $size", "ZCARD $key",
			"OBJECT ENCODING $key", "EVAL $scan 1 $key ZSCAN {|COUNT 3|MATCH m1*}", "ZRANGE $key {100|-100|5} {200|-50|1000} {|REV} {|WITHSCORES}",
			"ZRANGE $key {(50|100} {+inf|700} BYSCORE LIMIT {0|10|-1} {5|-1|0|-3}", "ZRANK $key m{77|200|1}", "ZREMRANGEBYRANK $key {10|-30|0} {-20|400|0}",
			"ZREVRANGEBYSCORE $key {inf|(99} {-inf|50} WITHSCORES LIMIT 3 {7|-1}", "ZPOPMIN $key {100|0}", "ZCOUNT $key (30 {(60|1e3}",
		}},
		{"list", mode{}, []string{
			"EVAL $repeat 1 $key $times {RPUSH v%|LPUSH v%|RPUSH % $size|RPOP|LPOP}", "RPUSH $key $size $size", "LRANGE $key {90|-130|0} {110|-90|2000}",
			"LINDEX $key {100|-100|512}", "LSET $key {100|-100} $size", "LTRIM $key {10|-200|100} {300|-2|120}", "LPOS $key v{50|100} {|RANK -1|MAXLEN 60}",
			"LREM $key {0|-2} v100", "LINSERT $key BEFORE v{60|120} $value", "LPOP $key {100|600}", "LMPOP 1 $key RIGHT COUNT 200", "SORT $key ALPHA LIMIT {90|-5} {12|-1}",
			"SORT $lasting BY nosort DESC LIMIT {90|0} {12|700}",
		}},
		{"stream", mode{}, []string{"EVAL $repeat 1 $key $times {XADD 9%-1 f v%|XADD 8000-* f $size}", "XTRIM $key MAXLEN {100|513}"}},
		{"str", mode{}, []string{
			"APPEND $key $size", "SET $key $size", "SETRANGE $key {43|44|100|5000} $value", "GETRANGE $key {-9223372036854775808|-100|40} {9223372036854775807|45|-1}",
			"OBJECT ENCODING $key", "GETRANGE $key $extreme $extreme", "LCS $key $key LEN", "STRLEN $key", "BITCOUNT $key", "SETBIT $key {1000|40000} 1",
			"BITPOS $key {0|1} $extreme {|$extreme}", "BITCOUNT $key $extreme $extreme {|BIT}",
		}},
		// (OBJECT IDLETIME is with the transcripts: how long a key has been idle depends on how fast a server is asked.)
		{"", mode{}, []string{
			"CONFIG SET {hash|zset}-max-listpack-entries {0|3|128|-1}", "CONFIG SET {hash|zset}-max-listpack-value {0|4|64|100}",
			"CONFIG SET set-max-intset-entries {0|4|512|x}", "CONFIG GET {hash-max-listpack-value|set-max-intset-entries|nosuch}", "EVAL $scan 0 SCAN {|COUNT 1|MATCH *:1|TYPE hash|TYPE string COUNT 3|TYPE none}",
			"SCAN {abc|1x|18446744073709551616|}", "HSCAN $key {abc|1x|-}", "SSCAN $key 0 {COUNT 0|COUNT x|MATCH|BOGUS 1|COUNT -1}",
			"OBJECT FREQ $key", "OBJECT BOGUS $key", "DEBUG DIGEST-VALUE $key",
			"EXPIREAT $key {1|0|-1} {|NX|XX|GT|LT}", "GETEX $key {EXAT 1|PXAT 1|EX -1|PX $extreme}", "SET $key $value {EX $extreme|PX $extreme|EXAT $extreme}",
			"EXPIRE $key $extreme {|NX|XX GT|GT LT|BOGUS}", "PEXPIRE $key -1", "COPY $key $key DB {0|1|16|-1|x} {|REPLACE}", "MOVE $key {0|16|x}",
		}},
	}
}

// extremes are what numbers may be at worst. None is between a second and some
// centuries, which as a time to live would let two servers differ, none between a million and 2^32,
// which as an offset would fill the memory, and none is a negative count that
// would be answered.
var extremes = strings.Split("0 -1 9223372036854775807 -9223372036854775808 9223372036854775808 -9223372036854775809 "+
	"18446744073709551615 18446744073709551616 4611686018427387904 +5 05 -0 1e3 0x10 1.0 3.7 nan inf -inf infinity "+
	"123456789012345678901234567890123456789012345 5x ", " ")

// largeValue makes a random value of the kinds that only these requests have.
func (s *source) largeValue(name string) (word string, ok bool) {
	switch name {
	case "repeat":
		return repeatScript, true
	case "scan":
		return scanScript, true
	case "times":
		return []string{"3", "5", "20", "127", "128", "129", "513", "600"}[s.IntN(8)], true
	case "extreme":
		return extremes[s.IntN(len(extremes))], true
	default:
		return "", false
	}
}

// unbounded are the commands in which no argument may become any other: they
// wait for as long as they are told, answer a cursor as they like, or differ
// from Redis on purpose, for what is beyond any memory or in the words of the
// Lua compiler.
var unbounded = []string{
	"BLPOP", "BRPOP", "BLMOVE", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP", "XREAD", "XREADGROUP",
	"SCAN", "HSCAN", "SSCAN", "ZSCAN", "EVAL", "XAUTOCLAIM", "SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER", "CONFIG", "BITFIELD",
	"SORT", "EVAL_RO", "EVALSHA", "EVALSHA_RO", "SCRIPT", "FUNCTION",
}
