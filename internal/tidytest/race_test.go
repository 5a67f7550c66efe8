package tidytest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// inTurns is the one package without the race detector that has goroutines: of the clients in a lab one runs at a time.
const inTurns = "internal/racelab"

// What `make test` runs without the race detector has nothing for it to see: no goroutine, no lock, nothing atomic.
func TestPackagesWithoutTheRaceDetectorNeedNone(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join("../..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^SEQUENTIAL := \$\(addprefix \./(\S+/),([a-z ]+)\) \./(\S+)$`).FindSubmatch(makefile)
	if line == nil {
		t.Fatal("the Makefile has no SEQUENTIAL of the form that is known here")
	}
	if other := string(line[3]); other != inTurns {
		t.Errorf("%s runs without the race detector: why?", other)
	}
	for _, name := range strings.Fields(string(line[2])) {
		files, err := filepath.Glob(filepath.Join("../..", string(line[1]), name, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no files, %v", name, err)
		}
		for _, path := range files {
			if !strings.HasSuffix(path, "_test.go") {
				checkSequential(t, path)
			}
		}
	}
}

func checkSequential(t *testing.T, path string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		if imported := strings.Trim(spec.Path.Value, `"`); imported == "sync" || imported == "sync/atomic" {
			t.Errorf("%s imports %s, and its tests run without the race detector", path, imported)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if _, ok := n.(*ast.GoStmt); ok {
			t.Errorf("%s starts a goroutine, and its tests run without the race detector", path)
		}
		return true
	})
}
