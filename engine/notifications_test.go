package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// eventRequests is every command that reports events, in the ways in which the
// events differ: a key that is new, one that is there, one that goes. A line is
// one request; one with & is sent from another connection, which blocks; restore
// is a RESTORE of what DUMP says of a key.
const eventRequests = `
SET s v
SET s w EX 100
SET s x KEEPTTL
SET s y GET
SET new z XX
SET s z NX
SETNX s v
SETNX s2 v
SETEX s 100 v
PSETEX s3 100000 v
GETSET s w
GETSET s4 w
GETDEL s4
GETDEL s4
GETEX s
GETEX s EX 50
GETEX s PERSIST
GETEX s PXAT 1
MSET a 1 b 2 a 3
MSETNX a 1 c 2
MSETNX c 1 d 2
INCR n
INCRBY n 4
DECR n
INCRBYFLOAT n 0.5
APPEND app x
APPEND app y
SETRANGE app 5 z
SETRANGE app2 5 z
GET missing
MGET missing a missing2
STRLEN missing
LCS missing a
EXPIRE a 100
EXPIRE missing 100
PEXPIRE a 99000 LT
EXPIREAT a 99999999999
PERSIST a
PERSIST a
EXPIRE a -1
PEXPIREAT b 1
TTL missing
EXISTS missing c missing
TYPE missing
TOUCH missing c
OBJECT ENCODING missing
DEL c d missing
MSET c 1 d 2
UNLINK c d
MSET c 1 d 2
RENAME c e
RENAME e d
RENAMENX d d2
COPY d2 d3
COPY d2 d3 REPLACE
COPY missing d4
COPY d2 d3 DB 5
MOVE d2 4
MOVE missing 4
SWAPDB 4 6
RANDOMKEY
SELECT 6
DEL d2
SELECT 0
LPUSH l 1 2 3
RPUSH l 4
LPUSHX l 0
RPUSHX missing 0
LINSERT l BEFORE 1 x
LINSERT l BEFORE nothing x
LSET l 0 y
LREM l 0 y
LREM l 0 nothing
LRANGE missing 0 -1
LLEN missing
LPOP l
RPOP l 1
LPOP l 0
LPOP missing
LTRIM l 0 0
LTRIM l 0 0
LTRIM l 5 9
RPUSH l 1 2 3 4 5 6
LMOVE l l LEFT RIGHT
LMOVE l l2 LEFT LEFT
RPOPLPUSH l l2
RPOPLPUSH l3 l2
LMPOP 2 missing l LEFT COUNT 2
LPOP l 10
BLPOP l2 missing 0
RPOP l2
RPUSH l2 1
BRPOPLPUSH l2 l4 0
&BLPOP q 0
RPUSH q 1
<
&BLPOP q 0
RPUSH q 1 2 3
<
&BLMOVE q2 q LEFT RIGHT 0
LPUSH q2 1
<
&BLMPOP 0 2 q3 q4 RIGHT COUNT 5
LPUSH q4 1 2
<
SADD set 1 2 3
SADD set 1
SREM set 1
SREM set 1
SMOVE set set2 2
SMOVE set set2 3
SMOVE set set2 3
SMOVE set2 set2 3
SADD set2 3 4 5 6 7
SISMEMBER missing 1
SPOP set2
SPOP set2 2
SPOP set2 100
SPOP set2
SADD u1 a b c
SADD u2 b c d
SUNIONSTORE dst u1 u2
SINTERSTORE dst u1 u2
SDIFFSTORE dst u1 u2
SINTERSTORE dst u1 missing
SINTERSTORE dst u1 missing
SUNION missing u1
SINTERCARD 2 u1 missing
HSET h f v
HSET h f v
HMSET h g 1 i 2
HSETNX h f v
HSETNX h k v
HINCRBY h n 1
HINCRBYFLOAT h n 0.5
HGET missing f
HDEL h f
HDEL h nothing
HDEL h g i k n
ZADD z 1 a 2 b
ZADD z 1 a
ZADD z 3 a
ZADD z XX 3 nothing
ZADD z INCR 3 a
ZADD z NX INCR 3 a
ZADD missing XX 3 a
ZINCRBY z 1 b
ZINCRBY z 0 b
ZINCRBY z9 1 b
ZREM z9 b
ZREM z nothing
ZADD z 1 c 2 d 3 e 4 f 5 g 6 h 7 i 8 j
ZREMRANGEBYRANK z 0 0
ZREMRANGEBYRANK z 100 101
ZREMRANGEBYSCORE z 2 3
ZPOPMIN z
ZPOPMAX z 2
ZPOPMIN z 0
ZPOPMIN missing
ZMPOP 2 missing z MAX COUNT 2
ZRANGESTORE zr z 0 -1
ZRANGESTORE zr missing 0 -1
ZRANGESTORE zr missing 0 -1
ZUNIONSTORE zu 2 z u1
ZINTERSTORE zu 2 z u1
ZUNIONSTORE zu 2 z missing
ZDIFFSTORE zu 2 z missing
ZDIFFSTORE zu 2 missing z
ZPOPMAX z 100
ZADD lex 0 a 0 b 0 c
ZREMRANGEBYLEX lex [a [b
ZREMRANGEBYLEX lex - +
ZSCORE missing a
&BZPOPMIN bz 0
ZADD bz 1 a
<
&BZMPOP 0 1 bz MAX COUNT 3
ZADD bz 1 a 2 b
<
SETBIT bits 7 1
SETBIT bits 7 1
SETBIT bits 70 0
BITFIELD bits SET u8 0 200 GET u8 8
BITFIELD bits SET u8 0 200
BITFIELD missing GET u8 0
BITFIELD_RO missing GET u8 0
BITOP NOT bits2 bits
BITOP AND bits2 missing
BITOP AND bits2 missing missing2
BITCOUNT missing
BITPOS missing 1
GETBIT missing 5
RPUSH nums 3 1 2
SORT nums STORE sorted
SORT nums STORE sorted LIMIT 0 0
SORT missing STORE sorted
SORT nums BY w_* GET g_*
SORT_RO missing
XADD st 1-1 f v
XADD st 1-2 f v
XADD st NOMKSTREAM MAXLEN 2 2-1 f v
XADD missing NOMKSTREAM 2-1 f v
XADD st MAXLEN 9 3-1 f v
XDEL st 3-1 9-9
XDEL st 9-9
XTRIM st MAXLEN 1
XTRIM st MAXLEN 1
XTRIM missing MAXLEN 1
XSETID st 5-1
XSETID missing 5-1
XLEN missing
XRANGE missing - +
XGROUP CREATE st g 0
XGROUP CREATE st g 0
XGROUP CREATE st2 g 0 MKSTREAM
XGROUP CREATE missing g 0
XGROUP SETID st g 0
XGROUP CREATECONSUMER st g ann
XGROUP CREATECONSUMER st g ann
XREADGROUP GROUP g bob STREAMS st >
XREADGROUP GROUP g bob STREAMS st >
XREADGROUP GROUP g cat STREAMS st >
XREADGROUP GROUP g cat STREAMS st 0
XREADGROUP GROUP g cat STREAMS missing 0
XREAD STREAMS missing 0
XCLAIM st g dan 0 2-1
XCLAIM st g dan 0 9-9 FORCE
XCLAIM missing g dan 0 2-1
XAUTOCLAIM st g eve 0 0
XAUTOCLAIM missing g eve 0 0
XPENDING missing g
XACK st g 2-1
XACK missing g 2-1
XINFO STREAM st
XINFO GROUPS missing
XGROUP DELCONSUMER st g dan
XGROUP DELCONSUMER st g dan
XGROUP DESTROY st g
XGROUP DESTROY st g
&XREADGROUP GROUP g fay BLOCK 0 STREAMS st2 >
XADD st2 1-1 f v
<
&XREAD BLOCK 0 STREAMS st2 $
XADD st2 MAXLEN 1 2-1 f v
<
COPY st st3
MOVE st 4
DUMP missing
restore st3 st4 0
restore st3 st4 0
restore st3 st4 100000 REPLACE
restore st3 st4 1 ABSTTL REPLACE
restore st3 st4 1 ABSTTL
MULTI
SET past v PXAT 1
GET past
EXEC
MULTI
SET past v PXAT 1
SET past v
EXEC
MULTI
SET past v PXAT 1
RPUSH past 1
DEL past
EXEC
GEOADD g 1 1 a 2 2 b
GEOADD g 1 1 a
GEOPOS missing a
GEORADIUS g 1 1 1 km STORE g2
GEORADIUS missing 1 1 1 km STORE g2
GEORADIUS missing 1 1 1 km STORE g2
GEORADIUSBYMEMBER g a 500 km STOREDIST g2
GEOSEARCH missing FROMMEMBER a BYRADIUS 1 m
GEOSEARCHSTORE g2 g FROMMEMBER a BYBOX 1 1 m
GEOSEARCHSTORE g2 g FROMLONLAT -1 1 BYBOX 1 1 m
PFADD h a
PFADD h a
PFADD h b
PFCOUNT h
PFCOUNT h
PFCOUNT h missing
PFCOUNT missing
PFMERGE h2 h missing
PFMERGE h2 h
PFDEBUG TODENSE h
PFDEBUG TODENSE missing
SELECT 3
SET three 1
SELECT 0
EVAL redis.call('set',KEYS[1],1)return(redis.call('del',KEYS[1])) 1 scripted
FLUSHDB
FLUSHALL
`

