"""Semaphores, mutexes, read/write locks and elections.

What happens to an acquisition between the caller and the server is one state machine, written down once (_Acquisition):
asking, held, ending, over. A Box runs all of its acquisitions with three threads, however many there are:

- the heart sends what they want, in one pipeline, and hands them the answers: acquire, again as the heartbeat of who waits,
  renew, release, cancel;
- the watch keeps their deadlines, by a clock of its own: it never talks to a server, so that no server can hold it up;
- the inbox hears that something is worth asking for at once.

Whoever calls waits for a Future, which threads and asyncio can both do (aio.py). One lock guards all state, and is never
held while the server is asked. The rules by number are those of docs/functions.md.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import logging
import os
import secrets
import socket
import threading
from types import TracebackType
from typing import Any, Callable, Optional, TypeVar

import redis
import redis.exceptions

from . import errors, wire

CLAIM = 3.0  #: seconds for which the server believes in a waiter that is silent
ARRIVAL = 900.0  #: seconds for which a request can stay on its way
WRITER = 1_000_000  #: the limit of a read/write lock, and the weight of a writer

_ASKING, _HELD, _ENDING, _OVER = "asking", "held", "ending", "over"
T = TypeVar("T")


def keys_of(name: str) -> list[str]:
    """The four keys of a resource. They have one hash tag, so a Cluster keeps them together."""
    state = "signalbox:{" + wire.encode(name) + "}"
    _, brace, rest = name.partition("{")
    tag, closed, _ = rest.partition("}")
    if brace and closed and tag:  # the name has a hash tag of its own
        state = "signalbox:{" + wire.encode(tag) + "}{" + wire.encode(name) + "}"
    return [state, state + ":leases", state + ":queue", state + ":seen"]


class Box:
    """The door to everything that is locked on one server. A process needs one; any number of threads may use it."""

    def __init__(self, url: str = "redis://localhost:6379", *, owner: Optional[str] = None) -> None:
        self._client = wire.connect(url)
        self._owner = owner or f"{socket.gethostname()}:{os.getpid()}"
        self._process = secrets.token_hex(8)  # begins every id and names the inbox, so it must be nobody else's
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)  # for the heart
        self._dates = threading.Condition(self._lock)  # for the watch
        self._live: dict[str, _Acquisition] = {}
        self._tell: list[Callable[[], None]] = []  # to be called without the lock
        self._closing = False
        self._inbox = wire.Inbox(self._client, "signalbox:inbox:" + self._process, self._hear, self._look)
        self._threads: list[threading.Thread] = []

    def semaphore(self, name: str, limit: int) -> Semaphore:
        """The semaphore of a name. The limit counts for what is acquired through this value."""
        return Semaphore(self, name, limit)

    def mutex(self, name: str) -> Semaphore:
        """A semaphore with one permit."""
        return Semaphore(self, name, 1)

    def rwlock(self, name: str) -> RWLock:
        """Any number of readers, or one writer, in the order in which they came."""
        return RWLock(self, name)

    def election(self, name: str) -> Election:
        """A mutex that is held for long."""
        return Election(self, name)

    def close(self, timeout: float = 5.0) -> None:
        """Releases what is held, gives up what waits, and returns when no thread is left. What the server could not be told
        within timeout ends by itself, with its ttl."""
        with self._lock:
            self._closing = True
            ends = [a.finish(errors.Closed("the box was closed")) for a in self._live.values()]
            self._work.notify()
        self._flush()
        concurrent.futures.wait(ends, timeout)
        with self._lock:
            for a in list(self._live.values()):
                a.over()
            self._work.notify()
            self._dates.notify()
        self._flush()
        for thread in self._threads:
            thread.join()
        self._inbox.close()
        self._client.close()

    def __enter__(self) -> Box:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What acquisitions use, with the lock held.

    def _later(self, tell: Callable[..., None], *args: Any) -> None:
        self._tell.append(lambda: tell(*args))

    def _flush(self) -> None:
        """Tells what there is to tell: what is told may call this package again."""
        while True:
            with self._lock:
                told, self._tell = self._tell, []
            if not told:
                return
            for tell in told:
                try:
                    tell()
                except Exception:  # of the caller's own function, which must not end a thread that others need
                    logging.getLogger("signalbox").exception("a function that was told of a lease has failed")

    def _start(self, a: _Acquisition) -> None:
        with self._lock:
            if self._closing:
                raise errors.Closed(f"{a.name}: the box was closed")
            self._live[a.id] = a
            if not self._threads:
                for run, name in ((self._beat, "heart"), (self._watch, "watch")):
                    thread = threading.Thread(target=run, name="signalbox " + name, daemon=True)
                    self._threads.append(thread)
                    thread.start()
            self._work.notify()
            self._dates.notify()

    # The threads.

    def _beat(self) -> None:
        while True:
            with self._lock:
                now = wire.clock()
                due = [a for a in self._live.values() if a.due <= now][:500]
                if not due:
                    if self._closing and not self._live:
                        return
                    left = min((a.due - now for a in self._live.values()), default=1.0)
                    self._work.wait(min(left, 1.0))
                    continue
                asked = [(a, a.request(now)) for a in due]
            sent = wire.clock()
            for (a, request), reply in zip(asked, self._send(asked)):
                with self._lock:
                    if a.state != _OVER:
                        a.answered(request[0], reply, sent)
            self._flush()

    def _send(self, asked: list[tuple[_Acquisition, tuple[str, list[Any]]]]) -> list[Any]:
        pipeline = self._client.pipeline(transaction=False)
        for a, (function, arguments) in asked:
            pipeline.execute_command("FCALL", "signalbox_" + function, len(a.keys), *a.keys, *arguments)
        try:
            return pipeline.execute(raise_on_error=False)
        except (redis.exceptions.RedisError, OSError) as error:
            return [error] * len(asked)

    def _watch(self) -> None:
        while True:
            with self._lock:
                if self._closing and not self._live:
                    return
                now = wire.clock()
                next_date = now + 1.0  # the clock may have gone on while the computer slept
                for a in list(self._live.values()):
                    if a.state == _HELD and a.deadline <= now:
                        a.lose(errors.LeaseLost(f"{a.name}: the lease could not be renewed in time"))
                    elif a.state == _ASKING and a.until <= now:
                        a.finish(errors.Timeout(f"{a.name} was not granted in time"))
                    elif a.state == _ENDING and a.deadline <= now:
                        a.over()
                    next_date = min(next_date, a.date())
                if not self._tell:
                    self._dates.wait(max(next_date - now, 0.001))
            self._flush()

    def _hear(self, message: str) -> None:
        words = message.split(" ")
        with self._lock:
            a = self._live.get(words[1]) if len(words) > 1 else None
            if a is not None:
                a.hear(words)
                self._work.notify()
        self._flush()

    def _look(self) -> None:
        with self._lock:
            for a in self._live.values():
                if a.state == _ASKING and a.waiting:
                    a.due = 0.0
            self._work.notify()


class _Acquisition:
    """One acquisition, known to the server by its id. Whatever it sends again, it sends with the same id (rule 1)."""

    def __init__(
        self, box: Box, name: str, limit: int, weight: int, ttl: float, label: str, wait: bool, timeout: Optional[float],
        on_wait: Optional[Callable[[int], None]], lease: type[Lease],
    ) -> None:
        if not name or len(name.encode()) > 512:
            raise errors.Invalid(f"the name {name[:40]!r} has {len(name.encode())} bytes: it is 1 to 512")
        if not 1 <= limit <= 2**31 - 1 or weight < 1:
            raise errors.Invalid(f"{name}: a limit of {limit} and a weight of {weight}: both are at least 1")
        if not 0.01 <= ttl <= 31536000:
            raise errors.Invalid(f"{name}: a ttl of {ttl} seconds: it is between 0.01 and 31536000")
        self.box, self.name, self.keys, self.limit, self.weight, self.ttl = box, name, keys_of(name), limit, weight, ttl
        self.owner = box._owner + ("\t" + " ".join(label.split()) if label else "")
        self.id = f"{box._process}:{next(box._numbers)}"
        self.wait, self.on_wait = wait, on_wait
        self.state, self.waiting, self.due, self.failures = _ASKING, False, 0.0, 0
        self.doubtful = False  # a request to acquire went unanswered, and may reach the server yet (rule 7)
        self.heard = wire.clock()
        self.until = self.heard + timeout if timeout is not None else float("inf")
        self.deadline = float("inf")
        self.ahead = -1  # as on_wait was told
        self.why: Optional[errors.Error] = None
        self.granted: concurrent.futures.Future[Lease] = concurrent.futures.Future()
        self.ended: concurrent.futures.Future[None] = concurrent.futures.Future()
        self.lease = lease(self)

    def date(self) -> float:
        return self.until if self.state == _ASKING else self.deadline

    # What it wants.

    def request(self, now: float) -> tuple[str, list[Any]]:
        """What to send now. It is due again when it was answered."""
        self.due = float("inf")
        if self.state == _ASKING:
            # A waiter is believed in for CLAIM seconds, and never for longer than it will wait.
            wait_ms = int(1000 * max(0.001, min(CLAIM, self.until - now))) if self.wait else 0
            return "acquire", [self.id, self.weight, self.limit, int(1000 * self.ttl), wait_ms, int(1000 * CLAIM), "-", self.owner]
        if self.state == _HELD:
            return "renew", [self.id, int(1000 * self.ttl), 0]
        if self.doubtful or self.granted.cancelled() or not self.lease.token:
            return "cancel", [self.id, int(1000 * max(CLAIM, min(self.ttl, ARRIVAL)))]
        return "release", [self.id]

    # What it is told. The lock is held.

    def answered(self, request: str, reply: Any, sent: float) -> None:
        if isinstance(reply, BaseException):
            self.failed(request, reply)
            return
        self.failures, self.heard = 0, wire.clock()
        if request == "acquire":
            self.asked(reply, sent)
        elif request == "renew":
            self.renewed(reply[0], sent)
        else:
            if request == "release" and reply != 1 and self.why is None:
                self.why = errors.Forced(f"{self.name}: an operator ended the lease") if reply == 2 else \
                    errors.LeaseLost(f"{self.name}: the lease had ended on the server")
            self.over()

    def asked(self, reply: list[Any], sent: float) -> None:
        code, rest = reply[0], reply[1:]
        if code == 1:
            self.lease.token = rest[0]
        if self.state != _ASKING:  # it was given up meanwhile
            self.doubtful, self.due = True, 0.0
        elif code == 1 and wire.clock() - sent >= self.ttl / 2:
            self.due = 0.0  # for a lease with its whole ttl
        elif code == 1:
            self.state = _HELD
            self.extend(sent)
            self.box._later(self.grant)
            self.box._dates.notify()
        elif code == 2:
            ahead, next_ms = rest[0], rest[1]
            self.waiting = True
            self.box._inbox.open()
            if self.on_wait and ahead != self.ahead:
                self.box._later(self.on_wait, ahead)
            self.ahead = ahead
            soon = next_ms / 1000 + 0.005 * (ahead + 1) if next_ms > 0 else CLAIM
            self.due = sent + min(CLAIM / 3, soon)
        elif code == 3:
            self.refused(errors.Busy(self.name, rest[0] / 1000, rest[1], rest[2]))
        elif code == 4:
            self.refused(errors.Forced(f"{self.name}: an operator sent the waiter away"))
        else:
            self.refused(errors.TooHeavy(f"{self.name}: a weight of {self.weight} never fits into {rest[0]}"))

    def refused(self, why: errors.Error) -> None:
        self.why = why
        self.box._later(_fail, self.granted, why)
        if self.doubtful:
            self.end()
        else:
            self.over()

    def renewed(self, code: int, sent: float) -> None:
        if self.state != _HELD:
            return
        if code == 2:
            self.lose(errors.Forced(f"{self.name}: an operator ended the lease"))
        elif code == 0:
            self.lose(errors.LeaseLost(f"{self.name}: the lease had expired on the server"))
        else:
            self.extend(sent)

    def extend(self, sent: float) -> None:
        # From the moment of sending, and a little early: clocks run at different rates, and a holder needs a moment (rule 5).
        self.deadline = sent + self.ttl - min(max(self.ttl / 20, 0.002), 0.5)
        self.due = sent + self.ttl / 3

    def failed(self, request: str, error: BaseException) -> None:
        self.failures += 1
        if request == "acquire" and wire.in_doubt(error):
            self.doubtful = True
        passing, now = wire.passes(error), wire.clock()
        said = wire.explained(self.name, error)
        if self.state == _ASKING and (not passing or not self.wait or now - self.heard > CLAIM):
            self.refused(said)
        elif self.state == _HELD and not passing:
            self.lose(said)
        elif self.state == _ENDING and not passing:
            self.why = self.why or said
            self.over()
        else:
            if self.state == _ENDING:
                self.doubtful = True  # what the next attempt is told may be about this one
            self.due = now + wire.pause(self.failures, min(self.ttl, CLAIM))

    def hear(self, words: list[str]) -> None:
        if self.state == _HELD and words[0] == "force":
            self.lose(errors.Forced(f"{self.name}: an operator ended the lease"))
        elif self.state == _ASKING:
            later = int(words[2]) / 1000 if words[0] == "ask" and len(words) > 2 and words[2].isdigit() else 0.0
            self.due = min(self.due, wire.clock() + later)

    # How it ends.

    def grant(self) -> None:
        try:
            self.granted.set_result(self.lease)
        except concurrent.futures.InvalidStateError:
            self.give_up()  # the caller has gone

    def give_up(self) -> None:
        """Called without the lock, by a caller that does not want it any more."""
        with self.box._lock:
            self.finish(errors.Timeout(f"{self.name}: the caller has given up"))
        self.box._flush()

    def finish(self, why: Optional[errors.Error]) -> concurrent.futures.Future[None]:
        if self.state == _ASKING:
            self.why, self.doubtful = why, True
            self.box._later(_fail, self.granted, why)
            self.end()
        elif self.state == _HELD:
            self.end()
        return self.ended

    def end(self) -> None:
        self.state, self.due = _ENDING, 0.0
        self.deadline = min(self.deadline, wire.clock() + self.ttl)  # then the server ends it by itself
        self.box._work.notify()
        self.box._dates.notify()

    def lose(self, why: errors.Error) -> None:
        self.why = why
        self.lease.lost.set()
        self.box._later(self.lease._told_lost)
        self.over()

    def over(self) -> None:
        self.state = _OVER
        self.box._live.pop(self.id, None)
        self.box._later(_settle, self.ended)
        if not self.granted.done():
            self.box._later(_fail, self.granted, self.why or errors.Closed(f"{self.name}: the box was closed"))
        self.box._work.notify()


def _fail(future: concurrent.futures.Future[Any], error: Optional[BaseException]) -> None:
    try:
        future.set_exception(error)
    except concurrent.futures.InvalidStateError:
        pass  # somebody else has told


def _settle(future: concurrent.futures.Future[None]) -> None:
    try:
        future.set_result(None)
    except concurrent.futures.InvalidStateError:
        pass


class Lease:
    """Permits, held until they are released or lost. It renews itself."""

    def __init__(self, acquisition: _Acquisition) -> None:
        self._acquisition = acquisition
        self.name = acquisition.name
        self.token = 0  #: larger than that of every grant before it
        self.lost = threading.Event()  #: set before the server can give the permits to somebody else
        self._on_lost: list[Callable[[Lease], None]] = []

    @property
    def id(self) -> str:
        return self._acquisition.id

    def check(self) -> None:
        """Raises LeaseLost if somebody else may hold the permits by now."""
        if self.lost.is_set():
            raise self._acquisition.why or errors.LeaseLost(f"{self.name}: the lease is lost")

    def on_lost(self, tell: Callable[[Lease], None]) -> None:
        """Has a function called when the lease is lost, by a thread of the Box: it must not wait. At once if it is lost."""
        with self._acquisition.box._lock:
            self._on_lost.append(tell)
        if self.lost.is_set():
            self._told_lost()

    def _told_lost(self) -> None:
        with self._acquisition.box._lock:
            told, self._on_lost = self._on_lost, []
        for tell in told:
            tell(self)

    def _release(self) -> concurrent.futures.Future[None]:
        box = self._acquisition.box
        with box._lock:
            ended = self._acquisition.finish(None)
        box._flush()
        return ended

    def release(self) -> None:
        """Gives the permits back, and returns when the server knows, or the lease is over anyway. Raises LeaseLost if it was
        lost before."""
        self._release().result()
        self._raise()

    def _raise(self) -> None:
        if self._acquisition.why is not None:
            raise self._acquisition.why

    def __enter__(self: T) -> T:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType],
    ) -> None:
        try:
            self.release()
        except errors.Error:
            if error is None:  # what went wrong inside says more
                raise


class Semaphore:
    """Lets leases of a total weight up to its limit in, in the order they asked. It holds no state."""

    _lease: type[Lease] = Lease

    def __init__(self, box: Box, name: str, limit: int) -> None:
        self.box, self.name, self.limit = box, name, limit

    def _begin(
        self, weight: int, ttl: float, label: str, wait: bool = True, timeout: Optional[float] = None,
        on_wait: Optional[Callable[[int], None]] = None,
    ) -> _Acquisition:
        a = _Acquisition(self.box, self.name, self.limit, weight, ttl, label, wait, timeout, on_wait, self._lease)
        self.box._start(a)
        return a

    def try_acquire(self, weight: int = 1, ttl: float = 30.0, label: str = "") -> Lease:
        """Acquires, or raises Busy at once."""
        return _await(self._begin(weight, ttl, label, wait=False))

    def acquire(
        self, weight: int = 1, ttl: float = 30.0, label: str = "", timeout: Optional[float] = None,
        on_wait: Optional[Callable[[int], None]] = None,
    ) -> Lease:
        """Waits for its turn; raises Timeout, which is a TimeoutError, after timeout seconds. on_wait is told how many are
        ahead, when that changes, by a thread of the Box."""
        return _await(self._begin(weight, ttl, label, timeout=timeout, on_wait=on_wait))


def _await(a: _Acquisition) -> Lease:
    try:
        return a.granted.result()
    except errors.Error:
        raise
    except BaseException:  # KeyboardInterrupt too: nothing may stay behind
        a.give_up()
        raise


class RWLock:
    """A semaphore of which a reader takes one permit and a writer all."""

    def __init__(self, box: Box, name: str) -> None:
        self._semaphore = Semaphore(box, name, WRITER)

    def read(self, ttl: float = 30.0, label: str = "", timeout: Optional[float] = None) -> Lease:
        return self._semaphore.acquire(1, ttl, label, timeout)

    def write(self, ttl: float = 30.0, label: str = "", timeout: Optional[float] = None) -> Lease:
        return self._semaphore.acquire(WRITER, ttl, label, timeout)


class Term(Lease):
    """Leadership, until it is resigned or lost."""

    def resign(self) -> None:
        self.release()


class Election(Semaphore):
    """One leader at a time; the next is who has campaigned longest."""

    _lease = Term

    def __init__(self, box: Box, name: str) -> None:
        super().__init__(box, name, 1)

    def campaign(self, ttl: float = 15.0, label: str = "", timeout: Optional[float] = None) -> Term:
        """Returns when this process leads."""
        term = self.acquire(ttl=ttl, label=label, timeout=timeout)
        assert isinstance(term, Term)
        return term
