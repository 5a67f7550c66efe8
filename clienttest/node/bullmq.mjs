// BullMQ on a server: node bullmq.mjs HOST PORT. Each part has a queue of its own; all wait for events, none for time.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { FlowProducer, Queue, QueueEvents, UnrecoverableError, Worker } from 'bullmq';

const [host, port] = process.argv.slice(2);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const open = [];

function keep(thing) {
  thing.on('error', (error) => fail(error));
  open.push(thing);
  return thing;
}

function fail(error) {
  console.error(error);
  process.exit(1);
}

// bench is a queue with its events, which are a stream that is read with XREAD BLOCK.
async function bench(name, options = {}) {
  const queue = keep(new Queue(name, { connection, ...options }));
  const events = keep(new QueueEvents(name, { connection, lastEventId: '0' }));
  await events.waitUntilReady();
  return { queue, events };
}

const worker = (name, process, options = {}) =>
  keep(new Worker(name, process, { connection, drainDelay: 1, ...options }));

// completed resolves when n jobs of the worker have ended, with their results in the order in which they ended.
function completed(worker, n) {
  return new Promise((resolve) => {
    const results = [];
    worker.on('completed', (job, result) => {
      results.push(result);
      if (results.length === n) resolve(results);
    });
  });
}

async function plain() {
  const { queue, events } = await bench('plain');
  const seen = [];
  for (const name of ['added', 'waiting', 'active', 'progress', 'completed']) {
    events.on(name, ({ jobId }) => seen.push(`${name} ${jobId}`));
  }
  const job = await queue.add('greet', { name: 'Ada' }, { jobId: 'first' });
  assert.equal(await job.getState(), 'waiting');
  const again = await queue.add('greet', { name: 'Bob' }, { jobId: 'first' });
  assert.equal(again.id, 'first', 'the same id is the same job');
  assert.deepEqual(await queue.getJobCounts('waiting', 'active', 'completed'), { waiting: 1, active: 0, completed: 0 });
  const w = worker('plain', async (job) => {
    await job.updateProgress(50);
    await job.log('halfway');
    return `hello ${job.data.name}`;
  });
  assert.equal(await job.waitUntilFinished(events), 'hello Ada');
  assert.deepEqual(seen.filter((line) => line.endsWith('first')),
    ['added first', 'waiting first', 'active first', 'progress first', 'completed first']);
  assert.deepEqual((await queue.getJobLogs('first')).logs, ['halfway']);
  const found = await queue.getJob('first');
  assert.equal(await found.getState(), 'completed');
  assert.deepEqual([found.progress, found.returnvalue, found.attemptsMade], [50, 'hello Ada', 1]);
  const fifty = completed(w, 50);
  await queue.addBulk(Array.from({ length: 50 }, (_, i) => ({ name: 'greet', data: { name: String(i) } })));
  assert.deepEqual(await fifty, Array.from({ length: 50 }, (_, i) => `hello ${i}`));
  assert.equal(await queue.getCompletedCount(), 51);
  assert.equal((await queue.clean(0, 1000, 'completed')).length, 51);
  assert.equal(await queue.getCompletedCount(), 0);
}

async function delayed() {
  const { queue, events } = await bench('delayed');
  const late = await queue.add('late', {}, { delay: 150 });
  const far = await queue.add('far', {}, { delay: 3600_000 });
  assert.equal(await late.getState(), 'delayed');
  assert.equal(await queue.getDelayedCount(), 2);
  const w = worker('delayed', async (job) => job.name);
  const both = completed(w, 2);
  assert.equal(await late.waitUntilFinished(events), 'late');
  const done = await queue.getJob(late.id);
  assert.ok(done.processedOn >= done.timestamp + 150, 'not before its time');
  assert.equal(await far.getState(), 'delayed');
  await far.promote();
  assert.deepEqual(await both, ['late', 'far']);
}

async function priorities() {
  const { queue } = await bench('priorities');
  for (const priority of [3, 1, 2, 1, 0]) await queue.add(`p${priority}`, {}, { priority });
  await queue.add('lifo', {}, { lifo: true });
  assert.deepEqual(await queue.getCountsPerPriority([0, 1, 2, 3]), { 0: 2, 1: 2, 2: 1, 3: 1 });
  const w = worker('priorities', async (job) => job.name, { concurrency: 1 });
  assert.deepEqual(await completed(w, 6), ['lifo', 'p0', 'p1', 'p1', 'p2', 'p3']);
}

async function retries() {
  const { queue, events } = await bench('retries');
  const failed = [];
  events.on('failed', ({ jobId, failedReason }) => failed.push(`${jobId}: ${failedReason}`));
  const tries = [];
  worker('retries', async (job) => {
    tries.push(`${job.name} ${job.attemptsMade}`);
    if (job.name === 'hopeless') throw new UnrecoverableError('no');
    if (job.name === 'twice' ? job.attemptsMade < 2 : true) throw new Error(`try ${job.attemptsMade}`);
    return 'at last';
  });
  const backoff = { type: 'exponential', delay: 20 };
  const twice = await queue.add('twice', {}, { jobId: 'twice', attempts: 3, backoff });
  assert.equal(await twice.waitUntilFinished(events), 'at last');
  const never = await queue.add('never', {}, { jobId: 'never', attempts: 2, backoff });
  await assert.rejects(never.waitUntilFinished(events), /try 1/);
  const hopeless = await queue.add('hopeless', {}, { jobId: 'hopeless', attempts: 5 });
  await assert.rejects(hopeless.waitUntilFinished(events), /no/);
  assert.deepEqual(tries, ['twice 0', 'twice 1', 'twice 2', 'never 0', 'never 1', 'hopeless 0']);
  assert.deepEqual(failed, ['never: try 1', 'hopeless: no']);
  const dead = await queue.getFailed();
  assert.deepEqual(dead.map((job) => job.id).sort(), ['hopeless', 'never']);
  assert.equal((await queue.getJob('never')).stacktrace.length, 2);
  await queue.retryJobs({ state: 'failed' });
  await assert.rejects((await queue.getJob('never')).waitUntilFinished(events));
}

