package racelab

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

var record = flag.Bool("record", false, "write the schedules into docs/race.md")

// shown is a schedule on a page of documentation.
var shown = regexp.MustCompile("(?s)(<!-- race ([a-z-]+): ([^>]+) -->\n```\n)(.*?)(```\n)")

func TestDocsShowWhatIsFound(t *testing.T) {
	t.Parallel()
	const page = "../../docs/race.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	now := shown.ReplaceAllStringFunc(string(text), func(block string) string {
		m := shown.FindStringSubmatch(block)
		found++
		a := named(t, m[2])
		b := a.Defaults()
		b.Random, b.only = 0, []Promise{Promise(m[3])}
		r := Explore(a, b, nil)
		f := brokenBy(t, r, Promise(m[3]))
		return m[1] + strings.Join(f.Table(100, plain), "\n") + "\n\n=> " + f.Why + ".\n" + m[5]
	})
	switch {
	case found < 4:
		t.Errorf("%d schedules are shown: has something moved?", found)
	case now == string(text):
	case *record:
		err = os.WriteFile(page, []byte(now), 0o600)
		if err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s shows other schedules than are found; -record writes these", page)
	}
}
