//go:build unix

package move_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// everything is something of each kind of data, in several databases, with names and values of any bytes.
const everything = `
SET text "a\r\nb\x00\xff"
SET "odd name\r\n*?[]\\{}\x00\xfe" 1
SET "" "the empty name"
SET int -9223372036854775808
SET float 3.0e5
SETBIT bits 100003 1
PFADD hll a b c d e f g
SET soon v PX 3600007
SET late v PXAT 9999999999999
RPUSH list a 1 -5 "" "\x00"
HSET hash f v 1 2 "" ""
SADD ints 1 -2 30000000000
SADD set a b ""
ZADD zset 1.5 a -inf b +inf c 0.1 d 3e-300 e
GEOADD geo 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
PEXPIREAT hash 9999999999998
XADD stream 1-1 f v g w
XADD stream 1-2 f v
XADD stream 5-0 other field
XDEL stream 1-2
XGROUP CREATE stream g1 0 ENTRIESREAD 1
XGROUP CREATE stream g2 $
XGROUP CREATECONSUMER stream g1 idle
XREADGROUP GROUP g1 alice COUNT 1 STREAMS stream >
XREADGROUP GROUP g1 bob COUNT 1 STREAMS stream >
XCLAIM stream g1 bob 0 1-1 TIME 1700000000000 RETRYCOUNT 7 FORCE
XSETID stream 9-9 ENTRIESADDED 40 MAXDELETEDID 3-0
XADD emptied 1-1 a b
XTRIM emptied MAXLEN 0
FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function() return 'é' end)"
SELECT 3
SET text "of database 3"
LPUSH signalbox:{q} x
SELECT 15
HSET big {1..600:f%,v%}
RPUSH long {1..600}
ZADD many {1..300:%,m%}
SADD sets {1..600:s%}
`

// TestEverythingIsMovedExactly compares what both servers tell of all data.
func TestEverythingIsMovedExactly(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.from+"-"+kind.to+"-"+kind.by, func(t *testing.T) {
			from, to := start(t, kind.from), start(t, kind.to)
			conn, err := difftest.Connect(from.Dial)
			must(t, err)
			defer conn.Close()
			for line := range strings.Lines(everything) {
				words, err := difftest.Words(strings.TrimSpace(line))
				must(t, err)
				if len(words) == 0 {
					continue
				}
				if reply, err := conn.Do(words...); err != nil || reply.Kind == difftest.Error {
					t.Fatalf("%s: %v, %v", line, reply, err)
				}
			}
			source := told(t, dial(t, from.Addr))
			must(t, run(t.Context(), options(url(from), url(to), kind.by)))
			target := told(t, dial(t, to.Addr))
			for what, want := range source {
				if got := target[what]; got != want {
					t.Errorf("%s:\n got %.500s\nwant %.500s", what, got, want)
				}
			}
		})
	}
}

// told is what a server tells of its data.
func told(t *testing.T, client *redis.Client) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, line := range []string{
		"DEBUG DIGEST", "FUNCTION LIST WITHCODE", "XINFO STREAM stream FULL", "XPENDING stream g1", "XINFO GROUPS stream",
		"PEXPIRETIME soon", "PEXPIRETIME late", "PEXPIRETIME hash", "PEXPIRETIME text", "XINFO STREAM emptied", "DBSIZE",
	} {
		var words []any
		for word := range strings.FieldsSeq(line) {
			words = append(words, word)
		}
		reply, err := client.Do(t.Context(), words...).Result()
		must(t, err)
		found[line] = fmt.Sprint(reply)
	}
	return found
}
