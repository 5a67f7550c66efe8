"""Workers: who runs jobs.

A worker talks to the server in one call (_exchange), which says what it has done, renews its lease and brings what it has
room for. Its loop makes a call when there is something to say, when a message says that there is something to hear, and three
times in a lease. A second thread, the watch, ends the jobs when the lease is over by the worker's own clock, and those that
take too long: it never talks to a server. Each job runs in a thread of its own, or as a task of an asyncio loop.

One lock guards all state, and is never held while the server is asked. The rules are those of docs/functions-queue.md.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import datetime
import inspect
import json
import logging
import os
import random
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping, Optional

import redis.exceptions

from . import errors, schedule, wire
from .queue import ATTEMPTS, MOST, PAYLOAD, RETAIN, Queue, check_name, cost_text, encode

DEAD_RETAIN = 90 * 86400.0
MOST_CLAIMS = 100
STOP_PATIENCE = 5.0  #: seconds for which a worker waits for handlers whose jobs were ended
NOTES_MOST = 8 << 10
Handler = Callable[["Job"], Any]


class Job:
    """One attempt of a job, as its handler sees it."""

    def __init__(self, worker: Worker, id: str, token: str, record: str) -> None:
        header, _, rest = record.partition("\n")
        self._envelope, _, note = rest.partition("\n")
        f = header.split("\t")
        self._worker, self._token = worker, token
        self.id, self.kind, self.key = id, f[10], f[13]
        self.token = int(token)  #: larger with every claim of any job of the queue: a guarded store can refuse who comes late
        self.attempt = int(f[3]) + 1  #: 1 for the first
        self.crashes = int(f[4])  #: how many workers died over it
        self.enqueued = datetime.datetime.fromtimestamp(int(f[8]) / 1000, datetime.timezone.utc)
        self.args: Any = None
        self.ending = threading.Event()  #: set when the work is to stop: check() says why
        self._cost, self._retention = f[12], int(f[5])
        self._cause: Optional[errors.Error] = None
        self._disowned = False
        self._until = float("inf")
        self._cancel: Optional[Callable[[], object]] = None  # of its task
        self._notes: dict[str, Any] = _parsed(note)
        self._notes.pop("progress", None)  # of the attempt before
        self._version = self._sent = self._heard = 0  # of the notes: written, on their way, known to the server
        self._sent_at = -1.0

    def check(self) -> None:
        """Raises if the work is to stop: Canceled, LeaseLost, Timeout or Stopped."""
        if self._cause is not None:
            raise self._cause

    def progress(self, percent: float, what: str = "") -> None:
        """Says how far the job is. Who looks at it sees that within a third of the queue's lease."""
        self._write(lambda: self._notes.update(
            progress={"percent": min(max(percent, 0), 100), "what": _one_line(what), "at": _now()}))

    def log(self, text: str) -> None:
        """Adds a line to the log of the job. The last 8 KiB are kept, over all attempts."""
        self._write(lambda: self._notes.setdefault("log", []).append(
            {"at": _now(), "attempt": self.attempt, "text": _one_line(text)}))

    def _write(self, change: Callable[[], object]) -> None:
        with self._worker._lock:
            change()
            lines = self._notes.get("log", [])
            while sum(60 + len(line["text"].encode()) for line in lines) > NOTES_MOST:
                del lines[0]
            self._version += 1

    def _note(self) -> _Report:
        return _Report(self.id, self._token, "note", 0, json.dumps(self._notes, ensure_ascii=False))

    def _end(self, cause: errors.Error) -> None:
        """Called with the lock held."""
        if self._cause is None:
            self._cause = cause
            self.ending.set()
            if self._cancel is not None:
                self._cancel()


def _parsed(note: str) -> dict[str, Any]:
    try:
        notes = json.loads(note) if note else {}
    except ValueError:
        return {}  # somebody else wrote it
    return notes if isinstance(notes, dict) else {}


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _one_line(text: str) -> str:
    text = "".join(" " if c < " " or c == "\x7f" else c for c in text)
    return text.encode("utf-8", "replace")[:1000].decode("utf-8", "ignore")


@dataclass
class _Report:
    id: str
    token: str
    verb: str
    number: int
    text: str


