// node-redis on a server: node node-redis.mjs HOST PORT PROTOCOL.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createClient, createClientPool, defineScript, WatchError } from 'redis';

const [host, port, protocol] = process.argv.slice(2);
const sum = defineScript({
  SCRIPT: `return redis.call('INCRBY', KEYS[1], ARGV[1])`,
  NUMBER_OF_KEYS: 1,
  parseCommand(parser, key, n) {
    parser.pushKey(key);
    parser.push(String(n));
  },
  transformReply: (reply) => reply,
});
const options = { socket: { host, port: Number(port), reconnectStrategy: false }, RESP: Number(protocol), scripts: { sum } };
const clients = [];
async function connect(extra = {}) {
  const client = await createClient({ ...options, ...extra }).on('error', () => {}).connect();
  clients.push(client);
  return client;
}
const redis = await connect({ name: 'main' });

// waits resolves when some client is blocked in the command.
async function waits(command) {
  const line = new RegExp(` flags=\\w*b\\w* .* cmd=${command} `);
  while (!line.test(await redis.sendCommand(['CLIENT', 'LIST'])));
}

// plain turns objects without prototype into what deepEqual likes.
const plain = (value) => JSON.parse(JSON.stringify(value));

async function strings() {
  assert.equal(await redis.set('s', 'hello', { expiration: { type: 'EX', value: 100 }, condition: 'NX' }), 'OK');
  assert.equal(await redis.set('s', 'other', { condition: 'NX' }), null);
  assert.equal(await redis.set('s', 'other', { GET: true }), 'hello');
  assert.equal(await redis.getEx('s', { type: 'PERSIST' }), 'other');
  assert.equal(await redis.ttl('s'), -1);
  assert.equal(await redis.incrBy('n', 41), 41);
  await redis.mSet({ a: '1', b: '2' });
  assert.deepEqual(await redis.mGet(['a', 'missing', 'b']), ['1', null, '2']);
  assert.equal(await redis.setBit('bits', 7, 1), 0);
  assert.equal(await redis.bitCount('bits'), 1);
  assert.equal(await redis.lcs('a', 'b'), '');
}

async function collections() {
  await redis.hSet('h', { name: 'Ada', born: 1815 });
  assert.deepEqual(plain(await redis.hGetAll('h')), { name: 'Ada', born: '1815' });
  assert.equal((await redis.hRandFieldCountWithValues('h', 5)).length, 2);
  await redis.rPush('l', ['1', '2', '3']);
  assert.deepEqual(await redis.lRange('l', 0, -1), ['1', '2', '3']);
  assert.deepEqual(plain(await redis.lmPop(['none', 'l'], 'LEFT', { COUNT: 2 })), ['l', ['1', '2']]);
  assert.equal(await redis.lPos('l', '3'), 0);
  await redis.sAdd('set', ['a', 'b', 'c']);
  assert.deepEqual([...await redis.sMembers('set')].sort(), ['a', 'b', 'c']);
  assert.deepEqual(await redis.smIsMember('set', ['a', 'z']), [1, 0]);
  await redis.zAdd('z', [{ score: 1, value: 'one' }, { score: 2.5, value: 'two' }, { score: Infinity, value: 'most' }]);
  assert.deepEqual(plain(await redis.zRangeWithScores('z', 0, 1)), [{ value: 'one', score: 1 }, { value: 'two', score: 2.5 }]);
  assert.equal(await redis.zScore('z', 'most'), Infinity);
  assert.deepEqual(await redis.zmScore('z', ['one', 'none']), [1, null]);
  assert.equal(await redis.zCount('z', '(1', '+inf'), 2);
  assert.deepEqual(plain(await redis.zPopMin('z')), { value: 'one', score: 1 });
  await assert.rejects(redis.lPush('h', '1'), /WRONGTYPE/);
}

async function streams() {
  const first = await redis.xAdd('stream', '*', { n: '1' });
  const second = await redis.xAdd('stream', '*', { n: '2' }, { TRIM: { strategy: 'MAXLEN', threshold: 100 } });
  const plainEntries = (entries) => plain(entries).map(({ id, message }) => [id, message]);
  assert.deepEqual(plainEntries(await redis.xRange('stream', '-', '+')), [[first, { n: '1' }], [second, { n: '2' }]]);
  await redis.xGroupCreate('stream', 'workers', '0');
  const read = await redis.xReadGroup('workers', 'ada', { key: 'stream', id: '>' }, { COUNT: 1 });
  assert.deepEqual(plainEntries(read[0].messages), [[first, { n: '1' }]]);
  const pending = await redis.xPending('stream', 'workers');
  assert.deepEqual([pending.pending, pending.firstId, pending.consumers[0].name], [1, first, 'ada']);
  const claimed = await redis.xAutoClaim('stream', 'workers', 'bob', 0, '0');
  assert.deepEqual(plainEntries(claimed.messages), [[first, { n: '1' }]]);
  assert.equal(await redis.xAck('stream', 'workers', first), 1);
  const [group] = await redis.xInfoGroups('stream');
  assert.deepEqual([group.name, group.pending, group['last-delivered-id'], group.lag], ['workers', 0, first, 1]);
  const info = await redis.xInfoStream('stream');
  assert.deepEqual([info.length, info['first-entry'].id], [2, first]);
  const reader = await connect();
  const waiting = reader.xRead({ key: 'stream', id: '$' }, { BLOCK: 0 });
  await waits('xread');
  const third = await redis.xAdd('stream', '*', { n: '3' });
  assert.deepEqual(plainEntries((await waiting)[0].messages), [[third, { n: '3' }]]);
}

