"""redis-py with asyncio on a server: redis_asyncio.py HOST PORT."""

import asyncio
import sys

import redis.asyncio as redis

host, port = sys.argv[1], int(sys.argv[2])


def equal(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


async def waits(r, command):
    """Returns when some client is blocked in the command."""
    while not any(c["cmd"] == command and "b" in c["flags"] for c in await r.client_list()):
        pass


async def data(r):
    await r.set("s", "hello", px=100_000)
    equal(await r.get("s"), "hello")
    await r.hset("h", mapping={"a": 1})
    equal(await r.hgetall("h"), {"a": "1"})
    await r.zadd("z", {"m": 1.5})
    equal(await r.zrange("z", 0, -1, withscores=True), [("m", 1.5)])
    equal(sorted(await asyncio.gather(*(r.incr("n") for _ in range(200)))), list(range(1, 201)))
    async with r.pipeline(transaction=True) as p:
        equal(await p.set("t", 1).incr("t").execute(), [True, 2])
    found = [key async for key in r.scan_iter("*")]
    equal(sorted(found), ["h", "n", "s", "t", "z"])
    add = r.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    equal(await add(keys=["sum"], args=[42]), 42)


async def watch(r):
    async with r.pipeline() as p:
        await p.watch("t")
        await r.set("t", 10)
        p.multi()
        p.set("t", 11)
        try:
            await p.execute()
        except redis.WatchError:
            pass
        else:
            raise AssertionError("EXEC after somebody else's change")


async def blocking(r):
    popped = asyncio.create_task(r.blpop(["q1", "q2"], 0))
    await waits(r, "blpop")
    await r.rpush("q2", "job")
    equal(await popped, ("q2", "job"))
    await r.xgroup_create("stream", "workers", "$", mkstream=True)
    read = asyncio.create_task(r.xreadgroup("workers", "ada", {"stream": ">"}, block=0))
    await waits(r, "xreadgroup")
    entry = await r.xadd("stream", {"n": 1})
    equal(await read, [["stream", [(entry, {"n": "1"})]]])
    equal(await r.xack("stream", "workers", entry), 1)


async def pubsub(r):
    async with r.pubsub() as p:
        await p.subscribe("news")
        equal((await p.get_message(timeout=10))["type"], "subscribe")
        equal(await r.publish("news", "hello"), 1)
        equal((await p.get_message(timeout=10))["data"], "hello")


async def main():
    r = redis.Redis(host=host, port=port, decode_responses=True)
    for part in (data, watch, blocking, pubsub):
        await part(r)
    async with r.lock("lock", timeout=100):
        equal(await r.lock("lock").acquire(blocking=False), False)
    await r.close()


asyncio.run(main())
