// What everything here means. Times are milliseconds. The errors are those of the Go library, without its "Err".

/** What all errors of this package have in common. */
export class SignalboxError extends Error {}
/** An argument that no server was asked about. */
export class Invalid extends SignalboxError {}
/** The server was out of reach, or not ready, for too long. It is worth trying again. */
export class Unavailable extends SignalboxError {}
/** The server refused for a reason that does not pass, such as missing rights. */
export class ServerError extends SignalboxError {}
/** The server lacks the functions, or has those of another wire version: the message says what to do. */
export class UnsupportedServer extends SignalboxError {}
/** The Box or Queue was closed. */
export class Closed extends SignalboxError {}
/** tryAcquire found no permit free. */
export class Busy extends SignalboxError {
  /** Until the earliest lease can expire. */
  readonly retryAfterMs: number
  /** Permits that are held, of so many. */
  readonly held: number
  readonly limit: number
}
/** The weight is more than the limit, and could never be granted. */
export class TooHeavy extends SignalboxError {}
/** It took longer than the caller would wait. */
export class Timeout extends SignalboxError {}
/** The lease was not renewed in time: somebody else may hold the permits, or run the job. */
export class LeaseLost extends SignalboxError {}
/** An operator ended the lease, or sent the waiter away. */
export class Forced extends LeaseLost {}
/** There is no such job. It may have ended, and was enqueued without retention. */
export class UnknownJob extends SignalboxError {}
/** The job was canceled. */
export class Canceled extends SignalboxError {}
/** The job was to wait for one that has failed. */
export class Parent extends SignalboxError {}
/** The worker ends, and the job runs again elsewhere. */
export class Stopped extends SignalboxError {}
/** The job has failed for good. */
export class Dead extends SignalboxError {
  readonly id: string
  readonly reason: string
}

/** Thrown by a handler: run the job again after so long. It counts as an attempt. */
export class Retry extends Error {
  constructor (error: unknown, afterMs: number)
  readonly afterMs: number
}
/** Thrown by a handler: the job is dead, whatever attempts are left. */
export class Fail extends Error {}
/** Thrown by a handler: run the job again after so long. It does not count as an attempt. */
export class Snooze extends Error {
  constructor (afterMs: number)
  readonly afterMs: number
}

export interface LeaseOptions {
  /** For how long the lease outlives a holder that falls silent: 10 to 31536000000. 30000 if not given, 15000 of an election. */
  ttlMs?: number
  /** Shown to people who look who holds and who waits. */
  label?: string
}

export interface WaitOptions extends LeaseOptions {
  /** After which acquire rejects with Timeout; it waits for ever if not given. */
  timeoutMs?: number
  /** Ends the wait: acquire rejects with its reason, and nothing is left behind. */
  signal?: AbortSignal
  /** Is told how many waiters are ahead, when that changes. */
  onWait?: (ahead: number) => void
}

export interface Weight {
  /** How many permits to hold, 1 if not given. */
  weight?: number
}

/** Permits, held until they are released or lost. It renews itself. */
export class Lease {
  protected constructor ()
  readonly name: string
  readonly id: string
  /** Larger than that of every grant before it, and below 2^53: a store that is given it can refuse a holder that was overtaken. */
  readonly token: number
  /** Aborted before the server can give the permits to somebody else; its reason is LeaseLost, or Forced. */
  readonly signal: AbortSignal
  /** Throws LeaseLost if somebody else may hold the permits by now, also when no timer could run. */
  check (): void
  /** Gives the permits back, and resolves when the server knows, or the lease is over anyway. Rejects with LeaseLost if it was lost. */
  release (): Promise<void>
  [Symbol.asyncDispose] (): Promise<void>
}

/** Leadership, until it is resigned or lost. */
export class Term extends Lease {
  /** Releases. */
  resign (): Promise<void>
}

