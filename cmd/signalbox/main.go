// Command signalbox works locks and semaphores from the shell, and serves the
// engine. See `signalbox help`.
//
// One file per subcommand; beside them app.go (what all share), terminal.go
// (how things look), private.go (the local engine that starts on demand) and
// child_*.go (the process group under a permit, per operating system).
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(Main(context.Background(), os.Args[1:]))
}
