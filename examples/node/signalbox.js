// Distributed semaphores and mutexes for Node.js, shared with the Go library and with every other language.
//
//   const box = new Box('redis://localhost:6379')
//   await box.semaphore('downloads', 2).use(async (lease) => {
//     await fetch(url, { signal: lease.signal, headers: { 'X-Token': lease.token } })
//   })
//
// The server needs the functions: `signalbox functions install --url redis://localhost:6379`. What they take and answer,
// and the rules that this client keeps, are in docs/functions.md.
//
// How it works. Everything is decided by functions on the server; a client asks, keeps asking while it waits, and renews
// while it holds. A Box listens on one channel, its inbox, on which the server tells a waiter that its turn has come. A
// message is only a hint to ask again at once: whoever misses it asks at the next heartbeat. A Box has two connections,
// one for the inbox; a lease has two timers, one that renews it and one for its deadline.

import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { Redis, ReplyError } from 'ioredis'

const claimMs = 3000 // for which the server believes in a waiter that is silent
const arrivalMs = 900_000 // for which a request can stay on its way: TCP gives up after about that long
// For how long an id is barred that is taken back: as long as a late request could bring about a lease that harms.
const barMs = ttlMs => Math.max(claimMs, Math.min(ttlMs, arrivalMs))

// What acquire, renew and release answer.
const GRANTED = 1, WAITING = 2, REFUSED = 3, HEAVY = 5
const LOST = 0, HELD = 1, FORCED = 2

/** What all errors here have in common. */
export class SignalboxError extends Error {
  constructor (message, options) {
    super(message, options)
    this.name = this.constructor.name
  }
}
/** tryAcquire found no permit free. retryAfterMs is the time until the earliest lease can expire. */
export class Busy extends SignalboxError {
  constructor (name, [retryAfterMs, held, limit]) {
    super(`${name}: ${held} of ${limit} permits are held`)
    this.retryAfterMs = retryAfterMs
  }
}
/** The weight is more than the limit, and could never be granted. */
export class TooHeavy extends SignalboxError {}
/** It was not granted in time. */
export class NotInTime extends SignalboxError {}
/** The lease was not renewed in time: somebody else may hold the permits. */
export class LeaseLost extends SignalboxError {}
/** An operator ended the lease, or sent the waiter away. */
export class Forced extends LeaseLost {}

/** The four keys of a resource: state, leases, queue, seen. They have one hash tag, so a Cluster keeps them together. */
export function keysOf (name) {
  const encode = (text) => text.replaceAll('%', '%25').replaceAll('}', '%7D')
  const [, tag] = /\{([^}]*)\}/.exec(name) ?? [] // a name may have a hash tag of its own
  const state = tag ? `signalbox:{${encode(tag)}}{${encode(name)}}` : `signalbox:{${encode(name)}}`
  return [state, `${state}:leases`, `${state}:queue`, `${state}:seen`]
}

/** The door to all semaphores on one server. A process needs one. */
export class Box {
  #inbox
  #acquisitions = 0
  #listeners = new Map() // by id

  constructor (url = 'redis://localhost:6379', { owner = `${hostname()}:${process.pid}` } = {}) {
    this.owner = owner
    this.process = randomBytes(8).toString('hex') // begins every id and names the inbox, so it must be nobody else's
    // What is to be tried again is decided here: a request that takes longer than a waiter may be silent is of no use.
    this.redis = new Redis(url, {
      commandTimeout: claimMs, connectTimeout: claimMs, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false,
      retryStrategy: () => 100
    })
    this.redis.on('error', () => {}) // the requests say what is wrong
  }

  /** The semaphore of a name. The limit counts for what is acquired through this value. */
  semaphore (name, limit) { return new Semaphore(this, name, limit) }

  /** A semaphore with one permit. */
  mutex (name) { return new Semaphore(this, name, 1) }

  /** Ends the connections. Release what is held first: what is not ends with its ttl. */
  close () {
    this.redis.disconnect()
    this.#inbox?.disconnect()
  }

  [Symbol.dispose] () { this.close() }

  /** Calls a function of the library on a resource. */
  async call (name, resource, ...args) {
    const keys = keysOf(resource)
    try {
      return await this.redis.fcall(`signalbox_${name}`, keys.length, ...keys, ...args)
    } catch (error) {
      if (error.message.includes('Function not found')) {
        throw new SignalboxError('the server lacks the functions: run signalbox functions install --url ...', { cause: error })
      }
      throw error
    }
  }

  newID () { return `${this.process}:${++this.#acquisitions}` }

  /** Has hear called with every message for an id, as words, and with ['hello'] when messages may have gone by. */
  listen (id, hear) {
    this.#listeners.set(id, hear)
    this.#inbox ??= this.#openInbox()
  }

