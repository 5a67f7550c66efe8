// Task queues: who enqueues, and who waits for results. Who runs jobs is in worker.js.
//
// A Queue makes one call of its producer at a time, numbered: the server tells a call that comes again, since its reply was
// lost, from a new one. What is enqueued meanwhile joins the next call. Results are heard of in the inbox, and looked for when
// messages may have been lost. docs/functions-queue.md describes the calls.

import { randomBytes } from 'node:crypto'
import { Canceled, Closed, Dead, Invalid, Parent, SignalboxError, Timeout, UnknownJob } from './errors.js'
import { Connection, Inbox, bytesOf, clock, encode, explained, passes, pauseMs, sleep, utf8 } from './wire.js'
import { Worker } from './worker.js'

const wireVersion = '1'
const most = 500 // jobs in a call
const payload = 1 << 20 // bytes of arguments, or of a result
const lookMs = 30_000 // how often a waiter looks by itself, should all messages be lost

export const attempts = 20 // how often a job is tried
export const retainMs = 60_000 // for which a job that is done is kept, with its result
export const WAITING = 'wlh'
export const ALIVE = 'wlhc'

export function checkName (what, name, most = 128, commas = false) {
  // eslint-disable-next-line no-control-regex
  if (typeof name !== 'string' || name === '' || bytesOf(name) > most || /[\0-\x1f\x7f]/.test(name) || (!commas && name.includes(','))) {
    throw new Invalid(`${what} ${JSON.stringify(String(name).slice(0, 40))}: it is 1 to ${most} bytes without control characters${commas ? '' : ' and commas'}`)
  }
  return name
}

export function encodeJSON (value, what) {
  let text
  try {
    text = JSON.stringify(value, (key, v) => {
      if (typeof v === 'number' && !Number.isFinite(v)) throw new TypeError(`${v} is no number of JSON`)
      return v
    })
  } catch (cause) {
    throw new Invalid(`${what} does not encode as JSON: ${cause.message}`, { cause })
  }
  if (text === undefined) throw new Invalid(`${what} does not encode as JSON: it is a ${typeof value}`)
  if (bytesOf(text) > payload) {
    throw new Invalid(`${what} has ${bytesOf(text)} bytes, at most ${payload} are allowed: keep it elsewhere, and pass its place`)
  }
  return text
}

export function costText (cost, by) {
  for (const [name, amount] of Object.entries(cost)) {
    checkName('capacity', name)
    if (/[:=]/.test(name) || !Number.isInteger(amount) || amount < 0 || amount > 2 ** 30) {
      throw new Invalid(`capacity ${JSON.stringify(name)} of ${amount}: no colon, no equals sign, a whole number from 0 to 2^30`)
    }
  }
  return sorted(Object.keys(cost)).map((name) => `${name}${by}${cost[name]}`).join(',')
}

// As bytes, which is how every other language and the server sort them.
export const sorted = (texts) => [...new Set(texts)].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))

export class Request {
  constructor (kind, args = null, {
    id, delayMs = 0, at, priority = 0, key = '', tags = [], cost = {}, retainMs: retain = retainMs, timeoutMs = 0,
    attempts: tries = attempts, unique = '', while: states = WAITING, after = [], afterAny = false, onFailure = 'cancel'
  } = {}) {
    this.kind = checkName('kind', kind)
    this.id = id
    const tagged = sorted([...tags].map((tag) => checkName('tag', tag)))
    if (key !== '') checkName('key', key, 512, true)
    if (tagged.length > 16 || !(tries >= 1) || !Number.isInteger(tries) || !Number.isInteger(priority) || Math.abs(priority) > 2 ** 20 ||
      after.length > 1000 || !['cancel', 'hold', 'go'].includes(onFailure)) {
      throw new Invalid(`${kind}: at most 16 tags and 1000 parents, a whole priority up to 2^20, an attempt at least, and onFailure is cancel, hold or go`)
    }
    if (id !== undefined) {
      checkName('job id', id)
      if (unique !== '' || after.includes(id)) {
        throw new Invalid(`${kind}: a job has an id of its own or a fingerprint, not both, and does not wait for itself`)
      }
    }
    if (unique !== '') checkName('fingerprint', unique, 512, true)
    if (unique !== '' && states !== WAITING && states !== ALIVE) throw new Invalid(`${kind}: while is WAITING or ALIVE`)
    this.lane = [kind, tagged.join(','), costText(cost, '='), key].join('\t')
    const due = at === undefined ? String(milliseconds(delayMs, 'delayMs')) : '@' + milliseconds(Number(at), 'at')
    const fingerprint = id !== undefined ? 'id' : unique === 'id' ? 'id ' : unique
    const terms = [due, String(priority), String(milliseconds(retain, 'retainMs')), unique !== '' ? states : '', fingerprint]
    const parents = sorted(after.map((parent) => checkName('job id', parent)))
    this.terms = terms.join() === '0,0,0,,' && parents.length === 0
      ? ''
      : [...terms, ...(parents.length > 0 ? [afterAny ? 'any' : 'all', onFailure, parents.join(',')] : [''])].join('\t')
    const envelope = [`"args":${encodeJSON(args, `the argument of ${kind}`)}`]
    if (timeoutMs > 0) envelope.push(`"timeout_ms":${Math.max(milliseconds(timeoutMs, 'timeoutMs'), 1)}`)
    if (tries !== attempts) envelope.push(`"attempts":${tries}`)
    this.text = `\n{${envelope.join(',')}}`
  }
}

