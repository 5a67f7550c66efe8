package exec

import (
	"strings"
	"testing"
)

// TestSortThatReadsOtherKeys: what SORT reads by BY and GET stands in no
// argument, so it must not be missed.
func TestSortThatReadsOtherKeys(t *testing.T) {
	for call, want := range map[string]string{
		"sort a":                            "",
		"sort a BY nosort":                  "",
		"sort a BY w_*":                     "BY",
		"sort a by w_* GET x":               "BY",
		"sort a BY nosort GET #":            "GET",
		"sort a LIMIT 0 1 get x":            "GET",
		"sort a LIMIT GET 1":                "",
		"sort a STORE GET ALPHA":            "",
		"sort a STORE GET GET x":            "GET",
		"sort a DESC ALPHA LIMIT 0 1 BY *k": "BY",
	} {
		var args [][]byte
		for _, word := range strings.Fields(call) {
			args = append(args, []byte(word))
		}
		if got := sortReadsOthers(args); got != want {
			t.Errorf("%s: got %q, want %q", call, got, want)
		}
	}
}
