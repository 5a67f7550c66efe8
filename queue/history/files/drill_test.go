package files_test

import (
	"testing"

	"github.com/signalbox-io/signalbox/internal/queue/historydrill"
	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/files"
)

func TestTheServerIsKilledAndTheQueueIsMadeAgain(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	historydrill.Run(t, func() (history.Sink, error) { return files.Open(folder, files.SegmentBytes(1<<20)) })
}

func TestAPrunedHistoryMakesTheSameQueue(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	sink, err := files.Open(folder, files.SegmentBytes(1<<12))
	must(t, err)
	historydrill.Prune(t, sink, func(upto string) error { return files.Prune(folder, upto) })
	must(t, sink.Close())
}
