package difftest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Markdown pages may have transcripts as well: in blocks fenced as redis, with
// replies as redis-cli shows them, which is what a reader will see who types
// the requests himself. Every heading begins with an empty server and new
// connections; the blocks below one heading go on where the last one ended.

// section is what stands below one heading.
type section struct {
	title  string
	blocks []block
}

// block is one fenced transcript.
type block struct {
	start, end int // its lines within the page, the fences left out
	entries    []entry
}

const fence = "```"

var headingLine = regexp.MustCompile(`^#+ +(.*)$`)

// parsePage finds the transcripts of a page. Sections without any are left out.
func parsePage(lines []string) ([]section, error) {
	var sections []section
	at := section{title: "(top)"}
	leave := func() {
		if len(at.blocks) > 0 {
			sections = append(sections, at)
		}
	}
	for i := 0; i < len(lines); i++ {
		if m := headingLine.FindStringSubmatch(lines[i]); m != nil {
			leave()
			at = section{title: m[1]}
			continue
		}
		kind, opens := strings.CutPrefix(lines[i], fence)
		if !opens {
			continue
		}
		start := i + 1
		for i = start; i < len(lines) && lines[i] != fence; i++ {
		}
		if i == len(lines) {
			return nil, fmt.Errorf("line %d: a block has no end", start)
		}
		if kind != "redis" {
			continue
		}
		b, err := parseBlock(lines, start, i)
		if err != nil {
			return nil, err
		}
		at.blocks = append(at.blocks, b)
	}
	leave()
	if len(sections) == 0 {
		return nil, errors.New("no block is fenced as redis")
	}
	return sections, nil
}

func parseBlock(lines []string, start, end int) (block, error) {
	entries, err := parse(strings.Join(lines[start:end], "\n"))
	if err != nil {
		return block{}, fmt.Errorf("the block after line %d: %w", start, err)
	}
	for i := range entries {
		entries[i].line += start
		entries[i].mode.shell = true
	}
	return block{start, end, entries}, nil
}

// play plays the section on a server that it empties first.
func (s section) play(dial Dial) ([]string, error) {
	if err := flush(dial); err != nil {
		return nil, err
	}
	return play(s.entries(), dial)
}

// flush empties a server.
func flush(dial Dial) error {
	conn, err := Connect(dial)
	if err != nil {
		return err
	}
	_, err = conn.Do("FLUSHALL")
	return errors.Join(err, conn.Close())
}

func (s section) entries() []entry {
	var entries []entry
	for _, b := range s.blocks {
		entries = append(entries, b.entries...)
	}
	return entries
}

// Pages plays the transcripts of every Markdown page that the pattern matches
// and that has any, each page against a server of its own, each section as a
// subtest. It fails for replies that differ from the page.
func Pages(t *testing.T, pattern string, target func(testing.TB) Dial) {
	for _, path := range pagePaths(t, pattern) {
		t.Run(pageName(path), func(t *testing.T) {
			t.Parallel()
			_, sections := readPage(t, path)
			dial := target(t)
			for _, s := range sections {
				t.Run(s.title, func(t *testing.T) {
					replies, err := s.play(dial)
					compareReplies(t, path, s.entries(), replies)
					if err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

// RecordPages plays them against a redis-server of its own and writes the
// replies into the pages.
func RecordPages(t *testing.T, pattern string) {
	for _, path := range pagePaths(t, pattern) {
		t.Run(pageName(path), func(t *testing.T) {
			lines, sections := readPage(t, path)
			server := Redis(t)
			refuseImpostor(t, server)
			var b strings.Builder
			written := 0
			for _, s := range sections {
				replies, err := s.play(server.Dial)
				if err != nil {
					t.Fatalf("%s, %s: not changed: %v", path, s.title, err)
				}
				for _, block := range s.blocks {
					writeLines(&b, lines[written:block.start])
					writeEntries(&b, block.entries, replies)
					replies, written = replies[len(block.entries):], block.end
				}
			}
			writeLines(&b, lines[written:])
			if err := os.WriteFile(path, []byte(strings.TrimRight(b.String(), "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func readPage(t *testing.T, path string) (lines []string, sections []section) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines = strings.Split(string(text), "\n")
	sections, err = parsePage(lines)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return lines, sections
}

// pagePaths lists the pages that have a transcript, at least one.
func pagePaths(t *testing.T, pattern string) []string {
	t.Helper()
	var paths []string
	all, err := filepath.Glob(pattern)
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\n"+fence+"redis\n") {
			paths = append(paths, path)
		}
	}
	if err != nil || len(paths) == 0 {
		t.Fatalf("no pages with transcripts match %s (%v)", pattern, err)
	}
	return paths
}

func pageName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".md") }
