// Semaphores, mutexes, read/write locks and elections.
//
// What happens to an acquisition between the caller and the server is one state machine, written down once (Acquisition):
// asking, held, ending, over. Each makes one request at a time: acquire, again as the heartbeat of who waits; renew; release or
// cancel. What it does next, and when, is a date (due), and so is the end of its patience or of its lease (date): one timer
// waits for the earlier of the two. A Box hears in its inbox that something is worth asking for at once, and hands that on.
// The rules by number are those of docs/functions.md.

import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { Busy, Closed, Forced, Invalid, LeaseLost, Timeout, TooHeavy } from './errors.js'
import { Connection, Inbox, bytesOf, clock, encode, explained, inDoubt, longestNapMs, look, passes, pauseMs, sleep } from './wire.js'

const claimMs = 3000 // for which the server believes in a waiter that is silent
const arrivalMs = 900_000 // for which a request can stay on its way
const writer = 1_000_000 // the limit of a read/write lock, and the weight of a writer
const latestTimerMs = 2 ** 31 - 1

const ASKING = 'asking', HELD = 'held', ENDING = 'ending', OVER = 'over'

/** The four keys of a resource. They have one hash tag, so a Cluster keeps them together. */
export function keysOf (name) {
  const [, tag] = /\{([^}]*)\}/.exec(name) ?? [] // a name may have a hash tag of its own
  const state = tag ? `signalbox:{${encode(tag)}}{${encode(name)}}` : `signalbox:{${encode(name)}}`
  return [state, `${state}:leases`, `${state}:queue`, `${state}:seen`]
}

export class Box {
  #connection
  #inbox
  #process = randomBytes(8).toString('hex') // begins every id and names the inbox, so it must be nobody else's
  #numbers = 0
  #live = new Map() // acquisitions by id
  #closing = false
  #nap

  constructor (url = 'redis://localhost:6379', { owner = `${hostname()}:${process.pid}` } = {}) {
    this.owner = owner
    this.#connection = new Connection(url)
    this.#inbox = new Inbox(url, `signalbox:inbox:${this.#process}`, (message) => this.#hear(message), () => this.#look())
  }

  semaphore (name, limit) { return new Semaphore(this, name, limit) }
  mutex (name) { return new Semaphore(this, name, 1) }
  rwlock (name) { return new RWLock(this, name) }
  election (name) { return new Election(this, name) }

