// Distributed locks, fair semaphores and task queues, together with programs in Go and other languages.
//
//   const box = new Box('redis://localhost:6379')
//   await box.mutex('invoice:42').use((lease) => store(invoice, lease.token), { timeoutMs: 60_000 })
//
// The server needs the functions: `signalbox functions install --url redis://localhost:6379`. What everything here means is
// written in index.d.ts.

export {
  Busy, Canceled, Closed, Dead, Fail, Forced, Invalid, LeaseLost, Parent, Retry, ServerError, SignalboxError, Snooze, Stopped, Timeout,
  TooHeavy, Unavailable, UnknownJob, UnsupportedServer
} from './errors.js'
export { Box, Election, Lease, RWLock, Semaphore, Term } from './locks.js'
export { ALIVE, Enqueued, Queue, Request, WAITING } from './queue.js'
export { Job, Worker } from './worker.js'
