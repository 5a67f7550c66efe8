package main

import (
	"testing"

	"github.com/signalbox-io/signalbox/engine/check"
)

// What lies under the path that a server names, and was not written when it said so, is another
// server's.
func TestABackupOfAnotherServersFileIsRefused(t *testing.T) {
	t.Parallel()
	taken := snapshotTaken{path: "/data/dump.rdb", afterSec: 1000, untilSec: 1002}
	for ctime, fits := range map[string]bool{"999": false, "1000": true, "1002": true, "1003": false, "x": false} {
		report := &check.RDBReport{Aux: []check.Aux{{Name: "redis-ver", Value: "1001"}, {Name: "ctime", Value: ctime}}}
		if err := taken.judge(report); (err == nil) != fits {
			t.Errorf("a file of %s: %v", ctime, err)
		}
	}
	if err := taken.judge(&check.RDBReport{}); err == nil {
		t.Error("a file that does not tell its time is taken")
	}
}
