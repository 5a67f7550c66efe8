package main

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
)

// web answers every request after a while of virtual time, and notes when each host was asked, and by how many at once.
type web struct {
	mu    sync.Mutex
	asked map[string][]time.Time
	busy  map[string]int
	most  map[string]int
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Host
	w.mu.Lock()
	w.asked[host] = append(w.asked[host], time.Now())
	w.busy[host]++
	w.most[host] = max(w.most[host], w.busy[host])
	w.mu.Unlock()
	time.Sleep(2500 * time.Millisecond) // a slow page: longer than the pace
	w.mu.Lock()
	w.busy[host]--
	w.mu.Unlock()
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

func TestNoHostIsAskedFasterOrByMoreThanAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, err := embedded.Open("")
		if err != nil {
			t.Fatal(err)
		}
		defer box.Close()
		w := &web{asked: make(map[string][]time.Time), busy: make(map[string]int), most: make(map[string]int)}
		crawler := Crawler{
			Box: box.Box, Client: &http.Client{Transport: w}, Workers: 12, AtOnce: 2, Rate: signalbox.Every(time.Second),
		}
		var pages []string
		for range 10 {
			pages = append(pages, "http://a.example/", "http://b.example/")
		}
		if err := crawler.Crawl(t.Context(), pages); err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"a.example", "b.example"} {
			times := w.asked[host]
			if len(times) != 10 || w.most[host] != 2 {
				t.Errorf("%s: asked %d times by %d at once, want 10 by 2", host, len(times), w.most[host])
			}
			for i := 1; i < len(times); i++ {
				// A grant is timed by the server, in whole milliseconds.
				if apart := times[i].Sub(times[i-1]); apart < 990*time.Millisecond {
					t.Errorf("%s: two requests %v apart, at least 1s is allowed", host, apart)
				}
			}
		}
	})
}

func TestTheExampleRuns(t *testing.T) {
	if err := run(); err != nil {
		t.Fatal(err)
	}
}
