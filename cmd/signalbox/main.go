// Command signalbox works locks and semaphores from the shell, and serves the
// engine. See `signalbox help`.
//
// One file per subcommand; beside them app.go (what all share), terminal.go
// (how things look), who.go (how leases and limits are told), private.go and
// private_life.go (the local engine that starts on demand). For all that wait: patience.go. For run, lock, elect and
// acquire: grant.go (how they acquire, and what they hold), runflags.go (what is asked
// for), waiting.go (what is said while it waits), child_*.go (the process
// group under a permit, per operating system), contain_*.go and
// cgroup_linux.go (what leaves the group) and guard.go (ends the command
// before its lease). For bench: bench_engine.go (the engine that it measures),
// bench_tables.go and bench_chart.go. For queue: queue.go (what its commands share), queue_*.go.
// For replicas and doctor: servers.go (whom they ask), doctor_*.go. The next subcommand is a file with a
// method of app that returns its cobra.Command, listed in app.root, and a
// script in testdata/script.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(Main(context.Background(), os.Args[1:]))
}
