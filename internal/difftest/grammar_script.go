package difftest

import (
	"crypto/sha1"
	"encoding/hex"
)

// Scripts and functions: several calls, their errors caught and not, and all
// kinds of values that go from Lua to a reply and back.

// scripts are called with one key and two arguments.
var scripts = []string{
	"redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])",
	"local n = redis.call('INCR', KEYS[1]) redis.call('LPUSH', KEYS[1], ARGV[1]) return n",
	"local r = redis.pcall('LPUSH', KEYS[1], ARGV[1]) if type(r) == 'table' then return {'caught', r.err} end return r",
	"redis.call('RPUSH', KEYS[1], ARGV[1]) error(ARGV[2])",
	"redis.pcall('DEL', KEYS[1]) return redis.error_reply(ARGV[1])",
	"return redis.status_reply(ARGV[1])",
	"return {1, 2.9, -3.2, 'four', {5, {6}}, true, false, nil, 7}",
	"return {ok = ARGV[1], err = ARGV[2]}",
	"return {double = tonumber(ARGV[1])}",
	"return {map = {[ARGV[1]] = 1}}",
	"return {set = {[ARGV[1]] = true}}",
	"return tonumber(ARGV[1])",
	"return tostring(tonumber(ARGV[1]))",
	"return tonumber(ARGV[1]) + tonumber(ARGV[2])",
	"return ARGV[1] < ARGV[2]",
	"return #ARGV[1] .. ':' .. ARGV[2]",
	"return redis.sha1hex(ARGV[1])",
	"return cjson.encode({ARGV[1], tonumber(ARGV[2]) or false})",
	"return cjson.encode(redis.call('TYPE', KEYS[1]))",
	"return cjson.decode(ARGV[1])",
	"return {pcall(cjson.decode, '[' .. ARGV[1] .. ',' .. ARGV[2] .. ']')}",
	"return cmsgpack.pack(ARGV[1], tonumber(ARGV[2]) or false, {1, 2, a = 3})",
	"return {cmsgpack.unpack(cmsgpack.pack(ARGV[1], tonumber(ARGV[2]) or {}))}",
	"return {struct.unpack('>i4', struct.pack('>i4', tonumber(ARGV[1]) or 7))}",
	"return {bit.tohex(tonumber(ARGV[1]) or 0), bit.band(tonumber(ARGV[2]) or 3, 6)}",
	"return string.format('%5.2f|%d|%s|%q|%x', tonumber(ARGV[1]) or 0, 3, ARGV[2], ARGV[1], 255)",
	"redis.setresp(3) local r = redis.pcall('ZSCORE', KEYS[1], ARGV[1]) return type(r)",
	"redis.setresp(3) return redis.pcall('SISMEMBER', KEYS[1], ARGV[1])",
	"local r = redis.pcall('GET', KEYS[1]) return {type(r), r == false}",
	"return redis.call('BLPOP', KEYS[1], 0)",
	"return redis.pcall('MULTI')",
	"return redis.call('NOSUCH', KEYS[1])",
	"return redis.call('GET')",
	"return redis.call()",
	"return redis.call('SET', KEYS[1], {})",
	"return redis.pcall('SET', KEYS[1], 1.5, 'PX', 100000.0)",
	"redis.call('SELECT', 1) redis.call('SET', KEYS[1], ARGV[1]) return redis.call('DBSIZE')",
	"return nosuch",
	"global = 1",
	"return (",
	"#!lua flags=no-writes\nreturn redis.call('SET', KEYS[1], ARGV[1])",
	"#!lua flags=allow-stale,no-cluster\nreturn redis.call('TYPE', KEYS[1])",
	"#!lua flags=bogus\nreturn 1",
	"#!python\nreturn 1",
	"return redis.acl_check_cmd('SET', KEYS[1], ARGV[1])",
	"return {#KEYS, #ARGV, KEYS[2], ARGV[3]}",
	"return {redis.REDIS_VERSION, redis.REDIS_VERSION_NUM, redis.LOG_WARNING}",
	"return table.concat(redis.call('SORT', KEYS[1], 'ALPHA'), ',')",
	"local n = 0 for i = 1, 50 do n = n + redis.call('RPUSH', KEYS[1], i) end return n",
	"return {string.byte(ARGV[1], 1, 3), string.rep(ARGV[2], 3), string.reverse(ARGV[1]), ARGV[1]:find(ARGV[2], 1, true), ARGV[1]:match('%d+')}",
	"return {math.floor(-3.5), math.max(1, 2, 3), 7 % -3, 2 ^ 10, 1 / 0, tostring(0 / 0), tostring(1e15), tostring(1e100), tostring(2 ^ 53)}",
}

