import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import {
  ALIVE, Canceled, Closed, Dead, Fail, Invalid, LeaseLost, Parent, Queue, Request, Retry, Snooze, Timeout, UnknownJob
} from '../index.js'
import { parseMessage } from '../queue.js'
import { nextTick } from '../schedule.js'
import { Proxy, eventually, fcall, nameOf, url } from './help.js'

function site (t) {
  const queue = new Queue(url, nameOf(t), { leaseMs: 30_000 })
  t.after(() => queue.close())
  return queue
}

function work (queue, handlers) {
  const worker = queue.worker('test', { slots: 4 })
  for (const [kind, handler] of Object.entries(handlers)) worker.handle(kind, handler, { backoffMs: () => 10 })
  return worker.start()
}

const keysOf = async (queue) =>
  (await fcall('signalbox_queue_keys', [])).map((word) => `signalbox:queue:{${queue.name.replaceAll('%', '%25').replaceAll('}', '%7D')}}:${word}`)
const jobsOf = async (queue) => (await fcall('signalbox_queue_stats', await keysOf(queue)))[1]
const soon = { timeoutMs: 60_000 }

// A promise, and what resolves it.
function gate () {
  let open
  const opened = new Promise((resolve) => { open = resolve })
  return { opened, open }
}

test('results come back', async (t) => {
  const queue = site(t)
  work(queue, { echo: (job) => job.args })
  for (const value of [null, 0, '', [1, 'ü\n\t', { a: null }], 1.5]) {
    assert.deepEqual(await (await queue.enqueue('echo', value)).result(soon), value)
  }
})

test('how jobs end', async (t) => {
  const queue = site(t)
  let snoozed = false
  work(queue, {
    fail: () => { throw new Fail('never') },
    flaky: ({ attempt }) => { if (attempt < 3) throw new TypeError('not yet'); return attempt },
    again: ({ attempt }) => { if (attempt < 2) throw new Retry('busy', 10); return attempt },
    snooze: ({ attempt }) => { if (!snoozed) { snoozed = true; throw new Snooze(50) } return attempt },
    odd: () => 10n,
    nothing: () => Promise.reject(), // eslint-disable-line prefer-promise-reject-errors
    stay: async (job) => { await once(job.signal, 'abort'); job.check() }
  })
  const end = async (kind, terms) => (await queue.enqueue(kind, null, terms)).result(soon)
  await assert.rejects(end('fail'), (error) => error instanceof Dead && error.reason === 'never')
  assert.equal(await end('flaky'), 3)
  await assert.rejects(end('flaky', { attempts: 2 }), (error) => error instanceof Dead && error.reason === 'TypeError: not yet')
  assert.equal(await end('again'), 2)
  await assert.rejects(end('stay', { timeoutMs: 100, attempts: 1 }), (error) => error instanceof Dead && /timed out/.test(error.reason))
  await assert.rejects(end('odd'), /does not encode/)
  await assert.rejects(end('nothing', { attempts: 1 }), Dead)
  assert.equal(await end('snooze'), 1)
  const job = await queue.enqueue('stay')
  await eventually(async () => await queue.cancel(job.id, 'enough') === 'told', 'it runs')
  await assert.rejects(job.result(soon), (error) => error instanceof Canceled && /enough/.test(error.message))
  await assert.rejects(queue.job('nobody').result(soon), UnknownJob)
})

test('terms', async (t) => {
  const queue = site(t)
  const [first, again] = [await queue.enqueue('echo', 1, { id: 'mine' }), await queue.enqueue('echo', 2, { id: 'mine' })]
  assert.deepEqual([first.duplicate, again.duplicate, again.id], [false, true, 'mine'])
  const one = await queue.enqueue('echo', 1, { unique: 'u', while: ALIVE })
  assert.equal((await queue.enqueue('echo', 2, { unique: 'u', while: ALIVE })).id, one.id)
  const order = []
  const later = await queue.enqueue('order', 'later', { delayMs: 3_600_000 })
  const child = await queue.enqueue('order', 'child', { after: [later.id] })
  const low = await queue.enqueue('order', 'low', { priority: -5 })
  const high = await queue.enqueue('order', 'high', { priority: 5 })
  queue.worker('one').handle('order', ({ args }) => { order.push(args) }).start()
  for (const job of [low, high]) await job.result(soon)
  assert.deepEqual(order, ['high', 'low'])
  assert.equal(await queue.retry(later.id), 'ok')
  for (const job of [later, child]) await job.result(soon)
  assert.deepEqual(order.slice(2), ['later', 'child'])
  work(queue, { fail: () => { throw new Fail('never') } })
  const failed = await queue.enqueue('fail', null)
  await assert.rejects(failed.result(soon), Dead)
  await assert.rejects(queue.enqueue('order', 'orphan', { after: [failed.id] }), Parent)
  for (const [kind, args, terms] of [['a,b'], ['x', 1, { attempts: 0 }], ['x', NaN], ['x', 1, { id: 'a', unique: 'b' }], ['x', () => {}]]) {
    assert.throws(() => new Request(kind, args, terms), Invalid)
  }
})

