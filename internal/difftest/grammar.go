package difftest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// The grammar of the fuzzer is a table of request templates. A word is
//
//	WORD         itself
//	$name        a random value of that name; see source.value
//	$name+       one to four of them
//	{A|B 1|}     one of the alternatives, each of any number of words
//
// and the group says which keys $key is usually taken from, so that most
// requests meet a key of their own type. To add a command add its forms to the
// table. Only commands whose replies follow from the requests belong here:
// nothing that expires soon, chooses at random and changes data, or blocks.

type template struct {
	group string
	mode  mode
	forms []string
}

var (
	anyOrder = mode{sorted: true}
	anyPairs = mode{pairs: true}
	onlyKind = mode{loose: true}
)

// expiryScript tells when a key expires. A time that came from a request is the same on
// both servers; one that is counted from now is not, and is told as positive only.
const expiryScript = `local at = {redis.call('EXPIRETIME', KEYS[1]), redis.call('PEXPIRETIME', KEYS[1])}
if at[1] > 0 and at[1] ~= 4102444800 and at[1] ~= 4102444901 then return 'in some time' end
return at`

func grammar() []template {
	return append(streamGrammar(), []template{
		{"str", mode{}, []string{
			"GET $key", "SET $key $value", "SET $key $value {NX|XX|GET|KEEPTTL|EX 1000|PXAT 4102444800123|NX GET|XX GET|BOGUS}",
			"SETNX $key $value", "GETSET $key $value", "GETDEL $key", "GETEX $key {|PERSIST|EX 1000|EXAT 4102444800}",
			"SETEX $key {1000|0|abc} $value", "MGET $key+", "MSET $key $value $key $value", "MSETNX $key $value $key $value",
			"APPEND $key $value", "STRLEN $key", "GETRANGE $key $index $index", "SETRANGE $key {0|1|5|20|-1} $value",
			"INCR $key", "DECR $key", "INCRBY $key $int", "DECRBY $key $int", "INCRBYFLOAT $key $float", "LCS $key $key {|LEN|IDX|IDX WITHMATCHLEN MINMATCHLEN 2}",
			"SUBSTR $key $index $index", "PSETEX $key {1000000|0|-1} $value", "GETEX $key {PX 1000000|EX 0|PERSIST EX 1}",
		}},
		{"", mode{}, []string{
			"DEL $key+", "UNLINK $key", "EXISTS $key+", "TYPE $key", "TOUCH $key+", "RENAME $key $key", "RENAMENX $key $key",
			"COPY $key $key {|REPLACE|DB 1}", "MOVE $key 1", "EXPIRE $key {1000|-1} {|NX|XX|LT}", "EXPIRE $key {$later|-1} GT",
			"EXPIREAT $key 4102444800 {|NX|XX|GT|LT}", "PEXPIREAT $key 4102444900500", "PERSIST $key", "DBSIZE",
			"OBJECT ENCODING $key", "DEBUG DIGEST-VALUE $key+", "EVAL $expiry 1 $key",
			"ECHO $value", "PING $value",
		}},
		// What was made to expire in a thousand seconds does so when the server
		// that was asked later says so.
		{"", onlyKind, []string{"EXPIRETIME $key", "PEXPIRETIME $key"}},
		// Redis counts a request that waits for EXEC as a reference, and a copied number not.
		{"", onlyKind, []string{"DUMP $key", "OBJECT REFCOUNT $key"}},
		{"", mode{}, []string{"EVAL return(redis.call('RESTORE',KEYS[1],0,redis.call('DUMP',KEYS[2]),'REPLACE')) 2 $key $key"}},
		{"", anyOrder, []string{"KEYS {*|str*|l?st:*|[sz]*}", "SCAN 0 COUNT 100000 {|MATCH *1|TYPE list}"}},
		{"", onlyKind, []string{"RANDOMKEY", "SCAN 0 COUNT 100000"}},
		{"list", mode{}, []string{
			"LPUSH $key $value+", "RPUSH $key $value+", "LPUSHX $key $value", "RPUSHX $key $value+", "LPOP $key {|0|1|2}",
			"RPOP $key {|1|3|-1}", "LLEN $key", "LRANGE $key $index $index", "LRANGE $key 0 -1", "LINDEX $key $index",
			"LSET $key $index $value", "LINSERT $key {BEFORE|AFTER} $value $value", "LREM $key {0|1|-1|2} $value",
			"LTRIM $key {0|1|-5} {-1|-2|5}", "LPOS $key $value {|RANK -1|COUNT 0|RANK 2 COUNT 0|MAXLEN 2|RANK 0}",
			"RPOPLPUSH $key $key", "LMOVE $key $key {LEFT|RIGHT} {LEFT|RIGHT}", "LMPOP 2 $key $key {LEFT|RIGHT} {|COUNT 2}",
			"BLPOP $key $key 0.001", "BLMOVE $key $key LEFT RIGHT 0.001", "BLMPOP 0.001 1 $key LEFT",
		}},
		{"set", mode{}, []string{
			"SADD $key $member+", "SREM $key $member+", "SCARD $key", "SISMEMBER $key $member", "SMISMEMBER $key $member+",
			"SMOVE $key $key $member", "SINTERSTORE $key $key $key", "SUNIONSTORE $key $key $key", "SDIFFSTORE $key $key+",
			"SINTERCARD 2 $key $key {|LIMIT 2}", "SADD $key {1|2|3|4|-9|9223372036854775807}",
		}},
		{"set", anyOrder, []string{
			"SMEMBERS $key", "SINTER $key+", "SUNION $key+", "SDIFF $key+", "SSCAN $key 0 COUNT 100000 {|MATCH m*}",
			"SPOP $key 100000", "SRANDMEMBER $key 100000",
		}},
		{"set", onlyKind, []string{"SRANDMEMBER $key {|0|1|-3}"}},
		{"hash", mode{}, []string{
			"HSET $key $member $value", "HSET $key $member $value $member $value", "HMSET $key $member $value", "HGET $key $member",
			"HMGET $key $member+", "HSETNX $key $member $value", "HDEL $key $member+", "HLEN $key", "HEXISTS $key $member",
			"HSTRLEN $key $member", "HINCRBY $key $member $int", "HINCRBYFLOAT $key $member $float",
		}},
		{"hash", anyOrder, []string{"HKEYS $key", "HVALS $key", "HRANDFIELD $key 100000"}},
		{"hash", anyPairs, []string{"HGETALL $key", "HSCAN $key 0 COUNT 100000", "HRANDFIELD $key 100000 WITHVALUES"}},
		{"hash", onlyKind, []string{"HRANDFIELD $key {|0|1|-3}"}},
		{"zset", mode{}, []string{
			"ZADD $key {|NX|XX|GT|LT|CH|NX XX|GT CH} $score $member", "ZADD $key $score $member $score $member $score $member",
			"ZADD $key {|NX|XX|GT} INCR $score $member", "ZINCRBY $key $score $member", "ZREM $key $member+", "ZSCORE $key $member",
			"ZMSCORE $key $member+", "ZCARD $key", "ZRANK $key $member", "ZREVRANK $key $member",
			"ZRANGE $key $index $index {|REV} {|WITHSCORES}", "ZREVRANGE $key $index $index", "ZRANGE $key 0 -1 WITHSCORES",
			"ZRANGEBYSCORE $key $limit $limit {|WITHSCORES|LIMIT 1 2}", "ZREVRANGEBYSCORE $key $limit $limit",
			"ZRANGE $key $limit $limit BYSCORE {|REV} {|LIMIT 0 2}", "ZCOUNT $key $limit $limit",
			"ZRANGESTORE $key $key $index $index", "ZRANGESTORE $key $key $limit $limit BYSCORE", "ZREMRANGEBYRANK $key $index $index",
			"ZREMRANGEBYSCORE $key $limit $limit", "ZPOPMIN $key {|0|2}", "ZPOPMAX $key {|1|-1}",
			"ZMPOP 2 $key $key {MIN|MAX} {|COUNT 2}", "ZUNION 2 $key $key {|WEIGHTS 2 0.5|AGGREGATE MAX} WITHSCORES",
			"ZINTER 2 $key $key {|AGGREGATE MIN}", "ZDIFF 2 $key $key WITHSCORES", "ZINTERCARD 2 $key $key",
			"ZUNIONSTORE $key 2 $key $key {|WEIGHTS 1 -1}", "ZINTERSTORE $key 2 $key $key", "ZDIFFSTORE $key 2 $key $key",
			"BZPOPMIN $key 0.001", "BZMPOP 0.001 1 $key MAX",
		}},
		// Ranges by member are unspecified unless all scores are equal, which
		// they are under these keys.
		{"", mode{}, []string{
			"ZADD $equal {|NX|XX|CH} 0 $member", "ZADD $equal 0 $member 0 $member 0 $member", "ZREM $equal $member+", "DEL $equal",
			"ZRANGEBYLEX $equal $lex $lex {|LIMIT 1 -1}", "ZREVRANGEBYLEX $equal $lex $lex", "ZLEXCOUNT $equal $lex $lex",
			"ZRANGE $equal $lex $lex BYLEX {|REV} {|LIMIT 0 2}", "ZRANGESTORE $equal $equal $lex $lex BYLEX", "ZREMRANGEBYLEX $equal $lex $lex",
		}},
		{"zset", anyPairs, []string{"ZSCAN $key 0 COUNT 100000", "ZRANDMEMBER $key 100000 WITHSCORES"}},
		{"zset", onlyKind, []string{"ZRANDMEMBER $key {|0|1|-3}"}},
		{"", mode{}, []string{"MULTI", "EXEC", "EXEC", "DISCARD", "WATCH $key", "SELECT {0|0|1}", "SWAPDB 0 1"}},
	}...)
}

