package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/benchmark"
	"github.com/signalbox-io/signalbox/internal/benchmark/chart"
)

func report() *benchmark.Report {
	return &benchmark.Report{
		Started:  time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
		Server:   benchmark.ServerInfo{Name: "redis", Version: "7.0.15"},
		Machine:  benchmark.Machine{CPU: "CPU <i9> & more", Cores: 2},
		Duration: time.Second, Rounds: 3,
		Locks: []benchmark.LockRow{
			{Lock: "original lock", Clients: 1, Tries: 100, Acquires: 100, TriesPerSecond: 12345, AcquiresPerSecond: 12345},
			{Lock: "original lock", Clients: 10, Tries: 900, Acquires: 0, TriesPerSecond: 900},
			{Lock: "signalbox", Clients: 1, Tries: 50, Acquires: 50, AcquiresPerSecond: 5000},
		},
		Pipelining: []benchmark.PipelineRow{
			{Link: "loopback", RoundTrip: 50 * time.Microsecond, CallsPerSecond: 3200},
			{Link: "loopback", RoundTrip: 50 * time.Microsecond, CallsPerSecond: 9800, Pipelined: true},
			{Link: "moon", RoundTrip: 3 * time.Second},
			{Link: "moon", RoundTrip: 3 * time.Second, Pipelined: true, CallsPerSecond: 0.33},
		},
		Commands: []benchmark.CommandRow{{Command: "SET", RequestsPerSecond: 1_234_567}, {Command: "GET"}},
		Semaphores: []benchmark.SemaphoreRow{
			{Semaphore: "basic (6.3.1)", Skew: time.Second, Clients: 9, Limit: 5, Grants: 100, OverLimit: 42},
			{Semaphore: "signalbox", Skew: time.Second, Clients: 9, Limit: 5},
		},
	}
}

func svg(t *testing.T, r *benchmark.Report) string {
	t.Helper()
	var picture bytes.Buffer
	if err := chart.Draw(&picture, r, chart.SVG); err != nil {
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
		"clients that compete for one lock", "per second", "original lock", "signalbox",
		"calls per second, logarithmic", "loopback", "9.8k", "0.33", "pipelined",
		"requests per second", "SET", "1.2M",
		"% of all grants", "clocks differ by 1s", "42", "basic (6.3.1)",
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

func TestPNGDecodes(t *testing.T) {
	var picture bytes.Buffer
	if err := chart.Draw(&picture, report(), chart.PNG); err != nil {
		t.Fatal(err)
	}
	decoded, err := png.Decode(&picture)
	if err != nil {
		t.Fatal(err)
	}
	bounds, colours := decoded.Bounds(), map[any]bool{}
	for x := bounds.Min.X; x < bounds.Max.X; x++ {
		for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
			colours[decoded.At(x, y)] = true
		}
	}
	if bounds.Dx() < 1000 || len(colours) < 10 {
		t.Errorf("%v, %d colours", bounds, len(colours))
	}
}

func TestWhatCannotBeDrawn(t *testing.T) {
	if err := chart.Draw(io.Discard, &benchmark.Report{}, chart.SVG); err == nil {
		t.Error("an empty report has a picture")
	}
	if err := chart.Draw(io.Discard, report(), "gif"); err == nil {
		t.Error("a format that does not exist has a picture")
	}
}
