package files

import (
	"context"
	"fmt"

	"github.com/signalbox-io/signalbox/queue/history/internal/sequence"
)

// Report is what Check has found in a folder.
type Report struct {
	Queue       string
	Segments    int
	Bytes       int64
	Entries     uint64 // that can be read
	First, Last string // their IDs
	Pruned      string // the ID up to which Prune has removed them, "" if it has not
	Damage      []*Damage
	Torn        *Torn // nil if a crash has cut nothing off
}

// Check reads all of a folder, also while somebody writes it, and changes nothing. Damage is no error, but part of the report.
func Check(ctx context.Context, folder string) (*Report, error) {
	segments, pruned, err := list(folder)
	if err != nil {
		return nil, fmt.Errorf("check the history in %s: %w", folder, err)
	}
	report := &Report{Segments: len(segments), Pruned: pruned.String()}
	var first sequence.ID
	w := &walk{ctx: ctx, segments: segments, after: pruned}
	w.found = func(d *Damage) error { report.Damage = append(report.Damage, d); return nil }
	w.entry = func(r record) error {
		if report.Entries++; report.Entries == 1 {
			first = r.id
		}
		return nil
	}
	for _, s := range segments {
		report.Bytes += s.size
	}
	if err := w.run(); err != nil {
		return nil, fmt.Errorf("check the history in %s: %w", folder, err)
	}
	report.Queue, report.First, report.Last, report.Torn = w.queue, first.String(), w.id.String(), w.torn
	return report, nil
}
