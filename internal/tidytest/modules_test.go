package tidytest

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostDirect is how many modules the root may require by itself: what is linked into a program that takes a lock, and
// what its tests cannot do without. docs/decisions/038-modules.md says why.
const mostDirect = 5

// moduleFile is what these tests want to know of a go.mod.
type moduleFile struct {
	Module  struct{ Path string }
	Require []struct {
		Path, Version string
		Indirect      bool
	}
	Replace []any
}

// workFile is what they want to know of go.work.
type workFile struct {
	Use     []struct{ DiskPath string }
	Replace []struct {
		Old struct{ Path, Version string }
		New struct{ Path string }
	}
}

// What `go edit -json` says of a file.
func edited[F any](t *testing.T, command, path string) F {
	t.Helper()
	text, err := exec.Command("go", command, "edit", "-json", path).Output()
	if err != nil {
		t.Fatalf("go %s edit -json %s: %v", command, path, err)
	}
	var file F
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTheRootRequiresLittle(t *testing.T) {
	var direct []string
	for _, required := range edited[moduleFile](t, "mod", filepath.Join(root(t), "go.mod")).Require {
		if !required.Indirect {
			direct = append(direct, required.Path)
		}
	}
	if len(direct) > mostDirect {
		t.Errorf("the root requires %d modules, at most %d: %v", len(direct), mostDirect, direct)
	}
}

// Every module is in the workspace, and requires the others at the version that is tagged next, which go.work has in
// place of what nobody can download yet. `go install` refuses modules that replace anything.
func TestModulesFitTogether(t *testing.T) {
	base := root(t)
	work := edited[workFile](t, "work", filepath.Join(base, "go.work"))
	here := map[string]string{} // what go.work has instead of a version
	for _, replaced := range work.Replace {
		here[replaced.Old.Path+" "+replaced.Old.Version] = filepath.Clean(replaced.New.Path)
	}
	versions := map[string]bool{}
	walk(t, base, "go.mod", func(path string) {
		directory, err := filepath.Rel(base, filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		if directory == "tools" || strings.HasPrefix(directory, "tools/") {
			return // its versions are those of the tools
		}
		file := edited[moduleFile](t, "mod", path)
		if want := strings.TrimSuffix(module+"/"+directory, "/."); file.Module.Path != want {
			t.Errorf("%s is of %s, want %s", path, file.Module.Path, want)
		}
		if !slices.ContainsFunc(work.Use, func(u struct{ DiskPath string }) bool { return filepath.Clean(u.DiskPath) == directory }) {
			t.Errorf("go.work does not use ./%s", directory)
		}
		if len(file.Replace) > 0 {
			t.Errorf("%s replaces modules: nobody could install it", path)
		}
		for _, required := range file.Require {
			if required.Path != module && !strings.HasPrefix(required.Path, module+"/") {
				continue
			}
			versions[required.Version] = true
			want := filepath.Clean("./" + strings.TrimPrefix(strings.TrimPrefix(required.Path, module), "/"))
			if here[required.Path+" "+required.Version] != want {
				t.Errorf("%s requires %s %s, for which go.work has nothing", path, required.Path, required.Version)
			}
		}
	})
	if len(versions) != 1 {
		t.Errorf("modules require each other at %d versions; all are released together", len(versions))
	}
}