/** Lets leases of a total weight up to its limit in, in the order they asked. It holds no state. */
export class Semaphore {
  private constructor ()
  readonly name: string
  readonly limit: number
  /** Acquires, or rejects with Busy at once. */
  tryAcquire (options?: LeaseOptions & Weight): Promise<Lease>
  /** Waits for its turn. */
  acquire (options?: WaitOptions & Weight): Promise<Lease>
  /**
   * Acquires, runs work, and releases however it ends. Rejects with LeaseLost if the lease was lost meanwhile, unless work has
   * failed for another reason. Work is not interrupted: it heeds lease.signal.
   */
  use<T> (work: (lease: Lease) => T | Promise<T>, options?: WaitOptions & Weight): Promise<T>
}

/** A semaphore of which a reader takes one permit and a writer all, in the order in which they came. */
export class RWLock {
  private constructor ()
  readonly name: string
  read (options?: WaitOptions): Promise<Lease>
  write (options?: WaitOptions): Promise<Lease>
}

/** One leader at a time; the next is who has campaigned longest. */
export class Election {
  private constructor ()
  readonly name: string
  /** Resolves when this process leads. */
  campaign (options?: WaitOptions): Promise<Term>
}

/** The door to everything that is locked on one server. A process needs one. */
export class Box {
  /**
   * url: redis://, rediss:// or unix://, with name and password if there are any, redis://localhost:6379 if not given. owner:
   * shown to people, host and process id if not given. Nothing is sent before the first acquisition.
   */
  constructor (url?: string, options?: { owner?: string })
  /** The semaphore of a name, which has 1 to 512 bytes. The limit counts for what is acquired through this value. */
  semaphore (name: string, limit: number): Semaphore
  /** A semaphore with one permit. */
  mutex (name: string): Semaphore
  rwlock (name: string): RWLock
  election (name: string): Election
  /**
   * Releases what is held, gives up what waits, and ends the connections. What the server could not be told within timeoutMs,
   * 5000 if not given, ends by itself, with its ttl.
   */
  close (timeoutMs?: number): Promise<void>
  [Symbol.asyncDispose] (): Promise<void>
}

/** For while: the job is the only one with its fingerprint until it runs, */
export const WAITING: 'wlh'
/** or until it has ended. */
export const ALIVE: 'wlhc'

/** What a job can have. */
export interface Terms {
  /** An id of the caller's own, 1 to 128 bytes without commas: enqueued again it changes nothing. */
  id?: string
  /** Not before so long from now. */
  delayMs?: number
  /** Not before this time of the server's clock. */
  at?: Date | number
  /** As if it had been enqueued so many minutes earlier: a whole number up to 2^20. */
  priority?: number
  /** Whose it is, for limits of each key. */
  key?: string
  /** What the worker has to have, at most 16. */
  tags?: Iterable<string>
  /** What it takes of the worker's capacities, one "slot" if not given. */
  cost?: Record<string, number>
  /** For how long it is kept with its result when it is done, 60000 if not given. */
  retainMs?: number
  /** How long an attempt may take; as long as it likes if not given. */
  timeoutMs?: number
  /** After how many attempts it is dead, 20 if not given. */
  attempts?: number
  /** A fingerprint: refuses a second job of the kind with the same, while the first is WAITING, or as while says. */
  unique?: string
  while?: typeof WAITING | typeof ALIVE
  /** Ids of jobs that have to be done before, all, or one with afterAny; at most 1000. */
  after?: string[]
  afterAny?: boolean
  /** What becomes of it when one of these fails: it is canceled if not given, stays held back, or goes. */
  onFailure?: 'cancel' | 'hold' | 'go'
}

export interface Within {
  /** For how long to try again what could not be done since the server was out of reach, 60000 if not given. */
  withinMs?: number
}

/** A job to enqueue. Its arguments are anything that JSON has, at most 1 MiB of it. */
export class Request {
  constructor (kind: string, args?: unknown, terms?: Terms)
  readonly kind: string
}

/** A job as its producer sees it. */
export class Enqueued<Result = any> {
  private constructor ()
  readonly id: string
  /** Nothing was enqueued: this job has the same fingerprint or id. */
  readonly duplicate: boolean
  /**
   * Waits for the end of the job, for its result: null if it has none. Rejects with Dead if it failed for good, Canceled,
   * UnknownJob if the server does not know it (any more), Timeout, or the signal's reason.
   */
  result (options?: { timeoutMs?: number, signal?: AbortSignal }): Promise<Result>
}