  ignore (id) { this.#listeners.delete(id) }

  #openInbox () {
    const inbox = this.redis.duplicate({ commandTimeout: undefined, maxRetriesPerRequest: null, autoResubscribe: false })
    inbox.on('error', () => {}) // until it is open again, heartbeats do its work
    inbox.on('ready', () => {
      inbox.subscribe(`signalbox:inbox:${this.process}`).then(() => {
        for (const hear of [...this.#listeners.values()]) hear(['hello'])
      }, () => {})
    })
    inbox.on('message', (_, text) => {
      const words = text.split(' ')
      this.#listeners.get(words[1])?.(words)
    })
    return inbox
  }
}

/** Lets leases of a total weight up to its limit in, in the order they asked. It holds no state. */
class Semaphore {
  constructor (box, name, limit) {
    Object.assign(this, { box, name, limit })
  }

  /** Acquires, or throws Busy at once. Options: weight, ttlMs, label. */
  tryAcquire (options) { return new Acquisition(this, options).run(false) }

  /**
   * Waits for its turn. Options: weight, ttlMs, label; timeoutMs, after which it throws NotInTime; signal, an AbortSignal
   * that ends the wait; onWait, which is told how many are ahead when that changes.
   */
  acquire (options) { return new Acquisition(this, options).run(true) }

  /** Runs work(lease) inside, and releases however it ends. */
  async use (work, options) {
    const lease = await this.acquire(options)
    let result
    try {
      result = await work(lease)
    } catch (error) {
      await lease.release().catch(() => {}) // what went wrong inside says more
      throw error
    }
    await lease.release()
    return result
  }
}

// One acquisition, known to the server by its id. Whatever it sends again, it sends with the same id.
class Acquisition {
  doubtful = false // a request went unanswered, and may reach the server yet
  #ahead = -1 // as onWait was told
  #mail = []
  #wake = () => {}

  constructor ({ box, name, limit }, { weight = 1, ttlMs = 30000, label = '', timeoutMs = Infinity, signal, onWait } = {}) {
    Object.assign(this, { box, name, limit, weight, ttlMs, timeoutMs, signal, onWait })
    this.owner = label ? `${box.owner}\t${label}` : box.owner
    this.id = box.newID()
  }

  async run (wait) {
    const until = performance.now() + this.timeoutMs
    const aborted = () => this.#wake()
    this.signal?.addEventListener('abort', aborted)
    this.box.listen(this.id, (words) => { this.#mail.push(words); this.#wake() })
    try {
      return await this.#askUntilGranted(wait, until)
    } catch (error) {
      const refused = error instanceof Busy || error instanceof TooHeavy || error instanceof Forced
      if (!refused || this.doubtful) await this.#takeBack() // nothing may stay behind
      this.box.ignore(this.id)
      throw error
    } finally {
      this.signal?.removeEventListener('abort', aborted)
    }
  }

  async #askUntilGranted (wait, until) {
    for (let heard = performance.now(); ;) {
      this.signal?.throwIfAborted()
      const sent = performance.now()
      // A waiter is believed in for claimMs, and never for longer than it will wait.
      const waitMs = wait ? Math.ceil(Math.max(1, Math.min(claimMs, until - sent))) : 0
      let pause = 100
      try {
        const [code, ...answer] = await this.box.call(
          'acquire', this.name, this.id, this.weight, this.limit, this.ttlMs, waitMs, claimMs, '-', this.owner)
        heard = performance.now()
        if (code === GRANTED && heard - sent < this.ttlMs / 2) return await this.#lease(answer[0], sent)
        // An answer that took too long is asked for again, for a lease with its whole ttl.
        pause = code === GRANTED ? 0 : this.#refusedOrPause(code, answer)
      } catch (error) {
        if (!passing(error)) throw error
        this.doubtful = true
        if (!wait || performance.now() - heard > claimMs) throw error
      }
      if (performance.now() >= until) throw new NotInTime(`${this.name} was not granted in time`)
      await this.#listenFor(Math.min(pause, until - performance.now()))
    }
  }

  // A caller who has given up meanwhile gets no lease.
  async #lease (token, sent) {
    this.signal?.throwIfAborted()
    return new Lease(this, token, sent)
  }

  // How long a waiter may be silent; throws if it is none.
  #refusedOrPause (code, answer) {
    switch (code) {
      case WAITING: {
        const [ahead, nextMs] = answer
        if (ahead !== this.#ahead) {
          this.#ahead = ahead
          this.onWait?.(ahead)
        }
        // At the latest after a third of the time for which the server waits for a word; or when a lease can expire,
        // staggered, so that not all waiters ask at once.
        return Math.min(claimMs / 3, nextMs + 1 + Math.min(5 * ahead, 250))
      }
      case REFUSED: throw new Busy(this.name, answer)
      case HEAVY: throw new TooHeavy(`${this.name}: weight ${this.weight} of limit ${answer[0]}`)
      default: throw new Forced(`${this.name}: an operator sent this waiter away`)
    }
  }

  // Waits for a message that is worth asking for, or for the time given.
  async #listenFor (ms) {
    for (let end = performance.now() + ms; performance.now() < end && !this.signal?.aborted;) {
      if (this.#mail.length === 0) {
        await new Promise((resolve) => {
          const timer = setTimeout(resolve, end - performance.now())
          this.#wake = () => { clearTimeout(timer); resolve() }
        })
        continue
      }
      // Grant, heavy, force and hello: the answer to a question says the rest, and confirms a grant for its whole ttl.
      // Only "ask" names a time, since nothing can be had before.
      const words = this.#mail.shift()
      if (words[0] !== 'ask') return
      end = performance.now() + Number(words[2])
    }
  }

