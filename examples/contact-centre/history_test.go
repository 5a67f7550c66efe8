package main

import (
	"context"
	"net/http"
	"testing"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/queue"
	segments "github.com/signalbox-io/signalbox/queue/history/files"
)

// The server loses everything in the middle of the day, and is given what its history says. Agents and managers stay, and go on
// with the same tasks; the account, which is kept apart from the queue, finds that none is lost.
func TestTheCentreGoesOnWhenTheServerHasLostEverything(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t)
	url, folder := "redis://"+server.Addr, t.TempDir()
	flags := []string{"--agents", "0", "--speed", "200", "--offer-for", "2s", "--url", url, "--calls", "0", "--chats", "0", "--emails", "4"}
	o := openCentre(t, flags...)
	o.until(http.DefaultClient, "/supervisor/live", func(page string) bool { return counts(page)["waiting"] >= 12 })
	if err := o.close(); err != nil {
		t.Fatal(err)
	}

	q, err := queue.Open(t.Context(), url, "contact-centre")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	sink, err := segments.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	recording, stop := context.WithCancel(t.Context())
	defer stop()
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- q.Record(recording, sink, queue.OnRecorded(func(string, int) {
			select {
			case began <- struct{}{}:
			default:
			}
		}))
	}()
	<-began

	flags[1] = "8"
	o = openCentre(t, append(flags[:len(flags)-1], "0")...)
	o.until(http.DefaultClient, "/supervisor/live", func(page string) bool { return counts(page)["done"] >= 3 })
	server.Kill()
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	server.Restart()
	made, err := q.Rebuild(t.Context(), sink)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	o.until(http.DefaultClient, "/supervisor/live", func(page string) bool {
		now := counts(page)
		return now["arrived"] >= 12 && now["done"] == now["arrived"]
	})
	if err := o.close(); err != nil {
		t.Fatalf("%v\n%s", err, o.said())
	}
	t.Logf("%+v\n%s", made, o.said())
}
