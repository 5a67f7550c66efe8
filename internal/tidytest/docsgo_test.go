package tidytest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/internal/cases"
)

// Go that a page shows compiles, and names what exists. A block is a file, declarations, or statements. What pages take for
// granted around it stands in testdata/given; what a block leaves out is an ellipsis, …, in it. That a name is not used, or
// declared twice, is no mistake: pages show alternatives, one below the other. Blocks that begin with // Example_ are parts
// of examples that run, which TestGoOfTheBookRuns holds.

var (
	goBlock   = regexp.MustCompile("(?ms)^```go\n(.*?)^```")
	imported  = regexp.MustCompile(`(?m)^import ".*$`)
	qualified = regexp.MustCompile(`\b(signalbox|autocomplete|embedded|queue|queuetest|outbox|metrics|tracing|logging|rueidisbox)\.([A-Z]\w*)`)
)

func TestDocsShowGoThatCompiles(t *testing.T) {
	cases.NotUnderRace(t)
	base := root(t)
	c := newCompiler(t, base)
	blocks := 0
	walk(t, base, ".md", func(path string) {
		if strings.Contains(path, "/testdata/") || strings.Contains(path, "/bench/results/") {
			return
		}
		text := read(t, path)
		for _, at := range goBlock.FindAllStringSubmatchIndex(text, -1) {
			if block := text[at[2]:at[3]]; !strings.HasPrefix(block, "// Example_") {
				blocks++
				c.block(path, 1+strings.Count(text[:at[2]], "\n"), block)
			}
		}
	})
	if blocks < 30 {
		t.Errorf("only %d blocks found: has something moved?", blocks)
	}
}

// compiler checks blocks beside what is given.
type compiler struct {
	t        *testing.T
	files    *token.FileSet
	importer types.Importer
	given    *ast.File
	imports  string // of given, for each block
	shop     *types.Package
}

func newCompiler(t *testing.T, base string) *compiler {
	t.Helper()
	c := &compiler{t: t, files: token.NewFileSet()}
	c.given = c.parse(filepath.Join(base, "internal/tidytest/testdata/given/given.go"), nil)
	arguments := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, spec := range c.given.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		if path != "shop" {
			arguments = append(arguments, path)
		}
		name := ""
		if spec.Name != nil {
			name = spec.Name.Name
		}
		c.imports += fmt.Sprintf("import %s %q; ", name, path)
	}
	list := exec.Command("go", arguments...)
	list.Dir = base
	compiled, err := list.Output()
	if err != nil {
		t.Fatalf("go list -export: %v", err)
	}
	exports := make(map[string]string)
	for line := range strings.Lines(string(compiled)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	c.importer = importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	c.shop = c.check("shop", c.parse(filepath.Join(base, "internal/tidytest/testdata/shop/shop.go"), nil))
	return c
}

func (c *compiler) parse(path string, source any) *ast.File {
	c.t.Helper()
	file, err := parser.ParseFile(c.files, path, source, parser.SkipObjectResolution)
	if err != nil {
		c.t.Fatal(err)
	}
	return file
}

// Import knows the packages that were compiled, and the one that pages are about.
func (c *compiler) Import(path string) (*types.Package, error) {
	if path == "shop" {
		return c.shop, nil
	}
	return c.importer.Import(path)
}

// block checks one as the first of what it may be that parses; the error is that of the last.
func (c *compiler) block(path string, line int, text string) {
	c.t.Helper()
	text = strings.ReplaceAll(imported.ReplaceAllString(text, ""), "…", "panic(0)")
	if clause, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(clause, "package ") {
		c.check("page", c.parse(path, fmt.Sprintf("%s; %s\n//line %s:%d\n%s", clause, c.imports, path, line+1, rest)))
		return
	}
	opening := fmt.Sprintf("package given; %s", c.imports)
	where := fmt.Sprintf("\n//line %s:%d\n", path, line)
	file, err := parser.ParseFile(c.files, path, opening+where+text, parser.SkipObjectResolution)
	if err != nil {
		file, err = parser.ParseFile(c.files, path, opening+"func _() error {"+where+text+"\nreturn nil\n}", parser.SkipObjectResolution)
	}
	if err != nil {
		c.t.Errorf("Go that does not parse: %v", err)
		return
	}
	c.check("given", c.given, file)
}

func (c *compiler) check(name string, files ...*ast.File) *types.Package {
	c.t.Helper()
	config := types.Config{Importer: c, Error: func(err error) {
		if mistake := (types.Error{}); !errors.As(err, &mistake) || !mistake.Soft {
			c.t.Errorf("Go that does not compile: %v", err)
		}
	}}
	checked, _ := config.Check(name, c.files, files, nil) // the error is the first that was told
	return checked
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
