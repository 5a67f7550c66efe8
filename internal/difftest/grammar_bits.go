package difftest

// sortScript sorts by numbers. Redis's SORT fails over a number that an earlier
// request could not read; SCAN makes it forget that.
const sortScript = `redis.call('SCAN', 0)
return redis.pcall('SORT', KEYS[1], unpack(ARGV))`

// bitGrammar is the forms of the commands on bitmaps and of SORT.
func bitGrammar() []template {
	return []template{
		{"str", mode{}, []string{
			"SETBIT $key $bit {0|1|2}", "GETBIT $key $bit", "BITCOUNT $key {|0 -1|1 5 BIT|-9 -2 BIT|0 0 BYTE}", "BITCOUNT $key $index $index {|BIT|BYTE}",
			"BITPOS $key {0|1}", "BITPOS $key {0|1} $index", "BITPOS $key {0|1} $index $index {BIT|BYTE}",
			"BITOP {AND|OR|XOR} $key $key+", "BITOP NOT $key $key", "BITFIELD_RO $key GET $field $bit GET $field #1",
			"BITFIELD $key GET $field $bit SET $field #1 $int {OVERFLOW SAT|OVERFLOW FAIL|} INCRBY $field $bit $int",
			"BITFIELD $key SET u1 0 {0|1} {|OVERFLOW SAT|OVERFLOW FAIL} SET $field $bit $int INCRBY $field $bit $int GET $field #0",
		}},
		// Only lists, which these keys hold: elements of the others come in no
		// order, and SORT may leave what is equal in the order in which it comes.
		{"", mode{}, []string{
			"RPUSH $lasting $value $value $value $value $value $value", "LPUSH $lasting $member+", "LPOP $lasting 3", "LRANGE $lasting 0 -1",
			"EVAL $sort 1 $lasting {|ASC|DESC} {|LIMIT 1 3|LIMIT 0 -1} {|STORE lasting:0}", "SORT $lasting ALPHA {|DESC} {|LIMIT 2 2} {|STORE lasting:1}",
			"{SORT $lasting|EVAL $sort 1 $lasting} BY {nosort|str:*|hash:*->m1} {ALPHA|ALPHA DESC} {|LIMIT 0 2|LIMIT 5 9} {|GET # GET str:*|GET hash:*->m2}",
			"EVAL $sort 1 $lasting BY {str:*|hash:*->m1} {|DESC} {|LIMIT 0 2} {|GET #}",
			"SORT_RO $lasting BY str:* ALPHA LIMIT 1 2 GET #", "MSET str:1 $value str:2 $value str:a $value",
		}},
		{"", mode{}, []string{"SORT $key ALPHA {|LIMIT 1 2} GET #", "EVAL $sort 1 $key {|DESC} STORE $key", "EVAL $sort 1 $key LIMIT 0 2"}},
	}
}
