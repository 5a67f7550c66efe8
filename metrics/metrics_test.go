package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/metrics"
)

func Example() {
	registry := prometheus.NewRegistry()
	measured, err := metrics.New(registry)
	if err != nil {
		fmt.Println(err)
		return
	}
	box, err := embedded.Open("", measured)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close()
	if _, err := box.Semaphore("account:17", 5).Acquire(context.Background()); err != nil {
		fmt.Println(err)
	}
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()
	response, err := http.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		fmt.Println(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `{class="account"`) && strings.HasPrefix(line, "signalbox_held") {
			fmt.Print(line)
		}
	}
	// Output: signalbox_held{class="account"} 1
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// scrape returns the lines about Signalbox, without those that begin with # and, of buckets, all but the last.
func scrape(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var text strings.Builder
	for line := range strings.Lines(recorder.Body.String()) {
		if !strings.HasPrefix(line, "#") && (!strings.Contains(line, "_bucket") || strings.Contains(line, "+Inf")) {
			text.WriteString(line)
		}
	}
	return text.String()
}

func TestScrape(t *testing.T) {
	registry := prometheus.NewRegistry()
	synctest.Test(t, func(t *testing.T) {
		measured, err := metrics.New(registry)
		must(t, err)
		box, err := embedded.Open("", measured)
		must(t, err)
		mutex := box.Mutex("invoice:42")
		first, err := mutex.Acquire(t.Context(), signalbox.TTL(30*time.Second))
		must(t, err)
		if _, err := mutex.TryAcquire(t.Context()); !errors.Is(err, signalbox.ErrBusy) {
			t.Fatalf("got %v, want ErrBusy", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		if _, err := mutex.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want DeadlineExceeded", err)
		}
		giveUp, stop := context.WithCancel(t.Context())
		var waiters sync.WaitGroup
		waiters.Go(func() {
			if _, err := mutex.Acquire(giveUp); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want Canceled", err)
			}
		})
		synctest.Wait()
		want(t, scrape(t, registry), `signalbox_waiting{class="invoice"} 1`, `signalbox_held{class="invoice"} 1`,
			`signalbox_renew_lag_seconds_count{class="invoice"} 0`)
		stop()
		waiters.Wait()
		time.Sleep(8 * time.Second) // a renewal
		must(t, first.Release(t.Context()))
		_, err = mutex.Acquire(t.Context())
		must(t, err)
		must(t, box.Close()) // which is how that lease ends
	})
	// Times are virtual, and so are exact but for the moments of a renewal and of Close.
	want(t, scrape(t, registry),
		`signalbox_acquisitions_total{class="invoice",outcome="canceled"} 1`,
		`signalbox_acquisitions_total{class="invoice",outcome="closed"} 0`,
		`signalbox_acquisitions_total{class="invoice",outcome="error"} 0`,
		`signalbox_acquisitions_total{class="invoice",outcome="forced"} 0`,
		`signalbox_acquisitions_total{class="invoice",outcome="granted"} 2`,
		`signalbox_acquisitions_total{class="invoice",outcome="refused"} 1`,
		`signalbox_acquisitions_total{class="invoice",outcome="timeout"} 1`,
		`signalbox_held{class="invoice"} 0`,
		`signalbox_hold_seconds_bucket{class="invoice",le="+Inf"} 2`,
		`signalbox_hold_seconds_sum{class="invoice"} 12`,
		`signalbox_hold_seconds_count{class="invoice"} 2`,
		`signalbox_lost_total{class="invoice",cause="closed"} 1`,
		`signalbox_lost_total{class="invoice",cause="expired"} 0`,
		`signalbox_lost_total{class="invoice",cause="forced"} 0`,
		`signalbox_renew_lag_seconds_count{class="invoice"} 1`,
		`signalbox_wait_seconds_bucket{class="invoice",le="+Inf"} 4`,
		`signalbox_wait_seconds_sum{class="invoice"} 4`,
		`signalbox_wait_seconds_count{class="invoice"} 4`,
		`signalbox_waiting{class="invoice"} 0`,
	)
}

