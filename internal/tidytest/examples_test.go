package tidytest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withoutExample are exported names of the root package that need none of their own, each with the reason.
var withoutExample = map[string]string{
	"Option":        "Claim, Owner and Observe are what there is of it",
	"AcquireOption": "its functions have one each",
	"FenceOption":   "FenceKeep",
	"LatchOption":   "LatchKeep",
	"LimiterOption": "Burst",
}

// Every exported function and type of the library has an Example with verified output, and every method is called in an
// Example of its type (ExampleT or ExampleT_…).
func TestEveryExportedNameHasAnExample(t *testing.T) {
	exported := exportedNames(t)
	calls := examples(t)
	for _, name := range slices.Sorted(maps.Keys(exported)) {
		owner, method, isMethod := strings.Cut(name, ".")
		switch {
		case method == "Error" || method == "Is" || method == "Unwrap": // of errors
		case withoutExample[name] != "":
		case !isMethod && calls[name] == nil:
			t.Errorf("%s has no Example%s with an Output", name, name)
		case isMethod && !calls[owner][method]:
			t.Errorf("no Example of %s calls %s", owner, method)
		}
	}
	for name := range withoutExample {
		if !exported[name] || calls[name] != nil {
			t.Errorf("%s needs no exception any more", name)
		}
	}
}

func rootFiles(t *testing.T, visit func(path string, file *ast.File)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root(t), "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no files of the library found", err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		visit(path, file)
	}
}

// exportedNames are F, T and T.M of the library.
func exportedNames(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	rootFiles(t, func(path string, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if name := d.Name.Name; d.Recv == nil {
					names[name] = true
				} else {
					names[receiver(d)+"."+name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if named, ok := spec.(*ast.TypeSpec); ok {
						names[named.Name.Name] = true
					}
				}
			}
		}
	})
	maps.DeleteFunc(names, func(name string, _ bool) bool {
		owner, method, isMethod := strings.Cut(name, ".")
		return !ast.IsExported(owner) || isMethod && !ast.IsExported(method)
	})
	return names
}

func receiver(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// examples is, for each name X, what is selected in the bodies of ExampleX and ExampleX_…, if their output is verified.
func examples(t *testing.T) map[string]map[string]bool {
	t.Helper()
	found := make(map[string]map[string]bool)
	rootFiles(t, func(path string, file *ast.File) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, declaration := range file.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Example") || !verified(file, f) {
				continue
			}
			of, _, _ := strings.Cut(strings.TrimPrefix(f.Name.Name, "Example"), "_")
			if found[of] == nil {
				found[of] = make(map[string]bool)
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if selector, ok := n.(*ast.SelectorExpr); ok {
					found[of][selector.Sel.Name] = true
				}
				return true
			})
		}
	})
	return found
}

func verified(file *ast.File, f *ast.FuncDecl) bool {
	for _, comment := range file.Comments {
		if comment.Pos() > f.Body.Pos() && comment.End() < f.Body.End() && strings.HasPrefix(comment.Text(), "Output:") {
			return true
		}
	}
	return false
}
