package classic_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The guides docs/book/failover.md and chains.md are run as they stand: every
// line after "$ " of their console blocks, on real servers, section by section,
// and what it prints is compared with the lines that follow. Only where the
// machines are is replaced, and what systemctl does to them is done by the test.

// machines are the servers of a guide by the letter of their name.
type machines struct {
	t       *testing.T
	kind    string
	servers map[string]*server
	kill    map[string]func()
	dirs    map[string]string
}

// machinesOf starts a, and b as its replica, with one key that must survive.
func machinesOf(t *testing.T, kind string) *machines {
	t.Helper()
	m := &machines{t, kind, map[string]*server{}, map[string]func(){}, map[string]string{}}
	m.start("a")
	m.start("b")
	a := m.servers["a"]
	must(t, a.admin.Set(t.Context(), "kept", "yes", 0).Err())
	follow(t, m.servers["b"], a)
	for !strings.Contains(a.admin.Info(t.Context(), "replication").Val(), "state=online") {
		must(t, t.Context().Err()) // the replica has its link before its primary counts on it
	}
	return m
}

// start starts a machine's server on the data that it has, as a server of
// another port if it ran before.
func (m *machines) start(name string) {
	m.t.Helper()
	if m.dirs[name] == "" {
		m.dirs[name] = m.t.TempDir()
	}
	m.servers[name], m.kill[name] = listening(m.t, m.kind, m.dirs[name])
}

// run runs a line of the guide and returns what it prints.
func (m *machines) run(line string) string {
	m.t.Helper()
	if words := strings.Fields(line); len(words) == 5 && words[0] == "ssh" && words[2] == "systemctl" && words[3] == "start" {
		m.start(words[1][:1])
		return ""
	}
	for name, dir := range m.dirs {
		line = strings.ReplaceAll(line, "ssh "+name+".example redis-check-rdb /var/lib/redis", "redis-check-rdb "+dir)
		line = strings.ReplaceAll(line, name+".example:/var/lib/redis", dir)
	}
	line = strings.ReplaceAll(line, "scp ", "cp ")
	for name, s := range m.servers {
		host, port, err := net.SplitHostPort(s.addr)
		must(m.t, err)
		line = strings.ReplaceAll(line, "redis-cli -h "+name+".example", "redis-cli --no-raw -h "+host+" -p "+port)
		line = strings.ReplaceAll(line, name+".example 6379", host+" "+port)
	}
	if strings.Contains(line, ".example") || strings.Contains(line, "ssh") {
		m.t.Fatalf("the guide says %q, which this test cannot do", line)
	}
	cmd := exec.CommandContext(m.t.Context(), "sh", "-c", line)
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return strings.TrimSpace(strings.ReplaceAll(string(out), "\r", ""))
}

// play runs the console blocks of a section.
func (m *machines) play(section string) {
	m.t.Helper()
	for _, block := range strings.Split(section, "```console\n")[1:] {
		block, _, closed := strings.Cut(block, "```")
		if !closed {
			m.t.Fatal("a console block has no end")
		}
		for _, step := range strings.Split("\n"+block, "\n$ ")[1:] {
			line, want, _ := strings.Cut(step, "\n")
			if got := m.run(line); got != strings.TrimSpace(want) {
				m.t.Fatalf("$ %s\nprints\n%s\nthe guide says\n%s", line, got, want)
			}
		}
	}
}

// sections are those of a guide, each from its heading on.
func sections(t *testing.T, page string, want int) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "book", page))
	must(t, err)
	found := strings.Split(string(text), "\n## ")[1:]
	if len(found) != want {
		t.Fatalf("%s has %d sections, the test knows %d", page, len(found), want)
	}
	return found
}

func TestFailoverGuide(t *testing.T) {
	primary := map[string]string{ // which server is the primary after each section
		"Before it happens":                        "a",
		"The primary is gone: promote the replica": "b",
		"The primary is gone: the way of the book": "c",
		"Nothing has failed: change places":        "b",
		"What it means for locks":                  "a",
	}
	for _, section := range sections(t, "failover.md", len(primary)) {
		title, _, _ := strings.Cut(section, "\n")
		onEachKind(t, title, func(t *testing.T, kind string) {
			m := machinesOf(t, kind)
			if strings.HasPrefix(title, "The primary is gone") {
				m.kill["a"]()
				for !containsLine(m.servers["b"].admin.Info(t.Context(), "replication").Val(), "master_link_status:down") {
					must(t, t.Context().Err())
				}
			}
			switch primary[title] {
			case "":
				t.Fatal("the test does not know who is the primary afterwards")
			case "b":
				m.start("c")
			case "c":
				m.dirs["c"] = t.TempDir() // no server yet
			}
			m.play(section)
			after := m.servers[primary[title]].admin
			if role := after.Do(t.Context(), "ROLE").Val().([]any)[0]; role != "master" {
				t.Errorf("%s.example is a %v, want the primary", primary[title], role)
			}
			if kept := after.Get(t.Context(), "kept").Val(); kept != "yes" {
				t.Errorf("the data is gone: %q", kept)
			}
		})
	}
}

func TestChainsGuide(t *testing.T) {
	for _, section := range sections(t, "chains.md", 4) {
		title, _, _ := strings.Cut(section, "\n")
		onEachKind(t, title, func(t *testing.T, kind string) {
			m := machinesOf(t, kind)
			m.start("c")
			m.play(section)
		})
	}
}
