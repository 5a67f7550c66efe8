// The way to the server: names, clocks, which errors pass, and the inbox. Locks and queues both stand on it.
//
// Nothing is repeated here: whoever calls knows what a repetition means. Replies are numbers and byte strings, in which each
// character is one byte, since jobs are cut out of them by bytes: utf8 makes text of them, and raw sends one as it came.

import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { Invalid, SignalboxError, ServerError, Unavailable, UnsupportedServer } from './errors.js'

/** For how long a server may take to answer. A request that takes longer is repeated. */
const answerWithinMs = 3000
/** How often an inbox asks whether its connection still is one. */
const pingMs = 10_000

let slept = 0
let awake

/** Milliseconds by a clock that nobody sets, and that knows of the computer's sleep as of the last look. */
export const clock = () => performance.now() + slept

/**
 * Looks whether the computer slept, while its server and other clients may not have, and returns the time. Timers stand still
 * meanwhile, on Linux that clock of Node does too: so whoever is woken by a timer, or asks whether a lease is lost, looks.
 */
export function look () {
  const monotonic = performance.now()
  const uptime = readUptime()
  if (uptime !== undefined) {
    awake ??= uptime - monotonic
    if (uptime - monotonic - awake - slept > 50) slept = uptime - monotonic - awake // it has steps of 10 ms
  }
  return monotonic + slept
}

function readUptime () {
  if (process.platform !== 'linux') return undefined
  try {
    return 1000 * parseFloat(readFileSync('/proc/uptime', 'latin1'))
  } catch {
    return undefined // there is no /proc: sleep is not known of
  }
}

look()

/** The longest time until the next look. */
export const longestNapMs = 1000

export const encode = (name) => name.replaceAll('%', '%25').replaceAll('}', '%7D')
export const utf8 = (bytes) => Buffer.from(bytes, 'latin1').toString()
export const raw = (bytes) => Buffer.from(bytes, 'latin1')
export const bytesOf = (text) => Buffer.byteLength(text)

function textOf (reply) {
  if (Array.isArray(reply)) return reply.map(textOf)
  return Buffer.isBuffer(reply) ? reply.toString('latin1') : reply
}

/** No request was sent, since there was no connection. */
class NotConnected extends Error {}

const refused = (error) => error.name === 'ReplyError'
const codes = /^(LOADING|BUSY|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|OOM|NOREPLICAS|UNKILLABLE)\b/

/** Whether it is worth trying again. */
export const passes = (error) => !(error instanceof SignalboxError) && (!refused(error) || codes.test(error.message))

/** Whether the request may have reached the server, or may do so yet. */
export const inDoubt = (error) => !(error instanceof NotConnected || refused(error))

/** The error of this package that says what has happened. */
export function explained (what, cause) {
  if (cause instanceof SignalboxError) return cause
  const text = cause.message
  if (text.includes('Function not found')) {
    return new UnsupportedServer(`${what}: the server lacks the functions: run signalbox functions install --url … (${text})`, { cause })
  }
  if (text.startsWith('WIRE ')) return new UnsupportedServer(`${what}: ${text.slice(5)}`, { cause })
  return passes(cause) ? new Unavailable(`${what}: ${text}`, { cause }) : new ServerError(`${what}: ${text}`, { cause })
}

/** How long to wait after so many failures in a row of what matters for a span of time. */
export const pauseMs = (failures, spanMs) => spanMs / 60 * (1 + Math.random()) * 2 ** Math.min(Math.max(failures - 1, 0), 4)

/** Waits, or until the signal is aborted. */
export function sleep (ms, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    if (signal?.aborted) done()
    else signal?.addEventListener('abort', done)
  })
}

