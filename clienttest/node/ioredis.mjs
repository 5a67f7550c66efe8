// ioredis on a server: node ioredis.mjs HOST PORT PROTOCOL.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Redis } from 'ioredis';

const [host, port, protocol] = process.argv.slice(2);
const options = { host, port: Number(port), protocol: Number(protocol), maxRetriesPerRequest: 0, replyMapping: protocol === '3' ? 'resp3' : undefined };
const clients = [];
const connect = (extra = {}) => {
  const client = new Redis({ ...options, ...extra });
  clients.push(client);
  return client;
};
const redis = connect({ connectionName: 'main' });
// waits resolves when some client is blocked in the command.
const waits = async (command) => {
  const line = new RegExp(` flags=\\w*b\\w* .* cmd=${command} `);
  while (!line.test(await redis.client('LIST')));
};
const ids = (entries) => entries.map(([, fields]) => fields);

async function strings() {
  assert.equal(await redis.set('s', 'hello', 'EX', 100, 'NX'), 'OK');
  assert.equal(await redis.set('s', 'other', 'NX'), null);
  assert.equal(await redis.getrange('s', 1, 3), 'ell');
  assert.equal(await redis.append('s', ' world'), 11);
  assert.equal(await redis.incrbyfloat('f', 0.5), '0.5');
  await redis.mset({ a: 1, b: 2 });
  assert.deepEqual(await redis.mget('a', 'missing', 'b'), ['1', null, '2']);
  const bytes = Buffer.from([0, 255, 13, 10, 0]);
  await redis.set('bytes', bytes);
  assert.deepEqual(await redis.getBuffer('bytes'), bytes);
  const large = 'x'.repeat(3_000_000);
  await redis.set('large', large);
  assert.equal(await redis.get('large'), large);
}

async function collections() {
  await redis.hset('h', { name: 'Ada', born: 1815 });
  assert.deepEqual({ ...await redis.hgetall('h') }, { name: 'Ada', born: '1815' });
  assert.deepEqual(await redis.hmget('h', 'name', 'none'), ['Ada', null]);
  assert.equal(await redis.hincrby('h', 'born', 1), 1816);
  await redis.rpush('l', 1, 2, 3, 4);
  assert.deepEqual(await redis.lrange('l', 0, -1), ['1', '2', '3', '4']);
  assert.deepEqual(await redis.lpop('l', 2), ['1', '2']);
  assert.equal(await redis.lmove('l', 'l2', 'RIGHT', 'LEFT'), '4');
  await redis.sadd('set', 'a', 'b', 'c');
  await redis.sadd('set2', 'b', 'c', 'd');
  assert.deepEqual((await redis.sinter('set', 'set2')).sort(), ['b', 'c']);
  assert.equal(await redis.sintercard(2, 'set', 'set2'), 2);
  await redis.zadd('z', 1, 'one', 2.5, 'two', '-inf', 'least');
  assert.deepEqual(await redis.zrange('z', 0, -1), ['least', 'one', 'two']);
  assert.deepEqual(await redis.zrange('z', '(1', '+inf', 'BYSCORE', 'LIMIT', 0, 5), ['two']);
  assert.equal(Number(await redis.zscore('z', 'two')), 2.5);
  assert.equal(await redis.zrevrank('z', 'least'), 2);
  await assert.rejects(redis.lpush('h', 1), /WRONGTYPE/);
}

async function streams() {
  const first = await redis.xadd('stream', '*', 'n', 1);
  await redis.xadd('stream', '*', 'n', 2);
  assert.deepEqual(ids(await redis.xrange('stream', '-', '+')), [['n', '1'], ['n', '2']]);
  await redis.xgroup('CREATE', 'stream', 'workers', '0');
  const read = await redis.xreadgroup('GROUP', 'workers', 'ada', 'COUNT', 1, 'STREAMS', 'stream', '>');
  const entries = Array.isArray(read) ? read[0][1] : read.stream;
  assert.deepEqual(entries, [[first, ['n', '1']]]);
  assert.equal((await redis.xpending('stream', 'workers'))[0], 1);
  const claimed = await redis.xautoclaim('stream', 'workers', 'bob', 0, '0');
  assert.deepEqual(ids(claimed[1]), [['n', '1']]);
  assert.equal(await redis.xack('stream', 'workers', first), 1);
  const reader = connect();
  const waiting = reader.xread('BLOCK', 0, 'STREAMS', 'stream', '$');
  await waits('xread');
  await redis.xadd('stream', '*', 'n', 3);
  const woken = await waiting;
  assert.deepEqual(ids(Array.isArray(woken) ? woken[0][1] : woken.stream), [['n', '3']]);
}