// groups are the families that keys are named after.
var groups = []string{"str", "list", "set", "hash", "zset", "stream", "geo", "hll"}

// keysPerGroup is small so that requests meet.
const keysPerGroup = 3

// source makes requests.
type source struct {
	*rand.Rand
	templates []template
	entries   int // how many IDs of new stream entries were made
	expiries  int // how many times were made that are later than those before
}

// query is a request and how its replies compare; or several in a burst; or the
// release of all that are blocked.
type query struct {
	words   []string
	mode    mode
	client  int
	burst   [][]string
	release bool
}

// prelude makes what a stream begins with: half of them speak RESP3.
func (s *source) prelude() (stream []query) {
	if s.IntN(2) == 0 {
		for client := range firstBlocker + blockers {
			stream = append(stream, query{words: []string{"HELLO", "3"}, client: client, mode: onlyKind})
		}
	}
	return stream
}

// next makes a query: mostly a request of the first client, sometimes of another.
func (s *source) next() query {
	switch s.IntN(100) {
	case 0, 1, 2, 3:
		form := blocking[s.IntN(len(blocking))]
		return query{words: s.fill(form, ""), client: firstBlocker + s.IntN(blockers)}
	case 4, 5:
		return query{release: true}
	case 6:
		return query{burst: s.burst()}
	case 7, 8, 9, 10, 11, 12, 13, 14:
		q := s.request()
		q.client = 1
		return q
	default:
		return s.request()
	}
}