// TestEventsAreThoseOfRedis subscribes to all events on both servers and sends
// both the same requests.
func TestEventsAreThoseOfRedis(t *testing.T) {
	t.Parallel()
	for _, letters := range []string{"AKEmn", "Kg$", "Elshz", "KExm"} {
		t.Run(letters, func(t *testing.T) {
			t.Parallel()
			want := collectEvents(t, difftest.Redis(t).Dial, letters)
			got := collectEvents(t, dial(t), letters)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("events (-redis +engine):\n%s", diff)
			}
			if len(got) < 20 {
				t.Errorf("only %d events: nothing has been compared", len(got))
			}
		})
	}
}

// collectEvents sends the requests and returns the messages, each after the
// request that it belongs to.
func collectEvents(t *testing.T, dial difftest.Dial, letters string) []string {
	t.Helper()
	var conns [3]*difftest.Conn
	for i := range conns {
		conn, err := difftest.Connect(dial)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns[i] = conn
	}
	sender, blocker, listener := conns[0], conns[1], conns[2]
	do(t, sender, "CONFIG", "SET", "notify-keyspace-events", letters)
	do(t, listener, "PSUBSCRIBE", "__key*")
	var all []string
	for line := range strings.Lines(strings.TrimSpace(eventRequests)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "<":
			if _, err := blocker.Receive(); err != nil {
				t.Fatal(err)
			}
			continue
		case line[0] == '&':
			if err := blocker.Send(strings.Fields(line[1:])...); err != nil {
				t.Fatal(err)
			}
			awaitBlocked(t, sender)
		case strings.HasPrefix(line, "restore "):
			words := strings.Fields(line)
			payload := do(t, sender, "DUMP", words[1]).Text
			do(t, sender, append([]string{"RESTORE", words[2], words[3], payload}, words[4:]...)...)
		default:
			do(t, sender, strings.Fields(line)...)
		}
		if do(t, sender, "PUBLISH", "__key-end", "").Text == "QUEUED" {
			continue
		}
		for {
			message, err := listener.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if message.Elems[2].Text == "__key-end" {
				break
			}
			all = append(all, fmt.Sprintf("%s: %s %s", line, message.Elems[2].Text, message.Elems[3].Text))
		}
	}
	return all
}

// awaitBlocked returns when the server says that somebody is blocked.
func awaitBlocked(t *testing.T, conn *difftest.Conn) {
	t.Helper()
	for range 10_000 {
		if strings.Contains(do(t, conn, "INFO", "clients").Text, "blocked_clients:1") {
			return
		}
	}
	t.Fatal("nobody is blocked")
}
