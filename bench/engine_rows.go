package main

import (
	"fmt"
	"slices"
	"strconv"
)

// A row is one number of both servers, pair by pair, and what is wanted of it.

// wish is what is wanted: of the ratio, engine to Redis, or of the engine's own number.
type wish struct {
	text string // empty: just to know
	own  bool
	met  func(float64) bool
}

var justKnow = wish{}

func ratioAtLeast(bound float64) wish {
	return wish{"≥ " + number(bound, 2) + " ×", false, func(v float64) bool { return v >= bound }}
}

func ratioAtMost(bound float64) wish {
	return wish{"≤ " + number(bound, 2) + " ×", false, func(v float64) bool { return v <= bound }}
}

func ownAtMost(bound float64, unit string) wish {
	return wish{fmt.Sprintf("≤ %g %s", bound, unit), true, func(v float64) bool { return v <= bound }}
}

type engineRow struct {
	what, unit string
	digits     int
	values     both
	want       wish
	pairs      int    // that are whole
	fault      string // of a pair that is not
}

func (t *engineTest) row(what, unit string, digits int, want wish) *engineRow {
	r := &engineRow{what: what, unit: unit, digits: digits, values: both{}, want: want}
	t.rows = append(t.rows, r)
	return r
}

func (r *engineRow) add(server string, value float64) { r.values.add(server, value) }

// align ends a pair; one that failed is dropped. A row may be of the engine alone.
func (r *engineRow) align(failed error) {
	if failed == nil {
		r.pairs = len(r.values[engineName])
		return
	}
	r.fault = failed.Error()
	for _, server := range []string{redisName, engineName} {
		r.values[server] = r.values[server][:min(r.pairs, len(r.values[server]))]
	}
}

// isPaired says that no server has been measured of the next pair.
func (r *engineRow) isPaired() bool { return len(r.values[redisName]) == len(r.values[engineName]) }

func (r *engineRow) alone() bool { return len(r.values[redisName]) == 0 }

// last is what the last pair found, for the eyes of who waits.
func (r *engineRow) last() string {
	ours := r.values[engineName]
	if len(ours) == 0 {
		return r.unit + " -"
	}
	text := number(ours[len(ours)-1], r.digits) + " " + r.unit
	if r.alone() {
		return text
	}
	theirs := r.values[redisName]
	return fmt.Sprintf("%s, Redis %s", text, number(theirs[len(theirs)-1], r.digits))
}

// tell adds the row to the table, and what was wanted to the aims.
func (r *engineRow) tell(out *section) {
	name := r.what + ": " + r.unit
	redis, ours := r.values[redisName], r.values[engineName]
	if len(ours) == 0 {
		out.row(r.what, r.unit, "-", "-", "-", "-", "0", r.want.text, "not measured: "+r.fault)
		if r.want.text != "" {
			out.aim(name, r.want.text, nil, r.want.met)
		}
		return
	}
	left, middle, span := "-", "-", "-"
	judged := ours
	if !r.alone() {
		ratios := r.values.ratios()
		left, middle = number(median(redis), r.digits), number(median(ratios), 2)
		span = number(slices.Min(ratios), 2) + ".." + number(slices.Max(ratios), 2)
		if !r.want.own {
			judged = ratios
		}
	}
	verdict := ""
	if r.want.text != "" {
		out.aim(name, r.want.text, judged, r.want.met)
		verdict = "MISS"
		if out.Aims[len(out.Aims)-1].Pass {
			verdict = "pass"
		}
	}
	out.row(r.what, r.unit, left, number(median(ours), r.digits), middle, span, strconv.Itoa(len(ours)), r.want.text, verdict)
}

func engineSection() *section {
	return &section{
		Title: "The engine beside Redis",
		Note: "Medians of pairs, one server after the other, in turn, each alone on its core; ratio is the engine's to " +
			"Redis's, pair by pair. µs CPU are of the server, user and system, for an operation. Bytes are resident memory " +
			"more than before, divided by the items. \"Worst PING beside\" is the longest of 5,000 a second while the " +
			"command runs, from the moment at which it was due.",
		Columns: []string{"what", "unit", "Redis", "engine", "ratio", "lowest..highest", "pairs", "wanted", ""},
		InRows:  true,
	}
}

// engineReasons say why rows miss; a key is the beginning of a row's name.
var engineReasons = map[string]string{}