// blocking is the forms of what the clients that may block send.
var blocking = []string{
	"BLPOP $list {|$list|$key} {0|0|0|x|-1}", "BRPOP $list $list 0", "BLMOVE $list $list {LEFT|RIGHT} {LEFT|RIGHT} 0", "BRPOPLPUSH $list $key 0",
	"BLMPOP 0 {1 $list|2 $list $list} {LEFT|RIGHT} {|COUNT 2}", "BZPOPMIN $zset $zset 0", "BZPOPMAX $zset 0", "BZMPOP 0 1 $zset {MIN|MAX} {|COUNT 2}",
	"XREAD BLOCK 0 {|COUNT 1} STREAMS $stream {$|9999999-0}", "XREADGROUP GROUP $group $consumer BLOCK 0 {|NOACK} STREAMS $stream >",
}

// burst makes some requests to be sent in one piece. They compare exactly, since
// which reply belongs to which is not known if there are fewer.
func (s *source) burst() (requests [][]string) {
	silent := s.IntN(2) == 0
	for range 2 + s.IntN(6) {
		q := s.request()
		switch name := strings.ToUpper(q.words[0]); {
		case q.mode != mode{}, silent && (name == "MULTI" || name == "EXEC"):
		case silent && s.IntN(2) == 0:
			requests = append(requests, strings.Fields("CLIENT REPLY "+[]string{"ON", "OFF", "SKIP", "BOGUS"}[s.IntN(4)]))
			fallthrough
		default:
			requests = append(requests, q.words)
		}
	}
	// Redis does not hang up after a QUIT whose reply is off.
	return append(requests, []string{"CLIENT", "REPLY", "ON"})
}

