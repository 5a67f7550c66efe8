package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/signalbox-io/signalbox/embedded"
)

func post(handler http.Handler, account string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, "/offers", strings.NewReader(`{"item": "ring", "price": 7}`))
	if account != "" {
		request.Header.Set("X-Account", account)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

// Twenty calls at the same moment: five are served, the others refused at once.
func TestAnAccountHasFiveCallsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, err := embedded.Open("")
		if err != nil {
			t.Fatal(err)
		}
		api := newAPI(box.Box)
		var served, refused atomic.Int64
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() {
				switch answer := post(api, "greedy"); answer.Code {
				case http.StatusCreated:
					served.Add(1)
				case http.StatusTooManyRequests:
					refused.Add(1)
					if answer.Header().Get("Retry-After") != "1" {
						t.Errorf("Retry-After is %q, want 1", answer.Header().Get("Retry-After"))
					}
				default:
					t.Errorf("answered %d: %s", answer.Code, answer.Body)
				}
			})
		}
		calls.Wait()
		if served.Load() != callsAtOnce || refused.Load() != 20-callsAtOnce {
			t.Errorf("%d served and %d refused, want %d and %d", served.Load(), refused.Load(), callsAtOnce, 20-callsAtOnce)
		}
		if answer := post(api, "greedy"); answer.Code != http.StatusCreated {
			t.Errorf("afterwards answered %d, want 201: permits were not given back", answer.Code)
		}
		if answer := post(api, ""); answer.Code != http.StatusUnauthorized {
			t.Errorf("without an account answered %d, want 401", answer.Code)
		}
		if err := box.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestMetricsTellOfThePermits(t *testing.T) {
	watch := watching{metrics: true}
	options, handler, err := watch.start()
	if err != nil {
		t.Fatal(err)
	}
	box, err := embedded.Open("", options...)
	if err != nil {
		t.Fatal(err)
	}
	server := handler(newAPI(box.Box))
	if answer := post(server, "player-1"); answer.Code != http.StatusCreated {
		t.Fatalf("answered %d: %s", answer.Code, answer.Body)
	}
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	const want = `signalbox_acquisitions_total{class="marketplace",outcome="granted"} 1`
	if !strings.Contains(answer.Body.String(), want) {
		t.Errorf("%s is missing from\n%s", want, answer.Body)
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTheDemoHolds(t *testing.T) {
	var out bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--accounts", "2", "--duration", "300ms", "--url", ""})
	if err := cmd.Execute(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if !strings.Contains(out.String(), "held") {
		t.Errorf("the report does not say so:\n%s", &out)
	}
}
