package lua

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// The transcripts in testdata hold scripts and what a real Redis 7.0.15
// answered to them:
//
//	# why this case is there
//	@ proto=3 keys=a,b args=x
//	> return 1
//	< ":1\r\n"
//	~ ":2\r\n"
//
// Only the server writes "<": RECORD_REDIS=host:port go test -run Transcripts
// fills them in (the server wants enable-debug-command yes). "~" is where
// this package answers otherwise on purpose, after a comment that says why.

type transcript struct {
	comments   []string
	proto      int
	keys, args []string
	options    string
	script     []string
	want, ours string
	hasOurs    bool
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			cases := readTranscripts(t, file)
			if addr := os.Getenv("RECORD_REDIS"); addr != "" {
				record(t, addr, cases)
				writeTranscripts(t, file, cases)
			}
			vm := New(nil)
			defer vm.Close()
			for _, c := range cases {
				c.check(t, vm)
			}
			for _, c := range cases { // a script that is known has its functions already
				if !strings.Contains(strings.Join(c.script, " "), "math.random") {
					c.check(t, vm)
				}
			}
		})
	}
}

func (c *transcript) check(t *testing.T, vm *VM) {
	t.Helper()
	want := c.want
	if c.hasOurs {
		want = c.ours
	}
	if got := c.run(vm); got != want {
		t.Errorf("%s\n got %q\nwant %q", strings.Join(c.script, "\n"), got, want)
	}
}

func (c *transcript) run(vm *VM) string {
	out := resp.Writer{Proto: c.proto}
	script, err := vm.Load([]byte(strings.Join(c.script, "\n")))
	if err != nil {
		out.Error(err.Error())
		return string(out.Bytes())
	}
	vm.Run(newFakeHost(), script, byteSlices(c.keys), byteSlices(c.args), &out)
	return string(out.Bytes())
}

func byteSlices(texts []string) [][]byte {
	out := make([][]byte, len(texts))
	for i, s := range texts {
		out[i] = []byte(s)
	}
	return out
}

func readTranscripts(t *testing.T, file string) []*transcript {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []*transcript
	c := &transcript{proto: 2}
	flush := func() {
		if len(c.script) > 0 {
			cases = append(cases, c)
			c = &transcript{proto: 2}
		}
	}
	for n, line := range strings.Split(string(data), "\n") {
		mark, rest, _ := strings.Cut(line, " ")
		if mark != ">" && mark != "<" && mark != "~" || mark == ">" && c.want != "" {
			flush()
		}
		var err error
		switch mark {
		case "#":
			c.comments = append(c.comments, rest)
		case "@":
			c.setOptions(rest)
		case ">":
			c.script = append(c.script, rest)
		case "<":
			c.want, err = strconv.Unquote(rest)
		case "~":
			c.ours, err = strconv.Unquote(rest)
			c.hasOurs = true
		case "":
		default:
			err = fmt.Errorf("unknown mark %q", mark)
		}
		if err != nil {
			t.Fatalf("%s:%d: %v", file, n+1, err)
		}
	}
	flush()
	return cases
}

func (c *transcript) setOptions(text string) {
	c.options = text
	for _, option := range strings.Fields(text) {
		name, value, _ := strings.Cut(option, "=")
		switch name {
		case "proto":
			c.proto, _ = strconv.Atoi(value)
		case "keys":
			c.keys = strings.Split(value, ",")
		case "args":
			c.args = strings.Split(value, ",")
		}
	}
}

func writeTranscripts(t *testing.T, file string, cases []*transcript) {
	t.Helper()
	var b strings.Builder
	for i, c := range cases {
		if i > 0 {
			b.WriteByte('\n')
		}
		for _, comment := range c.comments {
			b.WriteString("# " + comment + "\n")
		}
		if c.options != "" {
			b.WriteString("@ " + c.options + "\n")
		}
		for _, line := range c.script {
			b.WriteString("> " + line + "\n")
		}
		b.WriteString("< " + strconv.Quote(c.want) + "\n")
		if c.hasOurs {
			b.WriteString("~ " + strconv.Quote(c.ours) + "\n")
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// record asks the server for the answer to every case.
func record(t *testing.T, addr string, cases []*transcript) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	for _, c := range cases {
		ask(t, conn, reader, "HELLO", strconv.Itoa(c.proto))
		ask(t, conn, reader, "FLUSHALL")
		words := []string{"EVAL", strings.Join(c.script, "\n"), strconv.Itoa(len(c.keys))}
		c.want = ask(t, conn, reader, append(append(words, c.keys...), c.args...)...)
	}
}

func ask(t *testing.T, conn net.Conn, reader *bufio.Reader, words ...string) string {
	t.Helper()
	if _, err := conn.Write(resp.AppendCommand(nil, words...)); err != nil {
		t.Fatal(err)
	}
	var reply []byte
	for {
		b, err := reader.ReadByte()
		if err != nil {
			t.Fatalf("%q: %v", words, err)
		}
		reply = append(reply, b)
		if b != '\n' {
			continue
		}
		if _, n, err := resp.Parse(reply); err == nil && n == len(reply) {
			return string(reply)
		}
	}
}
