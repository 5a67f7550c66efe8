package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The pages in a real browser, which is told what to do by its DevTools protocol: JSON over two pipes.
//
// With SIGNALBOX_SCREENSHOTS=1 the test takes the pictures of docs/contact-centre.md anew.

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

// browser is a headless one.
type browser struct {
	t       *testing.T
	to      *os.File
	pipe    *os.File // what it says
	from    *bufio.Reader
	last    int
	session string
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	itsIn, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, itsOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(findBrowser(t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--no-first-run", "--disable-background-networking", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir())
	cmd.ExtraFiles = []*os.File{itsIn, itsOut} // 3 and 4 there
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = itsIn.Close(), itsOut.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		impatient := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() }) // it may have ended
		_, _ = to.Close(), cmd.Wait()
		impatient.Stop()
		_ = from.Close()
		if t.Failed() {
			t.Logf("the browser: %s", said.String())
		}
	})
	b := &browser{t: t, to: to, pipe: from, from: bufio.NewReader(from)}
	var target struct{ TargetID string }
	b.must("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.must("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	return b
}

// call calls a method and reads its result. What the browser tells besides is passed over. It answers soon, or never.
func (b *browser) call(method string, params map[string]any, result any) error {
	b.last++
	message, err := json.Marshal(map[string]any{"id": b.last, "method": method, "params": params, "sessionId": b.session})
	if err != nil {
		return err
	}
	if b.session == "" {
		message = bytes.Replace(message, []byte(`,"sessionId":""`), nil, 1)
	}
	soon := time.Now().Add(patience)
	if err := errors.Join(b.to.SetWriteDeadline(soon), b.pipe.SetReadDeadline(soon)); err != nil {
		return err
	}
	if _, err := b.to.Write(append(message, 0)); err != nil {
		return err
	}
	for {
		line, err := b.from.ReadBytes(0)
		if err != nil {
			return err
		}
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		switch err := json.Unmarshal(bytes.TrimSuffix(line, []byte{0}), &answer); {
		case err != nil:
			return err
		case answer.ID != b.last:
		case answer.Error != nil:
			return fmt.Errorf("%s: %s", method, answer.Error.Message)
		case result == nil:
			return nil
		default:
			return json.Unmarshal(answer.Result, result)
		}
	}
}

func (b *browser) must(method string, params map[string]any, result any) {
	b.t.Helper()
	if err := b.call(method, params, result); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
}

// evaluated is what an expression was.
type evaluated struct {
	Result           struct{ Value any }
	ExceptionDetails *struct{ Text string }
}

// evaluate has the page evaluate an expression, and wait for it if it is a promise.
func (b *browser) evaluate(expression string) (got evaluated, err error) {
	err = b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &got)
	return got, err
}

// until waits until an expression is true on the page, whatever page that is by then, and returns its value. The page looks for
// a second at a time, so that each call is answered soon.
func (b *browser) until(expression string) any {
	b.t.Helper()
	script := fmt.Sprintf(`new Promise(done => { const end = Date.now() + 1000, look = () => {
		const v = (%s); v || Date.now() > end ? done(v) : setTimeout(look, 20) }; look() })`, expression)
	for giveUp := time.Now().Add(patience); ; {
		got, err := b.evaluate(script)
		switch {
		case err != nil && !strings.Contains(err.Error(), "Inspected target navigated") &&
			!strings.Contains(err.Error(), "context") && !strings.Contains(err.Error(), "Promise was collected"):
			b.t.Fatalf("%s: %v", expression, err)
		case err == nil && got.ExceptionDetails != nil:
			b.t.Fatalf("%s: %s", expression, got.ExceptionDetails.Text)
		case err == nil && got.Result.Value != nil && got.Result.Value != false && got.Result.Value != "" && got.Result.Value != 0.0:
			return got.Result.Value
		case time.Now().After(giveUp):
			b.t.Fatalf("not within %v: %s\n%s", patience, expression, b.says())
		}
	}
}

// says is what the page says, for who has waited for something else.
func (b *browser) says() string {
	got, err := b.evaluate(`location.href + '\n' + document.body.innerText`)
	if err != nil || got.ExceptionDetails != nil {
		return fmt.Sprintf("the page says nothing: %v, %+v", err, got.ExceptionDetails)
	}
	return fmt.Sprintf("the page says: %v", got.Result.Value)
}

func (b *browser) open(url string) {
	b.t.Helper()
	b.must("Page.navigate", map[string]any{"url": url}, nil)
	b.until(fmt.Sprintf("document.readyState === 'complete' && location.href.startsWith(%q)", url))
}

// picture takes one of the page, of at most 256 colours, since flat pages need no more.
func (b *browser) picture(name string, width, height int) {
	b.t.Helper()
	b.must("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	var shot struct{ Data []byte }
	b.must("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	full, err := png.Decode(bytes.NewReader(shot.Data))
	if err != nil {
		b.t.Fatal(err)
	}
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&small, paletted(full)); err != nil {
		b.t.Fatal(err)
	}
	if small.Len() >= 150<<10 {
		b.t.Errorf("%s has %d bytes", name, small.Len())
	}
	if err := os.WriteFile(filepath.Join("..", "..", "docs", name), small.Bytes(), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// paletted is an image in its 256 most frequent colours.
func paletted(full image.Image) *image.Paletted {
	often := map[color.Color]int{}
	bounds := full.Bounds()
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			often[full.At(x, y)]++
		}
	}
	palette := color.Palette{}
	for c := range often {
		palette = append(palette, c)
	}
	slices.SortFunc(palette, func(a, b color.Color) int { return often[b] - often[a] })
	out := image.NewPaletted(bounds, palette[:min(len(palette), 256)])
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			out.Set(x, y, full.At(x, y))
		}
	}
	return out
}

// An agent logs in, accepts and finishes a task in a browser, and the supervisor's page shows it without being loaded again.
func TestInABrowser(t *testing.T) {
	t.Parallel()
	pictures := os.Getenv("SIGNALBOX_SCREENSHOTS") != ""
	flags := []string{"--agents", "0", "--speed", "20", "--offer-for", "1m", "--calls", "0", "--chats", "0", "--emails", "4"}
	if pictures {
		flags = []string{"--agents", "7", "--speed", "20", "--offer-for", "2m", "--calls", "2.6", "--chats", "2.6", "--chaos"}
	}
	agent, supervisor := startBrowser(t), startBrowser(t)
	o := openCentre(t, flags...)
	supervisor.open(o.at + "/supervisor")
	agent.open(o.at + "/")
	agent.until(`document.querySelector('#name').value = 'Nora', document.querySelector('#login').click(), true`)
	agent.until(`document.querySelector('#offers')`)
	agent.until(`document.querySelector('[id^=accept-]')`)
	if pictures {
		supervisor.until(`+document.querySelector('.sum b').textContent >= 60 && document.querySelectorAll('.log li').length > 3`)
		supervisor.picture("contact-centre-supervisor.png", 1280, 1120)
	}
	agent.until(`(button => button && (button.click(), true))(document.querySelector('[id^=accept-]'))`)
	agent.until(`document.querySelector('[id^=finish-]')`)
	if pictures {
		agent.until(`document.querySelector('[id^=accept-]')`)
		agent.picture("contact-centre-agent.png", 720, 380)
	}
	supervisor.until(`[...document.querySelectorAll('tbody tr')].find(row => row.querySelector('th')?.textContent.includes('Nora'))`)
	agent.until(`document.querySelector('[id^=finish-]').click(), true`)
	supervisor.until(`+document.querySelectorAll('.sum b')[1].textContent >= 1`)
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
}