async function transactions() {
  const results = await redis.multi().set('t', 1).incr('t').lpush('t', 'x').exec();
  assert.deepEqual(results.slice(0, 2), [[null, 'OK'], [null, 2]]);
  assert.match(results[2][0].message, /WRONGTYPE/);
  const other = connect();
  await other.watch('t');
  await redis.set('t', 10);
  assert.equal(await other.multi().set('t', 11).exec(), null);
  await other.watch('t');
  assert.deepEqual(await other.multi().incr('t').exec(), [[null, 11]]);
  const pipeline = redis.pipeline();
  for (let i = 0; i < 5000; i++) pipeline.incr('count');
  assert.deepEqual((await pipeline.exec()).at(-1), [null, 5000]);
  const auto = connect({ enableAutoPipelining: true });
  assert.deepEqual(await Promise.all(Array.from({ length: 100 }, () => auto.incr('auto'))), Array.from({ length: 100 }, (_, i) => i + 1));
}

async function scripts() {
  redis.defineCommand('swap', { numberOfKeys: 2, lua: `local a, b = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])
    redis.call('MSET', KEYS[1], b, KEYS[2], a) return {a, b, tonumber(ARGV[1])}` });
  await redis.mset({ left: 'l', right: 'r' });
  assert.deepEqual(await redis.swap('left', 'right', 7), ['l', 'r', 7]);
  await redis.script('FLUSH');
  assert.deepEqual(await redis.swap('left', 'right', 8), ['r', 'l', 8]); // EVAL after NOSCRIPT
  await assert.rejects(redis.eval("return redis.error_reply('MINE not now')", 0), /MINE not now/);
}

async function pubsub() {
  const subscriber = connect();
  assert.equal(await subscriber.subscribe('news', 'sport'), 2);
  assert.equal(await subscriber.psubscribe('n?ws'), 3);
  const heard = once(subscriber, 'message');
  const matched = once(subscriber, 'pmessage');
  assert.equal(await redis.publish('news', 'hello'), 2);
  assert.deepEqual(await heard, ['news', 'hello']);
  assert.deepEqual(await matched, ['n?ws', 'news', 'hello']);
  const sharded = once(subscriber, 'smessage');
  await subscriber.ssubscribe('shard');
  assert.equal(await redis.spublish('shard', 'hi'), 1);
  assert.deepEqual(await sharded, ['shard', 'hi']);
  assert.deepEqual(await redis.pubsub('NUMSUB', 'news', 'none'), ['news', 1, 'none', 0]);
  assert.equal(await subscriber.punsubscribe('n?ws'), 2);
  assert.equal(await subscriber.unsubscribe('news', 'sport'), 0);
}

async function blocking() {
  const waiter = connect();
  const popped = waiter.blpop('q1', 'q2', 0);
  await waits('blpop');
  await redis.rpush('q2', 'job');
  assert.deepEqual(await popped, ['q2', 'job']);
  assert.equal(await waiter.bzpopmin('nothing', 0.01), null);
  const zpopped = waiter.bzpopmin('zq', 0);
  await waits('bzpopmin');
  await redis.zadd('zq', 1.5, 'm');
  const [key, member, score] = await zpopped;
  assert.deepEqual([key, member, Number(score)], ['zq', 'm', 1.5]);
}

async function scanning() {
  await redis.select(3);
  await redis.mset(Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`k:${i}`, i])));
  const found = new Set();
  for await (const keys of redis.scanStream({ match: 'k:*', count: 25, type: 'string' })) keys.forEach((key) => found.add(key));
  assert.equal(found.size, 300);
  await redis.hset('hash', Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`f${i}`, i])));
  const fields = new Set();
  for await (const part of redis.hscanStream('hash')) part.forEach((field, i) => i % 2 || fields.add(field));
  assert.equal(fields.size, 200);
  await redis.flushdb('ASYNC');
  assert.equal(await redis.dbsize(), 0);
  await redis.select(0);
}

async function expiry() {
  await redis.set('short', 'x', 'PX', 20);
  const pttl = await redis.pttl('short');
  assert.ok(pttl <= 20);
  while (await redis.exists('short')); // ends when it has expired
  assert.equal(await redis.get('short'), null);
  await redis.set('kept', 'x');
  await redis.expire('kept', 100);
  assert.equal(await redis.expire('kept', 50, 'GT'), 0);
  assert.ok(await redis.ttl('kept') > 50);
  assert.equal(await redis.persist('kept'), 1);
  assert.equal(await redis.ttl('kept'), -1);
}

async function connection() {
  const id = await redis.client('ID');
  assert.match(await redis.client('INFO'), new RegExp(`^id=${id} .* name=main .* resp=${protocol}`));
  assert.match(await redis.info('server'), /redis_version:7\./);
  const twin = redis.duplicate();
  clients.push(twin);
  const lost = once(twin, 'close');
  await redis.client('KILL', 'ID', await twin.client('ID'));
  await lost;
  assert.equal(await connect({ lazyConnect: true }).ping(), 'PONG');
}

for (const part of [strings, collections, streams, transactions, scripts, pubsub, blocking, scanning, expiry, connection]) await part();
await Promise.all(clients.map((client) => client.disconnect()));
