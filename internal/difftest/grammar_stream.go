package difftest

import (
	"fmt"
	"strconv"
	"strings"
)

// Streams in the fuzzer's grammar. Nothing here may depend on the time: IDs are given, and
// what tells a time or an age is left out of the comparison. Values are of all the sizes
// that a chunk counts differently, since its limits show in XINFO and in trimming with ~.

// pendingWithoutIdle is XPENDING without the third element of each item, which is an age.
const pendingWithoutIdle = `local r = redis.pcall('XPENDING', KEYS[1], unpack(ARGV))
for i = 1, #r do if type(r[i]) == 'table' and #r[i] == 4 then table.remove(r[i], 3) end end
return r`

func streamGrammar() []template {
	return []template{
		{"stream", mode{}, []string{
			"XADD $key $newid $member $size", "XADD $key $newid $member $size $member $value", "XADD $key $newid f $size g $value",
			"XADD $key $newid f $size", "XADD $key $newid f $size", "XADD $key {NOMKSTREAM|BOGUS|LIMIT 5|} $newid f $value",
			"XADD $key {MAXLEN|MAXLEN =|MAXLEN ~|MAXLEN ~ 3 LIMIT 5 MAXLEN} {0|3|20|-1|x} $newid f $size",
			"XADD $key {MINID|MINID =|MINID ~} $id $newid f $size", "XADD $key {0-0|5-*|x|1-1|0-*|-|18446744073709551616-1} f v",
			"XLEN $key", "XDEL $key $id+", "XDEL $key {$id|x}", "XTRIM $key {MAXLEN|MAXLEN =|MAXLEN ~} {0|2|10|40|x}",
			"XTRIM $key {MINID|MINID =|MINID ~} $id", "XTRIM $key MAXLEN ~ 2 LIMIT {0|1|10|30|-1}", "XTRIM $key MAXLEN 2 LIMIT 3",
			"XSETID $key $newid", "XSETID $key $id {|ENTRIESADDED 100|MAXDELETEDID 1-1|ENTRIESADDED 5 MAXDELETEDID 99999-0|ENTRIESADDED -1}",
			"XRANGE $key $from $to {|COUNT 2|COUNT 0|COUNT -3|COUNT x}", "XREVRANGE $key $to $from {|COUNT 3}", "XRANGE $key - +", "XREVRANGE $key + -",
			"XREAD {|COUNT 2|COUNT 0|BLOCK 1|BLOCK x|NOACK|GROUP a b} STREAMS $key $id", "XREAD {|COUNT 1} STREAMS $key $key {$|0|5} $id",
			"XREAD BLOCK 1 STREAMS $key $", "XREAD STREAMS $key", "XINFO STREAM $key", "XINFO STREAM $key", "XINFO STREAM $key {FULL COUNT x|BOGUS}",
			"XINFO GROUPS $key", "XINFO {HELP|BOGUS $key}",
		}},
		{"stream", mode{}, []string{
			"XGROUP CREATE $key $group $id {|MKSTREAM|ENTRIESREAD 3|MKSTREAM ENTRIESREAD 0|BOGUS}", "XGROUP CREATE $key $group {$|0|0} MKSTREAM",
			"XGROUP SETID $key $group $id {|ENTRIESREAD 2|ENTRIESREAD -2}", "XGROUP SETID $key $group {$|0|-|+|x}", "XGROUP DESTROY $key $group",
			"XGROUP CREATECONSUMER $key $group $consumer", "XGROUP DELCONSUMER $key $group $consumer", "XGROUP HELP",
			"XREADGROUP GROUP $group $consumer {|COUNT 1|COUNT 5|NOACK|BLOCK 1} STREAMS $key >",
			"XREADGROUP GROUP $group $consumer {|COUNT 2|NOACK|BLOCK 0} STREAMS $key $id", "XREADGROUP GROUP $group $consumer COUNT 2 STREAMS $key $key > >",
			"XREADGROUP GROUP $group $consumer STREAMS $key $key > 0", "XREADGROUP GROUP $group $consumer STREAMS $key {$|0-0|x}",
			"XACK $key $group $id+", "XACK $key $group {$id|x}", "XPENDING $key $group", "EVAL $pending 1 $key $group - + {10|1|0|x}",
			"EVAL $pending 1 $key $group $from $to 5 $consumer", "EVAL $pending 1 $key $group IDLE {0|100000000000|x} - + 10 {|c1}",
			"XCLAIM $key $group $consumer {0|100000000000|-1|x} $id+ {|TIME 1000|RETRYCOUNT 7|FORCE|JUSTID|FORCE JUSTID|LASTID 9-9|FORCE RETRYCOUNT 3 JUSTID|BOGUS|IDLE x}",
			"XAUTOCLAIM $key $group $consumer {0|100000000000} $from {|COUNT 1|COUNT 3|JUSTID|COUNT 2 JUSTID|COUNT 0|BOGUS}",
		}},
		{"stream", onlyKind, []string{
			"XINFO STREAM $key FULL {|COUNT 2|COUNT 0|COUNT -1}", "XINFO CONSUMERS $key $group", "XPENDING $key $group - + 5",
		}},
		{"", anyOrder, []string{"SCAN 0 COUNT 1000 TYPE stream"}},
	}
}

// streamValue makes a random value of the kinds that only streams have.
func (s *source) streamValue(name string) (word string, ok bool) {
	switch name {
	case "newid":
		s.entries++
		return fmt.Sprintf("%d-%d", s.entries/3, s.entries%3+s.IntN(2)), true
	case "id":
		return s.entryID(), true
	case "from":
		return s.bound("-"), true
	case "to":
		return s.bound("+"), true
	case "group":
		return []string{"g1", "g1", "g1", "g2", "streams"}[s.IntN(5)], true
	case "consumer":
		return []string{"c1", "c2", "c3"}[s.IntN(3)], true
	case "size":
		sizes := []int{1, 10, 63, 64, 125, 126, 127, 128, 500, 1500, 4000, 4095, 4096, 17000}
		if s.IntN(3) == 0 {
			return strconv.FormatInt(1<<s.IntN(63)-int64(s.IntN(2)), 10), true
		}
		return strings.Repeat("x", sizes[s.IntN(len(sizes))]), true
	case "pending":
		return pendingWithoutIdle, true
	default:
		return "", false
	}
}

// bound is an end of a range of IDs.
func (s *source) bound(extreme string) string {
	switch s.IntN(4) {
	case 0:
		return extreme
	case 1:
		return "(" + s.entryID()
	default:
		return s.entryID()
	}
}

// entryID is the ID of an entry that there may be, mostly a recent one.
func (s *source) entryID() string {
	recent := min(s.entries, 60)
	entry := s.entries - s.IntN(recent+2)
	switch ms := max(entry/3, 0); s.IntN(12) {
	case 0:
		return "0"
	case 1:
		return strconv.Itoa(ms)
	default:
		return fmt.Sprintf("%d-%d", ms, s.IntN(4))
	}
}