  async close (timeoutMs = 5000) {
    this.#closing = true
    const ends = Promise.all([...this.#live.values()].map((a) => a.finish(new Closed(`${a.name}: the box was closed`))))
    const late = new AbortController()
    await Promise.race([ends.then(() => late.abort()), sleep(timeoutMs, late.signal)])
    for (const a of [...this.#live.values()]) a.over()
    clearInterval(this.#nap)
    this.#inbox.close()
    this.#connection.close()
  }

  async [Symbol.asyncDispose] () { await this.close() }

  // What acquisitions use.

  /** @internal */
  begin (a) {
    if (this.#closing) throw new Closed(`${a.name}: the box was closed`)
    const id = `${this.#process}:${++this.#numbers}`
    this.#live.set(id, a)
    // Timers do not know that the computer slept.
    this.#nap ??= setInterval(() => { look(); for (const a of [...this.#live.values()]) a.step() }, longestNapMs)
    return id
  }

  /** @internal */
  call (request, keys, args) { return this.#connection.call(`signalbox_${request}`, keys, args) }

  /** @internal */
  listen () { this.#inbox.open() }

  /** @internal */
  forget (a) {
    this.#live.delete(a.id)
    if (this.#live.size > 0) return
    clearInterval(this.#nap)
    this.#nap = undefined
  }

  #hear (message) {
    const words = message.split(' ')
    this.#live.get(words[1])?.hear(words)
  }

  #look () {
    for (const a of this.#live.values()) a.askAgain()
  }
}

// One acquisition, known to the server by its id. Whatever it sends again, it sends with the same id (rule 1).
class Acquisition {
  state = ASKING
  token = 0
  why // it was refused or lost, or given up
  due = 0
  date = Infinity // of the end of the caller's patience, of the lease, or of the patience for the end
  doubtful = false // a request to acquire went unanswered, and may reach the server yet (rule 7)
  waits = false // the server has it in the queue
  #asked = false // one request at a time
  #failures = 0
  #heard = clock()
  #ahead = -1 // as onWait was told
  #timer
  #soon // when the timer rings
  #abort = new AbortController()
  #given = false
  #ended
  #end

  constructor (box, name, limit, wait, Lease, { weight = 1, ttlMs = 30_000, label = '', timeoutMs = Infinity, signal, onWait } = {}) {
    if (typeof name !== 'string' || name === '' || bytesOf(name) > 512) {
      throw new Invalid(`the name ${JSON.stringify(String(name).slice(0, 40))} has ${bytesOf(String(name))} bytes: it is 1 to 512`)
    }
    if (!whole(limit, 1, 2 ** 31 - 1) || !whole(weight, 1, 2 ** 31 - 1)) {
      throw new Invalid(`${name}: a limit of ${limit} and a weight of ${weight}: both are whole numbers from 1 to 2147483647`)
    }
    if (!(ttlMs >= 10 && ttlMs <= 31_536_000_000)) throw new Invalid(`${name}: a ttl of ${ttlMs} ms: it is between 10 and 31536000000`)
    Object.assign(this, { box, name, limit, weight, wait, signal, onWait, ttlMs: Math.floor(ttlMs), keys: keysOf(name) })
    this.owner = box.owner + (label ? '\t' + label.trim().split(/\s+/).join(' ') : '')
    this.until = clock() + timeoutMs
    this.date = this.until
    this.#ended = new Promise((resolve) => { this.#end = resolve })
    this.lease = new Lease(this)
  }

  get lost () { return this.#abort.signal }

  /** Resolves to the lease. */
  async granted () {
    this.signal?.throwIfAborted()
    this.id = this.box.begin(this)
    const giveUp = () => this.finish(this.signal.reason)
    this.signal?.addEventListener('abort', giveUp)
    try {
      return await new Promise((resolve, reject) => {
        this.grant = resolve
        this.refuse = reject
        this.step()
      })
    } finally {
      this.signal?.removeEventListener('abort', giveUp)
    }
  }

  /** Does what has come due, and waits for what comes next. */
  step () {
    const now = clock()
    if (this.date <= now) {
      if (this.state === HELD) this.lose(new LeaseLost(`${this.name}: the lease could not be renewed in time`))
      else if (this.state === ASKING) this.finish(new Timeout(`${this.name} was not granted in time`))
      else if (this.state === ENDING) this.over()
    }
    if (this.state !== OVER && this.due <= now && !this.#asked) this.#ask(now)
    this.#plan()
  }

  #plan () {
    if (this.state === OVER) return
    const next = Math.min(this.date, this.#asked ? Infinity : this.due)
    if (next === this.#soon) return
    clearTimeout(this.#timer)
    this.#soon = next
    if (next === Infinity) return
    this.#timer = setTimeout(() => { this.#soon = undefined; this.step() }, Math.min(Math.max(next - clock(), 0), latestTimerMs))
  }

  // What it wants.

  async #ask (now) {
    this.due = Infinity
    this.#asked = true
    const [request, ...args] = this.#request(now)
    const sent = clock()
    let reply, error
    try {
      reply = await this.box.call(request, this.keys, args)
    } catch (caught) {
      error = caught
    }
    this.#asked = false
    if (this.state === OVER) return
    if (error) this.#failed(request, error)
    else this.#answered(request, reply, sent)
    this.#plan()
  }

  #request (now) {
    if (this.state === ASKING) {
      // A waiter is believed in for claimMs, and never for longer than it will wait.
      const waitMs = this.wait ? Math.ceil(Math.max(1, Math.min(claimMs, this.until - now))) : 0
      return ['acquire', this.id, this.weight, this.limit, this.ttlMs, waitMs, claimMs, '-', this.owner]
    }
    if (this.state === HELD) return ['renew', this.id, this.ttlMs, 0]
    // cancel bars the id for as long as a late request could bring about a lease that harms (rule 6).
    if (this.doubtful || !this.#given) return ['cancel', this.id, Math.max(claimMs, Math.min(this.ttlMs, arrivalMs))]
    return ['release', this.id]
  }

  askAgain () {
    if (this.state !== ASKING || !this.waits) return
    this.due = 0
    this.step()
  }

  // What it is told.

  #answered (request, reply, sent) {
    this.#failures = 0
    this.#heard = clock()
    if (request === 'acquire') return this.#told(reply, sent)
    if (request === 'renew') return this.#renewed(reply[0], sent)
    if (request === 'release' && reply !== 1) {
      this.why ??= reply === 2
        ? new Forced(`${this.name}: an operator ended the lease`)
        : new LeaseLost(`${this.name}: the lease had ended on the server`)
    }
    this.over()
  }

  #told ([code, ...rest], sent) {
    if (this.state !== ASKING) { // it was given up meanwhile
      this.doubtful = true
      this.due = 0
    } else if (code === 1 && clock() - sent >= this.ttlMs / 2) {
      this.due = 0 // for a lease with its whole ttl
    } else if (code === 1) {
      this.state = HELD
      this.token = rest[0]
      this.#given = true
      this.#extend(sent)
      this.grant(this.lease)
    } else if (code === 2) {
      this.#wait(rest[0], rest[1], sent)
    } else if (code === 3) {
      this.#refused(new Busy(this.name, ...rest))
    } else if (code === 4) {
      this.#refused(new Forced(`${this.name}: an operator sent the waiter away`))
    } else {
      this.#refused(new TooHeavy(`${this.name}: a weight of ${this.weight} never fits into ${rest[0]}`))
    }
  }

  // At the latest it asks after a third of the time for which the server waits for a word; or when a lease can expire,
  // staggered, so that not all waiters ask at once (rule 2).
  #wait (ahead, nextMs, sent) {
    this.waits = true
    this.box.listen()
    this.due = sent + Math.min(claimMs / 3, nextMs > 0 ? nextMs + 5 * (ahead + 1) : claimMs)
    if (ahead === this.#ahead) return
    this.#ahead = ahead
    try {
      this.onWait?.(ahead)
    } catch (error) { // the caller's own, which must not end what others need
      process.emitWarning(error)
    }
  }

  #refused (why) {
    this.why = why
    this.refuse(why)
    if (this.doubtful) this.#goodbye()
    else this.over()
  }

  #renewed (code, sent) {
    if (this.state !== HELD) this.due = 0 // for the release
    else if (code === 2) this.lose(new Forced(`${this.name}: an operator ended the lease`))
    else if (code === 0) this.lose(new LeaseLost(`${this.name}: the lease had expired on the server`))
    else this.#extend(sent)
  }

  #extend (sent) {
    // From the moment of sending, and a little early: clocks run at different rates, and a holder needs a moment (rule 5).
    this.date = sent + this.ttlMs - Math.min(Math.max(this.ttlMs / 20, 2), 500)
    this.due = sent + this.ttlMs / 3
  }

  #failed (request, error) {
    this.#failures++
    if (request === 'acquire' && inDoubt(error)) this.doubtful = true
    const said = explained(this.name, error)
    const now = clock()
    if (this.state === ASKING && (!passes(error) || !this.wait || now - this.#heard > claimMs)) {
      this.#refused(said)
    } else if (this.state === HELD && !passes(error)) {
      this.lose(said)
    } else if (this.state === ENDING && !passes(error)) {
      this.why ??= said
      this.over()
    } else {
      if (this.state === ENDING) this.doubtful = true // what the next attempt is told may be about this one
      this.due = now + pauseMs(this.#failures, Math.min(this.ttlMs, claimMs))
    }
  }

  hear ([verb, , ms]) {
    if (this.state === HELD && verb === 'force') {
      this.lose(new Forced(`${this.name}: an operator ended the lease`))
    } else if (this.state === ASKING) {
      this.due = Math.min(this.due, clock() + (verb === 'ask' ? Number(ms) || 0 : 0))
      this.step()
    }
  }

  // How it ends.

  /** Ends it, and resolves when the server knows, or when it ends by itself. Why is for a caller who waits still. */
  finish (why) {
    if (this.state === ASKING) {
      this.why = why
      this.doubtful = true
      this.refuse(why)
      this.#goodbye()
    } else if (this.state === HELD) {
      this.#goodbye()
    }
    return this.#ended
  }

  #goodbye () {
    this.state = ENDING
    this.due = 0
    this.date = Math.min(this.#given ? this.date : Infinity, clock() + this.ttlMs) // then the server ends it by itself
    this.step()
  }

  lose (why) {
    this.why = why
    this.over()
    this.#abort.abort(why)
  }

  over () {
    if (this.state === OVER) return
    this.state = OVER
    clearTimeout(this.#timer)
    this.box.forget(this)
    this.#end()
  }
}

const whole = (n, least, most) => Number.isSafeInteger(n) && n >= least && n <= most

export class Lease {
  #acquisition

  constructor (acquisition) {
    this.#acquisition = acquisition
    this.name = acquisition.name
  }

  get id () { return this.#acquisition.id }
  get token () { return this.#acquisition.token }
  get signal () { return this.#acquisition.lost }

  check () {
    look()
    this.#acquisition.step() // its timer may be late
    this.signal.throwIfAborted()
  }

  async release () {
    await this.#acquisition.finish()
    if (this.#acquisition.why) throw this.#acquisition.why
  }

  async [Symbol.asyncDispose] () { await this.release() }
}

export class Term extends Lease {
  resign () { return this.release() }
}

export class Semaphore {
  constructor (box, name, limit) { Object.assign(this, { box, name, limit }) }

  async tryAcquire (options) { return new Acquisition(this.box, this.name, this.limit, false, Lease, options).granted() }
  async acquire (options) { return new Acquisition(this.box, this.name, this.limit, true, Lease, options).granted() }
  async use (work, options) { return inside(await this.acquire(options), work) }
}

async function inside (lease, work) {
  let result
  try {
    result = await work(lease)
  } catch (error) {
    await lease.release().catch(() => {}) // what went wrong inside says more
    // Unless it went wrong because the lease was lost.
    if (lease.signal.aborted && error?.name === 'AbortError') throw lease.signal.reason
    throw error
  }
  await lease.release()
  return result
}

export class RWLock {
  #semaphore

  constructor (box, name) {
    this.#semaphore = new Semaphore(box, name, writer)
    this.name = name
  }

  async read (options) { return this.#semaphore.acquire({ ...options, weight: 1 }) }
  async write (options) { return this.#semaphore.acquire({ ...options, weight: writer }) }
}

export class Election {
  constructor (box, name) { Object.assign(this, { box, name }) }

  async campaign (options) { return new Acquisition(this.box, this.name, 1, true, Term, { ttlMs: 15_000, ...options, weight: 1 }).granted() }
}