func want(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			// Labels come in the order of their names.
			if other := swapped(line); other == "" || !strings.Contains(text, other+"\n") {
				t.Errorf("not scraped: %s", line)
			}
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// swapped has the two labels of a line the other way round.
func swapped(line string) string {
	name, rest, ok := strings.Cut(line, "{")
	labels, value, ok2 := strings.Cut(rest, "}")
	a, b, ok3 := strings.Cut(labels, ",")
	if !ok || !ok2 || !ok3 {
		return ""
	}
	return name + "{" + b + "," + a + "}" + value
}

func TestClassesAreBounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	measured, err := metrics.New(registry)
	must(t, err)
	again, err := metrics.New(registry) // as a second Box of the program would
	must(t, err)
	for i, option := range []signalbox.Option{measured, again} {
		box, err := embedded.Open("", option)
		must(t, err)
		for n := range 3 * metrics.MaxClasses {
			lease, err := box.Mutex(fmt.Sprintf("%d-%d:x", i, n)).Acquire(t.Context())
			must(t, err)
			must(t, lease.Release(t.Context()))
		}
		must(t, box.Close())
	}
	text := scrape(t, registry)
	if n := strings.Count(text, "signalbox_held{"); n != metrics.MaxClasses+1 {
		t.Errorf("%d classes, want %d and %q", n, metrics.MaxClasses, metrics.Other)
	}
	want(t, text, `signalbox_held{class="0-0"} 0`,
		fmt.Sprintf(`signalbox_wait_seconds_count{class="other"} %d`, 6*metrics.MaxClasses-metrics.MaxClasses))
}

func TestStrangeClassesAreNoTrouble(t *testing.T) {
	registry := prometheus.NewRegistry()
	measured, err := metrics.New(registry, metrics.Class(func(resource string) string {
		return map[string]string{"broken": "a\xffb", "empty": "", "quoted": `"}` + "\n"}[resource]
	}))
	must(t, err)
	box, err := embedded.Open("", measured)
	must(t, err)
	for _, name := range []string{"broken", "empty", "quoted"} {
		_, err := box.Mutex(name).Acquire(t.Context())
		must(t, err)
	}
	want(t, scrape(t, registry), "signalbox_held{class=\"a\uFFFDb\"} 1", `signalbox_held{class="other"} 1`,
		`signalbox_held{class="\"}\n"} 1`)
	must(t, box.Close())
}

func TestARegistererThatRefusesIsAnError(t *testing.T) {
	registry := prometheus.NewRegistry()
	must(t, registry.Register(prometheus.NewGauge(prometheus.GaugeOpts{Name: "signalbox_held", Help: "another's"})))
	if _, err := metrics.New(registry); err == nil {
		t.Error("a name that is taken was accepted")
	}
	if _, err := metrics.New(nil); !errors.Is(err, signalbox.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}

// The documentation names each metric, and none that there is not.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/observing.md")
	must(t, err)
	registry := prometheus.NewRegistry()
	measured, err := metrics.New(registry)
	must(t, err)
	box, err := embedded.Open("", measured)
	must(t, err)
	must(t, box.Mutex("m").Do(t.Context(), func(context.Context) error { return nil }))
	runOneJob(t, box, registry)
	families, err := registry.Gather()
	must(t, err)
	there := map[string]bool{}
	for _, family := range families {
		there[family.GetName()] = true
		if !strings.Contains(string(text), "| `"+family.GetName()) {
			t.Errorf("docs/observing.md does not explain %s", family.GetName())
		}
	}
	for _, name := range regexp.MustCompile(`signalbox_[a-z_]+`).FindAllString(string(text), -1) {
		if !there[strings.TrimSuffix(name, "_bucket")] {
			t.Errorf("docs/observing.md speaks of %s, which there is not", name)
		}
	}
	must(t, box.Close())
}
