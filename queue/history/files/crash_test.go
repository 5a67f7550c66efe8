package files_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"github.com/signalbox-io/signalbox/queue/history/files"
	"github.com/signalbox-io/signalbox/queue/history/historytest"
)

// childEnv has the test program append to the history in a folder until it is killed, and say what was acknowledged.
const childEnv = "SIGNALBOX_HISTORY_TEST_FOLDER"

func TestMain(m *testing.M) {
	if folder := os.Getenv(childEnv); folder != "" {
		fmt.Fprintln(os.Stderr, child(folder))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func child(folder string) error {
	sink, err := files.Open(folder, files.SegmentBytes(20_000))
	if err != nil {
		return err
	}
	report, err := files.Check(context.Background(), folder)
	if err != nil {
		return err
	}
	for kept := int(report.Entries); ; kept += 37 {
		if err := sink.Append(context.Background(), historytest.Queue, historytest.Entries(kept, 37)); err != nil {
			return err
		}
		fmt.Println(kept + 37)
	}
}

// TestKilled: a process that is killed while it appends has kept what it was told was kept, in order and whole.
func TestKilled(t *testing.T) {
	folder, acknowledged := t.TempDir(), 0
	for round := range 12 {
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stderr = append(os.Environ(), childEnv+"="+folder), os.Stderr
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			acknowledged, err = strconv.Atoi(lines.Text())
			must(t, err)
			if n == 3+7*round {
				must(t, cmd.Process.Kill())
			}
		}
		_ = cmd.Wait() // it was killed
		report, err := files.Check(t.Context(), folder)
		must(t, err)
		if report.Damage != nil || report.Entries < uint64(acknowledged) {
			t.Fatalf("%d entries were acknowledged: %+v", acknowledged, report)
		}
		sink := open(t, folder)
		ids, err := read(t, sink)
		must(t, err)
		if !slices.Equal(ids, idsOf(historytest.Entries(0, len(ids)))) || len(ids) < acknowledged {
			t.Fatalf("%d entries were acknowledged, %d are there", acknowledged, len(ids))
		}
		must(t, sink.Close())
	}
}
