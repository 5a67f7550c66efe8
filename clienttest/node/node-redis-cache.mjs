// node-redis with its cache of what it has read, which CLIENT TRACKING keeps right: node node-redis-cache.mjs HOST PORT.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { BasicClientSideCache, createClient } from 'redis';

const [host, port] = process.argv.slice(2);
const options = { socket: { host, port: Number(port), reconnectStrategy: false }, RESP: 3 };
const cache = new BasicClientSideCache({ ttl: 0, maxEntries: 100 });
const connect = (extra) => createClient({ ...options, ...extra }).on('error', () => {}).connect();
const reader = await connect({ clientSideCache: cache });
const writer = await connect();

async function changed(write) {
  const told = once(cache, 'invalidate');
  await write();
  return (await told)[0];
}

await writer.hSet('h', { a: '1' });
for (let i = 0; i < 3; i++) assert.equal((await reader.hGetAll('h')).a, '1');
assert.deepEqual([cache.stats().missCount, cache.stats().hitCount], [1, 2]);
assert.equal(String(await changed(() => writer.hSet('h', 'a', '2'))), 'h');
assert.equal((await reader.hGetAll('h')).a, '2');
assert.equal(String(await changed(() => writer.multi().del('h').exec())), 'h');
assert.equal(await reader.hGet('h', 'a'), null);
assert.equal(await changed(() => writer.flushAll()), null);
reader.destroy();
writer.destroy();
