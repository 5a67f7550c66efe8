package files_test

import (
	"testing"

	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/files"
	"github.com/signalbox-io/signalbox/queue/history/historytest"
)

func TestSink(t *testing.T) {
	for name, options := range map[string][]files.Option{"large files": nil, "small files": {files.SegmentBytes(2000)}} {
		t.Run(name, func(t *testing.T) {
			historytest.Exercise(t, func(t *testing.T) func() (history.Sink, error) {
				folder := t.TempDir() + "/a/folder"
				return func() (history.Sink, error) { return files.Open(folder, options...) }
			})
		})
	}
}
