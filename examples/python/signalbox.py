"""Distributed semaphores and mutexes for Python, shared with the Go library and with every other language.

    box = signalbox.Box("redis://localhost:6379")
    with box.semaphore("downloads", limit=2).acquire() as lease:
        fetch(url, token=lease.token)
        lease.check()          # raises LeaseLost if somebody else may be inside by now

The server needs the functions: `signalbox functions install --url redis://localhost:6379`. What they take and answer,
and the rules that this client keeps, are in docs/functions.md.

How it works. Everything is decided by functions on the server; a client asks, keeps asking while it waits, and renews
while it holds. A Box listens on one channel, its inbox, on which the server tells a waiter that its turn has come. A
message is only a hint to ask again at once: whoever misses it asks at the next heartbeat. Threads: one for the inbox,
and for each lease one that renews it and one that watches its deadline.
"""

from __future__ import annotations

import itertools
import os
import queue
import secrets
import socket
import threading
import time
from types import TracebackType
from typing import Any, Callable

import redis
import redis.exceptions

CLAIM = 3.0  # seconds for which the server believes in a waiter that is silent

# What acquire, renew and release answer.
GRANTED, WAITING, REFUSED, BARRED, HEAVY = 1, 2, 3, 4, 5
LOST, HELD, FORCED, WANTED = 0, 1, 2, 3

# Errors that may pass: the server is away, is starting, or has another role for the moment.
PASSING = (
    redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, redis.exceptions.BusyLoadingError,
    redis.exceptions.ReadOnlyError,
)


class Error(Exception):
    """What all errors here have in common."""


class Busy(Error):
    """try_acquire found no permit free."""

    def __init__(self, name: str, retry_after: float, held: int, limit: int) -> None:
        super().__init__(f"{name}: {held} of {limit} permits are held")
        self.retry_after = retry_after  # seconds until the earliest lease can expire


class TooHeavy(Error):
    """The weight is more than the limit, and could never be granted."""


class LeaseLost(Error):
    """The lease was not renewed in time: somebody else may hold the permits."""


class Forced(LeaseLost):
    """An operator ended the lease, or sent the waiter away."""


def keys_of(name: str) -> list[str]:
    """The four keys of a resource: state, leases, queue, seen. They have one hash tag, so a Cluster keeps them together."""
    def encode(text: str) -> str:
        return text.replace("%", "%25").replace("}", "%7D")

    state = "signalbox:{" + encode(name) + "}"
    _, brace, rest = name.partition("{")
    tag, closed, _ = rest.partition("}")
    if brace and closed and tag:  # the name has a hash tag of its own
        state = "signalbox:{" + encode(tag) + "}{" + encode(name) + "}"
    return [state, state + ":leases", state + ":queue", state + ":seen"]


class Box:
    """The door to all semaphores on one server. A process needs one; any number of threads may use it."""

    def __init__(self, url: str = "redis://localhost:6379", owner: str | None = None) -> None:
        # A request that takes longer than a waiter may be silent is of no use any more.
        self.redis = redis.Redis.from_url(
            url, socket_timeout=CLAIM, socket_connect_timeout=CLAIM, health_check_interval=10, decode_responses=True)
        self.owner = owner or f"{socket.gethostname()}:{os.getpid()}"
        self.process = secrets.token_hex(8)  # begins every id and names the inbox, so it must be nobody else's
        self._numbers = itertools.count(1)
        self._mailboxes: dict[str, Callable[[list[str]], None]] = {}
        self._lock = threading.Lock()
        self._inbox: threading.Thread | None = None
        self._closed = threading.Event()

    def semaphore(self, name: str, limit: int) -> Semaphore:
        """The semaphore of a name. The limit counts for what is acquired through this value."""
        return Semaphore(self, name, limit)

    def mutex(self, name: str) -> Semaphore:
        """A semaphore with one permit."""
        return Semaphore(self, name, 1)

    def close(self) -> None:
        """Ends the inbox. Release what is held first: what is not ends with its ttl."""
        self._closed.set()
        if self._inbox:
            self._inbox.join()
        self.redis.close()

    def __enter__(self) -> Box:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, function: str, name: str, *arguments: Any) -> Any:
        """Calls a function of the library on a resource."""
        keys = keys_of(name)
        try:
            return self.redis.fcall("signalbox_" + function, len(keys), *keys, *arguments)
        except redis.exceptions.ResponseError as error:
            if "Function not found" in str(error):
                raise Error("the server lacks the functions: run signalbox functions install --url ...") from error
            raise

    def new_id(self) -> str:
        return f"{self.process}:{next(self._numbers)}"

    def listen(self, id: str, hear: Callable[[list[str]], None]) -> None:
        """Has hear called with every message for an id, as words, and with ["hello"] when messages may have gone by."""
        with self._lock:
            self._mailboxes[id] = hear
            if self._inbox is None:
                self._inbox = threading.Thread(target=self._run_inbox, name="signalbox inbox", daemon=True)
                self._inbox.start()

    def ignore(self, id: str) -> None:
        with self._lock:
            self._mailboxes.pop(id, None)

    def _run_inbox(self) -> None:
        while not self._closed.is_set():
            subscription = self.redis.pubsub()
            try:
                subscription.subscribe("signalbox:inbox:" + self.process)
                while not self._closed.is_set():
                    message = subscription.get_message(timeout=0.5)
                    if message:
                        self._deliver(message)
            except PASSING:
                self._closed.wait(0.1)  # until it is open again, heartbeats do its work
            finally:
                subscription.close()

    def _deliver(self, message: dict[str, Any]) -> None:
        with self._lock:
            mailboxes = dict(self._mailboxes)
        if message["type"] == "subscribe":
            for hear in mailboxes.values():
                hear(["hello"])
        elif message["type"] == "message":
            words = str(message["data"]).split(" ")
            if len(words) > 1 and words[1] in mailboxes:
                mailboxes[words[1]](words)


