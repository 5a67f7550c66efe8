package difftest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A transcript is parsed into entries, one for each request, awaited reply or
// acting directive, which keep the lines they were written in, so that a
// recording changes nothing but replies.

// entryKind says what an entry does.
type entryKind int

const (
	request entryKind = iota
	reception
	action
	remark // the end of the file: nothing to do
)

// entry is one step of a transcript.
type entry struct {
	kind  entryKind
	lines []string // as written, remarks and directives before it included
	line  int      // number of the last of them

	conn     string
	words    []string // of a request or an action
	mode     mode
	match    *regexp.Regexp
	again    bool  // until it matches
	within   int64 // by how much an integer may be less than expected
	blocks   bool
	silent   bool
	raw      bool
	expected []string // the reply's lines
}

var (
	stepLine   = regexp.MustCompile(`^(\w*)([<>])(?: (.*))?$`)
	idWord     = regexp.MustCompile(`^\{id:(\w+)\}$`)
	rangeWord  = regexp.MustCompile(`^\{(-?\d+)\.\.(-?\d+)(?::(.*))?\}$`)
	repeatWord = regexp.MustCompile(`^\{(\d+)\*(.*)\}$`)
)

// parse reads a transcript.
func parse(text string) ([]entry, error) {
	var entries []entry
	var next entry
	open := false // whether reply lines may follow
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		var err error
		done := false
		switch step := stepLine.FindStringSubmatch(line); {
		case step != nil:
			err = next.begin(step[1], step[2], step[3])
			done, open = true, true
		case strings.HasPrefix(line, "# "):
			done, err = next.direct(strings.TrimPrefix(line, "# "))
			open = false
		case line == "" || strings.HasPrefix(line, "//"):
			open = false
		case open:
			last := &entries[len(entries)-1]
			last.expected = append(last.expected, line)
			continue
		default:
			err = errors.New("a reply without a request")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		next.lines, next.line = append(next.lines, line), i+1
		if done {
			entries = append(entries, next)
			next = entry{}
		}
	}
	next.kind = remark
	return append(entries, next), nil
}

// begin makes the entry a request or a reception.
func (e *entry) begin(conn, direction, rest string) error {
	e.conn = conn
	if conn == "" {
		e.conn = "c1"
	}
	if direction == "<" {
		e.kind = reception
		if rest != "" {
			return errors.New("the reply belongs on the lines below")
		}
		return nil
	}
	words, err := split(rest)
	if err == nil && len(words) == 0 {
		err = errors.New("an empty request")
	}
	if err == nil && e.raw && len(words) != 1 {
		err = errors.New("a raw request is one quoted word")
	}
	e.words = words
	return err
}

// direct applies a directive. It reports whether that acts by itself.
func (e *entry) direct(text string) (acts bool, err error) {
	name, argument, _ := strings.Cut(text, " ")
	switch name {
	case "sorted":
		e.mode.sorted = true
	case "pairs":
		e.mode.pairs = true
	case "loose":
		e.mode.loose = true
	case "match", "await":
		e.match, err = regexp.Compile(argument)
		e.again = name == "await"
	case "within":
		e.within, err = strconv.ParseInt(argument, 10, 64)
	case "blocks":
		e.blocks = true
	case "silent":
		e.silent = true
	case "raw":
		e.raw = true
	case "flush", "proto", "close":
		e.kind, e.words = action, []string{name, argument}
		return true, nil
	default:
		err = fmt.Errorf("unknown directive %q", name)
	}
	return false, err
}

// matched is what a reply reads that has to match.
const matched = "(match)"

// show writes a reply as the entry wants it compared.
func (e *entry) show(v Value) string {
	if e.match != nil {
		if e.match.MatchString(v.String()) {
			return matched
		}
		return v.String()
	}
	if e.within > 0 && v.Kind == Integer && len(e.expected) == 1 {
		number := e.expected[0][strings.LastIndexAny(e.expected[0], ": ")+1:]
		want, wantErr := strconv.ParseInt(number, 10, 64)
		got, gotErr := strconv.ParseInt(v.Text, 10, 64)
		if wantErr == nil && gotErr == nil && want-e.within <= got && got <= want {
			return e.expected[0]
		}
	}
	return v.format(e.mode)
}

// Words splits a line as redis-cli does; see the package comment.
func Words(line string) ([]string, error) { return split(line) }

// split splits a request into words as redis-cli does and expands bare words
// in braces. {id:name} is left for the player to fill in.
func split(line string) ([]string, error) {
	var words []string
	for {
		line = strings.TrimLeft(line, " ")
		if line == "" {
			return words, nil
		}
		switch line[0] {
		case '"', '\'':
			word, rest, err := unquote(line)
			if err != nil {
				return nil, err
			}
			words, line = append(words, word), rest
		default:
			word, rest, _ := strings.Cut(line, " ")
			words, line = append(words, expand(word)...), rest
		}
	}
}

