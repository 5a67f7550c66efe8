package tidytest

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Go that a page shows parses, and names what exists. What a block leaves out is an ellipsis, …, in it.

var (
	goBlock   = regexp.MustCompile("(?ms)^```go\n(.*?)^```")
	imported  = regexp.MustCompile(`(?m)^import ".*$`)
	ellipsis  = regexp.MustCompile(`,?\s*…,?`)
	qualified = regexp.MustCompile(`\b(signalbox|autocomplete|embedded|queue|queuetest|outbox|metrics|tracing|logging|rueidisbox)\.([A-Z]\w*)`)
)

func TestDocsShowGoThatParses(t *testing.T) {
	blocks := 0
	walk(t, root(t), ".md", func(path string) {
		if strings.Contains(path, "/testdata/") || strings.Contains(path, "/bench/results/") {
			return
		}
		for _, m := range goBlock.FindAllStringSubmatch(read(t, path), -1) {
			blocks++
			if err := parses(ellipsis.ReplaceAllString(imported.ReplaceAllString(m[1], ""), "")); err != nil {
				t.Errorf("%s shows Go that does not parse: %v\n%s", path, err, m[1])
			}
		}
	})
	if blocks < 30 {
		t.Errorf("only %d blocks found: has something moved?", blocks)
	}
}

// parses tries a block as a file, as declarations, and as statements; the error is that of the last.
func parses(text string) (err error) {
	for _, whole := range []string{text, "package p\n" + text, "package p\nfunc f() {\n" + text + "\n}"} {
		if _, err = parser.ParseFile(token.NewFileSet(), "block.go", whole, parser.SkipObjectResolution); err == nil {
			return nil
		}
	}
	return err
}

func TestDocsNameGoThatExists(t *testing.T) {
	base, named := root(t), 0
	exported := make(map[string]map[string]bool)
	for name, dir := range map[string]string{
		"signalbox": "", "autocomplete": "autocomplete", "embedded": "embedded", "queue": "queue", "queuetest": "queue/queuetest",
		"outbox": "queue/outbox", "metrics": "metrics", "tracing": "tracing", "logging": "logging", "rueidisbox": "rueidisbox",
	} {
		exported[name] = identifiers(t, filepath.Join(base, dir))
	}
	walk(t, base, ".md", func(path string) {
		if strings.HasPrefix(path, filepath.Join(base, "clients")+string(filepath.Separator)) { // other languages have the same names for something else
			return
		}
		for _, m := range qualified.FindAllStringSubmatch(read(t, path), -1) {
			if named++; !exported[m[1]][m[2]] {
				t.Errorf("%s names %s, which does not exist", path, m[0])
			}
		}
	})
	if named < 100 {
		t.Errorf("only %d names found: has something moved?", named)
	}
}
