package exec_test

// propagationCases are the rules of what is propagated, one each.
var propagationCases = []propagationCase{
	{name: "as called", requests: `
		set k v
		SET k v NX
		GET k
		LPUSH l a b
		LPUSHX none a
		DEL none
		INCR n
		append k "\r\n\x00"
		HSET h f v
		HSET h f v
		ZADD z 1 a 2 b
		ZADD z 1 a
		SADD s a
		SADD s a
		MSET a 1 b 2
		MSETNX a 1 c 2
		COPY k k2
		COPY k k2
		RENAME k k3
		RENAMENX k3 k2
		SETBIT bits 7 1
		SETBIT bits 7 1
		UNLINK k2 k3`},
	{name: "errors", requests: `
		SET k v
		LPUSH k a
		INCR k
		NOSUCH a b
		SET k`},
	{name: "databases", requests: `
		SET k 0
		SELECT 1
		GET k
		SET k 1
		MOVE k 2
		SWAPDB 1 2
		FLUSHDB
		b: SET k 2
		SELECT 0
		COPY k k DB 3
		FLUSHALL
		FLUSHDB
		FLUSHALL ASYNC`},
	{name: "set with expiry", requests: `
		SET k v EX 100
		set k v px 100000 nx
		SET k2 v PX 100000 NX GET
		SET k v XX GET
		SET k w KEEPTTL
		SET k v GET KEEPTTL
		SET k v EXAT 4102444800
		SET k v PXAT 4102444800000
		SET k v XX PXAT 4102444800000 GET
		SET none v XX GET
		SET k v pxat 4102444800000 nx
		DEL k
		set k v pxat 4102444800000 nx
		SETEX k 100 v
		PSETEX k 100000 v`},
	{name: "expire", requests: `
		SET k v
		EXPIRE k 100
		expire k 200 GT
		EXPIRE k 100 GT
		PEXPIRE k 100000 XX
		EXPIREAT k 4102444800
		PEXPIREAT k 4102444800000
		pexpireat k 4102444800001
		EXPIRE none 100
		PERSIST k
		PERSIST k
		EXPIRE k -1
		SET k v
		PEXPIREAT k 1`},
	{name: "getex and getdel", requests: `
		SET k v
		GETEX k
		GETEX k EX 100
		GETEX k PXAT 4102444800000
		GETEX k PERSIST
		GETEX k PERSIST
		GETEX k EXAT 1
		SET k v
		GETDEL k
		GETDEL k
		GETSET k v`},
	{name: "floats", requests: `
		INCRBYFLOAT f 1.5
		INCRBYFLOAT f 2e1
		HINCRBYFLOAT h f 0.1
		HINCRBY h n 2
		ZINCRBY z 1.5 m
		ZADD z INCR 2 m`},
	{name: "places", requests: `
		GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
		geoadd g nx CH 13.361389 38.115556 Palermo 14 37 Gela
		GEOADD g XX 1 1 nowhere
		GEOADD g 13.361389 38.115556 Palermo
		GEOADD g 1 100 nowhere
		GEOPOS g Palermo
		GEOSEARCHSTORE d g FROMMEMBER Palermo BYRADIUS 500 km
		GEOSEARCHSTORE d none FROMMEMBER Palermo BYRADIUS 500 km
		GEOSEARCHSTORE d none FROMMEMBER Palermo BYRADIUS 500 km
		GEORADIUS g 15 37 200 km
		GEORADIUS g 15 37 200 km STORE d
		GEORADIUSBYMEMBER g Gela 1 m STOREDIST d
		GEORADIUS g -15 37 2 km STORE d
		MULTI
		GEOADD g 1 1 a
		GEOADD g 1 1 a
		EXEC
		EVAL "return redis.call('GEOADD', KEYS[1], 2, 2, 'b')" 1 g`},
	{name: "hyperloglog", requests: `
		PFADD h
		PFADD h
		PFADD h a b c
		PFADD h a
		PFCOUNT h
		PFCOUNT h
		PFCOUNT none
		pfadd h2 x y
		PFCOUNT h h2
		PFMERGE h
		PFMERGE m h h2
		PFCOUNT m
		PFMERGE m h h2
		PFDEBUG ENCODING m
		PFDEBUG GETREG m
		PFDEBUG GETREG m
		pfdebug todense h
		PFDEBUG TODENSE h
		PFDEBUG DECODE h2
		MULTI
		PFCOUNT h
		PFADD h2 z
		PFCOUNT h2
		EXEC
		PFADD h q
		EVAL "redis.call('PFCOUNT', KEYS[1]) return redis.call('PFADD', KEYS[1], 'r')" 1 h`},
	{name: "spop", requests: `
		SADD s a
		SPOP s
		SPOP s
		SADD s a b
		SPOP s 0
		SPOP s 5
		SADD s a
		SPOP s 1`},
	{name: "spop of many", random: true, requests: `
		SADD s a b c d e f
		SPOP s
		SPOP s 1
		SPOP s 3`},
	{name: "restore", requests: `
		RESTORE k 0 "\x00\x01v\n\x00\x91\x08\xce\xb2\x198\x8a\xce"
		RESTORE k 100000 "\x00\x01v\n\x00\x91\x08\xce\xb2\x198\x8a\xce" replace
		RESTORE k 4102444800000 "\x00\x01v\n\x00\x91\x08\xce\xb2\x198\x8a\xce" REPLACE ABSTTL
		RESTORE k 0 "\x00\x01v\n\x00\x91\x08\xce\xb2\x198\x8a\xce"
		RESTORE k 1 "\x00\x01v\n\x00\x91\x08\xce\xb2\x198\x8a\xce" REPLACE ABSTTL
		RESTORE k 1 "\x00\x01v\n\x00\x91\x08\xce\xb2\x198\x8a\xce" ABSTTL`},
	{name: "lists", requests: `
		RPUSH l a b c d e f g h
		LPOP l
		LPOP l 2
		LPOP l 0
		LMPOP 2 none l RIGHT
		LMPOP 1 l LEFT COUNT 2
		LMOVE l m LEFT RIGHT
		RPOPLPUSH l m
		LMPOP 1 m RIGHT COUNT 9
		LMPOP 1 m RIGHT
		SORT l ALPHA STORE s
		SORT l ALPHA
		LTRIM l 0 0
		LREM l 0 zz`},
	{name: "blocking lists at once", requests: `
		RPUSH l a b c d e f g h
		BLPOP none l 0
		brpop l 0
		BLMOVE l m LEFT RIGHT 0
		BRPOPLPUSH l m 0
		BLMPOP 0 2 none l LEFT
		BLMPOP 0 1 l RIGHT COUNT 9
		BLMPOP 0 1 m RIGHT COUNT 1`},
	{name: "blocked on lists", requests: `
		b~ BLPOP q 0
		LPUSH q a
		b<
		b~ BRPOP none q 0
		LPUSH q a b c
		b<
		DEL q
		b~ BLMOVE q m left RIGHT 0
		c~ BRPOPLPUSH m n 0
		RPUSH q a b c
		b<
		c<
		b~ BLMPOP 0 1 e RIGHT COUNT 2
		RPUSH e 1 2 3
		b<`},
	{name: "several blocked", requests: `
		b~ BLPOP q 0
		c~ BLPOP q 0
		d~ BLPOP r q 0
		RPUSH q 1 2 3 4
		b<
		c<
		d<
		b~ BLPOP q2 0
		c~ BLPOP r2 0
		MULTI
		RPUSH q2 1 2
		RPUSH r2 1 2
		EXEC
		b<
		c<
		b~ BLPOP q3 0
		EVAL "redis.call('RPUSH', KEYS[1], 1, 2)" 1 q3
		b<`},
	{name: "blocked in another database", requests: `
		b: SELECT 3
		b~ BLPOP q 0
		SELECT 4
		c: SELECT 4
		c~ BLPOP q 0
		RPUSH q a b
		c<
		SELECT 3
		RPUSH q a
		b<
		SET k v
		SELECT 0
		SET k v
		b: SELECT 0
		c: SELECT 0`},
	{name: "sorted sets", requests: `
		ZADD z 1 a 2 b 3 c 4 d 5 e 6 f 7 g
		ZPOPMIN z
		ZPOPMAX z 2
		ZPOPMIN z 0
		ZMPOP 2 none z MIN
		ZMPOP 1 z MAX COUNT 2
		BZPOPMIN none z 0
		ZMPOP 1 z MAX
		ZADD z 1 a 2 b 3 c 4 d 5 e 6 f 7 g
		BZPOPMAX z 0
		BZMPOP 0 2 none z MIN COUNT 2
		ZRANGESTORE t z 0 1
		ZUNIONSTORE t 1 none
		ZREMRANGEBYRANK z 0 0`},
	{name: "blocked on sorted sets", requests: `
		b~ BZPOPMIN z 0
		c~ BZPOPMAX none z 0
		d~ BZMPOP 0 1 z MIN COUNT 3
		ZADD z 1 a 2 b 3 c 4 d 5 e
		b<
		c<
		d<`},
	{name: "streams", requests: `
		XADD x * f v
		XADD x 99999999999999-* f v
		XADD x 99999999999999-5 f v
		XADD x NOMKSTREAM MAXLEN 10 99999999999999-* f v
		XADD none NOMKSTREAM * f v
		XADD x MAXLEN ~ 1 99999999999999-7 f v
		xadd x minid ~ 99999999999999-6 limit 100 99999999999999-8 f v
		XADD x MINID = 99999999999999-7 99999999999999-9 f v
		XTRIM x MAXLEN ~ 1
		XTRIM x MAXLEN 2
		XTRIM x MINID 99999999999999-9
		XDEL x 99999999999999-9
		XDEL x 99999999999999-9
		XSETID x 99999999999999-10
		XADD y MAXLEN 0 1-1 f v
		XSETID y 5-5 ENTRIESADDED 9 MAXDELETEDID 2-2`},
	{name: "trimming whole chunks", requests: `
		EVAL "for i = 1, 250 do redis.call('XADD', KEYS[1], i .. '-1', 'f', 'v') end" 1 x
		XTRIM x MAXLEN ~ 120
		XTRIM x MINID ~ 190-1
		XADD x MAXLEN ~ 10 LIMIT 5 300-1 f v
		EVAL "for i = 1, 250 do redis.call('XADD', KEYS[1], i .. '-1', 'f', 'v') end" 1 y
		XTRIM y MINID ~ 300-1 LIMIT 100
		XTRIM y MINID ~ 300-1`},
	{name: "groups", requests: `
		XGROUP CREATE x g $ MKSTREAM
		XGROUP CREATE x g 0
		XGROUP CREATECONSUMER x g c0
		XGROUP CREATECONSUMER x g c0
		XADD x 1-1 f v
		XADD x 1-2 f v
		XADD x 1-3 f v
		XADD x 1-4 f v
		XADD x 1-5 f v
		XREADGROUP GROUP g c1 COUNT 2 STREAMS x >
		XREADGROUP GROUP g c2 COUNT 1 NOACK STREAMS x >
		XREADGROUP GROUP g c2 NOACK STREAMS x >
		XREADGROUP GROUP g c2 STREAMS x >
		XREADGROUP GROUP g c1 STREAMS x 0
		XREADGROUP GROUP g c3 STREAMS x 0
		XREADGROUP GROUP g c4 STREAMS x >
		XACK x g 1-1 7-7
		XACK x g 1-1
		XGROUP SETID x g 1-2
		XGROUP SETID x g $ ENTRIESREAD 2
		XGROUP DELCONSUMER x g c2
		XGROUP DELCONSUMER x g c2
		XGROUP DESTROY x g
		XGROUP DESTROY x g`},
	{name: "claims", requests: `
		XGROUP CREATE x g 0 MKSTREAM
		XADD x 1-1 f v
		XADD x 1-2 f v
		XADD x 1-3 f v
		XREADGROUP GROUP g c1 STREAMS x >
		XCLAIM x g c2 0 1-1 1-2 JUSTID
		XCLAIM x g c2 0 1-1 RETRYCOUNT 7 TIME 4102444800000
		XCLAIM x g c2 100000000 1-1
		XCLAIM x g c2 0 9-9 FORCE
		XCLAIM x g c2 0 9-9 LASTID 5-5
		XCLAIM x g c2 0 1-3 LASTID 6-6
		XDEL x 1-1
		XCLAIM x g c1 0 1-1
		XAUTOCLAIM x g c3 0 - COUNT 1
		XDEL x 1-2
		XAUTOCLAIM x g c4 0 - JUSTID
		XAUTOCLAIM x g c5 100000000 -`},
	{name: "blocked on streams", requests: `
		XGROUP CREATE x g $ MKSTREAM
		b~ XREADGROUP GROUP g c1 BLOCK 0 STREAMS x >
		c~ XREAD BLOCK 0 STREAMS x $
		XADD x 1-1 f v
		b<
		c<
		b~ XREADGROUP GROUP g c2 NOACK BLOCK 0 STREAMS x >
		XADD x 1-2 f v
		b<
		b~ XREADGROUP GROUP g c1 BLOCK 0 STREAMS x >
		DEL x
		b<`},
	{name: "transactions", requests: `
		MULTI
		EXEC
		MULTI
		SET k v
		EXEC
		MULTI
		GET k
		SET k w
		INCR k
		INCR n
		SELECT 1
		INCR n
		EXEC
		MULTI
		INCR n
		DISCARD
		MULTI
		GET n
		EXEC
		INCR n
		SELECT 0
		INCR n
		MULTI
		SELECT 5
		SET k v
		SET k w
		SELECT 0
		EXEC
		SET k v
		MULTI
		SPOP none
		EXPIRE k 100
		EXEC
		WATCH k
		b: SET k v
		MULTI
		SET k x
		EXEC`},
	{name: "scripts", requests: `
		EVAL "return 1" 0
		EVAL "return redis.call('SET', KEYS[1], ARGV[1])" 1 k v
		EVAL "redis.call('SET', KEYS[1], 'a') redis.call('GET', KEYS[1]) return redis.call('EXPIRE', KEYS[1], 100)" 1 k
		EVAL "redis.call('SET', KEYS[1], 'a') redis.call('LPUSH', KEYS[1], 'a') return 1" 1 k
		EVAL "redis.call('SELECT', 3) return redis.call('SET', KEYS[1], 'a')" 1 k
		EVAL "redis.call('SET', KEYS[1], 'b') redis.call('SELECT', 3) return redis.call('SET', KEYS[1], 'a')" 1 k
		EVAL "redis.call('SADD', KEYS[1], 1, 2, 3) return redis.call('SPOP', KEYS[1], 5)" 1 s
		EVALSHA 7c7e0d4d1fa86b0e4e4de5d8f1f3b1d3d0c5f0e1 0
		MULTI
		EVAL "return redis.call('INCR', KEYS[1])" 1 n
		EXEC
		MULTI
		EVAL "return redis.call('INCR', KEYS[1])" 1 n
		INCR n
		EXEC
		SCRIPT LOAD "return 1"
		SCRIPT FLUSH
		EVAL "return redis.call('PUBLISH', 'c', 'm')" 0
		PUBLISH c m`},
	{name: "what a script may hide", requests: `
		EVAL "redis.set_repl(redis.REPL_NONE) redis.call('SET', KEYS[1], 'a') redis.set_repl(redis.REPL_ALL) return redis.call('SET', KEYS[2], 'b')" 2 k l
		EVAL "redis.set_repl(redis.REPL_AOF) return redis.call('SET', KEYS[1], 'a')" 1 k
		EVAL "redis.set_repl(redis.REPL_REPLICA) return redis.call('SET', KEYS[1], 'a')" 1 k
		SET old v PXAT 1
		SADD s a b c d
		EVAL "redis.set_repl(redis.REPL_NONE) redis.call('GET', KEYS[1]) redis.call('SPOP', KEYS[2]) redis.call('XADD', 'x', 'MAXLEN', '~', 5, '*', 'f', 'v')" 2 old s
		SET k v`},
	{name: "functions", requests: `
		FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function(keys) redis.call('SET', keys[1], 1) return redis.call('SET', keys[1], 2) end)"
		FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function(keys) end)"
		FCALL f 1 k
		FUNCTION DELETE lib
		FUNCTION DELETE lib
		FUNCTION FLUSH
		FUNCTION FLUSH ASYNC
		FUNCTION RESTORE "\n\x00]\x9b\\@\x0f\x7f\xa2\xda"`},
	{name: "expired", requests: `
		SET k v PXAT 1
		GET k
		GET k
		SET k v PXAT 1
		SET k w
		SET k v PXAT 1
		SET k v PXAT 1
		SETNX k v
		SET k v PXAT 1
		LPUSHX k v
		SET k v PXAT 1
		DEL k
		SET k v PXAT 1
		RENAME k l
		SET k v PXAT 1
		SET l v PXAT 1
		MGET k l
		SET k v PXAT 1
		MULTI
		GET k
		SET k v PXAT 1
		INCR k
		EXEC
		SET k v PXAT 1
		EVAL "redis.call('GET', KEYS[1]) return redis.call('SET', KEYS[1], 'v')" 1 k
		SET k v PXAT 1
		EVAL "return redis.call('GET', KEYS[1])" 1 k
		SET k v PXAT 1
		SCAN 0
		SET k v PXAT 1
		SELECT 1
		SET l v PXAT 1
		COPY l m DB 0
		MOVE l 0
		SELECT 0
		EXISTS k
		SET k v PXAT 1
		EXPIRE k 100
		PERSIST k`},
	{name: "expired and freed later", requests: `
		CONFIG SET lazyfree-lazy-expire yes
		SET k v PXAT 1
		GET k
		SET k v
		EXPIRE k -1
		SET k v
		GETEX k EXAT 1
		CONFIG SET lazyfree-lazy-expire no
		CONFIG SET lazyfree-lazy-user-del yes
		SET k v
		GETDEL k
		SET k v
		DEL k
		CONFIG SET lazyfree-lazy-user-del no
		CONFIG SET lazyfree-lazy-server-del yes
		SET k v
		RESTORE k 1 "\x00\x01v\n\x00\x91\x08\xce\xb2\x198\x8a\xce" REPLACE ABSTTL
		CONFIG SET lazyfree-lazy-server-del no`},
	{name: "nothing", requests: `
		SET k v
		OBJECT ENCODING k
		TOUCH k
		CLIENT SETNAME x
		CONFIG SET maxmemory-samples 5
		WAIT 0 0
		DEBUG DIGEST
		EXPIRE k 100 XX
		SUNIONSTORE s none
		SORT none STORE none2`},
}
