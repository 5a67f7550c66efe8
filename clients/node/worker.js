// Workers: who runs jobs.
//
// A worker talks to the server in one call (exchange), which says what it has done, renews its lease and brings what it has
// room for. Its loop makes a call when there is something to say, when a message says that there is something to hear, and
// three times in a lease. A timer of its own, the watch, ends the jobs when the lease is over by the worker's own clock, and
// those that take too long: no server can hold it up. The rules are those of docs/functions-queue.md.
//
// Ids, tokens and records are byte strings, as wire.js has them.

import { hostname } from 'node:os'
import { Canceled, Fail, Invalid, LeaseLost, Retry, Snooze, Stopped, Timeout } from './errors.js'
import { attempts as usualAttempts, checkName, costText, encodeJSON, retainMs, sorted } from './queue.js'
import { enqueueArguments } from './schedule.js'
import { bytesOf, clock, explained, longestNapMs, look, passes, pauseMs, raw, sleep, utf8 } from './wire.js'

const deadRetainMs = 90 * 86_400_000
const mostClaims = 100
const mostReports = 500
const reportBytes = 4 << 20
const stopPatienceMs = 5000 // for which a worker waits for handlers whose jobs were ended
const notesBytes = 8 << 10
const everyNote = 1000 // ms

const now = () => new Date().toISOString()
// eslint-disable-next-line no-control-regex
const oneLine = (text) => Buffer.from(text.replace(/[\0-\x1f\x7f]/g, ' ')).subarray(0, 1000).toString().replace(/\ufffd+$/, '')

export class Job {
  #worker
  #abort = new AbortController()
  #notes

  /** @internal */
  constructor (worker, wireID, wireToken, record) {
    const [header, envelope = '', note = ''] = record.split('\n')
    const f = header.split('\t')
    if (f.length < 14) throw new Error('this is no record')
    this.#worker = worker
    this.id = utf8(wireID)
    this.kind = utf8(f[10])
    this.key = utf8(f[13])
    this.token = Number(wireToken)
    this.attempt = Number(f[3]) + 1
    this.crashes = Number(f[4])
    this.enqueued = new Date(Number(f[8]))
    this.args = null
    this.#notes = parsed(note)
    delete this.#notes.progress // of the attempt before
    // What the worker knows of it. Notes have versions: written, on their way, known to the server.
    Object.defineProperty(this, 'state', {
      value: {
        wireID, wireToken, envelope: utf8(envelope), cost: f[12], retainMs: Number(f[5]), cause: undefined, disowned: false,
        until: Infinity, written: 0, sent: 0, known: 0, sentAt: -Infinity, note: () => this.#note(), end: (cause) => this.#end(cause)
      }
    })
  }

  get signal () { return this.#abort.signal }

  check () {
    this.#worker.watch()
    this.signal.throwIfAborted()
  }

  progress (percent, what = '') {
    this.#notes.progress = { percent: Math.min(Math.max(percent, 0), 100), what: oneLine(what), at: now() }
    this.#written()
  }

  log (text) {
    this.#notes.log = [...this.#notes.log ?? [], { at: now(), attempt: this.attempt, text: oneLine(text) }]
    this.#written()
  }

  #written () {
    const lines = this.#notes.log ?? []
    while (lines.reduce((sum, { text }) => sum + 60 + bytesOf(text), 0) > notesBytes) lines.shift()
    this.state.written++
  }

  #note () { return report(this, 'note', 0, JSON.stringify(this.#notes)) }

  #end (cause) {
    this.state.cause ??= cause
    this.#abort.abort(this.state.cause)
  }
}

function parsed (note) {
  try {
    const notes = JSON.parse(utf8(note) || '{}')
    return typeof notes === 'object' && notes !== null && !Array.isArray(notes) ? notes : {}
  } catch {
    return {} // somebody else wrote it
  }
}

const report = ({ state: { wireID, wireToken } }, verb, number = 0, text = '') =>
  ({ id: wireID, token: wireToken, verb, number: Math.max(Math.floor(number), 0), text })

export class Worker {
  #handlers = new Map()
  #id = ''
  #call = 0
  #register = true // the next call is the first of its id
  #failures = 0
  #state = 'online'
  #rung = true // there is something to call for
  #full = true // the next call gives the inventory
  #expired = false // the lease is over
  #beat = 0 // when to call at the latest
  #told = 0 // when the inventory was given
  #deadline = Infinity // of the lease
  #stopping = false
  #drained = Infinity // when the time to drain is over
  #jobs = new Map() // that are this worker's, by id
  #running = new Set() // whose handlers have not returned: some may be others' by now
  #reports = []
  #seen = new Set() // the last tokens
  #bell = () => {}
  #watchTimer
  #ended