function milliseconds (ms, what) {
  if (!Number.isFinite(ms)) throw new Invalid(`${what} is ${ms}: it is a number`)
  return Math.max(Math.floor(ms), 0)
}

export class Enqueued {
  constructor (queue, id, duplicate = false) { Object.assign(this, { queue, id, duplicate }) }

  async result ({ timeoutMs = Infinity, signal } = {}) {
    signal?.throwIfAborted()
    const wait = this.queue.wait(this.id)
    const giveUp = () => wait.reject(signal.reason)
    signal?.addEventListener('abort', giveUp)
    const timer = timeoutMs < 2 ** 31 && setTimeout(
      () => wait.reject(new Timeout(`job ${this.id} has not ended in ${timeoutMs} ms`)), Math.max(timeoutMs, 0))
    try {
      const text = await wait.ended
      return text === '' ? null : JSON.parse(text)
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', giveUp)
      this.queue.forget(this.id, wait)
    }
  }
}

export class Queue {
  #connection
  #inbox
  #closing = new AbortController()
  #prefix
  #keys // a promise
  #ids = 0
  #seeds = 0n
  #workers = new Map() // those that run, by id
  #workerIDs = 0
  #batches = [] // that no call has taken yet
  #producing // a promise
  #call = 0
  #unknown // the batches of a call of which nobody knows whether it has run
  #waits = new Map() // by id, what waits for the job
  #looks = new Map() // by id, when to look at it
  #looking // a promise
  #bell = () => {}

  constructor (url = 'redis://localhost:6379', name = 'default', { leaseMs = 15_000 } = {}) {
    if (!(leaseMs >= 1000 && leaseMs <= 3_600_000)) throw new Invalid(`a lease of ${leaseMs} ms is not between a second and an hour`)
    this.name = checkName('queue', name, 256, true)
    this.leaseMs = Math.floor(leaseMs)
    this.process = randomBytes(8).toString('hex')
    this.#prefix = `signalbox:queue:{${encode(name)}}:`
    this.#connection = new Connection(url)
    this.#inbox = new Inbox(url, `signalbox:queue-inbox:${this.process}`, (message) => this.#hear(message), () => this.#opened())
  }

