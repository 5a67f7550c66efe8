import asyncio
import datetime
import json
import threading
import time
import unittest
import unittest.mock
from typing import Any

import signalbox
from signalbox import aio
from signalbox.queue import parse_message
from signalbox.schedule import next_tick

from . import URL, Case
from .test_locks import Proxy


class Queues(Case):
    def setUp(self) -> None:
        super().setUp()
        self.queue = signalbox.Queue(URL, self.name, lease=30)
        self.addCleanup(self.queue.close)

    def worker(self, **handlers: Any) -> signalbox.Worker:
        worker = self.queue.worker("test", slots=4)
        for kind, handler in handlers.items():
            worker.handle(kind, backoff=lambda attempt: 0.01)(handler)
        return worker.start()

    def test_results_come_back(self) -> None:
        self.worker(echo=lambda job: job.args)
        for value in (None, 0, "", [1, "ü\n\t", {"a": None}], 1.5):
            self.assertEqual(self.queue.enqueue("echo", value).result(60), value)

    def test_ends(self) -> None:
        def fail(job: signalbox.Job) -> None:
            raise signalbox.Fail("never")

        def flaky(job: signalbox.Job) -> int:
            if job.attempt < 3:
                raise ValueError("not yet")
            return job.attempt

        def stay(job: signalbox.Job) -> None:
            job.ending.wait(60)
            job.check()

        snoozed: list = []

        def snooze(job: signalbox.Job) -> int:
            if not snoozed:
                snoozed.append(job.id)
                raise signalbox.Snooze(0.05)
            return job.attempt

        self.worker(fail=fail, flaky=flaky, stay=stay, snooze=snooze, odd=lambda job: {1, 2})
        with self.assertRaisesRegex(signalbox.Dead, "never"):
            self.queue.enqueue("fail").result(60)
        self.assertEqual(self.queue.enqueue("flaky").result(60), 3)
        with self.assertRaisesRegex(signalbox.Dead, "not yet"):
            self.queue.enqueue("flaky", attempts=2).result(60)
        with self.assertRaisesRegex(signalbox.Dead, "timed out"):
            self.queue.enqueue("stay", timeout=0.1, attempts=1).result(60)
        with self.assertRaisesRegex(signalbox.Dead, "does not encode"):
            self.queue.enqueue("odd").result(60)
        self.assertEqual(self.queue.enqueue("snooze").result(60), 1)
        job = self.queue.enqueue("stay")
        self.eventually(lambda: self.queue.cancel(job.id, "enough") == "told", "it runs")
        with self.assertRaisesRegex(signalbox.Canceled, "enough"):
            job.result(60)
        with self.assertRaises(signalbox.UnknownJob):
            self.queue.job("nobody").result(60)

    def test_terms(self) -> None:
        first = self.queue.enqueue("echo", 1, id="mine")
        again = self.queue.enqueue("echo", 2, id="mine")
        self.assertEqual((first.duplicate, again.duplicate, again.id), (False, True, "mine"))
        one = self.queue.enqueue("echo", 1, unique="u")
        self.assertEqual(self.queue.enqueue("echo", 2, unique="u").id, one.id)
        order: list = []
        later = self.queue.enqueue("order", "later", delay=3600)
        child = self.queue.enqueue("order", "child", after=[later.id])
        low = self.queue.enqueue("order", "low", priority=-5)
        high = self.queue.enqueue("order", "high", priority=5)
        worker = self.queue.worker("one", slots=1)
        worker.handle("order")(lambda job: order.append(job.args))
        worker.start()
        for job in (low, high):
            job.result(60)
        self.assertEqual(order, ["high", "low"])
        self.assertEqual(self.queue.retry(later.id), "ok")
        for job in (later, child):
            job.result(60)
        self.assertEqual(order[2:], ["later", "child"])
        for bad in ({"kind": "a,b"}, {"kind": "x", "attempts": 0}, {"kind": "x", "args": float("nan")}, {"kind": "x", "id": "a", "unique": "b"}):
            with self.assertRaises(signalbox.Invalid):
                signalbox.Request(**bad)  # type: ignore[arg-type]

    def test_capacities_and_tags(self) -> None:
        lock, running, most, full = threading.Lock(), [0], [0], threading.Event()

        def call(job: signalbox.Job) -> None:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
                if running[0] == 2:
                    full.set()
            full.wait(60)  # until two run at once
            with lock:
                running[0] -= 1

        worker = self.queue.worker("agent", capacity={"call": 2}, tags=["de"])
        worker.handle("call")(call)
        worker.start()
        jobs = self.queue.enqueue_many([signalbox.Request("call", cost={"call": 1}, tags=["de"]) for _ in range(10)])
        foreign = self.queue.enqueue("call", cost={"call": 1}, tags=["fr"])
        for job in jobs:
            job.result(60)
        self.assertEqual(most[0], 2)
        self.assertRaises(signalbox.Timeout, foreign.result, 0.1)

    def test_many_jobs_from_many_threads_run_once(self) -> None:
        ran: list = []
        self.worker(note=lambda job: ran.append(job.args))
        found: list = []

        def produce(n: int) -> None:
            found.extend(self.queue.enqueue("note", [n, i]) for i in range(30))

        threads = [threading.Thread(target=produce, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for job in found:
            job.result(60)
        self.assertEqual(sorted(ran), [[n, i] for n in range(4) for i in range(30)])

    def test_lost_replies_do_nothing_twice(self) -> None:
        proxy, ran = Proxy(), []
        self.addCleanup(proxy.close)
        with signalbox.Queue(proxy.url, self.name, lease=5) as queue:
            queue.enqueue("note", "first", retain=0)
            proxy.cut = True
            done: list = []
            thread = threading.Thread(target=lambda: done.append(queue.enqueue("note", "second", retain=0)))
            thread.start()
            self.eventually(lambda: self.stats()[1] == 2, "it has arrived")
            proxy.cut = False
            thread.join()
            self.assertFalse(done[0].duplicate)
            worker = queue.worker("test")
            worker.handle("note")(lambda job: ran.append(job.args))
            worker.start()
            self.eventually(lambda: len(ran) == 2, "both have run")
            proxy.cut = True
            for s in list(proxy.sockets):
                s.close()
            proxy.sockets.clear()
            proxy.cut = False
            self.assertEqual(queue.enqueue("note", "third").result(60), None)
        self.assertEqual(ran, ["first", "second", "third"])

    def stats(self) -> list:
        words = self.server.execute_command("FCALL_RO", "signalbox_queue_keys", 0)
        keys = [self.queue._prefix + word for word in words]
        return self.server.execute_command("FCALL_RO", "signalbox_queue_stats", len(keys), *keys)

    def test_a_worker_that_loses_its_lease_ends_its_jobs(self) -> None:
        proxy, causes, runs = Proxy(), [], []
        self.addCleanup(proxy.close)
        with signalbox.Queue(proxy.url, self.name, lease=3) as queue:
            def stay(job: signalbox.Job) -> str:
                runs.append(job.crashes)
                if len(runs) == 1:
                    job.ending.wait(60)
                    try:
                        job.check()
                    except signalbox.Error as error:
                        causes.append(type(error))
                return "done"

            worker = queue.worker("test")
            worker.handle("stay")(stay)
            worker.start()
            job = self.queue.enqueue("stay")
            self.eventually(lambda: runs, "it runs")
            proxy.cut = True
            self.eventually(lambda: causes, "its work ends")
            self.assertEqual(causes, [signalbox.LeaseLost])
            proxy.cut = False
            self.assertEqual(job.result(60), "done")
            self.assertEqual(runs, [0, 1])

    def test_a_worker_drains(self) -> None:
        begun, go = threading.Event(), threading.Event()

        def stay(job: signalbox.Job) -> str:
            begun.set()
            go.wait(60)
            return "in time"

        worker = self.worker(stay=stay)
        job = self.queue.enqueue("stay")
        begun.wait(60)
        worker.stop()
        go.set()
        worker.join()
        self.assertEqual(job.result(60), "in time")
        waiting = self.queue.enqueue("stay")
        self.assertRaises(signalbox.Timeout, waiting.result, 0.1)

    def test_notes_are_kept(self) -> None:
        def chatty(job: signalbox.Job) -> None:
            job.progress(50, "half\nway")
            for i in range(300):
                job.log(f"line {i} " + "x" * 50)
            raise signalbox.Fail("over")

        self.worker(chatty=chatty)
        job = self.queue.enqueue("chatty")
        self.assertRaises(signalbox.Dead, job.result, 60)
        kept = self.queue._ask("look", [job.id, ""])[1]
        self.assertIn('"what": "half way"', kept)
        self.assertIn("line 299", kept)
        self.assertNotIn("line 1 ", kept)

    def test_a_library_with_other_keys_is_asked_again(self) -> None:
        self.queue.enqueue("note", 1)
        assert self.queue._keys is not None
        self.queue._keys.pop()  # as one of an older version would have it
        self.queue.enqueue("note", 2)
        self.assertEqual(self.stats()[1], 2)

    def test_a_client_of_another_wire_version_is_refused(self) -> None:
        with unittest.mock.patch("signalbox.queue.WIRE", "2"):
            self.assertRaisesRegex(signalbox.UnsupportedServer, "update the older of the two", self.queue.enqueue, "note", 1)
        self.assertEqual(self.stats()[1], 0)

    def test_schedules_tick(self) -> None:
        ticked = threading.Event()
        self.worker(note=lambda job: job.args == "tick" and ticked.set())
        text = json.dumps({"spec": "@every 1s", "missed": "last", "item": {
            "ID": "", "Lane": {"Kind": "note", "Tags": None, "Cost": "", "Key": ""}, "Priority": 1, "Rest": '{"args":"tick"}'}})
        self.queue._ask("schedule", ["set", "often", next_tick("@every 1s", "", int(1000 * time.time())), text])
        self.assertTrue(ticked.wait(60))

    def test_calendars(self) -> None:
        def ticks(spec: str, zone: str, after: str, n: int = 3) -> list:
            ms = round(1000 * datetime.datetime.fromisoformat(after).timestamp())
            found = []
            for _ in range(n):
                ms = next_tick(spec, zone, ms)
                found.append(datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc).strftime("%m-%d %H:%M"))
            return found

        self.assertEqual(ticks("*/20 9-10 * * mon", "", "2026-01-01T00:00+00:00"), ["01-05 09:00", "01-05 09:20", "01-05 09:40"])
        self.assertEqual(ticks("0 0 13 * fri", "", "2026-01-01T00:00+00:00"), ["01-02 00:00", "01-09 00:00", "01-13 00:00"])
        # The clocks of Berlin leave out 02:30 on March 29, and repeat it on October 25.
        self.assertEqual(ticks("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00+00:00", 2), ["03-30 00:30", "03-31 00:30"])
        self.assertEqual(ticks("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00+00:00", 2), ["10-25 00:30", "10-26 01:30"])
        self.assertEqual(ticks("30 * * * *", "Europe/Berlin", "2026-10-25T00:00+00:00", 3), ["10-25 00:30", "10-25 01:30", "10-25 02:30"])
        self.assertEqual(ticks("@every 1m30s", "", "2026-01-01T00:00+00:00", 2), ["01-01 00:01", "01-01 00:03"])
        for bad in ("@every 1ms", "61 * * * *", "* * *", "0 0 30 2 *"):
            self.assertRaises(signalbox.Invalid, next_tick, bad, "", 0)

    def test_messages(self) -> None:
        self.assertEqual(parse_message("4:wake4:p/ü0:"), ["wake", "p/ü", ""])
        self.assertEqual(parse_message("9:x"), [])
        self.assertEqual(parse_message("x"), [])


class AsyncQueues(Case, unittest.IsolatedAsyncioTestCase):
    async def test_tasks_as_handlers(self) -> None:
        async with aio.Queue(URL, self.name, lease=30) as queue:
            worker = queue.worker("test", slots=10)
            left: list = []

            @worker.handle("add")
            async def add(job: aio.Job) -> int:
                await asyncio.sleep(0.01)
                return sum(job.args)

            @worker.handle("stay")
            async def stay(job: aio.Job) -> None:
                try:
                    await asyncio.sleep(60)
                finally:
                    left.append(job.id)

            running = asyncio.ensure_future(worker.run())
            jobs = [await queue.enqueue("add", [i, 1]) for i in range(20)]
            self.assertEqual(await asyncio.gather(*(job.result(60) for job in jobs)), list(range(1, 21)))
            job = await queue.enqueue("stay")
            while await queue.cancel(job.id, "enough") != "told":
                await asyncio.sleep(0.01)
            with self.assertRaisesRegex(signalbox.Canceled, "enough"):
                await job.result(60)
            self.assertEqual(left, [job.id])
            worker.stop()
            await running

    async def test_a_cancelled_worker_gives_its_jobs_back(self) -> None:
        async with aio.Queue(URL, self.name, lease=30) as queue:
            begun = asyncio.Event()
            first, second = queue.worker("first"), queue.worker("second")

            @first.handle("job")
            async def stay(job: aio.Job) -> None:
                begun.set()
                await asyncio.sleep(60)

            @second.handle("job")
            async def run(job: aio.Job) -> int:
                return job.crashes

            running = asyncio.ensure_future(first.run())
            job = await queue.enqueue("job")
            await begun.wait()
            running.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await running
            other = asyncio.ensure_future(second.run())
            self.assertEqual(await job.result(60), 0)
            second.stop()
            await other


if __name__ == "__main__":
    unittest.main()
