package difftest

import (
	"strconv"
	"strings"
)

// Places on the earth and HyperLogLogs: sorted sets and strings whose content means
// something, and which other requests write to, too.

// nearScript stores distances and returns them to the four digits that are printed. The
// last bit of a double is up to the C library, and DEBUG DIGEST would tell.
const nearScript = `local call = {ARGV[1], KEYS[1], unpack(ARGV, 2)}
if call[1] == 'GEOSEARCHSTORE' then table.insert(call, 2, 'near') end
local n = redis.pcall(unpack(call))
if type(n) == 'table' then return n end
local all = redis.call('ZRANGE', 'near', 0, -1, 'WITHSCORES')
for i = 2, #all, 2 do all[i] = string.format('%.4f', all[i]) end
return {n, redis.call('OBJECT', 'ENCODING', 'near'), redis.call('DEL', 'near'), all}`

const (
	searchCenter  = "{FROMMEMBER $place|FROMLONLAT $longitude $latitude}"
	searchArea    = "{BYRADIUS $radius $unit|BYBOX $radius $radius $unit}"
	searchOrder   = "{||ASC|DESC} {||COUNT 1|COUNT 3|COUNT 2 ANY|COUNT 40|COUNT 0|ANY}"
	searchReplies = "{||WITHDIST|WITHCOORD WITHDIST WITHHASH}"
)

func placesGrammar() []template {
	return []template{
		{"geo", mode{}, []string{
			"GEOADD $key {||NX|XX|CH|NX CH|XX CH|NX XX|BOGUS} $longitude $latitude $place", "GEOADD $key $longitude $latitude $place $longitude $latitude $place",
			"EVAL $repeat 1 $key $times {GEOADD 12.% 4%.5 p%|GEOADD -%e-2 %e-2 p%|GEOADD $longitude $latitude q%}",
			"GEOPOS $key $place+", "GEOHASH $key $place+", "GEODIST $key $place $place {||$unit}", "ZREM $key $place+", "ZADD $key {$score|$int} $place",
			"ZRANGE $key 0 -1 WITHSCORES", "ZSCORE $key $place",
		}},
		{"geo", mode{}, []string{
			"GEOSEARCH $key " + searchCenter + " " + searchArea + " " + searchOrder + " " + searchReplies,
			"GEOSEARCH $key " + searchArea + " " + searchCenter + " " + searchReplies + " {||DESC|BYBOX 1 1 m|FROMLONLAT 1 1|STOREDIST|COUNT}",
			"GEOSEARCHSTORE $key $key " + searchCenter + " " + searchArea + " " + searchOrder,
			"GEOSEARCHSTORE $key $key " + searchCenter + " " + searchArea + " " + searchReplies,
			"GEORADIUS $key $longitude $latitude $radius $unit " + searchOrder + " " + searchReplies + " {||STORE $key|STORE}",
			"GEORADIUS_RO $key $longitude $latitude $radius $unit " + searchOrder + " " + searchReplies + " {|||STORE $key}",
			"GEORADIUSBYMEMBER $key $place $radius $unit " + searchOrder + " " + searchReplies + " {||STORE $key}",
			"GEORADIUSBYMEMBER_RO $key $place $radius $unit " + searchOrder + " " + searchReplies,
		}},
		{"geo", mode{}, []string{
			"EVAL $near 1 $key GEOSEARCHSTORE " + searchCenter + " " + searchArea + " " + searchOrder + " STOREDIST",
			"EVAL $near 1 $key GEORADIUS $longitude $latitude $radius $unit " + searchOrder + " STOREDIST near",
			"EVAL $near 1 $key GEORADIUSBYMEMBER $place $radius $unit " + searchOrder + " {STORE x STOREDIST near|STOREDIST x STORE near}",
		}},
		{"hll", mode{}, []string{
			"PFADD $key", "PFADD $key $value+", "PFADD $key $member+", "EVAL $repeat 1 $key $times PFADD {a|b|c|d}%", "EVAL $repeat 1 $key $times PFADD %",
			"PFCOUNT $key", "PFCOUNT $key $key+", "PFMERGE $key $key+", "PFMERGE $key", "GET $key", "STRLEN $key", "OBJECT ENCODING $key",
			"PFDEBUG {GETREG|DECODE|DECODE|ENCODING|TODENSE|BOGUS} $key", "EVAL_RO return(redis.pcall('PFCOUNT',KEYS[1])) 1 $key",
			"CONFIG SET hll-sparse-max-bytes {0|40|500|3000|20000}", "SET $key $value",
		}},
		{"hll", mode{}, []string{
			"SET $key $sketch", "SETRANGE $key {0|4|5|8|15|16|17|20|100|12303} $runs", "APPEND $key $runs", "SETBIT $key $bit {0|1}",
			"EVAL $repeat 1 $key $times APPEND $runs", "BITOP OR $key $key $key", "SETRANGE $key {16|12000} " + strings.Repeat("\xff", 300),
		}},
	}
}

// placesValue makes a random value of the kinds that only these requests have.
func (s *source) placesValue(name string) (word string, ok bool) {
	degrees := func(most int, other string) string {
		choices := strings.Split(other, " ")
		if s.IntN(3) == 0 {
			return choices[s.IntN(len(choices))]
		}
		return strconv.FormatFloat(float64(most)*(2*s.Float64()-1), 'f', s.IntN(9), 64)
	}
	switch name {
	case "near":
		return nearScript, true
	case "longitude":
		return degrees(180, "0 0 2 2 13.361389 180 -180 179.9999999 -179.9 180.1 -1e-9 1e300 inf abc"), true
	case "latitude":
		return degrees(85, "0 0 1 1 38.115556 85.05112878 -85.05112878 85 -85.05 85.06 66.5 80.5 1e-9 -inf abc"), true
	case "place":
		return "p" + strconv.Itoa(1+s.IntN(9)), true
	case "unit":
		return []string{"m", "km", "km", "ft", "mi", "KM", "Mi", "cm"}[s.IntN(8)], true
	case "radius":
		return []string{"0", "1", "100", "2e3", "5000", "7000", "12345.678", "1e5", "3e6", "2e7", "1e300", "0.001", "inf", "-1", "abc"}[s.IntN(15)], true
	case "sketch":
		return "HYLL" + string([]byte{byte(s.IntN(3)), 0, 0, 0}) + strings.Repeat("\x00", 7) + []string{"\x00", "\x80"}[s.IntN(2)] + s.allRuns(), true
	case "runs":
		return s.runs(1 + s.IntN(4)), true
	}
	return "", false
}

// runs is some runs of sparse registers, or other bytes.
func (s *source) runs(n int) string {
	var b []byte
	for range n {
		switch s.IntN(4) {
		case 0:
			b = append(b, byte(s.IntN(64)))
		case 1:
			b = append(b, 0x40|byte(s.IntN(64)), byte(s.IntN(256)))
		default:
			b = append(b, 0x80|byte(s.IntN(128)))
		}
	}
	return string(b)
}

// allRuns is sparse registers: as many as there are, or nearly.
func (s *source) allRuns() string {
	var b []byte
	left := 16384 + s.IntN(3)/2
	for left > 0 {
		n := min(1+s.IntN(900), left)
		left -= n
		b = append(b, 0x40|byte((n-1)>>8), byte(n-1))
		for range s.IntN(5) {
			n := min(1+s.IntN(4), left)
			if n > 0 {
				b = append(b, 0x80|byte(s.IntN(32)<<2)|byte(n-1))
				left -= n
			}
		}
	}
	return string(b)
}
