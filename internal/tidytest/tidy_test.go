package tidytest

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/signalbox-io/signalbox"

// law is one sentence of the import law: packages below from never import
// anything below to. A trailing slash means what is below, too.
type law struct {
	from, to, reason string
}

var laws = []law{
	{".", "engine/", "the library works on any Redis"},
	{"internal/ledger/", "engine/", "the ledger works on any Redis"},
	{"engine/", ".", "the engine does not know what is built on it"},
	{"engine/", "internal/", "the engine does not know what is built on it"},
	{"engine/", "classic/", "the engine does not know what is built on it"},
	{".", "classic/", "the classics are to learn from, not to build on"},
	{"engine/", "autocomplete/", "the engine does not know what is built on it"},
	{"autocomplete/", "engine/", "autocomplete works on any Redis"},
	{"autocomplete/", "embedded/", "autocomplete works on any Redis"},
	{"autocomplete/", "classic/", "the classics are to learn from, not to build on"},
	{"classic/", "engine/", "the classics work on any Redis"},
	{"classic/", "embedded/", "the classics work on any Redis"},
	{"classic/", ".", "the classics are as published: they owe the library nothing"},
	{"classic/", "internal/", "the classics are as published: they owe the library nothing"},
	// The lab is of the tests' kind: it joins algorithms to an engine, and nobody builds on it but the program.
	{".", "internal/racelab/", "the library does not know its laboratory"},
	{"internal/ledger/", "internal/racelab/", "the ledger does not know its laboratory"},
	{".", "internal/move/", "the library goes along; who moves is the program"},
	{"internal/acquisition/", ".", "a life does not know who leads it"},
	{"internal/acquisition/", "internal/", "a life does not know who leads it"},
	{"internal/acquisition/", "engine/", "a life does not know who leads it"},
	{"internal/racelab/", ".", "the laboratory runs algorithms; the library has goroutines of its own, which simtest runs"},
	{"engine/internal/ds/", "engine/internal/keyspace/", "containers know nothing of the data model"},
	{"engine/internal/keyspace/", "engine/internal/command/", "data does not know commands"},
	{"engine/internal/keyspace/", "engine/internal/rdb/", "data does not know how it is written"},
	{"engine/internal/rdb/", "engine/internal/command/", "the format does not know commands"},
	{"engine/internal/command/", "engine/internal/exec/", "commands do not know the machine"},
	{"engine/internal/acl/", "engine/internal/exec/", "rights know nothing of sessions"},
	{"engine/internal/conf/", "engine/internal/exec/", "the configuration does not know what it governs"},
	{"engine/internal/exec/", "engine/internal/server/", "the core does not know its shell"},
	{"engine/internal/lua/", "engine/internal/exec/", "scripts reach the core through an interface of their own"},
	{"engine/internal/aof/", "engine/internal/exec/", "the log knows requests as bytes"},
	{"engine/internal/aof/", "engine/internal/command/", "the log knows requests as bytes"},
	{"engine/internal/aof/", "engine/internal/keyspace/", "the log knows requests as bytes"},
	{"engine/internal/aof/", "engine/internal/server/", "the log does not know its shell"},
	{"engine/internal/disk/", "engine/internal/aof/", "the disk does not know what is on it"},
	{"engine/internal/resp/", "engine/", "the protocol knows nothing of the engine"},
}