// unquote takes a quoted word off the start of a line.
func unquote(line string) (word, rest string, err error) {
	var b strings.Builder
	mark := line[0]
	for i := 1; i < len(line); i++ {
		c := line[i]
		switch {
		case c == mark:
			if i+1 < len(line) && line[i+1] != ' ' {
				return "", "", errors.New("a quoted word has to end at a space")
			}
			return b.String(), line[i+1:], nil
		case c == '\\' && mark == '"' && i+3 < len(line) && line[i+1] == 'x':
			n, err := strconv.ParseUint(line[i+2:i+4], 16, 8)
			if err != nil {
				return "", "", err
			}
			b.WriteByte(byte(n))
			i += 3
		case c == '\\' && i+1 < len(line) && (mark == '"' || line[i+1] == '\''):
			i++
			b.WriteByte(unescape(line[i]))
		default:
			b.WriteByte(c)
		}
	}
	return "", "", errors.New("an unbalanced quote")
}

func unescape(c byte) byte {
	if i := strings.IndexByte("nrtba", c); i >= 0 {
		return "\n\r\t\b\a"[i]
	}
	return c
}

// expand resolves the words that stand for several or for long ones.
func expand(word string) []string {
	if m := repeatWord.FindStringSubmatch(word); m != nil {
		n, _ := strconv.Atoi(m[1]) // digits by the pattern
		return []string{strings.Repeat(m[2], n)}
	}
	m := rangeWord.FindStringSubmatch(word)
	if m == nil {
		return []string{word}
	}
	from, _ := strconv.Atoi(m[1])
	to, _ := strconv.Atoi(m[2])
	pattern := m[3]
	if pattern == "" {
		pattern = "%"
	}
	var words []string
	for i := from; i <= to; i++ {
		words = append(words, strings.Split(strings.ReplaceAll(pattern, "%", strconv.Itoa(i)), ",")...)
	}
	return words
}

// Transcripts plays every transcript that the pattern matches, each as a
// subtest against a server of its own, and fails for replies that differ from
// the file. The target starts a server for one subtest.
func Transcripts(t *testing.T, pattern string, target func(testing.TB) Dial) {
	for _, path := range transcriptPaths(t, pattern) {
		t.Run(transcriptName(path), func(t *testing.T) {
			t.Parallel()
			entries := readTranscript(t, path)
			replies, err := play(entries, target(t))
			compareReplies(t, path, entries, replies)
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// compareReplies fails the test for each reply that is not the entry's.
func compareReplies(t *testing.T, path string, entries []entry, replies []string) {
	t.Helper()
	for _, d := range differences(entries, replies) {
		t.Errorf("%s:%s", path, d)
	}
}

// differences describes them, each beginning with its line, up to the first
// reply that is missing.
func differences(entries []entry, replies []string) (found []string) {
	for i, e := range entries {
		got := "(no reply)"
		if i < len(replies) {
			got = replies[i]
		}
		if want := strings.Join(e.expected, "\n"); got != want {
			found = append(found, fmt.Sprintf("%d: %s\n-- got\n%s\n-- want\n%s", e.line, e.lines[len(e.lines)-1], got, want))
		}
		if i >= len(replies) {
			break
		}
	}
	return found
}

// Record plays every transcript that the pattern matches against a
// redis-server of its own and writes the replies into the file. The extra
// arguments are the server's.
func Record(t *testing.T, pattern string, extraArgs ...string) {
	for _, path := range transcriptPaths(t, pattern) {
		t.Run(transcriptName(path), func(t *testing.T) {
			server := Redis(t, extraArgs...)
			refuseImpostor(t, server)
			entries := readTranscript(t, path)
			replies, err := play(entries, server.Dial)
			if err != nil {
				t.Fatalf("%s is not changed: %v", path, err)
			}
			var b strings.Builder
			writeEntries(&b, entries, replies)
			if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// writeEntries writes entries as they were written, with the given replies.
func writeEntries(b *strings.Builder, entries []entry, replies []string) {
	for i, e := range entries {
		writeLines(b, e.lines)
		if replies[i] != "" {
			b.WriteString(replies[i] + "\n")
		}
	}
}

func writeLines(b *strings.Builder, lines []string) {
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
}

// refuseImpostor fails the test unless the server is the process that we
// started, and a Redis 7.0.
func refuseImpostor(t *testing.T, server *Server) {
	t.Helper()
	conn, err := Connect(server.Dial)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	info, err := conn.Do("INFO", "server")
	if err != nil {
		t.Fatal(err)
	}
	process := fmt.Sprintf("\r\nprocess_id:%d\r\n", server.process.Pid)
	if !strings.Contains(info.Text, "redis_version:7.0.") || !strings.Contains(info.Text, process) {
		t.Fatalf("replies are only recorded from a redis-server 7.0 started here, not from:\n%s", info.Text)
	}
}

// transcriptPaths lists the files, at least one.
func transcriptPaths(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts match %s (%v)", pattern, err)
	}
	return paths
}

func transcriptName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), ".txt")
}

func readTranscript(t *testing.T, path string) []entry {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return entries
}