test('capacities and tags', async (t) => {
  const queue = site(t)
  let [running, most] = [0, 0]
  const full = gate()
  queue.worker('agent', { capacity: { call: 2 }, tags: ['de'] }).handle('call', async () => {
    most = Math.max(most, ++running)
    if (running === 2) full.open()
    await full.opened // until two run at once
    running--
  }).start()
  const terms = { cost: { call: 1 }, tags: ['de'] }
  const jobs = await queue.enqueueMany(Array.from({ length: 10 }, () => new Request('call', null, terms)))
  const foreign = await queue.enqueue('call', null, { cost: { call: 1 }, tags: ['fr'] })
  for (const job of jobs) await job.result(soon)
  assert.equal(most, 2)
  await assert.rejects(foreign.result({ timeoutMs: 100 }), Timeout)
  await assert.rejects(foreign.result({ signal: AbortSignal.timeout(100) }), { name: 'TimeoutError' })
})

test('many jobs from many producers run once', async (t) => {
  const queue = site(t)
  const other = new Queue(url, queue.name)
  t.after(() => other.close())
  const ran = []
  work(queue, { note: ({ args }) => { ran.push(args) } })
  const jobs = await Promise.all(Array.from({ length: 120 }, (_, i) => [queue, other][i % 2].enqueue('note', i)))
  await Promise.all(jobs.map((job) => job.result(soon)))
  assert.deepEqual(ran.sort((a, b) => a - b), Array.from({ length: 120 }, (_, i) => i))
})

test('lost replies do nothing twice', async (t) => {
  const mine = site(t)
  const proxy = await Proxy.listen()
  const queue = new Queue(proxy.url, mine.name, { leaseMs: 5000 })
  t.after(() => queue.close().finally(() => proxy.close()))
  const ran = []
  await queue.enqueue('note', 'first', { retainMs: 0 })
  proxy.cut = true
  const enqueuing = queue.enqueue('note', 'second', { retainMs: 0 })
  await eventually(async () => await jobsOf(queue) === 2, 'it has arrived')
  proxy.cut = false
  assert.equal((await enqueuing).duplicate, false)
  work(queue, { note: ({ args }) => { ran.push(args) } })
  await eventually(() => ran.length === 2, 'both have run')
  proxy.drop()
  assert.equal(await (await queue.enqueue('note', 'third')).result(soon), null)
  assert.deepEqual(ran, ['first', 'second', 'third'])
})

test('a worker that loses its lease ends its jobs', async (t) => {
  const mine = site(t)
  const proxy = await Proxy.listen()
  const queue = new Queue(proxy.url, mine.name, { leaseMs: 3000 })
  t.after(() => queue.close().finally(() => proxy.close()))
  const [begun, ended] = [gate(), gate()]
  const crashes = []
  work(queue, {
    stay: async (job) => {
      crashes.push(job.crashes)
      begun.open()
      if (crashes.length > 1) return 'done'
      await once(job.signal, 'abort')
      ended.open(job.signal.reason)
    }
  })
  const job = await mine.enqueue('stay')
  await begun.opened
  proxy.cut = true
  assert.ok(await ended.opened instanceof LeaseLost)
  proxy.cut = false
  assert.equal(await job.result(soon), 'done')
  assert.deepEqual(crashes, [0, 1])
})

test('a worker drains', async (t) => {
  const queue = site(t)
  const [begun, go] = [gate(), gate()]
  const worker = work(queue, { stay: async () => { begun.open(); await go.opened; return 'in time' } })
  const job = await queue.enqueue('stay')
  await begun.opened
  worker.stop()
  go.open()
  await worker.join()
  assert.equal(await job.result(soon), 'in time')
  const waiting = await queue.enqueue('stay')
  await assert.rejects(waiting.result({ timeoutMs: 100 }), Timeout)
})

