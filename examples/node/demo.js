// Takes turns inside a semaphore, together with everybody else who uses its name.
//
//   node demo.js NAME [--limit N] [--weight N] [--ttl S] [--hold S] [--turns N] [--timeout S] [--try | --campaign] [--url URL]

import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Box, SignalboxError } from '../../clients/node/index.js' // or npm install it, and import it from 'signalbox'

const { values: options, positionals: [name] } = parseArgs({
  allowPositionals: true,
  options: {
    limit: { type: 'string', default: '2' }, // how many may be inside
    weight: { type: 'string', default: '1' }, // how many permits to hold
    ttl: { type: 'string', default: '10' }, // seconds for which the permits outlive a crash
    hold: { type: 'string', default: '3' }, // seconds to stay inside
    turns: { type: 'string', default: '1' }, // how often to go inside
    timeout: { type: 'string' }, // seconds to wait at most
    try: { type: 'boolean' }, // do not wait
    campaign: { type: 'boolean' }, // win the election of that name, instead
    url: { type: 'string', default: process.env.SIGNALBOX_URL || 'redis://localhost:6379' }
  }
})

const say = (text) => process.stdout.write(`node:${process.pid} ${text}\n`)

const interrupt = new AbortController()
process.on('SIGINT', () => interrupt.abort())

async function turn (box) {
  const terms = { ttlMs: 1000 * options.ttl, label: 'demo.js' }
  const patience = { timeoutMs: options.timeout && 1000 * options.timeout, signal: interrupt.signal }
  const onWait = (ahead) => say(`waits with ${ahead} ahead`)
  const semaphore = box.semaphore(name, Number(options.limit))
  const weight = Number(options.weight)
  const lease = options.campaign
    ? await box.election(name).campaign({ ...terms, ...patience })
    : options.try
      ? await semaphore.tryAcquire({ ...terms, weight })
      : await semaphore.acquire({ ...terms, ...patience, weight, onWait })
  try {
    say(`is inside with token ${lease.token}`)
    await work(1000 * options.hold, lease.signal, interrupt.signal)
    say('goes')
  } finally {
    await lease.release()
  }
}

// The work would be here, and would stop when the lease is lost.
async function work (ms, ...signals) {
  const stop = new AbortController()
  for (const signal of signals) {
    signal.throwIfAborted()
    signal.addEventListener('abort', () => stop.abort(signal.reason))
  }
  await setTimeout(ms, undefined, { signal: stop.signal }).catch(() => stop.signal.throwIfAborted())
}

const box = new Box(options.url)
try {
  for (let n = 0; n < Number(options.turns) && !interrupt.signal.aborted; n++) await turn(box)
} catch (error) {
  if (!interrupt.signal.aborted && !(error instanceof SignalboxError)) throw error
  say(interrupt.signal.aborted ? 'gives up' : `${error.name}: ${error.message}`)
  process.exitCode = interrupt.signal.aborted ? 130 : 1
} finally {
  await box.close()
}
