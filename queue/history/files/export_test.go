package files

import (
	"os"
	"testing"
)

// WriteVersion makes the last file one of another version, as that would write it.
func WriteVersion(t *testing.T, folder string, version uint32) {
	t.Helper()
	segments, _, err := list(folder)
	if err != nil {
		t.Fatal(err)
	}
	last := segments[len(segments)-1]
	h, err := readHeader(last)
	if err != nil {
		t.Fatal(err)
	}
	h.version = version
	content, err := os.ReadFile(last.path)
	if err != nil {
		t.Fatal(err)
	}
	copy(content, h.encode())
	if err := os.WriteFile(last.path, content, fileMode); err != nil {
		t.Fatal(err)
	}
}