  async close () {
    this.#closing.abort()
    this.#bell()
    for (const id of [...this.#waits.keys()]) this.#endWait(id, new Closed(`queue ${this.name} was closed`))
    await Promise.all([...this.#workers.values()].map((worker) => worker.end()))
    this.#inbox.close()
    this.#connection.close()
    await this.#looking
  }

  async [Symbol.asyncDispose] () { await this.close() }

  // Calls, for the worker as well.

  /** @internal Calls a function, with the keys that the library says a queue has. */
  async ask (name, args) {
    if (this.#closing.signal.aborted && this.#workers.size === 0) throw new Closed(`queue ${this.name} was closed`)
    for (let again = false; ; again = true) {
      const keys = await this.#askKeys()
      try {
        return await this.#connection.call(`signalbox_queue_${name}`, keys, args)
      } catch (error) {
        // There is another version of the library by now. It has done nothing.
        if (again || !error.message.startsWith('KEYS ')) throw error
        this.#keys = undefined
      }
    }
  }

  #askKeys () {
    this.#keys ??= (async () => {
      await this.#connection.call('signalbox_queue_version', [], [wireVersion])
      const words = await this.#connection.call('signalbox_queue_keys', [], [])
      return words.map((word, i) => this.#prefix + word + (i === words.length - 1 ? this.process : ''))
    })()
    const asked = this.#keys
    asked.catch(() => { if (this.#keys === asked) this.#keys = undefined })
    return asked
  }

  /** @internal */
  seed () { return BigInt.asUintN(64, ++this.#seeds * 0x9E3779B97F4A7C15n).toString(16) }

  /** @internal */
  get closing () { return this.#closing.signal }

  // Asks until the server has answered, or has refused for good.
  async #untilKnown (doing, name, args, timeoutMs) {
    const until = clock() + timeoutMs
    for (let failures = 1; ; failures++) {
      try {
        return await this.ask(name, args)
      } catch (error) {
        const pause = pauseMs(failures, this.leaseMs)
        if (!passes(error) || clock() + pause > until || this.closing.aborted) throw explained(`${doing} ${this.name}`, error)
        await sleep(pause, this.closing)
      }
    }
  }

  // Producing.

  async enqueue (kind, args, { withinMs = 60_000, ...terms } = {}) {
    const [outcome] = await this.enqueueMany([new Request(kind, args, terms)], { withinMs })
    if (outcome instanceof SignalboxError) throw outcome
    return outcome
  }

  async enqueueMany (requests, { withinMs = 60_000 } = {}) {
    const found = []
    for (let start = 0; start < requests.length;) {
      const batch = { items: [], size: 0, outcomes: undefined }
      while (start < requests.length && fits(batch, 1, bytesOf(requests[start].text))) {
        const request = requests[start++]
        batch.items.push({ id: request.id ?? this.#newID(), request })
        batch.size += bytesOf(request.text)
      }
      const outcomes = await this.#enqueue(batch, withinMs)
      batch.items.forEach(({ id, request }, i) => {
        const [what, other] = [outcomes[i][0], utf8(outcomes[i].slice(1))]
        found.push(what === 'p'
          ? new Parent(`enqueue ${request.kind}: job ${other} has failed`)
          : new Enqueued(this, what === 'u' ? other : id, what === 's' || what === 'u'))
      })
    }
    return found
  }

  job (id) { return new Enqueued(this, id) }

  #newID () { return this.process.slice(0, 10) + (++this.#ids).toString(16) }

  async #enqueue (batch, withinMs) {
    this.#batches.push(batch)
    // What gathers until the turn begins joins its call: then there is nothing left for the turns behind it.
    const before = this.#producing
    const turn = (async () => {
      await before?.catch(() => {}) // who made that call is told
      if (!batch.outcomes && this.#unknown) await this.#produce(this.#unknown, withinMs) // nothing else comes before it
      while (!batch.outcomes) {
        this.#call++
        await this.#produce(this.#take(), withinMs)
      }
    })()
    this.#producing = turn
    try {
      await turn
    } finally {
      if (!batch.outcomes) this.#batches = this.#batches.filter((b) => b !== batch) // no call has it, or the unknown one
    }
    return batch.outcomes
  }

  #take () {
    const call = { items: [], size: 0, batches: [] }
    while (this.#batches.length > 0 && fits(call, this.#batches[0].items.length, this.#batches[0].size)) {
      const batch = this.#batches.shift()
      call.batches.push(batch)
      call.items.push(...batch.items)
      call.size += batch.size
    }
    return call
  }

  async #produce (call, withinMs) {
    const args = [this.#call, this.seed(), '', '', '', call.items.some(({ request }) => request.terms) ? '0' : '1']
    for (const { id, request } of call.items) args.push(id, request.lane, request.terms, request.text)
    this.#unknown = call
    let reply
    try {
      reply = await this.#untilKnown('enqueue on', 'enqueue', args, withinMs)
    } catch (error) {
      // After what passes, the next to come asks again, under this number.
      if (error.name !== 'Unavailable') this.#unknown = undefined
      throw error
    }
    this.#unknown = undefined
    let start = 0
    for (const batch of call.batches) batch.outcomes = reply[0].slice(start, start += batch.items.length)
  }

  async cancel (id, cause = '') {
    return (await this.#untilKnown('cancel on', 'change', ['cancel', this.seed(), cause, '', id], 60_000))[0]
  }

  async retry (id) { return (await this.#untilKnown('retry on', 'change', ['retry', this.seed(), '', '', id], 60_000))[0] }

  worker (name, options) { return new Worker(this, name, options) }

  /** @internal Gives a worker that runs an id. */
  register (worker, first) {
    if (this.closing.aborted) throw new Closed(`queue ${this.name} was closed`)
    const number = (++this.#workerIDs).toString(16)
    const id = first ? `${first}.${number}` : `${this.process}/${number}`
    this.#workers.set(id, worker)
    this.#inbox.open()
    return id
  }

  /** @internal */
  unregister (id) { this.#workers.delete(id) }

  // Waiting.

  /** @internal */
  wait (id) {
    if (this.closing.aborted) throw new Closed(`queue ${this.name} was closed`)
    const wait = {}
    wait.ended = new Promise((resolve, reject) => Object.assign(wait, { resolve, reject }))
    this.#waits.set(id, [...this.#waits.get(id) ?? [], wait])
    this.#looks.set(id, 0)
    this.#inbox.open()
    this.#looking ??= this.#runLooks()
    this.#bell()
    return wait
  }

  /** @internal */
  forget (id, wait) {
    const waits = (this.#waits.get(id) ?? []).filter((w) => w !== wait)
    if (waits.length > 0) return this.#waits.set(id, waits)
    this.#waits.delete(id)
    this.#looks.delete(id)
    this.#bell()
  }

  // Looks one after the other while there is anything to look at.
  async #runLooks () {
    let failures = 0
    while (this.#looks.size > 0 && !this.closing.aborted) {
      const now = clock()
      let [next, id] = [Infinity, undefined]
      for (const [some, at] of this.#looks) if (at < next) [next, id] = [at, some]
      if (next > now) {
        await new Promise((resolve) => {
          const timer = setTimeout(resolve, next - now)
          this.#bell = () => { clearTimeout(timer); resolve() }
        })
        continue
      }
      this.#looks.set(id, now + lookMs)
      try {
        this.#saw(id, await this.ask('look', [id, this.process]))
        failures = 0
      } catch (error) {
        if (!passes(error)) {
          this.#endWait(id, explained(`wait for job ${id} of ${this.name}`, error))
          continue
        }
        if (this.#looks.has(id)) this.#looks.set(id, 0)
        await sleep(pauseMs(++failures, this.leaseMs), this.closing)
      }
    }
    this.#looking = undefined
  }

  #saw (id, [state, kept]) {
    if (state === 'unknown') {
      this.#endWait(id, new UnknownJob(`job ${id} of ${this.name}: it may have ended, and not be kept: see retainMs`))
    } else if (state === 'ended') {
      const end = kept.indexOf('\n')
      const [how, , n] = kept.slice(0, end).split('\t')
      this.#endWait(id, outcome(id, how, kept.slice(end + 1, end + 1 + Number(n))))
    }
  }

  #endWait (id, end) {
    const waits = this.#waits.get(id) ?? []
    this.#waits.delete(id)
    this.#looks.delete(id)
    for (const { resolve, reject } of waits) end instanceof Error ? reject(end) : resolve(end)
  }

  // The inbox.

  #opened () {
    for (const id of this.#looks.keys()) this.#looks.set(id, 0)
    this.#bell()
    for (const worker of this.#workers.values()) worker.look()
  }

  #hear (message) {
    const words = parseMessage(message)
    if (words.length < 2) return
    if (words[0] === 'ended' && words.length >= 4) {
      const id = utf8(words[1])
      this.#endWait(id, outcome(id, words[2], words[3]))
    } else {
      this.#workers.get(words[1])?.hear(words)
    }
  }
}

const fits = (call, items, size) => call.items.length === 0 || (call.items.length + items <= most && call.size + size <= payload)

function outcome (id, state, bytes) {
  const text = utf8(bytes)
  if (state === 'd') return text
  return state === 'x' ? new Dead(id, text) : new Canceled(`job ${id}: ${text}`)
}

/** The words of a message, each as its length in bytes, a colon, and the word. Of what is none there are no words. */
export function parseMessage (message) {
  const words = []
  while (message !== '') {
    const [head, digits] = /^(\d{1,9}):/.exec(message) ?? []
    if (head === undefined || Number(digits) > message.length - head.length) return []
    words.push(message.slice(head.length, head.length + Number(digits)))
    message = message.slice(head.length + Number(digits))
  }
  return words
}
