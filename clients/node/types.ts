// What index.d.ts promises, as a program in TypeScript uses it: `npm test` compiles it, and nothing runs it.

import { Box, Busy, Fail, Lease, Parent, Queue, Request, Retry, Snooze, Term, ALIVE } from 'signalbox'

export async function locks (url: string, stop: AbortSignal): Promise<number> {
  await using box = new Box(url, { owner: 'somebody' })
  const lease: Lease = await box.semaphore('downloads', 2).acquire({ weight: 2, ttlMs: 1000, timeoutMs: 1000, signal: stop, onWait: (n: number) => n })
  lease.check()
  await lease.release()
  await using term: Term = await box.election('leader').campaign({ label: 'x' })
  await using reader = await box.rwlock('catalog').read()
  // @ts-expect-error: what is not waited for has no timeout
  await box.mutex('a').tryAcquire({ timeoutMs: 1 }).catch((error: unknown) => error instanceof Busy && error.retryAfterMs)
  // @ts-expect-error: leases are acquired
  new Lease()
  return box.mutex('a').use(async ({ token, signal }) => signal.aborted ? term.token : reader.token + token)
}

export async function queues (url: string): Promise<string> {
  await using queue = new Queue(url, 'mail', { leaseMs: 5000 })
  const worker = queue.worker('w', { capacity: { call: 1 }, tags: new Set(['de']), drainMs: 1 })
  worker.handle<{ to: string }>('mail.send', async (job) => {
    job.progress(50, job.args.to)
    if (job.attempt > 3) throw new Fail('never')
    throw job.crashes > 0 ? new Snooze(1) : new Retry(new Error('later'), 1000)
  }, { backoffMs: (attempt) => attempt })
  worker.start().stop()
  const [first] = await queue.enqueueMany([new Request('mail.send', { to: 'x' }, { at: new Date(), cost: { call: 1 }, while: ALIVE, unique: 'x' })])
  if (first instanceof Parent) throw first
  // @ts-expect-error: no such term
  await queue.enqueue('mail.send', null, { delay: 1 })
  const job = await queue.enqueue<string>('mail.send', null, { withinMs: 10, onFailure: 'go' })
  return job.result({ timeoutMs: 1 })
}