// request makes a request: mostly one from the grammar, sometimes without its
// arguments, with one of them replaced, or from within a script.
func (s *source) request() query {
	t := s.templates[s.IntN(len(s.templates))]
	q := query{words: s.fill(t.forms[s.IntN(len(t.forms))], t.group), mode: t.mode}
	switch s.IntN(50) {
	case 0:
		q.words = q.words[:1]
	case 1, 2:
		script := "return redis.pcall(unpack(ARGV))"
		q.words = append([]string{"EVAL", script, "0"}, q.words...)
	case 3:
		q.words[0] = strings.ToLower(q.words[0])
	case 4, 5, 6:
		// A score under equal:x may be no other than that of all.
		if len(q.words) > 2 && q.mode == (mode{}) && !slices.Contains(unbounded, q.words[0]) && !strings.HasPrefix(q.words[1], "equal") {
			q.words[2+s.IntN(len(q.words)-2)] = s.value("extreme", t.group)
		}
	}
	return q
}

// fill makes the words of a form.
func (s *source) fill(form, group string) (words []string) {
	for {
		before, rest, found := strings.Cut(form, "{")
		if !found {
			break
		}
		inner, after, _ := strings.Cut(rest, "}")
		choices := strings.Split(inner, "|")
		form = before + choices[s.IntN(len(choices))] + after
	}
	for word := range strings.FieldsSeq(form) {
		name, isValue := strings.CutPrefix(word, "$")
		name, several := strings.CutSuffix(name, "+")
		if !isValue || name == "" {
			words = append(words, word)
			continue
		}
		n := 1
		if several {
			n += s.IntN(4)
		}
		for range n {
			words = append(words, s.value(name, group))
		}
	}
	return words
}

// value makes a random value of a kind.
func (s *source) value(name, group string) string {
	switch name {
	case "key":
		if group == "" || s.IntN(8) == 0 {
			group = groups[s.IntN(len(groups))]
		}
		return group + ":" + strconv.Itoa(s.IntN(keysPerGroup))
	case "equal":
		return "equal:" + strconv.Itoa(s.IntN(keysPerGroup))
	case "lasting":
		return "lasting:" + strconv.Itoa(s.IntN(keysPerGroup))
	case "bit":
		return strconv.Itoa(s.IntN(100))
	case "field":
		return []string{"u", "i"}[s.IntN(2)] + strconv.Itoa(1+s.IntN(63))
	case "later":
		// GT refuses a time that is the same, which two requests may have got from their
		// server in one millisecond, and from the other server not.
		s.expiries++
		return strconv.Itoa(1000 + 100*s.expiries)
	case "expiry":
		return expiryScript
	case "sort":
		return sortScript
	case "index":
		return strconv.Itoa(s.IntN(13) - 6)
	}
	for _, family := range []func(string) (string, bool){s.streamValue, s.largeValue, s.scriptValue, s.placesValue} {
		if word, ok := family(name); ok {
			return word
		}
	}
	if slices.Contains(groups, name) {
		return s.value("key", name)
	}
	choices := map[string]string{
		"value":  "a b c 1 2 -7 3.5 007 hello xyz " + strings.Repeat("v", 70) + " 9223372036854775807 \x00\xff\r\n -0 +1 1e5 12345678901234567890 " + strings.Repeat("e", 44) + " " + strings.Repeat("r", 45),
		"member": "m1 m2 m3 m4 m5 m6 1 2 3 a b " + strings.Repeat("m", 65),
		"int":    "1 -1 5 100 -17 9223372036854775807 -9223372036854775808 abc 1.5 ",
		"float":  "0.5 1.25 -3 1e2 2.75 abc inf nan 0x10 -1e308 1e17 3.0000000000000001",
		"score":  "0 1 2 3 1.5 -2.25 0.1 1e3 inf -inf abc nan 17 -0 +inf 0x1p3 1e308 123456789012345678",
		"limit":  "-inf +inf 0 1 (1 2 (2 3 1.5 (0.1 -2.25 abc",
		"lex":    "- + [a (a [m1 (m3 [m5 m2 [",
	}[name]
	list := strings.Split(choices, " ")
	return list[s.IntN(len(list))]
}
