package store

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// torn is a queue with something of everything: c runs, w and v wait (v parked), d is delayed, h is held, e has ended. There
// is a worker that is idle, and a schedule.
func torn(t *testing.T) *lab {
	l := newLab(t)
	l.configure("limit\ty\tfull", "1")
	one := keyed("c", "full")
	one.UniqueField, one.UniqueIn = "u", "wlhc"
	l.enqueue(one, keyed("v", "full"))
	l.begin("p/1", room("slot:5"))
	ended, delayed, held := item("e"), item("d"), item("h")
	ended.Retention, delayed.Delay = time.Hour, time.Hour
	held.After = After{"all", "cancel", []string{"d"}}
	l.enqueue(delayed, held)
	must(t, l.SetSchedule(t.Context(), Tick{"daily", 1 << 45, "{}"}))
	l.enqueue(Item{ID: "w", Lane: Lane{Kind: "other"}}, ended)
	_, err := l.Change(t.Context(), "cancel", "", "", []string{"e"})
	must(t, err)
	claims := l.work("p/1", room("slot:5"), func(r *Report) { r.Inventory = []string{} }).Missing
	for _, c := range claims {
		if c.ID == "e" {
			l.work("p/1", room("slot:5"), report(Done{ID: "e", Token: c.Token, Verb: "done", After: time.Hour}))
		}
	}
	return l
}

func (l *lab) check(mend bool) string {
	l.t.Helper()
	found, err := l.Check(l.t.Context(), mend, 15*time.Second)
	must(l.t, err)
	var list []string
	for _, f := range found {
		list = append(list, f.String())
	}
	return strings.Join(list, "\n")
}

func TestCheckFindsNothingInAQueueThatIsWell(t *testing.T) {
	l := torn(t)
	want(t, "findings", l.check(false), "")
	want(t, "jobs that run", fmt.Sprint(l.raw("HKEYS", l.key("claims"))), "[c]")
	want(t, "jobs that have ended", fmt.Sprint(l.raw("HKEYS", l.key("ended"))), "[e]")
}

// What is torn by hand is found, and mended: nothing is found after that, and every job runs.
func TestCheckMendsWhatIsTorn(t *testing.T) {
	const lane = "note\t\t\tfull"
	for name, tear := range map[string][]string{
		"claim without a worker":                     {"HDEL", "workers", "p/1"},
		"claim without a job":                        {"HDEL", "jobs", "c"},
		"claim that its worker does not hold":        {"ZREM", "links", "h\tp/1\tc"},
		"job in no place":                            {"HDEL", "claims", "c"},
		"job in two places":                          {"ZADD", "times", "1", "j\tc"},
		"state that is not where the job is":         {"ZREM", "times", "j\td"},
		"waiting without a job":                      {"ZADD", "waiting", "0", "other\t\t\t\t0000000000000001\tgone"},
		"lane that is nowhere":                       {"DEL", "lanes"},
		"lane that nothing brings back":              {"ZREM", "links", "p\tfull\t" + lane},
		"lane that is not in the index":              {"DEL", "index"},
		"lane in a wrong order":                      {"TEAR", "order"},
		"lane without jobs":                          {"HSET", "lanes", "none\t\t\t", "0000000000000001"},
		"index entry without a lane":                 {"ZADD", "index", "0", "other\t\t\t0000000000000001\tx"},
		"link to what is gone":                       {"ZADD", "links", "0", "x\tp/9\tnone"},
		"parent that is gone":                        {"TEAR", "parent"},
		"worker without a lease":                     {"ZREM", "times", "w\tp/1"},
		"capacity that is used by nothing, or twice": {"TEAR", "used"},
		"time of what is gone":                       {"ZADD", "times", "1", "j\tnone"},
		"fingerprint of a job that is gone":          {"HSET", "unique", "note\tx", "none"},
		"ended without an ending":                    {"DEL", "endings"},
		"job that has ended and has not":             {"TEAR", "both"},
		"ending of nothing":                          {"ZADD", "endings", "9999999999999", "none"},
		"count that is not the sum":                  {"HSET", "counts", "y\tfull", "7"},
		"lane that nothing holds up":                 {"TEAR", "room"},
		"idle worker that nobody finds":              {"ZREM", "links", "i\tp/1\tnote\t\tp/1", "i\tnote\t\tp/1"},
		"schedule without a tick":                    {"DEL", "ticks"},
		"settings that are not counted":              {"HDEL", "settings", "keyed"},
		"held job that nothing frees":                {"ZREMRANGEBYLEX", "links", "[f\td\th\t", "(f\td\th\n"},
	} {
		t.Run(name, func(t *testing.T) {
			l := torn(t)
			l.tear(tear)
			if name == "state that is not where the job is" {
				l.raw("ZADD", l.key("waiting"), "0", strings.Join(strings.Split(l.record("d"), "\t")[10:14], "\t")+"\t"+
					strings.Split(l.record("d"), "\t")[1]+"\td")
			}
			if found := l.check(false); !strings.Contains(found, name+":") {
				t.Errorf("found %q", found)
			}
			l.check(true)
			l.check(true) // what comes of what was mended
			want(t, "found again", l.check(false), "")
			l.drain()
		})
	}
}

func (l *lab) record(id string) string {
	text, _ := l.raw("HGET", l.key("jobs"), id).(string)
	header, _, _ := strings.Cut(text, "\n")
	return header
}

func (l *lab) tear(words []string) {
	switch words[1] {
	case "order":
		was, _ := l.raw("HGET", l.key("lanes"), "other\t\t\t").(string)
		l.raw("HSET", l.key("lanes"), "other\t\t\t", "0000000000000009")
		l.raw("ZREM", l.key("index"), "other\t\t\t"+was+"\t")
		l.raw("ZADD", l.key("index"), "0", "other\t\t\t0000000000000009\t")
	case "parent":
		l.raw("HDEL", l.key("jobs"), "d")
		l.raw("ZREM", l.key("times"), "j\td")
	case "room":
		l.raw("HDEL", l.key("claims"), "c")
		l.raw("DEL", l.key("counts"))
	case "used":
		text, _ := l.raw("HGET", l.key("workers"), "p/1").(string)
		l.raw("HSET", l.key("workers"), "p/1", strings.Replace(text, "slot:1:5", "slot:4:5", 1))
	case "both":
		text, _ := l.raw("HGET", l.key("ended"), "e").(string)
		l.raw("HSET", l.key("ended"), "w", text)
		l.raw("ZADD", l.key("endings"), "9999999999999", "w")
	default:
		l.raw(append([]string{words[0], l.key(words[1])}, words[2:]...)...)
	}
}

// drain has a worker run what there is, and wants nothing to be left.
func (l *lab) drain() {
	l.t.Helper()
	everything := func(r *Report) { r.Room, r.Kinds = "slot:9", "note,other" }
	var done []Done
	for i := range 40 {
		answer := l.work("p/9", everything, report(done...), func(r *Report) { r.Inventory = []string{} })
		done = nil
		for _, c := range append(answer.Claims, answer.Missing...) {
			done = append(done, Done{ID: c.ID, Token: c.Token, Verb: "done"})
		}
		l.pass(time.Second)
		if i == 30 { // d is to run in an hour
			_, err := l.Change(l.t.Context(), "retry", "", "", []string{"d"})
			must(l.t, err)
		}
	}
	if left := fmt.Sprint(l.raw("HKEYS", l.key("jobs"))); left != "[]" {
		l.t.Errorf("Q7: these do not run: %s", left)
	}
	want(l.t, "found at the end", l.check(false), "")
}