function connect (url, options) {
  let target = url
  if (/^unix:/.test(url)) {
    const { pathname, searchParams, username, password } = new URL(url)
    const db = Number(searchParams.get('db') ?? 0)
    target = { path: decodeURIComponent(pathname), db, username: username || undefined, password: password || undefined }
  } else if (!/^rediss?:\/\//.test(url)) {
    throw new Invalid(`the server ${url}: its URL begins with redis://, rediss:// or unix://`)
  }
  const all = {
    lazyConnect: true, enableReadyCheck: false, disableClientInfo: true, connectTimeout: answerWithinMs, disconnectTimeout: 1,
    maxRetriesPerRequest: 0, enableOfflineQueue: false, autoResendUnfulfilledCommands: false, autoResubscribe: false, ...options
  }
  return typeof target === 'string' ? new Redis(target, all) : new Redis({ ...target, ...all })
}

/** One connection for calls. */
export class Connection {
  #redis
  #lastError = new Error('there is no connection')
  #connecting // a promise
  #closed = false

  constructor (url) {
    this.#redis = connect(url, { commandTimeout: answerWithinMs, retryStrategy: () => 50 })
    this.#redis.on('error', (error) => { this.#lastError = error })
  }

  /** Calls a function. */
  async call (name, keys, args) {
    await this.#connected()
    const epoch = this.#redis.connectionEpoch
    try {
      return textOf(await this.#redis.callBuffer('FCALL', name, keys.length, ...keys, ...args))
    } catch (error) {
      // A connection on which an answer is missing is of no use, unless there is another one by now.
      if (!refused(error) && epoch === this.#redis.connectionEpoch) this.#redis.disconnect(!this.#closed)
      if (error.name !== 'MaxRetriesPerRequestError') throw error
      throw new Error('the server has closed the connection', { cause: error }) // which is what ioredis calls so
    }
  }

  #connected () {
    const redis = this.#redis
    if (redis.status === 'ready') return undefined
    if (this.#closed) throw new NotConnected('the connection was closed')
    if (redis.status === 'wait' || redis.status === 'end') redis.connect().catch(() => {}) // the events say it
    this.#connecting ??= new Promise((resolve, reject) => {
      const done = (then) => {
        clearTimeout(timer)
        redis.off('ready', ready).off('close', closed).off('end', closed)
        this.#connecting = undefined
        then()
      }
      const ready = () => done(resolve)
      const closed = () => done(() => reject(
        refused(this.#lastError) ? this.#lastError : new NotConnected(this.#lastError.message, { cause: this.#lastError })))
      const timer = setTimeout(closed, answerWithinMs)
      redis.on('ready', ready).on('close', closed).on('end', closed)
    })
    return this.#connecting
  }

  close () {
    this.#closed = true
    this.#redis.disconnect()
  }
}

/**
 * One subscription for a process, on a connection of its own. Messages are hints: whenever it is open (again), opened is
 * called, since some may have gone by. Until then heartbeats do its work, and say what is wrong.
 */
export class Inbox {
  #redis
  #ping

  constructor (url, channel, hear, opened) {
    this.#redis = connect(url, { retryStrategy: (failures) => pauseMs(failures, answerWithinMs) })
    this.#redis.on('error', () => {})
    this.#redis.on('ready', () => {
      this.#redis.subscribe(channel).then(opened, () => this.#redis.disconnect(this.#ping !== undefined))
    })
    this.#redis.on('messageBuffer', (_, message) => hear(textOf(message)))
  }

  /** Opens it, if it is not. */
  open () {
    if (this.#ping) return
    this.#ping = setInterval(() => this.#look(), pingMs)
    this.#redis.connect().catch(() => {})
  }

  #look () {
    if (this.#redis.status !== 'ready') return
    const epoch = this.#redis.connectionEpoch
    const cut = () => { if (epoch === this.#redis.connectionEpoch) this.#redis.disconnect(this.#ping !== undefined) }
    const timer = setTimeout(cut, answerWithinMs)
    this.#redis.ping().catch(cut).finally(() => clearTimeout(timer))
  }

  close () {
    clearInterval(this.#ping)
    this.#ping = undefined
    this.#redis.disconnect()
  }
}
