import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Box, Busy, Closed, Forced, Invalid, LeaseLost, Term, Timeout, TooHeavy, Unavailable, UnsupportedServer } from '../index.js'
import { keysOf } from '../locks.js'
import { explained } from '../wire.js'
import { Proxy, eventually, fcall, nameOf, url } from './help.js'

const left = async (name) => (await fcall('signalbox_inspect', keysOf(name), 10)).slice(4, 7)

// Two boxes, as in two processes, and a name.
function site (t) {
  const boxes = [new Box(url), new Box(url)]
  t.after(() => Promise.all(boxes.map((box) => box.close())))
  return [...boxes, nameOf(t)]
}

test('a mutex excludes, and tokens grow', async (t) => {
  const [box, other, name] = site(t)
  const first = await box.mutex(name).acquire()
  await assert.rejects(other.mutex(name).tryAcquire(), (error) => error instanceof Busy && error.retryAfterMs > 20_000)
  await first.release()
  const second = await other.mutex(name).tryAcquire()
  assert.ok(second.token > first.token)
  await second.release()
  assert.deepEqual(await left(name), [0, 0, 0])
})

test('waiters come in the order of arrival', async (t) => {
  const [box, other, name] = site(t)
  const held = await box.semaphore(name, 2).acquire({ weight: 2 })
  const turns = []
  const waits = []
  for (let i = 0; i < 8; i++) {
    turns.push([box, other][i % 2].semaphore(name, 2).use(({ token }) => ({ token, i }), { onWait: (ahead) => waits.push(ahead) }))
    await eventually(async () => (await left(name))[2] === i + 1, `${i + 1} wait`)
  }
  await eventually(() => waits.length >= 8, 'each knows how many are ahead')
  assert.deepEqual(waits.slice(0, 8).sort(), [0, 1, 2, 3, 4, 5, 6, 7])
  await held.release()
  const order = (await Promise.all(turns)).sort((a, b) => a.token - b.token)
  assert.deepEqual(order.map(({ i }) => i), [0, 1, 2, 3, 4, 5, 6, 7])
})

test('who gives up leaves nothing', async (t) => {
  const [box, other, name] = site(t)
  await box.mutex(name).acquire()
  await assert.rejects(other.mutex(name).acquire({ timeoutMs: 100 }), Timeout)
  await eventually(async () => (await left(name))[2] === 0, 'nobody waits')
  const stop = new AbortController()
  const waiting = other.mutex(name).acquire({ signal: stop.signal, onWait: () => stop.abort() })
  await assert.rejects(waiting, { name: 'AbortError' })
  await eventually(async () => (await left(name))[2] === 0, 'nobody waits any more')
  await assert.rejects(other.mutex(name).acquire({ signal: stop.signal }), { name: 'AbortError' })
})

test('a lease renews itself', async (t) => {
  const [box, other, name] = site(t)
  const lease = await box.mutex(name).acquire({ ttlMs: 4000 })
  await assert.rejects(other.mutex(name).acquire({ timeoutMs: 5000 }), Timeout)
  lease.check()
  await lease.release()
})

test('an operator ends a lease', async (t) => {
  const [box, other, name] = site(t)
  const lease = await box.mutex(name).acquire()
  const waiting = new Promise((resolve) => resolve(other.mutex(name).acquire()))
  await eventually(async () => (await left(name))[2] === 1, 'it waits')
  const [id] = (await fcall('signalbox_inspect', keysOf(name), 10))[8]
  await fcall('signalbox_force', keysOf(name), id, 3000)
  await assert.rejects(waiting, Forced)
  await fcall('signalbox_force', keysOf(name), lease.id, 3000)
  await assert.rejects(lease.release(), Forced)
  await assert.rejects(lease.release(), LeaseLost)
})

test('work that waits for the signal ends with its lease', async (t) => {
  const [box, , name] = site(t)
  const inside = box.mutex(name).use(async (lease) => {
    await fcall('signalbox_force', keysOf(name), lease.id, 3000)
    await sleep(60_000, undefined, { signal: lease.signal })
  }, { ttlMs: 1500 })
  await assert.rejects(inside, Forced)
})

test('the holder knows by itself', async (t) => {
  const [, other, name] = site(t)
  const proxy = await Proxy.listen()
  const box = new Box(proxy.url)
  t.after(() => box.close(100).finally(() => proxy.close()))
  const lease = await box.mutex(name).acquire({ ttlMs: 1000 })
  proxy.cut = true
  const waiting = other.mutex(name).acquire()
  await new Promise((resolve) => lease.signal.addEventListener('abort', resolve))
  assert.ok(lease.signal.reason instanceof LeaseLost)
  const next = await waiting
  assert.ok(next.token > lease.token)
  assert.throws(() => lease.check(), LeaseLost)
  await next.release()
})

