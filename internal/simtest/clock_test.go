package simtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// calendar are the methods of time.Time that give or use what the wall clock says, or that drop the monotonic reading.
// Without them a time.Time can only be compared with another and set timers, for which Go takes the monotonic clock, so
// that a clock which is wrong, or is put right meanwhile, changes nothing.
var calendar = map[string]bool{
	"Unix": true, "UnixMilli": true, "UnixMicro": true, "UnixNano": true, "Date": true, "Clock": true, "Year": true,
	"Format": true, "AppendFormat": true, "MarshalJSON": true, "MarshalText": true, "MarshalBinary": true,
	"UTC": true, "Local": true, "In": true, "Round": true, "AddDate": true, "Weekday": true, "YearDay": true,
}

// The library and the ledger cannot be misled by a client's clock, since they do not read it. That none of it goes to
// the server by another way is checked on the wire, by network.inspectRequest.
func TestTheLibraryReadsNoWallClock(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"../..", "../ledger", "../leaseclock"} {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no files in %s: %v", dir, err)
		}
		for _, path := range paths {
			// Where a system does not tell how long the computer slept, the wall clock is asked, to end leases early.
			if name := filepath.Base(path); !strings.HasSuffix(name, "_test.go") && name != "sleep_other.go" {
				checkClock(t, path)
			}
		}
	}
}

func checkClock(t *testing.T, path string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !calendar[method.Sel.Name] {
			return true
		}
		if of, ok := method.X.(*ast.Ident); ok && of.Name == "time" {
			return true // time.UnixMilli makes a time of what the server said
		}
		t.Errorf("%s: %s reads a wall clock", files.Position(call.Pos()), method.Sel.Name)
		return true
	})
}