async function flow() {
  const { queue, events } = await bench('parents');
  const children = await bench('children');
  const producer = keep(new FlowProducer({ connection }));
  const tree = await producer.add({
    name: 'sum', queueName: 'parents', opts: { jobId: 'sum' },
    children: [1, 2, 3].map((n) => ({ name: 'number', data: { n }, queueName: 'children' })),
  });
  assert.equal(await tree.job.getState(), 'waiting-children');
  assert.equal(tree.children.length, 3);
  assert.deepEqual(await tree.job.getDependenciesCount(), { processed: 0, unprocessed: 3, ignored: 0, failed: 0 });
  worker('children', async (job) => job.data.n * 10);
  worker('parents', async (job) => {
    const values = Object.values(await job.getChildrenValues());
    return values.reduce((a, b) => a + b, 0);
  });
  assert.equal(await tree.job.waitUntilFinished(events), 60);
  const found = await producer.getFlow({ queueName: 'parents', id: 'sum' });
  assert.equal(found.children.length, 3);
  const doomed = await producer.add({
    name: 'sum', queueName: 'parents', opts: { jobId: 'doomed' },
    children: [{ name: 'bad', data: {}, queueName: 'strangers', opts: { failParentOnFailure: true } }],
  });
  worker('strangers', async () => { throw new Error('a child fails'); });
  await assert.rejects(doomed.job.waitUntilFinished(events), /child/);
  await children.queue.obliterate({ force: true });
  assert.equal(await children.queue.getCompletedCount(), 0);
  assert.equal(await queue.getCompletedCount(), 1);
}

async function rateLimit() {
  const { queue } = await bench('limited');
  await queue.addBulk(Array.from({ length: 5 }, () => ({ name: 'x', data: {} })));
  const strict = worker('limited', async () => 'ran', { limiter: { max: 2, duration: 3600_000 } });
  await completed(strict, 2);
  assert.ok(await queue.getRateLimitTtl(2) > 0, 'the limit holds');
  await strict.close();
  assert.equal(await queue.getWaitingCount(), 3);
  await queue.removeRateLimitKey();
  const patient = worker('limited', async () => 'ran', { limiter: { max: 2, duration: 50 } });
  await completed(patient, 3);
}

async function repeated() {
  const { queue } = await bench('repeated');
  await queue.upsertJobScheduler('tick', { every: 100, limit: 3 }, { name: 'tick', data: { n: 1 } });
  assert.equal(await queue.getJobSchedulersCount(), 1);
  const [scheduler] = await queue.getJobSchedulers();
  assert.deepEqual([scheduler.key, scheduler.every], ['tick', 100]);
  const w = worker('repeated', async (job) => job.name);
  assert.deepEqual(await completed(w, 3), ['tick', 'tick', 'tick']);
  await queue.upsertJobScheduler('nightly', { pattern: '0 3 * * *', tz: 'UTC' }, { name: 'nightly' });
  assert.equal(new Date((await queue.getDelayed())[0].timestamp + (await queue.getDelayed())[0].delay).getUTCHours(), 3);
  assert.equal(await queue.removeJobScheduler('nightly'), true);
  assert.equal(await queue.getDelayedCount(), 0);
}

async function pausing() {
  const { queue, events } = await bench('paused');
  await queue.pause();
  const job = await queue.add('x', {}, { deduplication: { id: 'once' } });
  const same = await queue.add('x', {}, { deduplication: { id: 'once' } });
  assert.equal(same.id, job.id, 'a duplicate is the job that is there');
  worker('paused', async () => 'ran');
  assert.equal(await queue.isPaused(), true);
  assert.deepEqual(await queue.getJobCounts('waiting', 'active'), { waiting: 1, active: 0 });
  await queue.resume();
  assert.equal(await job.waitUntilFinished(events), 'ran');
}

// stalled: a worker that dies while it has a job; another one finds the lock expired.
async function stalled() {
  const { queue, events } = await bench('stalled');
  const job = await queue.add('x', {}, { jobId: 'left-behind' });
  const stuck = keep(new Worker('stalled', null, { connection, lockDuration: 100 }));
  const taken = await stuck.getNextJob('its-token');
  assert.equal(taken.id, 'left-behind');
  const again = once(events, 'stalled');
  worker('stalled', async (job) => `done by another, ${job.stalledCounter} stall`, { stalledInterval: 100 });
  assert.equal((await again)[0].jobId, 'left-behind');
  assert.match(await job.waitUntilFinished(events), /^done by another/);
  await assert.rejects(taken.moveToCompleted('too late', 'its-token', false));
}

const parts = { plain, delayed, priorities, retries, flow, rateLimit, repeated, pausing, stalled };
process.on('unhandledRejection', fail);
await Promise.all(Object.entries(parts).map(([name, part]) =>
  part().then(() => console.log(name), (error) => fail(new Error(name, { cause: error })))));
await Promise.all(open.map((thing) => thing.close()));