test('a holder that could not run knows when it asks', async (t) => {
  const [box, , name] = site(t)
  const lease = await box.mutex(name).acquire({ ttlMs: 100 })
  for (const until = performance.now() + 100; performance.now() < until;);
  assert.throws(() => lease.check(), LeaseLost)
})

test('a lost reply costs nothing', async (t) => {
  const [, , name] = site(t)
  const proxy = await Proxy.listen()
  const box = new Box(proxy.url)
  t.after(() => box.close().finally(() => proxy.close()))
  await (await box.mutex(name).acquire()).release()
  proxy.cut = true // the next request arrives, and its answer does not
  const acquiring = box.mutex(name).acquire()
  await eventually(async () => (await left(name))[0] === 1, 'it has arrived')
  proxy.cut = false
  const lease = await acquiring
  assert.deepEqual((await left(name)).slice(0, 2), [1, 1])
  await lease.release()
  assert.deepEqual(await left(name), [0, 0, 0])
})

test('a broken callback harms nobody else', async (t) => {
  const [box, other, name] = site(t)
  const warned = new Promise((resolve) => process.once('warning', resolve))
  const lease = await box.mutex(name).acquire()
  const stop = new AbortController()
  const waiting = other.mutex(name).acquire({ signal: stop.signal, onWait: () => { throw new Error('broken') } })
  assert.equal((await warned).message, 'broken')
  stop.abort()
  await assert.rejects(waiting, { name: 'AbortError' })
  await lease.release()
  await (await other.mutex(name).acquire({ timeoutMs: 60_000 })).release()
})

test('readers and writers', async (t) => {
  const [box, other, name] = site(t)
  const readers = await Promise.all([box.rwlock(name).read(), other.rwlock(name).read()])
  await assert.rejects(box.rwlock(name).write({ timeoutMs: 100 }), Timeout)
  await Promise.all(readers.map((lease) => lease.release()))
  const lease = await box.rwlock(name).write()
  await assert.rejects(other.rwlock(name).read({ timeoutMs: 100 }), Timeout)
  await lease.release()
})

test('an election passes on', async (t) => {
  const [box, other, name] = site(t)
  const term = await box.election(name).campaign()
  const candidate = other.election(name).campaign()
  await eventually(async () => (await left(name))[2] === 1, 'it waits')
  await term.resign()
  assert.ok(await candidate instanceof Term)
})

test('many take turns', async (t) => {
  const [box, , name] = site(t)
  let [inside, most] = [0, 0]
  await Promise.all(Array.from({ length: 50 }, () => box.semaphore(name, 3).use(async () => {
    most = Math.max(most, ++inside)
    await sleep(2)
    inside--
  })))
  assert.ok(most <= 3)
})

test('close releases, and ends who waits', async (t) => {
  const name = nameOf(t)
  const box = new Box(url)
  await box.mutex(name).acquire()
  const waiting = box.mutex(name).acquire()
  const refused = assert.rejects(waiting, Closed)
  await eventually(async () => (await left(name))[2] === 1, 'it waits')
  await box.close()
  await refused
  assert.deepEqual(await left(name), [0, 0, 0])
  await assert.rejects(box.mutex(name).acquire(), Closed)
})

test('what is invalid is told without a server', async (t) => {
  const box = new Box('redis://localhost:1')
  t.after(() => box.close())
  await assert.rejects(box.mutex('').acquire(), Invalid)
  await assert.rejects(box.semaphore('x', 0).acquire(), Invalid)
  await assert.rejects(box.mutex('x').acquire({ ttlMs: 1 }), Invalid)
  assert.throws(() => new Box('localhost:6379'), Invalid)
  const [there, , name] = site(t)
  await assert.rejects(there.semaphore(name, 2).acquire({ weight: 3 }), TooHeavy)
})

test('errors say what to do', () => {
  const missing = Object.assign(new Error('ERR Function not found'), { name: 'ReplyError' })
  assert.ok(explained('db', missing) instanceof UnsupportedServer)
  assert.match(explained('db', missing).message, /^db: .*signalbox functions install/)
  const old = Object.assign(new Error('WIRE these functions speak wire version 1 of the queue, and the client 2: update'), { name: 'ReplyError' })
  assert.ok(explained('db', old) instanceof UnsupportedServer)
})

test('a server that is away', async (t) => {
  const taken = createServer()
  await new Promise((resolve) => taken.listen(0, '127.0.0.1', resolve))
  const { port } = taken.address()
  await new Promise((resolve) => taken.close(resolve))
  const box = new Box(`redis://127.0.0.1:${port}`)
  await assert.rejects(box.mutex('db').tryAcquire(), (error) => error instanceof Unavailable && /^db: .*ECONNREFUSED/.test(error.message))
  await box.close()
})
