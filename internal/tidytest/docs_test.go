package tidytest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What a page of documentation names must exist: the target of each relative link with its heading, each test or example
// in backquotes, and each subtest of the conformance suite ("suite `L1 limit`"; one that ends with … is a beginning).

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	named     = regexp.MustCompile("`((?:Test|Example)[A-Z]\\w*)`")
	suite     = regexp.MustCompile("(?s)[Ss]uites?((?:,?\\s+`[^`]+`)+)")
	quoted    = regexp.MustCompile("`([^`]+)`")
	fences    = regexp.MustCompile("(?ms)^```.*?^```")
	heading   = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	unspoken  = regexp.MustCompile(`[^\pL\pN _-]`)
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Example)\w*)\(`)
	subtest   = regexp.MustCompile(`(?m)^\s+"([^"]+)":\s+\w+,`)
	elsewhere = regexp.MustCompile(`^(https?:|mailto:)`)
)

func TestDocsNameWhatExists(t *testing.T) {
	base := root(t)
	tests, subtests := whatIsTested(t, base)
	pages := 0
	walk(t, base, ".md", func(path string) {
		if strings.Contains(path, "/testdata/") || strings.Contains(path, "/bench/results/") {
			return
		}
		pages++
		text := fences.ReplaceAllString(read(t, path), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			checkLink(t, path, m[1])
		}
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if !tests[m[1]] {
				t.Errorf("%s names %s, which does not exist", path, m[1])
			}
		}
		for _, m := range suite.FindAllStringSubmatch(text, -1) {
			for _, name := range quoted.FindAllStringSubmatch(m[1], -1) {
				if !known(subtests, name[1]) && !tests[name[1]] {
					t.Errorf("%s names the subtest %q, which does not exist", path, name[1])
				}
			}
		}
	})
	if pages < 5 || len(tests) == 0 || len(subtests) == 0 {
		t.Errorf("%d pages, %d tests, %d subtests found: has something moved?", pages, len(tests), len(subtests))
	}
}

func checkLink(t *testing.T, page, target string) {
	t.Helper()
	if elsewhere.MatchString(target) {
		return
	}
	file, anchor, _ := strings.Cut(target, "#")
	path := page
	if file != "" {
		path = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("%s links to %s, which does not exist", page, target)
		return
	}
	if anchor == "" || filepath.Ext(path) != ".md" {
		return
	}
	for _, m := range heading.FindAllStringSubmatch(fences.ReplaceAllString(read(t, path), ""), -1) {
		if strings.ReplaceAll(unspoken.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-") == anchor {
			return
		}
	}
	t.Errorf("%s links to %s, and there is no such heading", page, target)
}

func known(subtests map[string]bool, name string) bool {
	beginning, cut := strings.CutSuffix(name, "…")
	if !cut {
		return subtests[name]
	}
	for other := range subtests {
		if strings.HasPrefix(other, strings.TrimSpace(beginning)) {
			return true
		}
	}
	return false
}

func whatIsTested(t *testing.T, base string) (tests, subtests map[string]bool) {
	t.Helper()
	tests, subtests = make(map[string]bool), make(map[string]bool)
	walk(t, base, ".go", func(path string) {
		text := read(t, path)
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range testFunc.FindAllStringSubmatch(text, -1) {
				tests[m[1]] = true
			}
		}
		if filepath.Base(filepath.Dir(path)) == "conformance" {
			for _, m := range subtest.FindAllStringSubmatch(text, -1) {
				subtests[m[1]] = true
			}
		}
	})
	return tests, subtests
}

// walk visits the repository's files of a kind, nested modules too.
func walk(t *testing.T, base, ext string, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(base, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != base && (strings.HasPrefix(name, ".") || name == "node_modules"):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(name, ext):
			visit(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
