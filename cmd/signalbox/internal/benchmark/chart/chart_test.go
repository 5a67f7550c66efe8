package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/cmd/signalbox/internal/benchmark"
	"github.com/signalbox-io/signalbox/cmd/signalbox/internal/benchmark/chart"
)

func report() *benchmark.Report {
	return &benchmark.Report{
		Started:  time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
		Server:   benchmark.ServerInfo{Name: "redis", Version: "7.0.15"},
		Machine:  benchmark.Machine{CPU: "CPU <i9> & more", Cores: 2},
		Duration: time.Second, Rounds: 3,
		Locks: []benchmark.LockRow{
			{Lock: "original lock", Clients: 1, Tries: 100, Acquires: 100, AcquiresPerSecond: 12345, WaitMax: 250 * time.Microsecond, Fewest: 100, Most: 100},
			{Lock: "original lock", Clients: 5, Tries: 900, Acquires: 60, AcquiresPerSecond: 60, WaitMax: 1500 * time.Millisecond, Most: 60},
			{Lock: "original lock", Clients: 10, Tries: 900},
			{Lock: "signalbox", Clients: 10, Tries: 50, Acquires: 50, AcquiresPerSecond: 5000, WaitMax: 18 * time.Millisecond, Fewest: 4, Most: 5},
		},
		Pipelining: []benchmark.PipelineRow{
			{Link: "loopback", RoundTrip: 50 * time.Microsecond, CallsPerSecond: 3200},
			{Link: "loopback", RoundTrip: 50 * time.Microsecond, CallsPerSecond: 9800, Pipelined: true},
			{Link: "moon", RoundTrip: 3 * time.Second},
			{Link: "moon", RoundTrip: 3 * time.Second, Pipelined: true, CallsPerSecond: 0.33},
		},
		Commands: []benchmark.CommandRow{{Command: "SET", RequestsPerSecond: 1_234_567, LatencyP99: 2500 * time.Microsecond}, {Command: "GET"}},
		Semaphores: []benchmark.SemaphoreRow{
			{Semaphore: "basic (6.3.1)", Skew: time.Second, Clients: 9, Limit: 5, Grants: 100, OverLimit: 42, MostHolders: 9},
			{Semaphore: "signalbox", Skew: time.Second, Clients: 9, Limit: 5},
		},
	}
}

func svg(t *testing.T, r *benchmark.Report) string {
	t.Helper()
	var picture bytes.Buffer
	if err := chart.Draw(&picture, r); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(bytes.NewReader(picture.Bytes()))
	var texts strings.Builder
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return texts.String()
		}
		if err != nil {
			t.Fatalf("no XML: %v", err)
		}
		if text, ok := token.(xml.CharData); ok {
			texts.Write(text)
			texts.WriteByte('\n')
		}
	}
}

func TestPictureSaysWhatItShows(t *testing.T) {
	texts := svg(t, report())
	for _, want := range []string{
		"redis 7.0.15 · CPU <i9> & more, 2 cores · cells of 1s, 3 rounds · 2026-11-21",
		"clients that compete for one lock", "per second", "original lock, 1 client", "signalbox, 10 clients",
		"longest wait", "250 µs", "1.5 s", "18 ms",
		"fewest / most", "1.00", "0.80", "one starved", "nobody got it",
		"calls per second, logarithmic", "loopback", "9.8k", "0.33", "pipelined",
		"requests per second", "SET", "1.2M", "99 of 100", "2.5 ms",
		"grants per second", "33", "% of all grants", "clocks differ by 1s", "42, 42 %", "basic (6.3.1)", "most inside at once, of 5", "9",
	} {
		if !strings.Contains(texts, want) {
			t.Errorf("the picture does not say %q", want)
		}
	}
}

func TestEachPartAloneIsAPicture(t *testing.T) {
	all := report()
	for name, r := range map[string]*benchmark.Report{
		"per second": {Locks: all.Locks}, "moon": {Pipelining: all.Pipelining}, "SET": {Commands: all.Commands}, "basic": {Semaphores: all.Semaphores},
	} {
		if !strings.Contains(svg(t, r), name) {
			t.Errorf("nothing says %s", name)
		}
	}
}

// No bar is longer than its column, and what was nothing has none.
func TestBarsStayInTheirColumns(t *testing.T) {
	var picture bytes.Buffer
	if err := chart.Draw(&picture, report()); err != nil {
		t.Fatal(err)
	}
	var root struct {
		Width float64 `xml:"width,attr"`
		Bars  []struct {
			X     float64 `xml:"x,attr"`
			Width float64 `xml:"width,attr"`
		} `xml:"rect"`
	}
	if err := xml.Unmarshal(picture.Bytes(), &root); err != nil {
		t.Fatal(err)
	}
	none := 0
	for _, bar := range root.Bars[1:] { // the first is the ground
		if bar.Width == 0 {
			none++
		}
		if bar.Width < 0 || bar.X+bar.Width > root.Width-50 {
			t.Errorf("a bar from %v is %v long in a picture of %v", bar.X, bar.Width, root.Width)
		}
	}
	if none == 0 || none == len(root.Bars)-1 {
		t.Errorf("%d of %d bars have no length", none, len(root.Bars)-1)
	}
}

func TestAnEmptyReportHasNoPicture(t *testing.T) {
	if err := chart.Draw(io.Discard, &benchmark.Report{}); err == nil {
		t.Error("an empty report has a picture")
	}
}
