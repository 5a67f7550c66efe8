"""Locks and queues for asyncio, with the names that threads use.

    async with aio.Box("redis://localhost:6379") as box:
        async with box.mutex("invoice:42").acquire(timeout=60) as lease:
            await store(invoice, token=lease.token)   # cancelled, and LeaseLost raised, if the lease is lost

There is one implementation: what waits here is the same Future that a thread would wait for, so any number of tasks costs the
three threads of a Box, and no more. Calls of a producer run in the loop's executor, since each waits for the server.
"""

from __future__ import annotations

import asyncio
import functools
from types import TracebackType
from typing import Any, Callable, Generator, Optional, Sequence, Union

from . import errors, locks, queue as queues, worker as workers
from .queue import Request
from .worker import Job

__all__ = ["Box", "Election", "Enqueued", "Job", "Lease", "Queue", "RWLock", "Request", "Semaphore", "Worker"]


async def _elsewhere(call: Callable[..., Any], *args: Any, **more: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, functools.partial(call, *args, **more))


class Lease:
    """Permits, held until they are released or lost. It renews itself."""

    def __init__(self, lease: locks.Lease) -> None:
        self._lease, self.name, self.token, self.id = lease, lease.name, lease.token, lease.id
        self.lost = asyncio.Event()  #: set before the server can give the permits to somebody else
        loop = asyncio.get_running_loop()
        self._on_lost: list[Callable[[], object]] = []
        lease.on_lost(lambda _: _tell(loop, self._tell_lost))

    def _tell_lost(self) -> None:
        self.lost.set()
        for tell in self._on_lost:
            tell()

    def check(self) -> None:
        """Raises LeaseLost if somebody else may hold the permits by now."""
        self._lease.check()

    async def release(self) -> None:
        """Gives the permits back. Raises LeaseLost if the lease was lost before."""
        await asyncio.shield(asyncio.wrap_future(self._lease._release()))
        self._lease._raise()


def _tell(loop: asyncio.AbstractEventLoop, tell: Callable[[], object]) -> None:
    try:
        loop.call_soon_threadsafe(tell)
    except RuntimeError:
        pass  # the loop is closed: nobody is left to tell


class Acquiring:
    """An acquisition under way: await it for a Lease, or enter it with async with, which releases at the end. Its body is
    cancelled when the lease is lost, and LeaseLost raised."""

    def __init__(self, begin: Callable[[], locks._Acquisition]) -> None:
        self._begin = begin
        self._lease: Optional[Lease] = None
        self._task: Optional[asyncio.Task[Any]] = None
        self._cancelled = False

    def __await__(self) -> Generator[Any, None, Lease]:
        return self._acquire().__await__()

    async def _acquire(self) -> Lease:
        a = self._begin()
        try:
            return Lease(await asyncio.wrap_future(a.granted))
        except asyncio.CancelledError:
            a.give_up()
            raise

    async def __aenter__(self) -> Lease:
        self._lease, self._task = await self._acquire(), asyncio.current_task()
        self._lease._on_lost.append(self._stop)
        if self._lease.lost.is_set():
            self._stop()
        return self._lease

    def _stop(self) -> None:
        if self._task is not None:
            self._cancelled = True
            self._task.cancel()

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType],
    ) -> None:
        assert self._lease is not None and self._task is not None
        task, self._task = self._task, None
        if self._cancelled:
            if hasattr(task, "uncancel"):
                task.uncancel()
            if error is None:
                try:
                    await asyncio.sleep(0)  # the cancellation is still to come
                except asyncio.CancelledError:
                    pass
        try:
            await self._lease.release()
        except errors.Error:
            if error is None or self._cancelled and isinstance(error, asyncio.CancelledError):
                raise


class Semaphore:
    """Lets leases of a total weight up to its limit in, in the order they asked. It holds no state."""

    def __init__(self, semaphore: locks.Semaphore) -> None:
        self._semaphore, self.name, self.limit = semaphore, semaphore.name, semaphore.limit

    def try_acquire(self, weight: int = 1, ttl: float = 30.0, label: str = "") -> Acquiring:
        """Acquires, or raises Busy at once."""
        return Acquiring(lambda: self._semaphore._begin(weight, ttl, label, wait=False))

    def acquire(
        self, weight: int = 1, ttl: float = 30.0, label: str = "", timeout: Optional[float] = None,
        on_wait: Optional[Callable[[int], None]] = None,
    ) -> Acquiring:
        """Waits for its turn; raises Timeout after timeout seconds. on_wait is called in a thread of the Box."""
        return Acquiring(lambda: self._semaphore._begin(weight, ttl, label, timeout=timeout, on_wait=on_wait))


class RWLock:
    """A semaphore of which a reader takes one permit and a writer all."""

    def __init__(self, lock: locks.RWLock) -> None:
        self._semaphore = Semaphore(lock._semaphore)

    def read(self, ttl: float = 30.0, label: str = "", timeout: Optional[float] = None) -> Acquiring:
        return self._semaphore.acquire(1, ttl, label, timeout)

    def write(self, ttl: float = 30.0, label: str = "", timeout: Optional[float] = None) -> Acquiring:
        return self._semaphore.acquire(locks.WRITER, ttl, label, timeout)


