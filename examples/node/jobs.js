// Runs jobs of a queue, or pushes one and waits for its result, together with everybody else who uses the queue.
//
//   node jobs.js work QUEUE [--slots N] [--lease S] [--url URL]
//   node jobs.js push QUEUE KIND ARGUMENTS [--id ID] [--url URL]
//
// The worker knows three kinds: sum adds numbers, stay stays until it is told to end, flaky fails once.

import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { Queue, SignalboxError } from '../../clients/node/index.js' // or npm install it, and import it from 'signalbox'

const { values: options, positionals: [command, name, kind, args] } = parseArgs({
  allowPositionals: true,
  options: {
    slots: { type: 'string', default: '2' }, // jobs at once
    lease: { type: 'string', default: '15' }, // seconds after which a dead worker is replaced
    id: { type: 'string' },
    url: { type: 'string', default: process.env.SIGNALBOX_URL || 'redis://localhost:6379' }
  }
})

const say = (text) => process.stdout.write(`node:${process.pid} ${text}\n`)

async function work (queue) {
  const worker = queue.worker('jobs.js', { slots: Number(options.slots) })
  worker.handle('sum', (job) => {
    say(`runs ${job.id} with token ${job.token}`)
    job.progress(50, 'adding')
    return job.args.reduce((sum, n) => sum + n, 0)
  })
  worker.handle('stay', async (job) => {
    say(`stays with ${job.id}`)
    if (!job.signal.aborted) await once(job.signal, 'abort')
    say(`leaves ${job.id}: ${job.signal.reason.name}`)
    job.check()
  })
  worker.handle('flaky', (job) => {
    if (job.attempt === 1) throw new Error('not the first time')
    return job.attempt
  }, { backoffMs: () => 10 })
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => worker.stop())
  await worker.run()
  say('has ended')
}

async function push (queue) {
  const job = await queue.enqueue(kind, JSON.parse(args), { id: options.id })
  say(`pushed ${job.id}`)
  say(`result ${JSON.stringify(await job.result({ timeoutMs: 60_000 }))}`)
}

const queue = new Queue(options.url, name, { leaseMs: 1000 * options.lease })
try {
  await (command === 'work' ? work(queue) : push(queue))
} catch (error) {
  if (!(error instanceof SignalboxError)) throw error
  say(`${error.name}: ${error.message}`)
  process.exitCode = 1
} finally {
  await queue.close()
}