test('what does not end in time runs elsewhere, and nobody died over it', async (t) => {
  const queue = site(t)
  const begun = gate()
  const first = work(queue, { stay: async (job) => { begun.open(); await once(job.signal, 'abort'); job.check() } })
  const job = await queue.enqueue('stay')
  await begun.opened
  first.stop(0)
  await first.join()
  work(queue, { stay: ({ crashes }) => crashes })
  assert.equal(await job.result(soon), 0)
})

test('notes are kept', async (t) => {
  const queue = site(t)
  work(queue, {
    chatty: (job) => {
      job.progress(50, 'half\nway')
      for (let i = 0; i < 300; i++) job.log(`line ${i} ${'x'.repeat(50)}`)
      throw new Fail('over')
    }
  })
  const job = await queue.enqueue('chatty')
  await assert.rejects(job.result(soon), Dead)
  const [, kept] = await fcall('signalbox_queue_look', await keysOf(queue), job.id, '')
  assert.match(kept, /"what":"half way"/)
  assert.match(kept, /line 299/)
  assert.doesNotMatch(kept, /line 1 /)
})

test('close ends who waits, and gives back what runs', async (t) => {
  const queue = site(t)
  const other = new Queue(url, queue.name)
  const begun = gate()
  work(other, { stay: async (job) => { begun.open(); await once(job.signal, 'abort'); job.check() } })
  const job = await queue.enqueue('stay')
  await begun.opened
  const refused = assert.rejects(other.job(job.id).result(), Closed)
  await other.close()
  await refused
  work(queue, { stay: ({ crashes }) => crashes })
  assert.equal(await job.result(soon), 0)
  await assert.rejects(other.enqueue('stay'), Closed)
})

test('schedules tick', async (t) => {
  const queue = site(t)
  const ticked = gate()
  work(queue, { note: ({ args }) => { if (args === 'tick') ticked.open() } })
  const schedule = JSON.stringify({
    spec: '@every 1s', missed: 'last', item: { ID: '', Lane: { Kind: 'note', Tags: null, Cost: '', Key: '' }, Priority: 1, Rest: '{"args":"tick"}' }
  })
  await fcall('signalbox_queue_schedule', await keysOf(queue), 'set', 'often', nextTick('@every 1s', '', Date.now()), schedule)
  await ticked.opened
})

test('calendars', () => {
  const ticks = (spec, zone, after, n = 3) => {
    const found = []
    for (let ms = Date.parse(after); found.length < n;) {
      ms = nextTick(spec, zone, ms)
      found.push(new Date(ms).toISOString().slice(5, 16).replace('T', ' '))
    }
    return found
  }
  assert.deepEqual(ticks('*/20 9-10 * * mon', '', '2026-01-01T00:00Z'), ['01-05 09:00', '01-05 09:20', '01-05 09:40'])
  assert.deepEqual(ticks('0 0 13 * fri', '', '2026-01-01T00:00Z'), ['01-02 00:00', '01-09 00:00', '01-13 00:00'])
  // The clocks of Berlin leave out 02:30 on March 29, and repeat it on October 25.
  assert.deepEqual(ticks('30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', 2), ['03-30 00:30', '03-31 00:30'])
  assert.deepEqual(ticks('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', 2), ['10-25 00:30', '10-26 01:30'])
  assert.deepEqual(ticks('30 * * * *', 'Europe/Berlin', '2026-10-25T00:00Z', 3), ['10-25 00:30', '10-25 01:30', '10-25 02:30'])
  assert.deepEqual(ticks('@every 1m30s', '', '2026-01-01T00:00Z', 2), ['01-01 00:01', '01-01 00:03'])
  for (const bad of ['@every 1ms', '61 * * * *', '* * *', '0 0 30 2 *']) assert.throws(() => nextTick(bad, '', 0), Invalid)
  assert.throws(() => nextTick('* * * * *', 'Nowhere', 0), Invalid)
})

test('messages', () => {
  const bytes = (text) => Buffer.from(text).toString('latin1')
  assert.deepEqual(parseMessage(bytes('4:wake4:p/ü0:')), ['wake', bytes('p/ü'), ''])
  assert.deepEqual(parseMessage('9:x'), [])
  assert.deepEqual(parseMessage('x'), [])
})
