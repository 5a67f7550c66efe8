package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// person is somebody at a browser.
func person(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

func (o *opened) post(client *http.Client, path string, form url.Values, header ...string) (status int, body string) {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, o.at+path, strings.NewReader(form.Encode()))
	if err != nil {
		o.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	if request.Header.Get("Host") != "" {
		request.Host = request.Header.Get("Host")
	}
	response, err := client.Do(request)
	if err != nil {
		o.t.Fatal(err)
	}
	defer response.Body.Close()
	var page bytes.Buffer
	if _, err := page.ReadFrom(response.Body); err != nil {
		o.t.Fatal(err)
	}
	return response.StatusCode, page.String()
}

func application(name string, change ...string) url.Values {
	form := url.Values{"name": {name}, "call": {"1"}, "chat": {"2"}, "email": {"1"}}
	for _, skill := range skills {
		form.Set("skill-"+skill, "on")
	}
	for i := 0; i < len(change); i += 2 {
		form.Set(change[i], change[i+1])
	}
	return form
}

var button = regexp.MustCompile(`id="(accept|finish)-([^"]+)"`)

// An agent at a page: logs in, is offered a task, accepts and finishes it.
func TestAnAgentServesACustomer(t *testing.T) {
	t.Parallel()
	o := openCentre(t, "--agents", "0", "--speed", "30", "--calls", "0", "--offer-for", "1m")
	ann := person(t)
	if status, page := o.post(ann, "/login", application("Ann")); status != http.StatusOK || !strings.Contains(page, "Offered to you") {
		t.Fatalf("login: %d\n%s", status, page)
	}
	if status, page := o.post(person(t), "/login", application("Ann")); status != http.StatusConflict || !strings.Contains(page, "here already") {
		t.Errorf("another Ann: %d\n%s", status, page)
	}
	find := func(what string) string {
		var id string
		o.until(ann, "/agent/live", func(page string) bool {
			for _, m := range button.FindAllStringSubmatch(page, -1) {
				if m[1] == what {
					id = m[2]
				}
			}
			return id != ""
		})
		return id
	}
	var task string
	for { // a customer may hang up before
		task = find("accept")
		if _, page := o.post(ann, "/agent/accept", url.Values{"task": {task}}); !strings.Contains(page, "came too late") {
			break
		}
	}
	if running := find("finish"); running != task {
		t.Errorf("accepted %s, and %s runs", task, running)
	}
	if _, page := o.post(ann, "/agent/finish", url.Values{"task": {task}}); strings.Contains(page, "came too late") {
		t.Errorf("finish: %s", page)
	}
	if _, page := o.post(ann, "/agent/accept", url.Values{"task": {"no such"}}); !strings.Contains(page, "came too late") {
		t.Errorf("accepting what is not there: %s", page)
	}
	o.until(http.DefaultClient, "/supervisor/live", func(page string) bool { return counts(page)["done"] == 1 })
	if _, page := o.post(ann, "/agent/away", nil); !strings.Contains(page, "badge away") {
		t.Errorf("away: %s", page)
	}
	if _, page := o.post(ann, "/agent/back", nil); !strings.Contains(page, "badge online") {
		t.Errorf("back: %s", page)
	}
	if _, page := o.post(ann, "/agent/logout", nil); !strings.Contains(page, "Log in as an agent") {
		t.Errorf("logout: %s", page)
	}
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
}

func TestBadFormsAreRefused(t *testing.T) {
	t.Parallel()
	o := openCentre(t, "--agents", "0", "--calls", "0", "--chats", "0", "--emails", "0")
	for name, c := range map[string]struct {
		form   url.Values
		header []string
		status int
	}{
		"no name":        {application(" "), nil, http.StatusBadRequest},
		"a long name":    {application(strings.Repeat("n", 41)), nil, http.StatusBadRequest},
		"a broken name":  {application("a\xff"), nil, http.StatusBadRequest},
		"below zero":     {application("Bob", "call", "-1"), nil, http.StatusBadRequest},
		"too many":       {application("Bob", "chat", "5"), nil, http.StatusBadRequest},
		"no number":      {application("Bob", "chat", "many"), nil, http.StatusBadRequest},
		"nothing":        {application("Bob", "call", "0", "chat", "0", "email", "0"), nil, http.StatusBadRequest},
		"a huge form":    {application(strings.Repeat("n", 1<<20)), nil, http.StatusBadRequest},
		"another site":   {application("Bob"), []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		"another origin": {application("Bob"), []string{"Origin", "https://example.org"}, http.StatusForbidden},
		"another host":   {application("Bob"), []string{"Host", "example.org"}, http.StatusMisdirectedRequest},
	} {
		if status, page := o.post(person(t), "/login", c.form, c.header...); status != c.status {
			t.Errorf("%s: %d, want %d\n%s", name, status, c.status, page)
		}
	}
	if response, err := http.Get(o.at + "/agent/live"); err != nil || response.StatusCode != http.StatusForbidden {
		t.Errorf("a stream without a login: %v, %v", response, err)
	}
	for _, flags := range [][]string{{"--speed", "0"}, {"--agents", "-1"}, {"--offer-for", "0s"}, {"--chaos-every", "0s"}, {"--calls", "-1"}} {
		cmd := command()
		cmd.SetArgs(append(flags, "--listen", "127.0.0.1:0", "--url", ""))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := cmd.ExecuteContext(ctx); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: %v", flags, err)
		}
		cancel()
	}
}
