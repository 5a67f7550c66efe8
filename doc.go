// Package signalbox coordinates processes: mutexes and counting semaphores whose permits are granted in order, carry
// leases that renew themselves, and come with fencing tokens. It runs on Redis 7, on Valkey, alone, behind Sentinel or
// in a Cluster, or on the engine that package embedded brings along.
//
//	box, err := signalbox.Open(ctx, "redis://localhost:6379")
//	defer box.Close()
//	lease, err := box.Mutex("invoice:42").Acquire(ctx)
//	defer lease.Release(ctx)
//	work(lease.Context(), lease.Token())
//
// # The way through
//
// Open a Box: Open, New, or embedded.Open without a server. Take a Mutex or a Semaphore from it and call Do, or Acquire for
// a Lease: its Context tells when to stop, its Token what a store can check. Then, as needed: TryAcquire and BusyError,
// the options of one acquisition (AcquireOption), RWMutex, Election, Limiter, Latch and Barrier, AcquireAll and
// Semaphore.Within, Fence, Quorum. Box.Inspect, Watch and Deadlocks show what goes on; Observe is for logs and metrics.
//
// docs/guide has a page for each, docs/strictness.md says which one is strict enough.
//
// # How it is built
//
// The truth lives on the server, in the ledger (internal/ledger): a few atomic transitions, timed by the server. This
// package keeps a process honest about it:
//
//	life     one acquisition, from its first request until nothing of it is left: a pure machine (internal/acquisition)
//	Box      the shell around all lives: a client, one lock, a loop with a heap of times (box.go, life.go)
//	Lease    permits held: a context that ends before the server can give them away (lease.go)
//	batches  what nobody's goroutine waits for: renewals, heartbeats, retries (batches.go)
//	inbox    one subscription; brings grants to waiters and ends to leases (inbox.go)
//
// Messages are hints. What is never heard is asked for: by the process's heartbeat or the lease's renewal.
//
// A new primitive is a thin face on acquire: look at mutex.go.
//
// Messages travel by plain pub/sub, and in a Cluster by sharded pub/sub, which its other nodes learn nothing of.
package signalbox