class Worker:
    """Runs jobs: of the kinds that have a handler, for which it has the tags and the room.

        worker = queue.worker("mailer", slots=4)

        @worker.handle("mail.send")
        def send(job): ...

        worker.run()

    Handlers may be coroutine functions: then run is called with the loop that they run on (aio.py)."""

    def __init__(
        self, queue: Queue, name: str = "worker", *, slots: int = 1, capacity: Optional[Mapping[str, int]] = None,
        tags: Iterable[str] = (), drain: float = 30.0, loop: Optional[asyncio.AbstractEventLoop] = None,
    ) -> None:
        """capacity: what it can do at once of each thing, {"call": 1, "chat": 3}; slots are for jobs without a cost. drain: how
        many seconds it waits for what runs, when it is told to end."""
        self.queue, self.name, self.drain = queue, check_name("worker", name), drain
        self.capacity = dict(capacity) if capacity is not None else {"slot": slots}
        cost_text(self.capacity, ":")
        self.tags = sorted({check_name("tag", tag) for tag in tags})
        self._loop = loop
        self._handlers: dict[str, tuple[Handler, Callable[[int], float]]] = {}
        self._lock = threading.Lock()
        self._bell = threading.Condition(self._lock)  # for the loop
        self._dates = threading.Condition(self._lock)  # for the watch
        self._thread: Optional[threading.Thread] = None
        self._error: Optional[errors.Error] = None
        self._id, self._call, self._failures, self._register = "", 0, 0, True
        self._state = "online"
        self._rung, self._full, self._expired, self._over = True, False, False, False
        self._beat = 0.0
        self._told = 0.0
        self._deadline = float("inf")
        self._stopping: Optional[float] = None  # seconds to drain
        self._drained = float("inf")
        self._jobs: dict[str, Job] = {}
        self._running: set[Job] = set()  # handlers that have not returned, of jobs that are others' by now too
        self._reports: list[_Report] = []
        self._seen: dict[str, None] = {}  # the last tokens

    # What callers use.

    def handle(self, kind: str, *, backoff: Optional[Callable[[int], float]] = None) -> Callable[[Handler], Handler]:
        """Registers a handler of a kind, before run. What it returns is the result. What it raises has the job tried again
        after backoff(attempt) seconds, which doubles from one to an hour if it is not given; see also Retry, Fail and Snooze."""
        check_name("kind", kind)

        def register(handler: Handler) -> Handler:
            self._handlers[kind] = (handler, backoff or _backoff)
            return handler
        return register

    def start(self) -> Worker:
        """Works in the background until stop."""
        if not self._handlers:
            raise errors.Invalid(f"worker {self.name}: it has no handlers: register them first")
        with self._lock:
            if self._thread is not None:
                raise errors.Invalid(f"worker {self.name}: it runs, or has run: make another one")
            self._incarnate()
            self._thread = threading.Thread(target=self._run, name="signalbox worker", daemon=True)
            self._thread.start()
        self.queue._inbox.open()
        return self

    def stop(self, drain: Optional[float] = None) -> None:
        """Has it take nothing new, and end when nothing runs any more, or the time to drain is over. It may be called by a
        handler of signals."""
        # A signal may come while this thread holds the lock: another thread rings.
        threading.Thread(target=self._stop, args=(self.drain if drain is None else drain,), daemon=True).start()

    def _stop(self, drain: float) -> None:
        with self._lock:
            self._stopping = drain if self._stopping is None else min(drain, self._stopping)
            self._drained = min(self._drained, wire.clock() + drain)
            self._ring()

    def join(self, timeout: Optional[float] = None) -> None:
        """Waits for the end of a worker that was started. Raises what it ended with, if that is an error."""
        if self._thread is not None:
            self._thread.join(timeout)
        if self._error is not None:
            raise self._error

    def run(self) -> None:
        """Works until stop is called, or somebody drains the worker."""
        self.start()
        try:
            self.join()
        except BaseException:
            self.stop(0)
            if self._thread is not None:
                self._thread.join()
            raise

    def away(self, away: bool = True) -> None:
        """Has it take nothing new, and go on with what it runs, until away(False)."""
        with self._lock:
            if self._state in ("online", "away"):
                self._state = "away" if away else "online"
                self._ring()

    # What the queue tells.

    def _ring(self) -> None:
        self._rung = True
        self._bell.notify()

    def _look(self) -> None:
        with self._lock:
            self._full = True
            self._ring()

    def _hear(self, words: list[str]) -> None:
        if words[0] == "jobs":
            self._handed(words[2:])
        elif words[0] in ("look", "wake"):
            with self._lock:
                self._full = self._full or words[0] == "look"
                self._ring()
        elif words[0] == "cancel" and len(words) >= 4:
            self._told_to_cancel(words[2], words[3])

    def _told_to_cancel(self, id: str, cause: str) -> None:
        if id == "":
            self._stop(self.drain)
            return
        with self._lock:
            job = self._jobs.get(id)
            if job is not None:
                job._end(errors.Canceled("job canceled" + (": " + cause if cause else "")))

    # The loop.

    def _incarnate(self) -> None:
        """Gives the worker an id. One whose lease has ended begins anew, with another part behind the dot."""
        number = format(next(self.queue._workerIds), "x")
        first = self._id.partition(".")[0]
        with self.queue._lock:
            if self.queue._closing.is_set():
                raise errors.Closed(f"queue {self.queue.name} was closed")
            self.queue._workers.pop(self._id, None)
            self._id = f"{first}.{number}" if first else f"{self.queue.process}/{number}"
            self.queue._workers[self._id] = self
        self._call, self._register, self._expired, self._deadline = 0, True, False, float("inf")
        self._rung = self._full = True

    def _run(self) -> None:
        watch = threading.Thread(target=self._watch, name="signalbox watch", daemon=True)
        watch.start()
        try:
            self._work()
        except Exception as error:
            self._error = wire.explained(f"worker {self.name} of queue {self.queue.name}", error)
        finally:
            with self._lock:
                for job in self._jobs.values():
                    job._end(self._error or errors.Stopped("the worker ends"))
                self._over = True
                self._dates.notify()
            with self.queue._lock:
                self.queue._workers.pop(self._id, None)
            watch.join()

    def _work(self) -> None:
        stopped = False
        while True:
            with self._lock:
                while not self._rung and wire.clock() < self._beat and not self._expired and wire.clock() < self._drained:
                    self._bell.wait(min(max(min(self._beat, self._drained) - wire.clock(), 0.001), 1.0))
                self._rung = False
                if self._expired:
                    self._incarnate()
                now = wire.clock()
                if self._stopping is not None:
                    self._state = "draining"
                    if now >= self._drained and not stopped:
                        stopped = True
                        for job in self._jobs.values():
                            job._end(errors.Stopped("the worker ends"))
                        self._drained = now + STOP_PATIENCE
                    last = not self._running or stopped and now >= self._drained
                else:
                    last = False
            if last:
                self._farewell()
                return
            self._make_call()

    def _make_call(self) -> None:
        try:
            self._exchange()
            self._failures = 0
            return
        except (redis.exceptions.RedisError, OSError, errors.Error) as error:
            if not wire.passes(error) and not str(error).startswith("LATE"):
                raise wire.explained(f"worker {self.name} of queue {self.queue.name}", error) from error
        self._failures += 1
        with self._lock:
            self._full, self._rung = True, False
            self._beat = wire.clock() + wire.pause(self._failures, self.queue.lease)
            while wire.clock() < self._beat and not self._expired and not self.queue._closing.is_set():
                self._bell.wait(min(max(self._beat - wire.clock(), 0.001), 0.25))
            self._rung = True

    def _farewell(self) -> None:
        """The last calls: what has ended, and that the worker goes. What has not ended goes to others when the lease is over."""
        until = wire.clock() + STOP_PATIENCE
        while wire.clock() < until:
            with self._lock:
                last = len(self._first_reports()) == len(self._reports)
                if last and not self._running:
                    self._state = "gone"
            try:
                self._exchange()
                if last:
                    return
            except (redis.exceptions.RedisError, OSError, errors.Error) as error:
                if not wire.passes(error):
                    raise wire.explained(f"worker {self.name} of queue {self.queue.name}", error) from error
                self._failures += 1
                threading.Event().wait(wire.pause(self._failures, 3))

    def _first_reports(self) -> list[_Report]:
        size = 0
        for i, r in enumerate(self._reports):
            size += len(r.text)
            if i == MOST or i > 0 and size > 4 * PAYLOAD:
                return self._reports[:i]
        return self._reports[:]

    def _exchange(self) -> None:
        with self._lock:
            arguments, reports, noted, inventory = self._report()
        sent = wire.clock()
        try:
            reply = self.queue._ask("work", arguments)
        except BaseException:
            with self._lock:
                for job, _ in noted:
                    job._sent = job._heard
            raise
        if reply[0] == "unknown":
            with self._lock:
                self._lose_lease()
            return
        with self._lock:
            for job, version in noted:
                job._heard = version
            if self._expired:
                return  # the watch was faster: what has come is another incarnation's
            more = reply[0] == "more" or len(reply[3]) >= MOST_CLAIMS
            self._full = self._full and inventory is None or reply[0] == "more"
            # The first call claims nothing, and one brings so many and no more.
            self._rung = self._rung or self._register or more or len(self._reports) > reports
            self._call, self._register = self._call + 1, False
            self._deadline = sent + self.queue.lease * 0.9
            del self._reports[:reports]
            if inventory is not None:
                self._told = sent
                for id in reply[5]:
                    if id in inventory and id in self._jobs:
                        self._disown(self._jobs[id])
            wait = self.queue.lease / 3
            if reply[1] >= 0:
                wait = min(wait, max(reply[1] / 1000, 0.001))
            self._beat = sent + wait
            self._dates.notify()
        self._handed(reply[6])
        self._handed(reply[3])
        for id in reply[4]:
            self._told_to_cancel(id, "")
        for name, text in zip(reply[7][::2], reply[7][1::2]):
            self._tick(name, text)

    def _report(self) -> tuple[list[Any], int, list[tuple[Job, int]], Optional[set[str]]]:
        reports = self._first_reports()
        now, inventory, noted, notes = wire.clock(), None, [], []
        for job in self._jobs.values():
            if job._version != job._sent and now - job._sent_at >= 1 and len(notes) < 100:
                job._sent, job._sent_at = job._version, now
                noted.append((job, job._version))
                notes.append(job._note())
        if self._full or self._failures or not reports or now - self._told > self.queue.lease / 3:
            inventory = set(self._jobs) | {r.id for r in self._reports[len(reports):]}
        taken: dict[str, int] = {}
        for job in self._running:
            if job._disowned:  # it still takes room
                for part in (job._cost or "slot=1").split(","):
                    name, _, n = part.partition("=")
                    taken[name] = taken.get(name, 0) + int(n)
        room = {name: max(n - taken.get(name, 0), 0) for name, n in self.capacity.items()}
        info = {"name": self.name, "host": socket.gethostname(), "pid": os.getpid(), "lease_ms": int(1000 * self.queue.lease)}
        said = reports + notes
        plain = all(r.verb == "done" and r.number == 0 and not r.text for r in said)
        arguments: list[Any] = [
            self._id, self._call + 1, self.queue._seed(), int(1000 * self.queue.lease), self._state, cost_text(room, ":"),
            ",".join(self.tags), ",".join(sorted(self._handlers)), json.dumps(info, ensure_ascii=False),
            MOST_CLAIMS if self._state == "online" else 0, int(self._register),
            "-" if inventory is None else ",".join(sorted(inventory)), 2 if plain else 5]
        for r in said:
            arguments += [r.id, r.token] if plain else [r.id, r.token, r.verb, r.number, r.text]
        return arguments, len(reports), noted, inventory

    # The lease.

    def _watch(self) -> None:
        with self._lock:
            while not self._over:
                now = wire.clock()
                if self._deadline <= now:
                    self._lose_lease()
                next_date = min(self._deadline, now + 1)
                for job in self._jobs.values():
                    if job._until <= now:
                        job._end(errors.Timeout(f"job {job.id} timed out"))
                    else:
                        next_date = min(next_date, job._until)
                self._dates.wait(max(next_date - now, 0.001))

    def _lose_lease(self) -> None:
        """The jobs may be others' by now. The loop begins anew."""
        for job in list(self._jobs.values()):
            self._disown(job)
        self._reports, self._deadline, self._expired = [], float("inf"), True
        self._ring()

    def _disown(self, job: Job) -> None:
        job._disowned = True
        job._end(errors.LeaseLost(f"job {job.id}: the worker was not heard in time: others may run it now"))
        del self._jobs[job.id]

    # Jobs.

    def _handed(self, claims: list[str]) -> None:
        begun = []
        with self._lock:
            for claim in claims:
                try:
                    id, token, record = claim.split("\t", 2)
                    job = Job(self, id, token, record)
                except (ValueError, IndexError):
                    continue  # somebody else wrote it
                if token in self._seen:
                    continue
                self._seen[token] = None
                if len(self._seen) > 20_000:
                    for old in list(self._seen)[:10_000]:
                        del self._seen[old]
                if job.kind not in self._handlers or self._state != "online":
                    self._reports.append(_Report(id, token, "back", 0, ""))
                    self._ring()
                    continue
                self._jobs[id] = job
                self._running.add(job)
                begun.append(job)
        for job in begun:
            self._begin(job)

    def _begin(self, job: Job) -> None:
        handler, backoff = self._handlers[job.kind]
        if not inspect.iscoroutinefunction(handler):
            threading.Thread(target=self._attempt, args=(job, handler, backoff), name="signalbox job", daemon=True).start()
            return
        if self._loop is None:
            self._finished(job, backoff, ATTEMPTS, None, errors.Invalid("a coroutine function as handler: use signalbox.aio"))
            return

        async def attempt() -> None:
            attempts, result, error = ATTEMPTS, None, None
            try:
                task = asyncio.current_task()
                with self._lock:
                    if task is not None:
                        job._cancel = lambda: self._loop and self._loop.call_soon_threadsafe(task.cancel)
                        if job._cause is not None:
                            task.cancel()
                attempts = self._open(job)
                result = await handler(job)
            except BaseException as caught:  # CancelledError too: the job says why
                error = caught
            self._finished(job, backoff, attempts, result, error)

        try:
            asyncio.run_coroutine_threadsafe(attempt(), self._loop)
        except RuntimeError as error:  # the loop is closed
            self._finished(job, backoff, ATTEMPTS, None, errors.Stopped(str(error)))

    def _attempt(self, job: Job, handler: Handler, backoff: Callable[[int], float]) -> None:
        attempts, result, error = ATTEMPTS, None, None
        try:
            attempts = self._open(job)
            result = handler(job)
        except BaseException as caught:  # SystemExit too: it is the handler's, not the worker's
            error = caught
        self._finished(job, backoff, attempts, result, error)

    def _open(self, job: Job) -> int:
        """Reads the envelope, and returns after how many attempts the job is dead."""
        try:
            envelope = json.loads(job._envelope)
        except ValueError as error:
            raise errors.Fail(f"the job does not decode: {error}") from error
        if not isinstance(envelope, dict) or envelope.get("codec"):
            raise errors.Fail(f"the arguments are not JSON, and {job.kind} is decoded as JSON: define it alike on both sides")
        job.args = envelope.get("args")
        if envelope.get("timeout_ms"):
            with self._lock:
                job._until = wire.clock() + envelope["timeout_ms"] / 1000
                self._dates.notify()
        return envelope.get("attempts") or ATTEMPTS

    def _finished(
        self, job: Job, backoff: Callable[[int], float], attempts: int, result: Any, error: Optional[BaseException],
    ) -> None:
        text = ""
        if error is None and result is not None:
            try:
                text = encode(result, "the result")
            except errors.Invalid as invalid:
                error = errors.Fail(str(invalid))
        try:
            report = self._verdict(job, backoff, attempts, text, error)
        except Exception as broken:  # of the caller's own backoff
            report = _Report(job.id, job._token, "dead", int(1000 * DEAD_RETAIN), _one_line(f"the backoff failed: {broken}"))
        with self._lock:
            self._running.discard(job)
            if self._jobs.get(job.id) is job:
                del self._jobs[job.id]
            if not job._disowned:
                if job._version != job._heard:
                    self._reports.append(job._note())
                self._reports.append(report)
            self._ring()

    @staticmethod
    def _verdict(job: Job, backoff: Callable[[int], float], attempts: int, text: str, error: Optional[BaseException]) -> _Report:
        def report(verb: str, seconds: float = 0.0, text: str = "") -> _Report:
            return _Report(job.id, job._token, verb, max(int(1000 * seconds), 0), text)

        cause = job._cause
        if error is None:
            return report("done", job._retention / 1000, text)
        said = _one_line(str(cause) if isinstance(error, asyncio.CancelledError) and cause else f"{type(error).__name__}: {error}")
        if isinstance(error, errors.Snooze):
            return report("snooze", error.after)
        if isinstance(error, errors.Fail):
            return report("dead", DEAD_RETAIN, _one_line(str(error)))
        if isinstance(cause, errors.Canceled):
            return report("cancelled", max(job._retention / 1000, RETAIN), _one_line(str(cause)))
        if isinstance(cause, errors.Stopped) or isinstance(error, errors.Stopped):
            return report("back")
        if job.attempt >= attempts:
            return report("dead", DEAD_RETAIN, said)
        return report("retry", error.after if isinstance(error, errors.Retry) else backoff(job.attempt), said)

    def _tick(self, name: str, text: str) -> None:
        """A schedule's tick has come. If this fails, another worker is asked after five seconds."""
        try:
            self.queue._ask("enqueue", schedule.enqueue_arguments(name, text, self.queue._seed(), int(1000 * time.time())))
        except (redis.exceptions.RedisError, OSError, errors.Error, ValueError, KeyError, TypeError) as error:
            logging.getLogger("signalbox").warning("schedule %s of queue %s: %s", name, self.queue.name, error)


def _backoff(attempt: int) -> float:
    pause = min(2.0 ** min(attempt - 1, 12), 3600.0)
    return pause / 2 + random.random() * pause / 2