async function transactions() {
  assert.deepEqual(await redis.multi().set('t', '1').incr('t').get('t').exec(), ['OK', 2, '2']);
  await assert.rejects(redis.multi().incr('t').lPush('t', 'x').exec(), (error) => /WRONGTYPE/.test(error.errors().next().value.message));
  const other = await connect();
  await other.watch('t');
  await redis.set('t', '10');
  await assert.rejects(other.multi().set('t', '11').exec(), WatchError);
  await other.watch('t');
  assert.deepEqual(await other.multi().incr('t').exec(), [11]);
  const counts = await Promise.all(Array.from({ length: 2000 }, () => redis.incr('count'))); // one pipeline
  assert.equal(counts.at(-1), 2000);
  assert.deepEqual(await redis.multi().ping().echo('x').execAsPipeline(), ['PONG', 'x']);
}

async function scripts() {
  assert.equal(await redis.sum('sum', 40), 40); // EVAL after NOSCRIPT
  assert.equal(await redis.sum('sum', 2), 42);
  assert.deepEqual(await redis.eval('return {KEYS[1], ARGV[1], 3}', { keys: ['k'], arguments: ['a'] }), ['k', 'a', 3]);
  await assert.rejects(redis.evalSha('0'.repeat(40)), /NOSCRIPT/);
}

async function pubsub() {
  const subscriber = await connect();
  const heard = [];
  const all = new Promise((resolve) => {
    const hear = (message, channel) => {
      heard.push(`${channel}: ${message}`);
      if (heard.length === 3) resolve();
    };
    subscriber.subscribe('news', hear).then(() => subscriber.pSubscribe('n?ws', hear))
      .then(() => subscriber.sSubscribe('shard', hear))
      .then(() => redis.publish('news', 'hello')).then(() => redis.sPublish('shard', 'hi'));
  });
  await all;
  assert.deepEqual(heard.sort(), ['news: hello', 'news: hello', 'shard: hi']);
  assert.deepEqual(plain(await redis.pubSubNumSub(['news', 'none'])), { news: 1, none: 0 });
  if (protocol === '3') assert.equal(await subscriber.set('while', 'subscribed'), 'OK');
  await subscriber.unsubscribe();
  await subscriber.pUnsubscribe();
  await subscriber.sUnsubscribe();
  assert.equal(await redis.publish('news', 'nobody'), 0);
}

async function blocking() {
  const pool = await createClientPool({ ...options }, { minimum: 2, maximum: 4 }).on('error', () => {}).connect();
  const popped = pool.blPop(['q1', 'q2'], 0);
  await waits('blpop');
  await pool.rPush('q2', 'job');
  assert.deepEqual(plain(await popped), { key: 'q2', element: 'job' });
  assert.equal(await pool.bzPopMin('nothing', 0.01), null);
  const moved = pool.blMove('from', 'to', 'LEFT', 'RIGHT', 0);
  await waits('blmove');
  await pool.rPush('from', 'x');
  assert.equal(await moved, 'x');
  pool.destroy();
}

async function scanning() {
  const db = await connect({ database: 3 });
  await db.mSet(Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`k:${i}`, String(i)])));
  const found = new Set();
  for await (const keys of db.scanIterator({ MATCH: 'k:*', COUNT: 25 })) keys.forEach((key) => found.add(key));
  assert.equal(found.size, 300);
  await db.zAdd('z', Array.from({ length: 200 }, (_, i) => ({ score: i, value: `m${i}` })));
  const members = new Set();
  for await (const part of db.zScanIterator('z')) part.forEach(({ value }) => members.add(value));
  assert.equal(members.size, 200);
  await db.flushDb();
  assert.equal(await db.dbSize(), 0);
}

async function expiry() {
  await redis.set('short', 'x', { expiration: { type: 'PX', value: 20 } });
  while (await redis.exists('short')); // ends when it has expired
  await redis.set('kept', 'x');
  assert.equal(await redis.expire('kept', 100), 1);
  assert.equal(await redis.expire('kept', 50, 'GT'), 0);
  assert.ok(await redis.ttl('kept') > 50);
  assert.equal(await redis.expireAt('kept', 1), 1);
  assert.equal(await redis.get('kept'), null);
}

async function connection() {
  const self = await redis.clientInfo();
  assert.deepEqual([self.name, self.resp], ['main', Number(protocol)]);
  const twin = await connect();
  const lost = once(twin, 'error');
  await redis.clientKill({ filter: 'ID', id: await twin.clientId() });
  await lost;
  assert.deepEqual(plain(await redis.configGet('maxmemory-policy')), { 'maxmemory-policy': 'noeviction' });
  assert.equal((await redis.commandInfo(['get']))[0].arity, 2);
}

for (const part of [strings, collections, streams, transactions, scripts, pubsub, blocking, scanning, expiry, connection]) await part();
for (const client of clients) if (client.isOpen) client.destroy();
