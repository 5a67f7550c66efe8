import asyncio
import socket
import threading
import time
import unittest

import signalbox
from signalbox import aio, wire

from . import URL, Case


class Proxy:
    """Stands between a client and the server. While it is cut, no answer comes through, and no new connection."""

    def __init__(self) -> None:
        host, port = URL.rsplit("/", 1)[-1].rsplit(":", 1)
        self.target = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}"
        self.cut, self.sockets = False, []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.cut:
                client.close()
                continue
            server = socket.create_connection(self.target)
            self.sockets += [client, server]
            for a, b, answers in ((client, server, False), (server, client, True)):
                threading.Thread(target=self.copy, args=(a, b, answers), daemon=True).start()

    def copy(self, a: socket.socket, b: socket.socket, answers: bool) -> None:
        try:
            while data := a.recv(65536):
                if answers and self.cut:
                    break
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self) -> None:
        for s in [self.listener, *self.sockets]:
            s.close()


class Locks(Case):
    def setUp(self) -> None:
        super().setUp()
        self.box, self.other = signalbox.Box(URL), signalbox.Box(URL)
        self.addCleanup(self.box.close)
        self.addCleanup(self.other.close)

    def left(self) -> list:
        from signalbox.locks import keys_of
        keys = keys_of(self.name)
        return self.server.execute_command("FCALL", "signalbox_inspect", 4, *keys, 10)[4:7]

    def test_a_mutex_excludes_and_tokens_grow(self) -> None:
        with self.box.mutex(self.name).acquire() as first:
            with self.assertRaises(signalbox.Busy) as caught:
                self.other.mutex(self.name).try_acquire()
            self.assertGreater(caught.exception.retry_after, 20)
        with self.other.mutex(self.name).try_acquire() as second:
            self.assertGreater(second.token, first.token)
        self.assertEqual(self.left(), [0, 0, 0])

    def test_waiters_come_in_the_order_of_arrival(self) -> None:
        order, waits = [], []
        held = self.box.semaphore(self.name, 2).acquire(weight=2)

        def turn(i: int) -> None:
            with (self.box, self.other)[i % 2].semaphore(self.name, 2).acquire(on_wait=waits.append) as lease:
                order.append((lease.token, i))

        threads = []
        for i in range(8):
            threads.append(threading.Thread(target=turn, args=(i,)))
            threads[-1].start()
            self.eventually(lambda: self.left()[2] == i + 1, f"{i + 1} wait")
        self.eventually(lambda: sorted(waits) == list(range(8)), "each knows how many are ahead")
        held.release()
        for thread in threads:
            thread.join()
        self.assertEqual([i for _, i in sorted(order)], list(range(8)))

    def test_who_gives_up_leaves_nothing(self) -> None:
        with self.box.mutex(self.name).acquire():
            with self.assertRaises(TimeoutError):
                self.other.mutex(self.name).acquire(timeout=0.2)
            self.eventually(lambda: self.left()[2] == 0, "nobody waits")

    def test_a_lease_renews_itself(self) -> None:
        with self.box.mutex(self.name).acquire(ttl=4):
            with self.assertRaises(signalbox.Timeout):
                self.other.mutex(self.name).acquire(timeout=5)

    def test_an_operator_ends_a_lease(self) -> None:
        from signalbox.locks import keys_of
        lease, told = self.box.mutex(self.name).acquire(), threading.Event()
        lease.on_lost(lambda _: told.set())
        waiting = self.other.mutex(self.name)._begin(1, 30, "")  # opens the other's inbox
        self.eventually(lambda: waiting.waiting, "it waits")
        keys = keys_of(self.name)
        self.server.execute_command("FCALL", "signalbox_force", 4, *keys, waiting.id, 3000)
        with self.assertRaises(signalbox.Forced):
            waiting.granted.result(60)
        self.server.execute_command("FCALL", "signalbox_force", 4, *keys, lease.id, 3000)
        with self.assertRaises(signalbox.Forced):
            lease.release()
        with self.assertRaises(signalbox.LeaseLost):
            lease.release()

    def test_the_holder_knows_by_itself(self) -> None:
        proxy = Proxy()
        self.addCleanup(proxy.close)
        box = signalbox.Box(proxy.url)
        self.addCleanup(box.close, 0.1)
        lease = box.mutex(self.name).acquire(ttl=1)
        proxy.cut = True
        waiter = self.other.mutex(self.name)._begin(1, 30, "")
        self.assertTrue(lease.lost.wait(60))
        with waiter.granted.result(60) as next_lease:
            self.assertGreater(next_lease.token, lease.token)
        self.assertRaises(signalbox.LeaseLost, lease.check)
        proxy.cut = False

    def test_a_lost_reply_costs_nothing(self) -> None:
        proxy = Proxy()
        self.addCleanup(proxy.close)
        with signalbox.Box(proxy.url) as box:
            box.mutex(self.name).acquire().release()
            proxy.cut = True  # the next request arrives, and its answer does not
            a = box.mutex(self.name)._begin(1, 30, "")
            self.eventually(lambda: a.failures > 0, "the answer is lost")
            proxy.cut = False
            with a.granted.result(60):
                self.assertEqual(self.left()[:2], [1, 1])
            self.eventually(lambda: self.left() == [0, 0, 0], "it is given back")

    def test_a_broken_callback_harms_nobody_else(self) -> None:
        with self.box.mutex(self.name).acquire():
            with self.assertLogs("signalbox"), self.assertRaises(signalbox.Timeout):
                self.other.mutex(self.name).acquire(timeout=2, on_wait=lambda ahead: 1 // 0)
        self.other.mutex(self.name).acquire(timeout=60).release()

    def test_readers_and_writers(self) -> None:
        lock = self.box.rwlock(self.name)
        with lock.read(), self.other.rwlock(self.name).read():
            self.assertRaises(signalbox.Timeout, lock.write, timeout=0.1)
        with lock.write():
            self.assertRaises(signalbox.Timeout, self.other.rwlock(self.name).read, timeout=0.1)

    def test_an_election_passes_on(self) -> None:
        term = self.box.election(self.name).campaign()
        candidate = self.other.election(self.name)._begin(1, 15, "")
        term.resign()
        self.assertIsInstance(candidate.granted.result(60), signalbox.Term)

    def test_close_releases_and_ends_who_waits(self) -> None:
        box = signalbox.Box(URL)
        box.mutex(self.name).acquire()
        waiting = box.mutex(self.name)._begin(1, 30, "")
        box.close()
        self.assertRaises(signalbox.Closed, waiting.granted.result, 10)
        self.assertEqual(self.left(), [0, 0, 0])
        self.assertRaises(signalbox.Closed, box.mutex(self.name).acquire)

    def test_what_is_invalid_is_told_without_a_server(self) -> None:
        self.assertRaises(signalbox.Invalid, self.box.mutex("").acquire)
        self.assertRaises(signalbox.Invalid, self.box.semaphore("x", 0).acquire)
        self.assertRaises(signalbox.TooHeavy, self.box.semaphore(self.name, 2).acquire, weight=3)

    def test_errors_say_what_to_do(self) -> None:
        import redis
        missing = wire.explained("db", redis.exceptions.ResponseError("Function not found"))
        self.assertIsInstance(missing, signalbox.UnsupportedServer)
        self.assertIn("signalbox functions install", str(missing))

    def test_a_server_that_is_away(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            url = f"redis://127.0.0.1:{taken.getsockname()[1]}"
        with signalbox.Box(url) as box:
            self.assertRaises(signalbox.Unavailable, box.mutex(self.name).try_acquire)


class AsyncLocks(Case, unittest.IsolatedAsyncioTestCase):
    async def test_many_tasks_take_turns(self) -> None:
        inside, most, threads = 0, 0, threading.active_count()
        async with aio.Box(URL) as box:
            async def turn() -> None:
                nonlocal inside, most
                async with box.semaphore(self.name, 3).acquire(timeout=30):
                    inside += 1
                    most = max(most, inside)
                    await asyncio.sleep(0.002)
                    inside -= 1
            tasks = [asyncio.ensure_future(turn()) for _ in range(50)]
            await asyncio.sleep(0.05)
            self.assertLessEqual(threading.active_count() - threads, 3)
            await asyncio.gather(*tasks)
        self.assertLessEqual(most, 3)

    async def test_a_cancelled_task_leaves_nothing(self) -> None:
        async with aio.Box(URL) as box, aio.Box(URL) as other:
            lease = await box.mutex(self.name).acquire()
            task = asyncio.ensure_future(other.mutex(self.name).acquire()._acquire())
            await asyncio.sleep(0.1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await lease.release()
            async with other.mutex(self.name).acquire(timeout=60):
                pass

    async def test_a_lost_lease_cancels_the_body(self) -> None:
        from signalbox.locks import keys_of
        async with aio.Box(URL) as box:
            with self.assertRaises(signalbox.LeaseLost):
                async with box.mutex(self.name).acquire(ttl=0.5) as lease:
                    self.server.execute_command("FCALL", "signalbox_force", 4, *keys_of(self.name), lease.id, 3000)
                    await asyncio.sleep(20)
            await asyncio.sleep(0)  # the task itself goes on


if __name__ == "__main__":
    unittest.main()