class Election:
    """One leader at a time; the next is who has campaigned longest."""

    def __init__(self, election: locks.Election) -> None:
        self._election = election

    def campaign(self, ttl: float = 15.0, label: str = "", timeout: Optional[float] = None) -> Acquiring:
        """Returns when this process leads. To resign is to release."""
        return Acquiring(lambda: self._election._begin(1, ttl, label, timeout=timeout))


class Box:
    """The door to everything that is locked on one server. A process needs one."""

    def __init__(self, url: str = "redis://localhost:6379", *, owner: Optional[str] = None) -> None:
        self._box = locks.Box(url, owner=owner)

    def semaphore(self, name: str, limit: int) -> Semaphore:
        return Semaphore(self._box.semaphore(name, limit))

    def mutex(self, name: str) -> Semaphore:
        return Semaphore(self._box.mutex(name))

    def rwlock(self, name: str) -> RWLock:
        return RWLock(self._box.rwlock(name))

    def election(self, name: str) -> Election:
        return Election(self._box.election(name))

    async def close(self) -> None:
        """Releases what is held, and returns when no thread is left."""
        await _elsewhere(self._box.close)

    async def __aenter__(self) -> Box:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Enqueued:
    """A job as its producer sees it."""

    def __init__(self, job: queues.Enqueued) -> None:
        self._job, self.id, self.duplicate = job, job.id, job.duplicate

    async def result(self, timeout: Optional[float] = None) -> Any:
        """Waits for the end of the job and returns its result: see signalbox.Enqueued.result."""
        waiting = self._job._wait()
        try:
            text = await asyncio.wait_for(asyncio.wrap_future(waiting), timeout)
        except asyncio.TimeoutError:
            raise errors.Timeout(f"job {self.id} has not ended in {timeout} seconds") from None
        finally:
            self._job.queue._forget(self.id, waiting)
        return queues.decode(text)


class Worker:
    """Runs jobs: see signalbox.Worker. Coroutine functions run as tasks, which are cancelled when their work is to stop;
    other functions run in threads."""

    def __init__(self, queue: queues.Queue, name: str = "worker", **options: Any) -> None:
        self._make = functools.partial(workers.Worker, queue, name, **options)
        self._handlers: list[tuple[str, workers.Handler, Optional[Callable[[int], float]]]] = []
        self._worker: Optional[workers.Worker] = None
        self._stopped = False

    def handle(self, kind: str, *, backoff: Optional[Callable[[int], float]] = None) -> Callable[[workers.Handler], workers.Handler]:
        def register(handler: workers.Handler) -> workers.Handler:
            self._handlers.append((kind, handler, backoff))
            return handler
        return register

    async def run(self) -> None:
        """Works until stop is called, somebody drains the worker, or the task is cancelled, which ends it at once."""
        self._worker = self._make(loop=asyncio.get_running_loop())
        for kind, handler, backoff in self._handlers:
            self._worker.handle(kind, backoff=backoff)(handler)
        self._worker.start()
        if self._stopped:
            self._worker.stop()
        ended = asyncio.ensure_future(_elsewhere(self._worker.join))
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            self._worker.stop(0)
            await asyncio.wait([ended])
            raise

    def stop(self) -> None:
        """Has it take nothing new, and end when nothing runs any more, or the time to drain is over."""
        self._stopped = True
        if self._worker is not None:
            self._worker.stop()


class Queue:
    """A door to one queue. A process needs one."""

    def __init__(self, url: str = "redis://localhost:6379", name: str = "default", *, lease: float = queues.LEASE) -> None:
        self._queue = queues.Queue(url, name, lease=lease)

    async def enqueue(self, kind: str, args: Any = None, *, within: float = 60.0, **terms: Any) -> Enqueued:
        """Adds a job; terms are those of Request. When it returns, the job is on the server."""
        return Enqueued(await _elsewhere(self._queue.enqueue, kind, args, within=within, **terms))

    async def enqueue_many(self, requests: Sequence[Request], *, within: float = 60.0) -> list[Union[Enqueued, errors.Parent]]:
        outcomes = await _elsewhere(self._queue.enqueue_many, requests, within=within)
        return [Enqueued(o) if isinstance(o, queues.Enqueued) else o for o in outcomes]

    def job(self, id: str) -> Enqueued:
        """The handle of a job that is known by its id."""
        return Enqueued(self._queue.job(id))

    async def cancel(self, id: str, cause: str = "") -> str:
        return await _elsewhere(self._queue.cancel, id, cause)

    async def retry(self, id: str) -> str:
        return await _elsewhere(self._queue.retry, id)

    def worker(self, name: str = "worker", **options: Any) -> Worker:
        """A worker for this queue; options are those of signalbox.Worker."""
        return Worker(self._queue, name, **options)

    async def close(self) -> None:
        await _elsewhere(self._queue.close)

    async def __aenter__(self) -> Queue:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
