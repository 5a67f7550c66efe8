// What can go wrong. The names are those of the Go library, without its "Err".

/** What all errors of this package have in common. */
export class SignalboxError extends Error {
  constructor (message, options) {
    super(message, options)
    this.name = new.target.name
  }
}

/** An argument that no server was asked about. */
export class Invalid extends SignalboxError {}

/** The server was out of reach, or not ready, for too long. */
export class Unavailable extends SignalboxError {}

/** The server refused for a reason that does not pass, such as missing rights. */
export class ServerError extends SignalboxError {}

/** The server lacks the functions, or has those of another wire version. */
export class UnsupportedServer extends SignalboxError {}

/** The Box or Queue was closed. */
export class Closed extends SignalboxError {}

/** tryAcquire found no permit free. */
export class Busy extends SignalboxError {
  constructor (name, retryAfterMs, held, limit) {
    super(`${name}: ${held} of ${limit} permits are held`)
    Object.assign(this, { retryAfterMs, held, limit })
  }
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
  constructor (id, reason) {
    super(`job ${id}: ${reason}`)
    Object.assign(this, { id, reason })
  }
}

/** Thrown by a handler: run the job again after so long. It counts as an attempt. */
export class Retry extends Error {
  constructor (error, afterMs) {
    super(error instanceof Error ? `${error.name}: ${error.message}` : String(error))
    Object.assign(this, { name: 'Retry', afterMs })
  }
}

/** Thrown by a handler: the job is dead, whatever attempts are left. */
export class Fail extends Error {
  name = 'Fail'
}

/** Thrown by a handler: run the job again after so long. It does not count as an attempt. */
export class Snooze extends Error {
  constructor (afterMs) {
    super('snoozed')
    Object.assign(this, { name: 'Snooze', afterMs })
  }
}
