package difftest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// StartConfigured starts a server by a configuration file in a folder of its own, as Sentinel wants it, with an append-only
// file there. The arguments are those that redis-server takes; command starts the server with the path of the file.
func StartConfigured(t testing.TB, args []string, command func(path string) []string) *Server {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "engine.conf")
	return Start(t, func(port string) []string {
		text := "bind 127.0.0.1\nport " + port + "\ndir " + dir + "\nappendonly yes\n"
		for i, arg := range args {
			if name, ok := strings.CutPrefix(arg, "--"); ok {
				text += name + " " + args[i+1] + "\n"
			}
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return command(path)
	})
}
