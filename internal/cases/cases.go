// Package cases says how many random cases a test tries. The race detector makes each case several times as slow, and
// what it looks for shows in the first ones: so under it tests try a fifth, and `make test` runs those tests without
// it as well, where they try all (TWICE in the Makefile). `make race` tries all under the detector, too.
//
// A test that draws cases asks here: Count for a number, Few for a list that begins with what is to be tried always.
package cases

import (
	"os"
	"testing"
)

// All is the environment variable that has all cases tried, under the race detector, too.
const All = "SIGNALBOX_ALL_CASES"

// share is what part of the cases is tried under the race detector.
const share = 5

// Count returns how many of so many cases are to be tried: at least one.
func Count(all int) int {
	if !underRace || os.Getenv(All) != "" {
		return all
	}
	return max(1, all/share)
}

// NotUnderRace skips a test of real processes that are killed, where the detector finds nothing that others do not show it,
// and where a machine that is many times as slow lets leases end that a user's would keep.
func NotUnderRace(t testing.TB) {
	t.Helper()
	if underRace && os.Getenv(All) == "" {
		t.Skip("runs without the race detector")
	}
}

// Few returns the cases that are to be tried: the first ones.
func Few[T any](all []T) []T { return all[:min(len(all), Count(len(all)))] }
