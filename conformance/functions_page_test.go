package conformance_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// The worked example of docs/functions.md is typed into redis-cli, and what the page shows is what comes. A line
// "a> COMMAND" is one of the shell a, what follows is the reply. "b>" alone reads on in a shell that has subscribed.
func TestThePageOnFunctionsShowsWhatHappens(t *testing.T) {
	addr := difftest.Redis(t).Addr
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	if _, err := ledger.New(goredis.New(client)).InstallFunctions(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, done := context.WithTimeout(t.Context(), 20*time.Second)
	defer done()
	shells := shells{t, ctx, addr, map[string]*bufio.Reader{}}
	examples := readExamples(t, "../docs/functions.md")
	if len(examples) < 12 {
		t.Fatalf("found %d requests: has the page changed its form?", len(examples))
	}
	for _, e := range examples {
		if got := settled(shells.answer(e)); got != settled(e.reply) {
			t.Errorf("%s> %s\ngot\n%s\nthe page says\n%s", e.shell, e.request, got, settled(e.reply))
		}
	}
}

// example is a request of the page and its reply.
type example struct{ shell, request, reply string }

var promptLine = regexp.MustCompile(`^(\w+)>(?: (.*))?$`)

func readExamples(t *testing.T, path string) []example {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []example
	for _, block := range strings.Split(string(text), "```console\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			if match := promptLine.FindStringSubmatch(strings.TrimSpace(line)); match != nil {
				found = append(found, example{match[1], match[2], ""})
			} else {
				found[len(found)-1].reply += line
			}
		}
	}
	return found
}

// settled is a text without what is different each time: tokens, clocks, and what is counted from them.
func settled(text string) string {
	return regexp.MustCompile(`\b\d{5,}\b`).ReplaceAllString(strings.TrimSpace(text), "#")
}

type shells struct {
	t      *testing.T
	ctx    context.Context
	addr   string
	reader map[string]*bufio.Reader // of those that have subscribed
}

func (s *shells) answer(e example) string {
	s.t.Helper()
	if strings.HasPrefix(e.request, "SUBSCRIBE ") {
		s.subscribe(e)
	}
	if reader := s.reader[e.shell]; reader != nil {
		var text strings.Builder
		for range strings.Count(e.reply, "\n") {
			line, err := reader.ReadString('\n')
			if err != nil {
				s.t.Fatal(err)
			}
			text.WriteString(line)
		}
		return text.String()
	}
	cmd := s.cli(e.shell)
	cmd.Stdin = strings.NewReader(e.request + "\n")
	output, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v: %s", err, output)
	}
	return string(output)
}

func (s *shells) cli(shell string, args ...string) *exec.Cmd {
	port := s.addr[strings.LastIndexByte(s.addr, ':')+1:]
	account := []string{"-p", port, "--no-raw", "--no-auth-warning"}
	if shell != "admin" {
		account = append(account, "--user", "worker", "--pass", "secret")
	}
	return exec.CommandContext(s.ctx, "redis-cli", append(account, args...)...)
}

// subscribe starts a shell that goes on reading.
func (s *shells) subscribe(e example) {
	cmd := s.cli(e.shell, strings.Fields(e.request)...)
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_, _ = io.Copy(io.Discard, output)
		_ = cmd.Wait()
	})
	s.reader[e.shell] = bufio.NewReader(output)
}
