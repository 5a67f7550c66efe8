"""redis-py on a server: redis_sync.py HOST PORT."""

import sys
import threading

import redis

host, port = sys.argv[1], int(sys.argv[2])


def connect(**options):
    return redis.Redis(host=host, port=port, **{"decode_responses": True, "client_name": "main", **options})


r = connect()


def equal(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


def raises(kind, call, *args):
    try:
        call(*args)
    except kind:
        return
    raise AssertionError(f"{call} did not raise {kind}")


def waits(command):
    """Returns when some client is blocked in the command."""
    while not any(c["cmd"] == command and "b" in c["flags"] for c in r.client_list()):
        pass


def strings():
    equal(r.set("s", "hello", ex=100, nx=True), True)
    equal(r.set("s", "other", nx=True), None)
    equal(r.set("s", "other", get=True), "hello")
    equal(r.getrange("s", 1, 3), "the")
    equal(r.incrbyfloat("f", 0.5), 0.5)
    equal(r.mset({"a": 1, "b": 2}), True)
    equal(r.mget("a", "missing", "b"), ["1", None, "2"])
    raw = connect(decode_responses=False)
    raw.set("bytes", bytes(range(256)))
    equal(raw.get("bytes"), bytes(range(256)))
    equal(r.bitfield("bits").set("u8", 0, 200).incrby("u8", 0, 100, "SAT").execute(), [0, 255])
    large = "x" * 3_000_000
    r.set("large", large)
    equal(r.get("large"), large)


def collections():
    equal(r.hset("h", mapping={"name": "Ada", "born": 1815}), 2)
    equal(r.hgetall("h"), {"name": "Ada", "born": "1815"})
    equal(r.hincrbyfloat("h", "born", 0.5), 1815.5)
    equal(r.rpush("l", 1, 2, 3), 3)
    equal(r.lrange("l", 0, -1), ["1", "2", "3"])
    equal(r.lmpop(2, "none", "l", direction="LEFT", count=2), ["l", ["1", "2"]])
    equal(r.sadd("set", "a", "b", "c"), 3)
    equal(r.smembers("set"), {"a", "b", "c"})
    equal(r.smismember("set", ["a", "z"]), [1, 0])
    equal(r.zadd("z", {"one": 1, "two": 2.5, "least": "-inf"}), 3)
    equal(r.zrange("z", 0, -1, withscores=True), [("least", float("-inf")), ("one", 1.0), ("two", 2.5)])
    equal(r.zrange("z", "(1", "+inf", byscore=True, offset=0, num=5), ["two"])
    equal(r.zmscore("z", ["one", "none"]), [1.0, None])
    equal(r.zpopmax("z"), [("two", 2.5)])
    equal(r.sort("set", alpha=True, desc=True), ["c", "b", "a"])
    raises(redis.ResponseError, r.lpush, "h", 1)


def streams():
    first = r.xadd("stream", {"n": 1})
    second = r.xadd("stream", {"n": 2}, maxlen=100)
    equal(r.xrange("stream"), [(first, {"n": "1"}), (second, {"n": "2"})])
    equal(r.xgroup_create("stream", "workers", "0"), True)
    equal(r.xreadgroup("workers", "ada", {"stream": ">"}, count=1), [["stream", [(first, {"n": "1"})]]])
    equal(r.xpending("stream", "workers"), {"pending": 1, "min": first, "max": first, "consumers": [{"name": "ada", "pending": 1}]})
    equal(r.xclaim("stream", "workers", "bob", 0, [first]), [(first, {"n": "1"})])
    equal([p["consumer"] for p in r.xpending_range("stream", "workers", "-", "+", 10)], ["bob"])
    equal(r.xack("stream", "workers", first), 1)
    group = r.xinfo_groups("stream")[0]
    equal((group["name"], group["pending"], group["last-delivered-id"]), ("workers", 0, first))
    equal(r.xinfo_stream("stream", full=True)["length"], 2)


def transactions():
    with r.pipeline() as p:
        equal(p.set("t", 1).incr("t").get("t").execute(), [True, 2, "2"])
        raises(redis.ResponseError, p.incr("t").lpush("t", "x").execute)
    with r.pipeline(transaction=False) as p:
        for _ in range(5000):
            p.incr("count")
        equal(p.execute()[-1], 5000)
    with r.pipeline() as p:
        p.watch("t")
        value = int(p.get("t"))
        r.set("t", 10)
        p.multi()
        p.set("t", value + 1)
        raises(redis.WatchError, p.execute)
    equal(r.transaction(lambda p: (p.multi(), p.incr("t")), "t"), [11])


def scripts():
    add = r.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    equal(add(keys=["sum"], args=[40]), 40)  # loads it, after NOSCRIPT
    r.script_flush()
    equal(add(keys=["sum"], args=[2]), 42)
    equal(r.eval("return {1, 'two', {3}, false}", 0), [1, "two", [3], None])
    raises(redis.ResponseError, r.eval, "return redis.error_reply('MINE not now')", 0)


def pubsub():
    p = r.pubsub()
    p.subscribe("news")
    p.psubscribe("n?ws")
    for kind in ("subscribe", "psubscribe"):
        equal(p.get_message(timeout=10)["type"], kind)
    equal(r.publish("news", "hello"), 2)
    equal([p.get_message(timeout=10)["data"] for _ in range(2)], ["hello", "hello"])
    p.ping("still here")
    equal(p.get_message(timeout=10)["type"], "pong")
    equal(r.pubsub_numsub("news", "none"), [("news", 1), ("none", 0)])
    equal(r.pubsub_numpat(), 1)
    p.close()


def blocking():
    got = []
    with connect(client_name="waiter") as waiter:
        thread = threading.Thread(target=lambda: got.append(waiter.blpop(["q1", "q2"], 0)))
        thread.start()
        waits("blpop")
        r.rpush("q2", "job")
        thread.join()
        equal(got, [("q2", "job")])
        equal(waiter.bzpopmin("nothing", 0.01), None)
        last = r.xadd("blocked", {"n": 1})
        thread = threading.Thread(target=lambda: got.append(waiter.xread({"blocked": last}, block=0)))
        thread.start()
        waits("xread")
        second = r.xadd("blocked", {"n": 2})
        thread.join()
        equal(got[1], [["blocked", [(second, {"n": "2"})]]])


def locks():
    """The lock of redis-py: SET NX PX, and scripts that compare."""
    lock = r.lock("lock", timeout=100)
    equal(lock.acquire(blocking=False), True)
    equal(r.lock("lock").acquire(blocking=False), False)
    equal(lock.extend(50), True)
    equal(lock.owned(), True)
    lock.release()
    equal(r.exists("lock"), 0)
    raises(redis.exceptions.LockError, lock.release)


def scanning():
    db = connect(db=3)
    db.mset({f"k:{i}": i for i in range(300)})
    equal(len(set(db.scan_iter("k:*", count=25))), 300)
    db.hset("h", mapping={f"f{i}": i for i in range(200)})
    equal(len(dict(db.hscan_iter("h"))), 200)
    equal(set(db.scan_iter(_type="hash")), {"h"})
    db.flushdb()
    equal(db.dbsize(), 0)


def expiry():
    r.set("short", "x", px=20)
    while r.exists("short"):
        pass  # ends when it has expired
    r.set("kept", "x")
    equal(r.expire("kept", 100), True)
    equal(r.expire("kept", 50, gt=True), False)
    equal(r.ttl("kept") > 50, True)
    equal(r.persist("kept"), True)
    equal(r.ttl("kept"), -1)


def server():
    equal(r.info("server")["redis_version"].split(".")[0], "7")
    equal(r.client_getname(), "main")
    equal(r.config_get("maxmemory-policy"), {"maxmemory-policy": "noeviction"})
    equal(r.command()["get"]["arity"], 2)
    victim = connect(client_name="victim")
    victim.ping()
    equal(r.client_kill_filter(_id=victim.client_id()), 1)
    equal(r.acl_whoami(), "default")


for part in (strings, collections, streams, transactions, scripts, pubsub, blocking, locks, scanning, expiry, server):
    part()