// pure packages have no way to the outside.
var (
	pure      = []string{"engine/internal/ds/", "engine/internal/keyspace/", "engine/internal/rdb/", "engine/internal/command/", "engine/internal/acl/", "engine/internal/conf/", "engine/internal/replication/", "engine/internal/exec/"}
	forbidden = []string{"net", "os", "sync", "time", "math/rand", "syscall", "os/exec", "io/fs"}
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// goFiles visits the Go files of all modules.
func goFiles(t *testing.T, visit func(path, dir string)) {
	t.Helper()
	base := root(t)
	err := filepath.WalkDir(base, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); path != base && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") {
			rel, err := filepath.Rel(base, filepath.Dir(path))
			if err != nil {
				return err
			}
			visit(path, filepath.ToSlash(rel)+"/")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func within(dir, place string) bool {
	if place == "." {
		return dir == "./"
	}
	return strings.HasPrefix(dir, place)
}

func TestImportLaw(t *testing.T) {
	goFiles(t, func(path, dir string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, imported := range imports(t, path) {
			checkImport(t, path, dir, imported)
		}
	})
}

func checkImport(t *testing.T, path, dir, imported string) {
	t.Helper()
	for _, place := range pure {
		if !within(dir, place) {
			continue
		}
		for _, bad := range forbidden {
			if imported == bad || strings.HasPrefix(imported, bad+"/") && bad != "math/rand" {
				t.Errorf("%s imports %s: the core is pure", path, imported)
			}
		}
	}
	if imported != module && !strings.HasPrefix(imported, module+"/") {
		return
	}
	target := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/") + "/"
	if target == "/" {
		target = "./"
	}
	for _, l := range laws {
		if within(dir, l.from) && within(target, l.to) {
			t.Errorf("%s imports %s: %s", path, imported, l.reason)
		}
	}
}

func imports(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, spec := range file.Imports {
		unquoted, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, unquoted)
	}
	return paths
}

func TestFilesAreShort(t *testing.T) {
	const most = 600
	goFiles(t, func(path, _ string) {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for scanner := bufio.NewScanner(f); scanner.Scan(); {
			lines++
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if lines > most {
			t.Errorf("%s has %d lines; split it by concept (at most %d)", path, lines, most)
		}
	})
}

func TestPackagesSayWhatTheyAreFor(t *testing.T) {
	documented := map[string]bool{}
	goFiles(t, func(path, dir string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		documented[dir] = documented[dir] || file.Doc != nil && len(file.Doc.Text()) > 60
	})
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package in %s has no package comment that says what it is for", dir)
		}
	}
}

func TestPureCoreStartsNoGoroutine(t *testing.T) {
	goFiles(t, func(path, dir string) {
		for _, place := range pure {
			if !within(dir, place) || strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if _, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%s starts a goroutine: the core is pure", path)
				}
				return true
			})
		}
	})
}

// The life of an acquisition knows time as numbers that it is handed, and shares nothing with anybody.
func TestTheLifeOfAnAcquisitionIsPure(t *testing.T) {
	seen := 0
	goFiles(t, func(path, dir string) {
		if dir != "internal/acquisition/" || strings.HasSuffix(path, "_test.go") {
			return
		}
		seen++
		for _, imported := range imports(t, path) {
			if imported != "time" && imported != "errors" {
				t.Errorf("%s imports %s: what it is about does not need that", path, imported)
			}
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt, *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
				t.Errorf("%s has a goroutine or a channel: it is a pure machine", path)
			case *ast.SelectorExpr:
				if of, ok := n.X.(*ast.Ident); ok && of.Name == "time" && !durations[n.Sel.Name] {
					t.Errorf("%s uses time.%s: the machine is handed the time", path, n.Sel.Name)
				}
			}
			return true
		})
	})
	if seen == 0 {
		t.Fatal("no files found: has the machine moved?")
	}
}

// durations are what package time has of spans, not of clocks.
var durations = map[string]bool{
	"Duration": true, "Nanosecond": true, "Microsecond": true, "Millisecond": true, "Second": true, "Minute": true, "Hour": true,
}

func TestNoPackageWithoutAPurposeInItsName(t *testing.T) {
	goFiles(t, func(path, dir string) {
		switch name := filepath.Base(strings.TrimSuffix(dir, "/")); name {
		case "util", "utils", "common", "helpers", "misc":
			t.Errorf("%s: a package named %s has no purpose of its own", path, name)
		}
	})
}

// Every transition of the ledger states its contract in a header comment.
func TestScriptsStateTheirContract(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root(t), "internal/ledger/*.lua"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatal("no scripts found: has the ledger moved?")
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		words := []string{"ARGV", "Returns", "Errors", "Cost", "--@include prelude.lua", "--@include functions.lua"}
		switch filepath.Base(path) {
		case "prelude.lua":
			words = []string{"KEYS"}
		case "read.lua", "adopt.lua", "functions.lua", "tell.lua":
			words = nil
		case "limit.lua", "refund.lua", "latch.lua", "barrier.lua", "fence.lua": // not of the permit ledger
			words = []string{"KEYS", "ARGV", "Returns", "Errors", "Cost"}
		}
		if !strings.HasPrefix(string(text), "--") {
			t.Errorf("%s does not open with its contract", path)
		}
		for _, word := range words {
			if !strings.Contains(string(text), word) {
				t.Errorf("%s does not say its %s", path, word)
			}
		}
	}
}
