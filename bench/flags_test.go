package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunFlags(t *testing.T) {
	t.Setenv(profilesVariable, "")
	parsed := func(args ...string) (*runFlags, error) {
		f := newRunFlags("any", "any.md", "one round")
		f.SetOutput(io.Discard)
		f.chosen("tests")
		f.profiled("every process")
		_, err := f.parse(args)
		return f, err
	}
	folder := filepath.Join(t.TempDir(), "new", "profiles")
	f, err := parsed("-quick", "-markdown", "-json", "-list", "-only", "^a$", "-profiles", folder)
	if err != nil || !f.quick || !f.markdown || !f.asJSON || !f.onlyList || f.only != "^a$" {
		t.Errorf("got %+v, %v", f, err)
	}
	if _, err := os.Stat(folder); err != nil || os.Getenv(profilesVariable) != folder {
		t.Errorf("no profiles into %s: %v", folder, err)
	}
	for args, want := range map[string]string{"-only (": "missing closing", "locks": `unknown argument "locks"`, "-slow": "not defined"} {
		if _, err := parsed(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