class Semaphore:
    """Lets leases of a total weight up to its limit in, in the order they asked. It holds no state."""

    def __init__(self, box: Box, name: str, limit: int) -> None:
        self.box, self.name, self.limit = box, name, limit

    def try_acquire(self, weight: int = 1, ttl: float = 30.0, label: str = "") -> Lease:
        """Acquires, or raises Busy at once."""
        return _Acquisition(self, weight, ttl, label).run(wait=False, timeout=None)

    def acquire(
        self, weight: int = 1, ttl: float = 30.0, label: str = "", timeout: float | None = None,
        on_wait: Callable[[int], None] | None = None,
    ) -> Lease:
        """Waits for its turn; raises TimeoutError after timeout seconds. on_wait is told how many are ahead, when that changes."""
        return _Acquisition(self, weight, ttl, label, on_wait).run(wait=True, timeout=timeout)


class _Acquisition:
    """One acquisition, known to the server by its id. Whatever it sends again, it sends with the same id."""

    def __init__(
        self, semaphore: Semaphore, weight: int, ttl: float, label: str, on_wait: Callable[[int], None] | None = None,
    ) -> None:
        self.box, self.name, self.limit = semaphore.box, semaphore.name, semaphore.limit
        self.weight, self.ttl, self.on_wait = weight, ttl, on_wait
        self.owner = self.box.owner + ("\t" + label if label else "")
        self.id = self.box.new_id()
        self.mail: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
        self.doubtful = False  # a request went unanswered, and may reach the server yet
        self._ahead = -1  # as on_wait was told

    def run(self, wait: bool, timeout: float | None) -> Lease:
        until = time.monotonic() + timeout if timeout is not None else float("inf")
        self.box.listen(self.id, self.mail.put)
        try:
            return self._ask_until_granted(wait, until)
        except BaseException as error:  # KeyboardInterrupt too: nothing may stay behind
            refused = isinstance(error, (Busy, TooHeavy, Forced))
            if not refused or self.doubtful:
                self._take_back()
            self.box.ignore(self.id)
            raise

    def _ask_until_granted(self, wait: bool, until: float) -> Lease:
        heard = time.monotonic()
        while True:
            sent = time.monotonic()
            # A waiter is believed in for CLAIM seconds, and never for longer than it will wait.
            wait_ms = int(1000 * max(0.001, min(CLAIM, until - sent))) if wait else 0
            try:
                code, *answer = self.box.call(
                    "acquire", self.name, self.id, self.weight, self.limit, int(1000 * self.ttl), wait_ms,
                    int(1000 * CLAIM), "-", self.owner)
            except PASSING:
                self.doubtful = True
                if not wait or time.monotonic() - heard > CLAIM:
                    raise
                pause = 0.1
            else:
                heard = time.monotonic()
                if code == GRANTED and heard - sent < self.ttl / 2:
                    return Lease(self, token=answer[0], sent=sent)
                # An answer that took too long is asked for again, for a lease with its whole ttl.
                pause = 0 if code == GRANTED else self._refused_or_pause(code, answer)
            if time.monotonic() >= until:
                raise TimeoutError(f"{self.name} was not granted in time")
            self._listen_for(min(pause, until - time.monotonic()))

    def _refused_or_pause(self, code: int, answer: list[int]) -> float:
        """How long a waiter may be silent; raises if it is none."""
        if code == WAITING:
            ahead, next_ms, _ = answer
            if self.on_wait and ahead != self._ahead:
                self._ahead = ahead
                self.on_wait(ahead)
            # At the latest after a third of the time for which the server waits for a word; or when a lease can expire,
            # staggered, so that not all waiters ask at once.
            return min(CLAIM / 3, next_ms / 1000 + 0.001 + min(0.005 * ahead, 0.25))
        if code == REFUSED:
            next_ms, held, limit = answer
            raise Busy(self.name, next_ms / 1000, held, limit)
        if code == HEAVY:
            raise TooHeavy(f"{self.name}: weight {self.weight} of limit {answer[0]}")
        raise Forced(f"{self.name}: an operator sent this waiter away")

    def _listen_for(self, seconds: float) -> None:
        """Waits for a message that is worth asking for, or for the time given."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                words = self.mail.get(timeout=left)
            except queue.Empty:
                return
            # Grant, heavy, force and hello: the answer to a question says the rest, and confirms a grant for its whole
            # ttl. Only "ask" names a time, since nothing can be had before.
            if words[0] != "ask":
                return
            end = time.monotonic() + int(words[2]) / 1000

    def _take_back(self) -> None:
        """Cancels on the server, which also bars the id for as long as a request may still be on its way."""
        end = time.monotonic() + CLAIM
        while True:
            try:
                self.box.call("cancel", self.name, self.id, int(1000 * CLAIM))
                return
            except PASSING:
                if time.monotonic() > end:
                    return  # by now the server has forgotten the waiter
                time.sleep(0.1)


class Lease:
    """Permits that are held, and renewed until they are released. Leaving its `with` block releases it."""

    def __init__(self, acquisition: _Acquisition, token: int, sent: float) -> None:
        a = acquisition
        self.box, self.name, self.id, self.ttl = a.box, a.name, a.id, a.ttl
        self.token = token  # larger than that of every grant before
        self.lost = threading.Event()  # set before the server can give the permits to somebody else
        self._why = ""
        self._forced = False
        self._doubtful = a.doubtful
        self._over = threading.Event()  # released or lost
        self._set_deadline(sent)
        self.box.listen(self.id, self._hear)
        self._threads = [
            threading.Thread(target=run, name=f"signalbox {run.__name__} {self.name}", daemon=True)
            for run in (self._renew, self._watch)
        ]
        for thread in self._threads:
            thread.start()

    def check(self) -> None:
        """Raises LeaseLost, or Forced, if the lease is lost."""
        if self.lost.is_set():
            raise (Forced if self._forced else LeaseLost)(f"{self.name}: {self._why}")

    def release(self) -> None:
        """Gives the permits back; the next in the queue has them when this returns. Raises LeaseLost if it was lost."""
        already = self._over.is_set()
        self._over.set()
        self.box.ignore(self.id)
        if not already:
            self._give_back()
        self.check()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None,
    ) -> None:
        try:
            self.release()
        except LeaseLost:
            if error is None:  # what went wrong inside says more
                raise

    def _set_deadline(self, sent: float) -> None:
        # From the moment of sending, by a clock that nobody sets, and a little early: clocks run at different rates,
        # and a holder needs a moment to stop.
        self.deadline = sent + self.ttl - min(max(self.ttl / 20, 0.002), 0.5)

    def _hear(self, words: list[str]) -> None:
        if words[0] == "force":
            self._lose("an operator ended the lease", forced=True)

    def _lose(self, why: str, forced: bool = False) -> None:
        if not self._over.is_set():
            self._why, self._forced = why, forced
            self._over.set()
            self.lost.set()
            self.box.ignore(self.id)

    def _watch(self) -> None:
        while (left := self.deadline - time.monotonic()) > 0:
            if self._over.wait(left):
                return
        self._lose("the lease could not be renewed in time")

    def _renew(self) -> None:
        pause = self.ttl / 3
        while not self._over.wait(pause):
            sent = time.monotonic()
            try:
                (held,) = self.box.call("renew", self.name, self.id, int(1000 * self.ttl), 0)
            except PASSING:
                pause = min(0.1, self.ttl / 20)
                continue
            except redis.exceptions.RedisError as error:
                return self._lose(f"the lease cannot be renewed: {error}")
            if held == FORCED:
                return self._lose("an operator ended the lease", forced=True)
            if held == LOST:
                return self._lose("the lease had expired on the server")
            self._set_deadline(sent)  # HELD, or WANTED: somebody waits
            pause = self.ttl / 3

    def _give_back(self) -> None:
        # A request to acquire that went unanswered may reach the server after the release, and would take the permits
        # for nobody: cancel bars the id as well.
        while True:
            try:
                if self._doubtful:
                    self.box.call("cancel", self.name, self.id, int(1000 * CLAIM))
                    return
                held = self.box.call("release", self.name, self.id)
            except PASSING:
                if time.monotonic() > self.deadline:
                    return  # the server ends it by itself
                self._doubtful = True  # what the next attempt is told may be about this one
                time.sleep(0.1)
                continue
            if held != HELD:
                self._why, self._forced = "it had ended on the server", held == FORCED
                self.lost.set()
            return