  constructor (queue, name = 'worker', { slots = 1, capacity = { slot: slots }, tags = [], drainMs = 30_000 } = {}) {
    this.queue = queue
    this.name = checkName('worker', name)
    this.drainMs = drainMs
    this.capacity = { ...capacity }
    costText(this.capacity, ':')
    this.tags = sorted([...tags].map((tag) => checkName('tag', tag)))
  }

  // What callers use.

  handle (kind, handler, { backoffMs = doubling } = {}) {
    this.#handlers.set(checkName('kind', kind), { handler, backoffMs })
    return this
  }

  start () {
    if (this.#handlers.size === 0) throw new Invalid(`worker ${this.name}: it has no handlers: register them first`)
    if (this.#ended) throw new Invalid(`worker ${this.name}: it runs, or has run: make another one`)
    this.#incarnate()
    this.#ended = this.#run()
    this.#ended.catch(() => {}) // join tells
    return this
  }

  async join () { await this.#ended }

  async run () { await this.start().join() }

  stop (drainMs = this.drainMs) {
    this.#stopping = true
    this.#drained = Math.min(this.#drained, clock() + drainMs)
    this.#ring()
  }

  away (away = true) {
    if (this.#state !== 'online' && this.#state !== 'away') return
    this.#state = away ? 'away' : 'online'
    this.#ring()
  }

  // What the queue tells.

  /** @internal Ends at once. */
  async end () {
    this.stop(0)
    await this.#ended?.catch(() => {}) // join tells
  }

  #ring () {
    this.#rung = true
    this.#bell()
  }

  /** @internal Messages may have gone by. */
  look () {
    this.#full = true
    this.#ring()
  }

  /** @internal */
  hear ([verb, , ...words]) {
    if (verb === 'jobs') this.#handed(words)
    else if (verb === 'look') this.look()
    else if (verb === 'wake') this.#ring()
    else if (verb === 'cancel' && words.length >= 2) this.#toldToCancel(words[0], utf8(words[1]))
  }

  #toldToCancel (id, cause) {
    if (id === '') return this.stop()
    this.#jobs.get(id)?.state.end(new Canceled('job canceled' + (cause ? `: ${cause}` : '')))
  }

  // The loop.

  // One whose lease has ended begins anew, with another part behind the dot.
  #incarnate () {
    const first = this.#id.split('.')[0]
    this.queue.unregister(this.#id)
    this.#id = this.queue.register(this, first)
    this.#call = 0
    this.#register = this.#rung = this.#full = true
    this.#expired = false
    this.#deadline = Infinity
  }

  async #run () {
    let why = new Stopped('the worker ends')
    try {
      await this.#work()
    } catch (error) {
      why = explained(`worker ${this.name} of queue ${this.queue.name}`, error)
      throw why
    } finally {
      for (const job of this.#jobs.values()) job.state.end(why)
      clearTimeout(this.#watchTimer)
      this.#watchTimer = null
      this.queue.unregister(this.#id)
    }
  }

  async #work () {
    for (let told = false; ;) {
      while (!this.#rung && !this.#expired && clock() < Math.min(this.#beat, this.#drained)) {
        await this.#listen(Math.min(this.#beat, this.#drained) - clock())
      }
      this.#rung = false
      if (this.#expired) this.#incarnate()
      if (this.#stopping) {
        this.#state = 'draining'
        const late = clock() >= this.#drained
        if (this.#running.size === 0 || (told && late)) return this.#farewell()
        if (late) {
          told = true
          for (const job of this.#jobs.values()) job.state.end(new Stopped('the worker ends'))
          this.#drained = clock() + stopPatienceMs
        }
      }
      await this.#makeCall()
    }
  }

  // Waits for the bell, or for the time given.
  #listen (ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.min(Math.max(ms, 1), longestNapMs))
      this.#bell = () => { clearTimeout(timer); resolve() }
    })
  }

  async #makeCall () {
    try {
      await this.#exchange()
      this.#failures = 0
      return
    } catch (error) {
      if (!passes(error) && !error.message.startsWith('LATE')) throw error
    }
    this.#failures++
    this.#full = true
    // What rings meanwhile is said by the next call.
    const until = clock() + pauseMs(this.#failures, this.queue.leaseMs)
    while (clock() < until && !this.#expired && !this.queue.closing.aborted) await this.#listen(until - clock())
    this.#rung = true
  }

  // The last calls: what has ended, and that the worker goes. What has not ended goes to others when the lease is over.
  async #farewell () {
    for (const until = clock() + stopPatienceMs; clock() < until;) {
      const last = this.#firstReports().length === this.#reports.length
      if (last && this.#running.size === 0) this.#state = 'gone'
      try {
        await this.#exchange()
        if (last) return
      } catch (error) {
        if (!passes(error)) throw error
        await sleep(pauseMs(++this.#failures, 3000))
      }
    }
  }

  #firstReports () {
    let size = 0
    const past = this.#reports.findIndex(({ text }, i) => i === mostReports || ((size += bytesOf(text)) > reportBytes && i > 0))
    return past < 0 ? [...this.#reports] : this.#reports.slice(0, past)
  }

  async #exchange () {
    const { args, reports, noted, inventory } = this.#saying()
    const sent = clock()
    let reply
    try {
      reply = await this.queue.ask('work', args)
    } catch (error) {
      for (const { job } of noted) job.state.sent = job.state.known
      throw error
    }
    const [said, nextMs, , claims, cancels, foreign, missing, ticks] = reply
    if (said === 'unknown') return this.#loseLease()
    for (const { job, version } of noted) job.state.known = version
    if (this.#expired) return // the watch was faster: what has come is another incarnation's
    const more = said === 'more'
    this.#full = (this.#full && !inventory) || more
    // The first call claims nothing, and one brings so many and no more.
    this.#rung ||= this.#register || more || claims.length >= mostClaims || this.#reports.length > reports
    this.#call++
    this.#register = false
    this.#deadline = sent + this.queue.leaseMs * 0.9
    this.#reports.splice(0, reports)
    if (inventory) {
      this.#told = sent
      for (const id of foreign) if (inventory.has(id) && this.#jobs.has(id)) this.#disown(this.#jobs.get(id))
    }
    this.#beat = sent + Math.min(this.queue.leaseMs / 3, nextMs >= 0 ? Math.max(nextMs, 1) : Infinity)
    this.watch()
    this.#handed(missing)
    this.#handed(claims)
    for (const id of cancels) this.#toldToCancel(id, '')
    for (let i = 0; i + 1 < ticks.length; i += 2) await this.#tick(utf8(ticks[i]), utf8(ticks[i + 1]))
  }

  // What the next call says.
  #saying () {
    const reports = this.#firstReports()
    const at = clock()
    const noted = [...this.#jobs.values()]
      .filter(({ state }) => state.written !== state.sent && at - state.sentAt >= everyNote).slice(0, 100)
      .map((job) => ({ job, version: job.state.written }))
    for (const { job, version } of noted) Object.assign(job.state, { sent: version, sentAt: at })
    const inventory = this.#full || this.#failures > 0 || reports.length === 0 || at - this.#told > this.queue.leaseMs / 3
      ? new Set([...this.#jobs.keys(), ...this.#reports.slice(reports.length).map(({ id }) => id)])
      : undefined
    const info = JSON.stringify({ name: this.name, host: hostname(), pid: process.pid, lease_ms: this.queue.leaseMs })
    const said = [...reports, ...noted.map(({ job }) => job.state.note())]
    const plain = said.every(({ verb, number, text }) => verb === 'done' && number === 0 && text === '')
    const args = [
      this.#id, this.#call + 1, this.queue.seed(), this.queue.leaseMs, this.#state, costText(this.#room(), ':'), this.tags.join(','),
      sorted(this.#handlers.keys()).join(','), info, this.#state === 'online' ? mostClaims : 0, this.#register ? 1 : 0,
      inventory ? raw([...inventory].sort().join(',')) : '-', plain ? 2 : 5
    ]
    for (const { id, token, verb, number, text } of said) args.push(raw(id), token, ...(plain ? [] : [verb, number, text]))
    return { args, reports: reports.length, noted, inventory }
  }

  // What is others' by now, and has a handler that runs still, takes room of which the server does not know.
  #room () {
    const room = { ...this.capacity }
    for (const { state: { disowned, cost } } of this.#running) {
      if (!disowned) continue
      for (const part of (utf8(cost) || 'slot=1').split(',')) {
        const [name, n] = part.split('=')
        if (name in room) room[name] = Math.max(room[name] - Number(n), 0)
      }
    }
    return room
  }

  // The lease.

  /** @internal Ends what is over, and waits for what ends next. */
  watch () {
    if (this.#watchTimer === null) return
    clearTimeout(this.#watchTimer)
    const at = look()
    if (this.#deadline <= at) this.#loseLease()
    let next = Math.min(this.#deadline, at + longestNapMs)
    for (const job of this.#jobs.values()) {
      if (job.state.until <= at) job.state.end(new Timeout(`job ${job.id} timed out`))
      else next = Math.min(next, job.state.until)
    }
    this.#watchTimer = setTimeout(() => this.watch(), Math.max(next - at, 1))
  }

  // The jobs may be others' by now. The loop begins anew.
  #loseLease () {
    for (const job of [...this.#jobs.values()]) this.#disown(job)
    this.#reports = []
    this.#deadline = Infinity
    this.#expired = true
    this.#ring()
  }

  #disown (job) {
    job.state.disowned = true
    this.#jobs.delete(job.state.wireID)
    job.state.end(new LeaseLost(`job ${job.id}: the worker was not heard in time: others may run it now`))
  }

  // Jobs.

  #handed (claims) {
    for (const claim of claims) {
      const [id, token] = claim.split('\t', 2)
      let job
      try {
        job = new Job(this, id, token, claim.slice(id.length + token.length + 2))
      } catch {
        continue // somebody else wrote it
      }
      if (this.#seen.has(token)) continue
      this.#seen.add(token)
      if (this.#seen.size > 20_000) this.#seen = new Set([...this.#seen].slice(10_000))
      if (!this.#handlers.has(job.kind) || this.#state !== 'online') {
        this.#reports.push(report(job, 'back'))
        this.#ring()
        continue
      }
      this.#jobs.set(id, job)
      this.#running.add(job)
      this.#attempt(job)
    }
  }

  // Runs a handler, and reports how it ended. It never rejects.
  async #attempt (job) {
    const { handler, backoffMs } = this.#handlers.get(job.kind)
    let attempts = usualAttempts
    let text = ''
    let error
    try {
      attempts = this.#open(job)
      const result = await handler(job)
      if (result !== undefined && result !== null) text = encodeJSON(result, 'the result')
    } catch (caught) {
      error = caught instanceof Invalid && caught.message.startsWith('the result') ? new Fail(caught.message) : caught ?? new Error('it was rejected')
    }
    let end
    try {
      end = verdict(job, backoffMs, attempts, text, error)
    } catch (broken) { // the caller's own backoff, or what was thrown
      end = report(job, 'dead', deadRetainMs, oneLine(`the backoff failed: ${broken}`))
    }
    this.#running.delete(job)
    if (this.#jobs.get(job.state.wireID) === job) this.#jobs.delete(job.state.wireID)
    if (!job.state.disowned) {
      if (job.state.written !== job.state.known) this.#reports.push(job.state.note())
      this.#reports.push(end)
    }
    this.#ring()
  }

  // Reads the envelope, and returns after how many attempts the job is dead.
  #open (job) {
    let envelope
    try {
      envelope = JSON.parse(job.state.envelope)
    } catch (cause) {
      throw new Fail(`the job does not decode: ${cause.message}`)
    }
    if (typeof envelope !== 'object' || envelope === null || envelope.codec) {
      throw new Fail(`the arguments are not JSON, and ${job.kind} is decoded as JSON: define it alike on both sides`)
    }
    job.args = envelope.args ?? null
    if (envelope.timeout_ms) {
      job.state.until = clock() + envelope.timeout_ms
      this.watch()
    }
    return envelope.attempts || usualAttempts
  }

  // A schedule's tick has come. If this fails, another worker is asked after five seconds.
  async #tick (name, text) {
    try {
      await this.queue.ask('enqueue', enqueueArguments(name, text, this.queue.seed(), Date.now()))
    } catch (error) {
      process.emitWarning(`schedule ${name} of queue ${this.queue.name}: ${error.message}`, 'SignalboxWarning')
    }
  }
}

function verdict (job, backoffMs, attempts, text, error) {
  const { cause, retainMs: retention } = job.state
  if (error === undefined) return report(job, 'done', retention, text)
  if (error instanceof Snooze) return report(job, 'snooze', error.afterMs)
  if (error instanceof Fail) return report(job, 'dead', deadRetainMs, oneLine(error.message))
  if (cause instanceof Canceled) return report(job, 'cancelled', Math.max(retention, retainMs), oneLine(cause.message))
  if (cause instanceof Stopped || error instanceof Stopped) return report(job, 'back')
  // What waits for the signal says no more than that it was aborted.
  const said = cause && (error === cause || error.name === 'AbortError') ? cause : error
  const line = oneLine(said instanceof Error ? `${said.name}: ${said.message}` : String(said))
  if (job.attempt >= attempts) return report(job, 'dead', deadRetainMs, line)
  return report(job, 'retry', error instanceof Retry ? error.afterMs : backoffMs(job.attempt), line)
}

function doubling (attempt) {
  const ms = Math.min(1000 * 2 ** Math.min(attempt - 1, 12), 3_600_000)
  return ms / 2 + Math.random() * ms / 2
}