/** A door to one queue. A process needs one. */
export class Queue {
  /**
   * name: 1 to 256 bytes, "default" if not given. leaseMs: for how long the server believes in a worker that falls silent,
   * 1000 to 3600000, 15000 if not given. Nothing is sent before the first call.
   */
  constructor (url?: string, name?: string, options?: { leaseMs?: number })
  readonly name: string
  readonly leaseMs: number
  /** Adds a job. When it resolves, the job is on the server, once, whatever answers were lost. Rejects with Parent if one that it waits for has failed. */
  enqueue<Result = any> (kind: string, args?: unknown, terms?: Terms & Within): Promise<Enqueued<Result>>
  /** Adds jobs, in one call for each 500. What waits for a job that has failed is an error in its place. */
  enqueueMany (requests: Request[], options?: Within): Promise<Array<Enqueued | Parent>>
  /** The handle of a job that is known by its id. */
  job<Result = any> (id: string): Enqueued<Result>
  /** Cancels a job. "told": it runs, and its worker was told. */
  cancel (id: string, cause?: string): Promise<'ok' | 'told' | 'ended' | 'unknown'>
  /** Has a dead, canceled or done job that is kept run again, or a delayed one run now. */
  retry (id: string): Promise<'ok' | 'running' | 'unique' | 'other' | 'unknown'>
  /** A worker for this queue. */
  worker (name?: string, options?: WorkerOptions): Worker
  /** Ends whoever waits with Closed, stops workers as if the time to drain were over, and ends the connections. */
  close (): Promise<void>
  [Symbol.asyncDispose] (): Promise<void>
}

export interface WorkerOptions {
  /** How many jobs without a cost it runs at once, 1 if not given. */
  slots?: number
  /** Instead: what it can do at once of each thing, such as { call: 1, chat: 3 }. */
  capacity?: Record<string, number>
  /** What it has: it runs jobs that ask for no other tags. */
  tags?: Iterable<string>
  /** For how long it waits for what runs when it is told to end, 30000 if not given. */
  drainMs?: number
}

/** Runs jobs: of the kinds that have a handler, for which it has the tags and the room. */
export class Worker {
  private constructor ()
  readonly name: string
  /**
   * Registers a handler of a kind, before run. What it returns is the result. What it throws has the job tried again after
   * backoffMs(attempt), which doubles from one second to an hour if it is not given; see also Retry, Fail and Snooze.
   */
  handle<Args = any> (kind: string, handler: (job: Job<Args>) => unknown, options?: { backoffMs?: (attempt: number) => number }): this
  /** Works until stop is called, or somebody drains the worker. Rejects with what it ended with, if that is an error. */
  run (): Promise<void>
  /** Works in the background until then; join waits for the end. */
  start (): this
  join (): Promise<void>
  /** Has it take nothing new, and end when nothing runs any more, or drainMs are over: then the jobs' signals are aborted. */
  stop (drainMs?: number): void
  /** Has it take nothing new, and go on with what it runs, until away(false). */
  away (away?: boolean): void
}

/** One attempt of a job, as its handler sees it. */
export class Job<Args = any> {
  private constructor ()
  readonly id: string
  readonly kind: string
  readonly key: string
  readonly args: Args
  /** Larger with every claim of any job of the queue: a guarded store can refuse who comes late. */
  readonly token: number
  /** 1 for the first. */
  readonly attempt: number
  /** How many workers died over it. */
  readonly crashes: number
  readonly enqueued: Date
  /** Aborted when the work is to stop; its reason is Canceled, LeaseLost, Timeout or Stopped. */
  readonly signal: AbortSignal
  /** Throws that reason, if the work is to stop. */
  check (): void
  /** Says how far the job is, 0 to 100. Who looks at it sees that within a third of the queue's lease. */
  progress (percent: number, what?: string): void
  /** Adds a line to the log of the job. The last 8 KiB are kept, over all attempts. */
  log (text: string): void
}
