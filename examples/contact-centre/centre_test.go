package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/internal/postgrestest"
)

// TestMain lets the test's own binary be the processes of a centre.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "role" {
		main()
		return
	}
	redis.SetLogger(silence{})
	code := m.Run()
	postgrestest.CloseShared()
	os.Exit(code)
}

// patience only passes in full when something hangs.
const patience = 5 * time.Minute

// a centre under test: what it says, where its pages are, and what ends it.
type opened struct {
	t    *testing.T
	isAt chan string
	at   string
	end  context.CancelFunc
	over chan error
	mu   sync.Mutex
	out  bytes.Buffer
}

func (o *opened) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at := regexp.MustCompile(`http://[0-9.:]+`).FindString(string(p)); at != "" && o.out.Len() == 0 {
		o.isAt <- at
	}
	return o.out.Write(p)
}

func (o *opened) said() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out.String()
}

// openCentre opens a centre as the program would with these flags.
func openCentre(t *testing.T, flags ...string) *opened {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	o := &opened{t: t, end: end, over: make(chan error, 1), isAt: make(chan string, 1)}
	cmd := command()
	cmd.SetOut(o)
	cmd.SetArgs(append([]string{"--listen", "127.0.0.1:0", "--url", ""}, flags...))
	go func() { o.over <- cmd.ExecuteContext(ctx) }()
	select {
	case o.at = <-o.isAt:
	case err := <-o.over:
		t.Fatalf("it did not open: %v\n%s", err, o.said())
	case <-time.After(patience):
		t.Fatalf("it did not open within %v\n%s", patience, o.said())
	}
	t.Cleanup(func() { _ = o.close() }) // what counts has been asserted before
	return o
}

// close closes the centre, and returns what it says of its account.
func (o *opened) close() error {
	o.end()
	select {
	case err := <-o.over:
		o.over <- err
		return err
	case <-time.After(patience):
		return fmt.Errorf("it did not close within %v\n%s", patience, o.said())
	}
}

// events are the pages that a stream sends, until a page satisfies enough.
func (o *opened) until(client *http.Client, path string, enough func(page string) bool) string {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.at+path, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		o.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		o.t.Fatalf("%s: %s, %s", path, response.Status, response.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	last, page := "", strings.Builder{}
	for lines.Scan() {
		if line, isData := strings.CutPrefix(lines.Text(), "data: "); isData {
			fmt.Fprintln(&page, line)
			continue
		}
		text := page.String()
		if enough(text) {
			return text
		}
		if text != "" {
			last = text
		}
		page.Reset()
	}
	o.t.Fatalf("%s ended, or %v were over: %v\nThe last page was:\n%s\n%s", path, patience, lines.Err(), last, o.said())
	return ""
}

var (
	sum       = regexp.MustCompile(`<b class="num">(\d+)</b> (arrived|done|abandoned|waiting|running)`)
	incidents = regexp.MustCompile(`Incidents <span class="hint">(\d+)<`)
)

// counts reads the account of a supervisor's page.
func counts(page string) map[string]int {
	got := map[string]int{}
	for _, m := range sum.FindAllStringSubmatch(page, -1) {
		got[m[2]], _ = strconv.Atoi(m[1])
	}
	if m := incidents.FindStringSubmatch(page); m != nil {
		got["incidents"], _ = strconv.Atoi(m[1])
	}
	return got
}

// A day with agents, managers and the server killed in turn, until each was killed at least once and many were served. What
// agents are given beyond their capacities ends their processes with an error, which the centre reports as it does a loss.
func TestADayOfChaosLosesNothing(t *testing.T) {
	t.Parallel()
	o := openCentre(t, "--chaos", "--chaos-every", "1500ms", "--speed", "60", "--agents", "9", "--seed", "7", "--offer-for", "3s",
		"--dir", t.TempDir())
	page := o.until(http.DefaultClient, "/supervisor/live", func(page string) bool {
		if strings.Contains(page, `class="lost"`) {
			t.Fatalf("something is lost:\n%s\n%s", page, o.said())
		}
		now := counts(page)
		return now["incidents"] >= 6 && now["done"] >= 40
	})
	if err := o.close(); err != nil {
		t.Fatalf("%v\n%s", err, o.said())
	}
	for _, want := range []string{"kill -9 of floor", "kill -9 of the server", "kill -9 of manager", "Nothing is lost"} {
		if !strings.Contains(o.said(), want) {
			t.Errorf("%q is missing in what it said:\n%s", want, o.said())
		}
	}
	t.Logf("%v\n%s", counts(page), o.said())
}

// What waits when a centre closes is there when it opens again.
func TestWhatWaitsIsThereTheNextDay(t *testing.T) {
	t.Parallel()
	flags := []string{"--agents", "0", "--speed", "200", "--offer-for", "2s", "--dir", t.TempDir(), "--calls", "0", "--chats", "0", "--emails", "2"}
	o := openCentre(t, flags...)
	o.until(http.DefaultClient, "/supervisor/live", func(page string) bool { return counts(page)["waiting"] >= 5 })
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	flags[1] = "6"
	o = openCentre(t, append(flags[:len(flags)-1], "0")...)
	page := o.until(http.DefaultClient, "/supervisor/live", func(page string) bool {
		now := counts(page)
		return now["arrived"] >= 5 && now["done"] == now["arrived"]
	})
	if err := o.close(); err != nil {
		t.Fatalf("%v\n%s", err, page)
	}
}

// The account finds what is lost: it is kept apart from the queue.
func TestTheAccountFindsWhatIsLost(t *testing.T) {
	box, err := embedded.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	q, err := box.Queue("lost")
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	a := newAccount()
	job, err := channels[0].kind.Enqueue(t.Context(), q, Contact{Customer: "Ada"})
	if err != nil {
		t.Fatal(err)
	}
	a.came(channels[0], job.ID())
	if now, err := a.check(t.Context(), q); err != nil || now.Waiting != 1 {
		t.Errorf("with a contact that waits: %v, %v", now, err)
	}
	if err := q.Delete(t.Context(), job.ID()); err != nil {
		t.Fatal(err)
	}
	if now, err := a.check(t.Context(), q); err == nil || now.Missing() != 1 {
		t.Errorf("with a contact that was deleted: %v, %v", now, err)
	}
	a.left("nobody", 0, nil)
	if _, err := a.check(t.Context(), q); err == nil || !strings.Contains(err.Error(), "nobody ended, and was not there") {
		t.Errorf("with a contact that ended twice: %v", err)
	}
}

func TestADeskSeesThatItIsGivenTooMuch(t *testing.T) {
	d := &desk{name: "Ann", takes: capacities{"call": 1, "chat": 3}, tasks: map[string]*task{}}
	for i, name := range []string{"call", "chat", "chat"} {
		if d.over != nil {
			t.Fatalf("a call and a chat: %v", d.over)
		}
		id := strconv.Itoa(i)
		d.tasks[id] = &task{ID: id, Channel: name}
		d.begin(d.tasks[id])
	}
	if d.over == nil {
		t.Error("a call and two chats at once are not seen")
	}
}