// hashScript returns a hash by way of a Lua table, in which it has no order that two
// servers share.
const hashScript = "redis.setresp(3) return redis.call('HGETALL', KEYS[1])"

// libraries are texts of function libraries; some do not load.
var libraries = []string{
	`#!lua name=lib
redis.register_function('put', function(keys, args) return redis.call('SET', keys[1], args[1]) end)
redis.register_function{function_name='look', callback=function(keys, args) return redis.pcall('GET', keys[1]) end, flags={'no-writes'}}
redis.register_function('fail', function(keys, args) redis.call('INCR', keys[1]) error('no ' .. args[1]) end)
redis.register_function('many', function(keys, args) return {#keys, args, {3.7, false}, true, nil, 5} end)
redis.register_function('raise', function(keys, args) return redis.error_reply('MINE ' .. args[1]) end)`,
	`#!lua name=lib
redis.register_function('put', function(keys, args) return redis.call('APPEND', keys[1], args[1]) end)`,
	"#!lua name=other\nredis.register_function('put', function() return 1 end)",
	"#!lua name=lib\nreturn 1",
	"#!lua name=lib\nredis.register_function('bad name', function() return 1 end)",
	"#!lua name=lib\nredis.register_function('x', 1)",
	"#!lua name=lib\nredis.call('SET', 'x', 1)",
	"#!lua name=b-d\nreturn 1", "#!lua\nreturn 1", "#!lua name=lib bogus=1\nreturn 1", "return 1",
}

func scriptGrammar() []template {
	return []template{
		{"", mode{}, []string{
			"EVAL $script 1 $key $value $value", "EVAL $script 1 $key $value $value", "EVAL $script 1 $key $float $int", "EVAL_RO $script 1 $key $value $value",
			"EVAL $script {0|x|-1|3} $key $value", "SCRIPT LOAD $script", "SCRIPT EXISTS $sha $sha", "EVALSHA $sha 1 $key $value $int",
			"EVALSHA_RO $sha 1 $key $value $value", "EVALSHA abc 0", "SCRIPT {FLUSH|FLUSH ASYNC|FLUSH BOGUS|KILL|BOGUS}",
		}},
		{"", mode{}, []string{
			"FUNCTION LOAD {|REPLACE|REPLACE|BOGUS} $library", "FUNCTION LOAD REPLACE $good", "FUNCTION DELETE {lib|other}", "FCALL {put|look|fail|many|raise|none} 1 $key $value",
			"FCALL {put|look|many} 1 $key $value", "FCALL_RO {put|look|fail|many} 1 $key $value", "FCALL put {0|x|-1|5} $key", "FUNCTION STATS", "FUNCTION LIST LIBRARYNAME {oth*|none} {|WITHCODE}",
			"FUNCTION {KILL|FLUSH|FLUSH SYNC|BOGUS|LIST BOGUS|RESTORE x}",
		}},
		{"", mode{loose: true}, []string{"FUNCTION DUMP"}},
		{"hash", anyPairs, []string{"EVAL $hash_script 1 $key", "EVAL_RO $hash_script 1 $key $value"}},
	}
}

// scriptValue makes a random value of the kinds that only scripts need.
func (s *source) scriptValue(name string) (word string, ok bool) {
	switch name {
	case "script":
		return scripts[s.IntN(len(scripts))], true
	case "hash_script":
		return hashScript, true
	case "sha":
		return sha(scripts[s.IntN(len(scripts))]), true
	case "library":
		return libraries[s.IntN(len(libraries))], true
	case "good":
		return libraries[0], true
	default:
		return "", false
	}
}

// sha is the name by which Redis knows a script.
func sha(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}