  // Cancels on the server, which also bars the id for as long as a request may still be on its way.
  async #takeBack () {
    for (const end = performance.now() + claimMs; ;) {
      try {
        return await this.box.call('cancel', this.name, this.id, barMs(this.ttlMs))
      } catch (error) {
        // By then the server has forgotten the waiter.
        if (!passing(error) || performance.now() > end) return
      }
      await sleep(100)
    }
  }
}

/** Permits that are held, and renewed until they are released. */
class Lease {
  #ended = false
  #abort = new AbortController()
  #doubtful
  #deadline
  #deadlineTimer
  #renewTimer

  constructor ({ box, name, id, ttlMs, doubtful }, token, sent) {
    Object.assign(this, { box, name, id, ttlMs })
    this.token = token // larger than that of every grant before
    this.#doubtful = doubtful
    box.listen(id, ([verb]) => {
      if (verb === 'force') this.#lose(new Forced(`${name}: an operator ended the lease`))
    })
    this.#setDeadline(sent)
    this.#renewLater(ttlMs / 3)
  }

  /** An AbortSignal that is aborted before the server can give the permits to somebody else; its reason says why. */
  get signal () { return this.#abort.signal }

  /** Gives the permits back; the next in the queue has them when it resolves. Throws LeaseLost if it was lost. */
  async release () {
    if (!this.#ended) {
      this.#end()
      await this.#giveBack()
    }
    this.signal.throwIfAborted()
  }

  async [Symbol.asyncDispose] () { await this.release() }

  #end () {
    this.#ended = true
    clearTimeout(this.#deadlineTimer)
    clearTimeout(this.#renewTimer)
    this.box.ignore(this.id)
  }

  #lose (error) {
    if (this.#ended) return
    this.#end()
    this.#abort.abort(error)
  }

  // From the moment of sending, by a clock that nobody sets, and a little early: clocks run at different rates, and a
  // holder needs a moment to stop.
  #setDeadline (sent) {
    this.#deadline = sent + this.ttlMs - Math.min(Math.max(this.ttlMs / 20, 2), 500)
    clearTimeout(this.#deadlineTimer)
    this.#deadlineTimer = setTimeout(
      () => this.#lose(new LeaseLost(`${this.name}: the lease could not be renewed in time`)),
      this.#deadline - performance.now())
  }

  #renewLater (ms) { this.#renewTimer = setTimeout(() => this.#renew(), ms) }

  async #renew () {
    const sent = performance.now()
    try {
      const [held] = await this.box.call('renew', this.name, this.id, this.ttlMs, 0)
      if (this.#ended) return
      if (held === FORCED) return this.#lose(new Forced(`${this.name}: an operator ended the lease`))
      if (held === LOST) return this.#lose(new LeaseLost(`${this.name}: the lease had expired on the server`))
      this.#setDeadline(sent) // held; 3 says that somebody waits
      this.#renewLater(this.ttlMs / 3)
    } catch (error) {
      if (!passing(error)) return this.#lose(new LeaseLost(`${this.name}: the lease cannot be renewed`, { cause: error }))
      if (!this.#ended) this.#renewLater(Math.min(100, this.ttlMs / 20))
    }
  }

  // A request to acquire that went unanswered may reach the server after the release, and would take the permits for
  // nobody: cancel bars the id as well.
  async #giveBack () {
    for (;;) {
      try {
        if (this.#doubtful) return await this.box.call('cancel', this.name, this.id, barMs(this.ttlMs))
        const held = await this.box.call('release', this.name, this.id)
        if (held !== HELD) {
          const Why = held === FORCED ? Forced : LeaseLost
          this.#abort.abort(new Why(`${this.name}: the lease had ended on the server`))
        }
        return
      } catch (error) {
        if (!passing(error)) throw error
        if (performance.now() > this.#deadline) return // the server ends it by itself
        this.#doubtful = true // what the next attempt is told may be about this one
      }
      await sleep(100)
    }
  }
}

// Errors that may pass: no answer at all, or one of a server that is starting or has another role for the moment.
function passing (error) {
  return !(error instanceof SignalboxError || error instanceof DOMException) &&
    (!(error instanceof ReplyError) || /^(LOADING|READONLY|MASTERDOWN|BUSY|TRYAGAIN|CLUSTERDOWN)\b/.test(error.message))
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
