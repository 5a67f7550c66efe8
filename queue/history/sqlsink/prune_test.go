package sqlsink_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/historytest"
	"github.com/signalbox-io/signalbox/queue/history/sqlsink"
)

// What was pruned is not read, and not missed; what somebody deletes behind it is.
func TestPrune(t *testing.T) {
	onEach(t, func(t *testing.T, db *sql.DB, dialect sqlsink.Dialect) {
		withSchema(t, db, dialect)
		sink, all := open(t, db, dialect), historytest.Entries(0, 300)
		if err := sink.Prune(t.Context(), all[0].ID); err == nil {
			t.Error("there is nothing to be pruned")
		}
		must(t, sink.Append(t.Context(), historytest.Queue, all[:200]))
		other, err := sqlsink.Open(t.Context(), db, dialect, "other")
		must(t, err)
		must(t, other.Append(t.Context(), "other", all))
		must(t, sink.Prune(t.Context(), "1-1")) // before all
		count(t, sink, all[:200])
		from := 0
		for _, upto := range []int{3, 150, 20, 150} {
			must(t, open(t, db, dialect).Prune(t.Context(), all[upto].ID)) // while somebody else has it open to write
			from = max(from, upto+1)
			count(t, sink, all[from:200])
			count(t, open(t, db, dialect), all[from:200])
		}
		for _, upto := range []string{"", "yesterday", all[200].ID} {
			if err := sink.Prune(t.Context(), upto); err == nil {
				t.Errorf("up to %q", upto)
			}
		}
		must(t, sink.Append(t.Context(), historytest.Queue, all[190:]))
		count(t, sink, all[151:])
		must(t, sink.Prune(t.Context(), all[299].ID)) // all of them
		count(t, sink, nil)
		must(t, sink.Append(t.Context(), historytest.Queue, historytest.Entries(300, 10)))
		count(t, open(t, db, dialect), historytest.Entries(300, 10))
		count(t, other, all)
		names, err := sqlsink.Queues(t.Context(), db, dialect)
		must(t, err)
		if len(names) != 2 || names[0] != historytest.Queue || names[1] != "other" {
			t.Errorf("there are histories of %q", names)
		}

		run(t, db, "delete from signalbox_history_entries where number = 301")
		var failed error
		for _, failed = range sink.Read(t.Context(), "") {
		}
		if !errors.Is(failed, history.ErrDamaged) {
			t.Errorf("the error is %v", failed)
		}
	})
}
