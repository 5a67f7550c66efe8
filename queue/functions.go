package queue

import (
	"context"

	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// Programs in other languages take part through a library of Redis Functions, which is made of the same transitions that
// this package runs as scripts: docs/functions-queue.md describes its calls. This package does not need it.

// FunctionsVersion is the version of the library that this package installs. It rises whenever a function changes.
const FunctionsVersion = store.LibraryVersion

// WireVersion is that of what clients in other languages say and are told. It is frozen.
const WireVersion = store.WireVersion

// FunctionsSource returns the library as FUNCTION LOAD takes it.
func FunctionsSource() string { return store.Library().Source() }

// Functions is what one server has of the library.
type Functions struct {
	Server   string // its address as the connection knows it, "" if it does not tell
	Software string // such as "Redis 7.0.15"
	Version  int    // 0 if it is not installed
	List     []Function
}

// Function is one function of the library.
type Function struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Functions says what the server, in a Cluster every primary, has of the library. It is there once for all queues.
func (q *Queue) Functions(ctx context.Context) ([]Functions, error) {
	return q.functions(ctx, q.store.Functions)
}

// InstallFunctions puts the library on the server, in a Cluster on every primary, and returns what was there before.
// Replicas get it from their primaries; a primary that joins a Cluster later needs it installed. It fails with ErrNewer,
// and changes nothing, if a server has a newer version.
func (q *Queue) InstallFunctions(ctx context.Context) ([]Functions, error) {
	return q.functions(ctx, q.store.InstallFunctions)
}

// DeleteFunctions removes the library from the server, in a Cluster from every primary, and returns what was there.
func (q *Queue) DeleteFunctions(ctx context.Context) ([]Functions, error) {
	return q.functions(ctx, q.store.DeleteFunctions)
}

func (q *Queue) functions(ctx context.Context, do func(context.Context) ([]ledger.Installed, error)) ([]Functions, error) {
	if err := q.enter(); err != nil {
		return nil, err
	}
	defer q.tasks.Done()
	found, err := do(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Functions, 0, len(found))
	for _, server := range found {
		f := Functions{Server: server.Server, Software: server.Software, Version: server.Version}
		for _, function := range server.Functions {
			f.List = append(f.List, Function(function))
		}
		all = append(all, f)
	}
	return all, nil
}
