package main

import (
	"io"
	"net/http"
	"testing"
)

func TestProfilesAreForThisMachineOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0"} {
		if d, err := openDebugDoor(address); err == nil {
			t.Errorf("%s was let in: %v", address, d.close())
		}
	}
	d, err := openDebugDoor("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	get := func(host, path string) (int, int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+d.listener.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			r.Host = host
		}
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, len(body)
	}
	for _, path := range []string{
		"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/block", "/debug/pprof/mutex", "/debug/pprof/profile?seconds=1",
		"/debug/pprof/trace?seconds=0.1",
	} {
		if status, length := get("", path); status != http.StatusOK || length == 0 {
			t.Errorf("%s: status %d, %d bytes", path, status, length)
		}
	}
	if status, _ := get("example.org:6060", "/debug/pprof/heap"); status != http.StatusForbidden {
		t.Errorf("a request by another name got status %d", status)
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
}
