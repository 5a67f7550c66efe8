package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/engine"
)

// A page that attacks an engine on the machine of whoever looks at it, in a real browser. The page tries all
// that a page can send to a port (forms, fetch, beacons, WebSockets, TLS), with commands in the body or in the URL,
// and then reports to its own server what came of it.

const attackPage = `<!doctype html><meta charset="utf-8"><script>
const port = %q, http = 'http://127.0.0.1:' + port, body = '\r\nSET stolen 1\r\nCONFIG SET requirepass mine\r\n';
const resp = '*3\r\n$3\r\nSET\r\n$6\r\nstolen\r\n$1\r\n1\r\n';
const outcome = {};
const settles = promise => promise.then(() => 'answered', () => 'nothing');
const fetches = (url, options) => settles(fetch(url, options));
function form(enctype) {
	const frame = document.createElement('iframe'), form = document.createElement('form'), field = document.createElement('textarea');
	frame.name = 'frame ' + enctype;
	Object.assign(form, {method: 'POST', action: http + '/', target: frame.name, enctype});
	Object.assign(field, {name: 'a', value: body});
	form.append(field);
	document.body.append(frame, form);
	return new Promise(resolve => {
		frame.onload = () => { // an error page, too, is loaded
			let text;
			try { text = frame.contentDocument.body.innerText } catch { text = 'nothing' }
			if (text) resolve(text);
		};
		form.submit();
	});
}
function socket(url) {
	return new Promise(resolve => {
		const s = new WebSocket(url, ['SET', 'stolen', '1']);
		s.onopen = () => { s.send(body); resolve('answered') };
		s.onerror = () => resolve('nothing');
	});
}
function image() {
	return new Promise(resolve => {
		const i = new Image();
		i.onload = () => resolve('answered');
		i.onerror = () => resolve('nothing');
		i.src = http + '/%%0d%%0aSET%%20stolen%%201%%0d%%0a';
	});
}
onload = async () => {
	for (const [name, attempt] of Object.entries({
		'fetch, simple POST': () => fetches(http, {method: 'POST', mode: 'no-cors', body}),
		'fetch, requests of RESP': () => fetches(http, {method: 'POST', mode: 'no-cors', body: resp}),
		'fetch, bytes': () => fetches(http, {method: 'POST', mode: 'no-cors', body: new TextEncoder().encode(resp)}),
		'fetch, GET': () => fetches(http + '/?' + encodeURIComponent(body), {mode: 'no-cors'}),
		'fetch, preflight': () => fetches(http, {method: 'PUT', headers: {'X-Set': 'stolen'}, body}),
		'fetch, TLS': () => fetches('https://127.0.0.1:' + port, {method: 'POST', mode: 'no-cors', body}),
		'beacon': async () => navigator.sendBeacon(http, body) ? 'nothing' : 'not sent',
		'form, text/plain': () => form('text/plain'),
		'form, multipart/form-data': () => form('multipart/form-data'),
		'image': image,
		'WebSocket': () => socket('ws://127.0.0.1:' + port),
		'WebSocket, TLS': () => socket('wss://127.0.0.1:' + port),
	})) outcome[name] = await attempt();
	fetch('/outcome', {method: 'POST', body: JSON.stringify(outcome)});
};
</script><body>`

// browse shows the attacking page in a headless browser until the page has reported.
func browse(t *testing.T, browser, port string) (outcome map[string]string) {
	t.Helper()
	reported := make(chan []byte, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/outcome" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprintf(w, attackPage, port)
			return
		}
		body, _ := io.ReadAll(r.Body)
		select {
		case reported <- body:
		default:
		}
	}))
	defer web.Close()
	cmd := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--user-data-dir="+t.TempDir(), web.URL)
	cmd.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // when all its processes have closed what they write to
	select {
	case body := <-reported:
		if err := errors.Join(json.Unmarshal(body, &outcome), cmd.Process.Signal(syscall.SIGTERM)); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		t.Logf("the browser: %v", <-ended)
	case err := <-ended:
		t.Fatalf("%s ended too early: %v\n%s", browser, err, said.String())
	}
	return outcome
}

// TestAPageInABrowserGetsNothing: of what a page posts to the port nothing is run, and nothing is answered.
func TestAPageInABrowserGetsNothing(t *testing.T) {
	t.Parallel()
	browser := findBrowser(t)
	var mu sync.Mutex
	var log []string
	e, err := engine.Open(engine.Options{Log: func(_ int, line string) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, line)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go e.Serve(listener) //nolint:errcheck // it ends with the engine
	_, port, _ := net.SplitHostPort(listener.Addr().String())

	got := browse(t, browser, port)
	want := map[string]string{}
	for name := range got {
		want[name] = "nothing"
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 12 {
		t.Errorf("%d attempts; nothing (-), what the page got (+):\n%s", len(got), diff)
	}
	if info, err := e.Do(t.Context(), "INFO", "commandstats"); err != nil || info.String() != "# Commandstats\r\n" {
		t.Errorf("commands were run: %v, %v", info, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(log) == 0 || !strings.Contains(log[0], "Possible SECURITY ATTACK") {
		t.Errorf("the log: %q", log)
	}
}

// findBrowser returns a browser of Chromium's family. It is 300 MB, so nobody has to have one.
func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("BROWSER"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && name != "" {
			return path
		}
	}
	t.Skip("there is no browser: apt-get install chromium, or set BROWSER to a Chromium or Chrome")
	return ""
}
