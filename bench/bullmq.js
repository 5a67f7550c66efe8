// A producer or a worker of BullMQ, as queue_roles.go has them for the others: the task comes as JSON, the word to begin as a
// line, and what was found goes out as a line.
const { Queue, Worker } = require('bullmq');
const task = JSON.parse(process.argv[2]);
const [host, port] = task.Addr.split(':');
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const now = () => Number(process.hrtime.bigint());
const say = (found) => process.stdout.write(JSON.stringify(found) + '\n');

async function produce() {
  const queue = new Queue('bench', { connection });
  await queue.waitUntilReady();
  return async () => {
    const begun = now();
    let jobs = 0;
    while ((!task.Window || now() - begun < task.Window) && (!task.Count || jobs < task.Count)) {
      const batch = Array.from({ length: task.Batch }, () => ({ name: 'nothing', data: '', opts: { removeOnComplete: true } }));
      await queue.addBulk(batch);
      jobs += task.Batch;
    }
    return { Jobs: jobs, Seconds: (now() - begun) / 1e9 };
  };
}

async function work() {
  let jobs = 0, first = 0, last = 0, over;
  const done = new Promise((resolve) => { over = resolve; });
  const worker = new Worker('bench', async () => {
    last = now();
    first ||= last;
    if (++jobs === task.Count) over();
  }, { connection, concurrency: task.Slots, autorun: false });
  worker.on('error', () => {}); // it shows in what was found
  await worker.waitUntilReady();
  return async () => {
    worker.run();
    setTimeout(over, task.Window / 1e6);
    await done;
    return { Jobs: jobs, Seconds: (last - first) / 1e9, Begun: first, Ended: last };
  };
}

(task.Do === 'work' ? work() : produce()).then((begin) => {
  say('ready');
  process.stdin.once('data', async () => {
    say(await begin());
    process.exit(0);
  });
});
