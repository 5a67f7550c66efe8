"""Task queues: who enqueues, and who waits for results. Who runs jobs is in worker.py.

A Queue makes one call of its producer at a time, numbered: the server tells a call that comes again, since its reply was
lost, from a new one. Threads that enqueue meanwhile join the next call. Results are heard of in the inbox, and looked for when
messages may have been lost. docs/functions-queue.md describes the calls.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import json
import secrets
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Sequence, Union

import redis
import redis.exceptions

from . import errors, wire

if TYPE_CHECKING:
    from .worker import Worker

WIRE = "1"  #: the wire version that this client speaks
LEASE = 15.0  #: seconds for which the server believes in a worker that it does not hear of
ATTEMPTS = 20  #: how often a job is tried
RETAIN = 60.0  #: seconds for which a job that is done is kept, with its result
MOST = 500  #: jobs in a call
PAYLOAD = 1 << 20  #: bytes of arguments, or of a result
LOOK = 30.0  #: how often a waiter looks by itself, in seconds, should all messages be lost

WAITING, ALIVE = "wlh", "wlhc"  #: states in which a job is the only one with its fingerprint


def check_name(what: str, name: str, most: int = 128, commas: bool = False) -> str:
    if not name or len(name.encode()) > most or any(c < " " or c == "\x7f" for c in name) or (not commas and "," in name):
        raise errors.Invalid(f"{what} {name[:40]!r}: it is 1 to {most} bytes without control characters{'' if commas else ' and commas'}")
    return name


def encode(value: Any, what: str) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise errors.Invalid(f"{what} does not encode as JSON: {error}") from error
    if len(text.encode()) > PAYLOAD:
        raise errors.Invalid(f"{what} has {len(text.encode())} bytes, at most {PAYLOAD} are allowed: keep it elsewhere, and pass its place")
    return text


def decode(text: str) -> Any:
    return json.loads(text) if text else None


def cost_text(cost: Mapping[str, int], by: str) -> str:
    for name, amount in cost.items():
        check_name("capacity", name)
        if ":" in name or "=" in name or not 0 <= amount <= 1 << 30:
            raise errors.Invalid(f"capacity {name!r} of {amount}: no colon, no equals sign, 0 to 2^30")
    return ",".join(f"{name}{by}{amount}" for name, amount in sorted(cost.items()))


class Request:
    """A job to enqueue. Times are seconds."""

    def __init__(
        self, kind: str, args: Any = None, *, id: Optional[str] = None, delay: float = 0.0, at: Optional[float] = None,
        priority: int = 0, key: str = "", tags: Iterable[str] = (), cost: Optional[Mapping[str, int]] = None,
        retain: float = RETAIN, timeout: float = 0.0, attempts: int = ATTEMPTS, unique: str = "", while_: str = WAITING,
        after: Sequence[str] = (), after_any: bool = False, on_failure: str = "cancel",
    ) -> None:
        """id: of the caller's own; enqueued again it changes nothing. at: a time of the server's clock, in seconds since 1970.
        priority: as if it had been enqueued so many minutes earlier. key: whose it is, for limits. tags: that the worker has to
        have. cost: what it takes of the worker's capacities, one "slot" without it. unique: refuses a second one with the same
        words, while the first is in the states while_. after: ids of jobs that have to be done before, all or (after_any) one;
        on_failure: of one of these: "cancel", "hold" or "go"."""
        self.kind, self.id = check_name("kind", kind), id
        tags = sorted({check_name("tag", tag) for tag in tags})
        if key:
            check_name("key", key, 512, commas=True)
        if len(tags) > 16 or attempts < 1 or abs(priority) > 1 << 20 or len(after) > 1000 or on_failure not in ("cancel", "hold", "go"):
            raise errors.Invalid(f"{kind}: at most 16 tags and 1000 parents, a priority up to 2^20, an attempt at least, "
                                 "and on_failure is cancel, hold or go")
        if id is not None:
            check_name("job id", id)
            if unique or id in after:
                raise errors.Invalid(f"{kind}: a job has an id of its own or a fingerprint, not both, and does not wait for itself")
        self.lane = "\t".join((kind, ",".join(tags), cost_text(cost or {}, "="), key))
        fingerprint, states = ("id", "") if id is not None else (unique + " " if unique == "id" else unique, while_ if unique else "")
        if unique:
            check_name("fingerprint", unique, 512, commas=True)
        due = str(max(int(1000 * delay), 0)) if at is None else f"@{int(1000 * at)}"
        terms = [due, str(priority), str(max(int(1000 * retain), 0)), states, fingerprint]
        parents = sorted({check_name("job id", parent) for parent in after})
        self.terms = "" if terms == ["0", "0", "0", "", ""] and not parents else "\t".join(
            terms + (["any" if after_any else "all", on_failure, ",".join(parents)] if parents else [""]))
        encoded = encode(args, f"the argument of {kind}")
        more: dict[str, int] = {}
        if timeout > 0:
            more["timeout_ms"] = max(int(1000 * timeout), 1)
        if attempts != ATTEMPTS:
            more["attempts"] = attempts
        self.text = "\n{\"args\":" + encoded + "".join(f",\"{name}\":{n}" for name, n in more.items()) + "}"


@dataclass
class _Batch:
    requests: list[tuple[str, Request]]
    outcomes: Optional[list[str]] = None


class Enqueued:
    """A job as its producer sees it."""

    def __init__(self, queue: Queue, id: str, duplicate: bool = False) -> None:
        self.queue, self.id = queue, id
        self.duplicate = duplicate  #: nothing was enqueued: this job has the same fingerprint or id

    def _wait(self) -> concurrent.futures.Future[str]:
        return self.queue._wait(self.id)

    def result(self, timeout: Optional[float] = None) -> Any:
        """Waits for the end of the job and returns its result. Raises Dead if it failed for good, Canceled, UnknownJob if the
        server does not know it (any more), and Timeout."""
        waiting = self._wait()
        try:
            text = waiting.result(timeout)
        except concurrent.futures.TimeoutError:
            raise errors.Timeout(f"job {self.id} has not ended in {timeout} seconds") from None
        finally:
            self.queue._forget(self.id, waiting)
        return decode(text)


class Queue:
    """A door to one queue. A process needs one; any number of threads may use it."""

    def __init__(self, url: str = "redis://localhost:6379", name: str = "default", *, lease: float = LEASE) -> None:
        if not 1 <= lease <= 3600:
            raise errors.Invalid(f"a lease of {lease} seconds is not between a second and an hour")
        self.name, self.lease = check_name("queue", name, 256, commas=True), lease
        self.process = secrets.token_hex(8)
        self._prefix = "signalbox:queue:{" + wire.encode(name) + "}:"
        self._client = wire.connect(url)
        self._ids, self._seeds, self._workerIds = itertools.count(1), itertools.count(1), itertools.count(1)
        self._lock = threading.Lock()
        self._keys: Optional[list[str]] = None
        self._producing = threading.Lock()  # its holder makes calls
        self._queued: list[_Batch] = []
        self._call_number = 0
        self._unknown: Optional[list[_Batch]] = None  # nobody knows whether the last call has run
        self._workers: dict[str, Worker] = {}
        self._waits: dict[str, list[concurrent.futures.Future[str]]] = {}
        self._looks: dict[str, float] = {}  # when to look at what is waited for
        self._bell = threading.Condition(self._lock)
        self._looker: Optional[threading.Thread] = None
        self._closing = threading.Event()
        self._inbox = wire.Inbox(self._client, "signalbox:queue-inbox:" + self.process, self._hear, self._opened)

    def close(self) -> None:
        """Ends whoever waits with Closed, stops workers that still run as if the time to drain were over, and returns when no
        thread is left but those of handlers that do not end."""
        with self._lock:
            self._closing.set()
            workers, waits = list(self._workers.values()), list(self._waits.values())
            self._bell.notify_all()
        for futures in waits:
            for future in futures:
                _settle(future, errors.Closed(f"queue {self.name} was closed"))
        for worker in workers:
            worker.stop(drain=0)
            worker.join()
        if self._looker is not None:
            self._looker.join()
        self._inbox.close()
        self._client.close()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Calls.

    def _ask(self, function: str, arguments: list[Any]) -> Any:
        """Calls a function, with the keys that the library says a queue has. Errors are those of redis-py."""
        if self._closing.is_set() and not self._workers:
            raise errors.Closed(f"queue {self.name} was closed")
        for again in (False, True):
            keys = self._keys
            if keys is None:
                wire.call(self._client, "signalbox_queue_version", [], [WIRE])
                words = wire.call(self._client, "signalbox_queue_keys", [], [])
                keys = self._keys = [self._prefix + word for word in words[:-1]] + [self._prefix + words[-1] + self.process]
            try:
                return wire.call(self._client, "signalbox_queue_" + function, keys, arguments)
            except redis.exceptions.ResponseError as error:
                # There is another version of the library by now. It has done nothing.
                if again or not str(error).startswith("KEYS "):
                    raise
                self._keys = None

    def _seed(self) -> str:
        return format(next(self._seeds) * 0x9E3779B97F4A7C15 % 2**64, "x")

    def _until_known(self, doing: str, function: str, arguments: list[Any], timeout: float) -> Any:
        """Asks until the server has answered, or has refused for good."""
        until, failures = wire.clock() + timeout, 0
        while True:
            try:
                return self._ask(function, arguments)
            except (redis.exceptions.RedisError, OSError, errors.Error) as error:
                failures += 1
                pause = wire.pause(failures, self.lease)
                if not wire.passes(error) or wire.clock() + pause > until or self._closing.wait(pause):
                    raise wire.explained(f"{doing} {self.name}", error) from error

    # Producing.

    def enqueue(self, kind: str, args: Any = None, *, within: float = 60.0, **terms: Any) -> Enqueued:
        """Adds a job; terms are those of Request. When it returns, the job is on the server. What it could not do because the
        server was out of reach it tries again for within seconds; a job is not enqueued twice by that."""
        outcome = self.enqueue_many([Request(kind, args, **terms)], within=within)[0]
        if isinstance(outcome, errors.Error):
            raise outcome
        return outcome

    def enqueue_many(self, requests: Sequence[Request], *, within: float = 60.0) -> list[Union[Enqueued, errors.Parent]]:
        """Adds jobs, in one call for each 500. What waits for a job that has failed is an error in its place."""
        found: list[Union[Enqueued, errors.Parent]] = []
        start = 0
        while start < len(requests):
            end, size = start, 0
            while end < len(requests) and end - start < MOST and (end == start or size + len(requests[end].text) <= PAYLOAD):
                size += len(requests[end].text)
                end += 1
            batch = _Batch([(r.id or self._new_id(), r) for r in requests[start:end]])
            for (id, request), outcome in zip(batch.requests, self._enqueue(batch, within)):
                if outcome[:1] == "p":
                    found.append(errors.Parent(f"enqueue {request.kind}: job {outcome[1:]} has failed"))
                else:
                    found.append(Enqueued(self, outcome[1:] if outcome[:1] == "u" else id, outcome[:1] in ("s", "u")))
            start = end
        return found

    def job(self, id: str) -> Enqueued:
        """The handle of a job that is known by its id."""
        return Enqueued(self, id)

    def _new_id(self) -> str:
        return self.process[:10] + format(next(self._ids), "x")

    def _enqueue(self, batch: _Batch, within: float) -> list[str]:
        with self._lock:
            self._queued.append(batch)
        with self._producing:
            if batch.outcomes is None and self._unknown is not None:
                self._produce(self._unknown, within)  # nothing else comes before it
            while batch.outcomes is None:
                taken, n, size = [], 0, 0
                with self._lock:
                    while self._queued:
                        b = self._queued[0]
                        bytes_ = sum(len(r.text) for _, r in b.requests)
                        if taken and (n + len(b.requests) > MOST or size + bytes_ > PAYLOAD):
                            break
                        taken.append(self._queued.pop(0))
                        n, size = n + len(b.requests), size + bytes_
                self._call_number += 1
                self._produce(taken, within)
        return batch.outcomes

    def _produce(self, taken: list[_Batch], within: float) -> None:
        items = [item for batch in taken for item in batch.requests]
        arguments: list[Any] = [self._call_number, self._seed(), "", "", "", "0" if any(r.terms for _, r in items) else "1"]
        for id, r in items:
            arguments += [id, r.lane, r.terms, r.text]
        self._unknown = taken
        try:
            reply = self._until_known("enqueue on", "enqueue", arguments, within)
        except errors.Unavailable:
            raise  # the next to come asks again, under this number
        except errors.Error:
            self._unknown = None
            raise
        self._unknown = None
        outcomes = reply[0]
        for batch in taken:
            batch.outcomes, outcomes = outcomes[:len(batch.requests)], outcomes[len(batch.requests):]

    def cancel(self, id: str, cause: str = "") -> str:
        """Cancels a job. Returns "ok", "told" if it runs and its worker was told, "ended" or "unknown"."""
        return self._until_known("cancel on", "change", ["cancel", self._seed(), cause, "", id], 60)[0]

    def retry(self, id: str) -> str:
        """Has a dead, cancelled or done job that is kept run again, or a delayed one run now."""
        return self._until_known("retry on", "change", ["retry", self._seed(), "", "", id], 60)[0]

    def worker(self, name: str = "worker", **options: Any) -> Worker:
        """A worker for this queue; options are those of Worker."""
        from .worker import Worker  # it needs this module
        return Worker(self, name, **options)

    # Waiting.

    def _wait(self, id: str) -> concurrent.futures.Future[str]:
        future: concurrent.futures.Future[str] = concurrent.futures.Future()
        with self._lock:
            if self._closing.is_set():
                raise errors.Closed(f"queue {self.name} was closed")
            self._waits.setdefault(id, []).append(future)
            self._looks[id] = 0.0
            if self._looker is None:
                self._looker = threading.Thread(target=self._run_looks, name="signalbox results", daemon=True)
                self._looker.start()
            self._bell.notify_all()
        self._inbox.open()
        return future

    def _forget(self, id: str, future: concurrent.futures.Future[str]) -> None:
        with self._lock:
            waits = [f for f in self._waits.get(id, []) if f is not future]
            if waits:
                self._waits[id] = waits
            else:
                self._waits.pop(id, None)
                self._looks.pop(id, None)

    def _run_looks(self) -> None:
        failures = 0
        while True:
            with self._lock:
                if self._closing.is_set():
                    return
                now = wire.clock()
                id = next((id for id, at in self._looks.items() if at <= now), None)
                if id is None:
                    self._bell.wait(min(max(min(self._looks.values(), default=now + 1) - now, 0.001), 1.0))
                    continue
                self._looks[id] = now + LOOK
            try:
                self._saw(id, self._ask("look", [id, self.process]))
                failures = 0
            except (redis.exceptions.RedisError, OSError, errors.Error) as error:
                if not wire.passes(error):
                    self._end_wait(id, wire.explained(f"wait for job {id} of {self.name}", error))
                    continue
                failures += 1
                with self._lock:
                    if id in self._looks:
                        self._looks[id] = 0.0
                self._closing.wait(wire.pause(failures, self.lease))

    def _saw(self, id: str, reply: list[Any]) -> None:
        if reply[0] == "unknown":
            self._end_wait(id, errors.UnknownJob(f"job {id} of {self.name}: it may have ended, and not be kept: see retain"))
        elif reply[0] == "ended":
            header, _, rest = reply[1].partition("\n")
            state, _, n = header.split("\t")
            text = rest.encode("utf-8", "surrogateescape")[:int(n)].decode("utf-8", "surrogateescape")
            self._end_wait(id, self._outcome(id, state, text))

    @staticmethod
    def _outcome(id: str, state: str, text: str) -> Union[str, errors.Error]:
        if state == "d":
            return text
        return errors.Dead(id, text) if state == "x" else errors.Canceled(f"job {id}: {text}")

    def _end_wait(self, id: str, end: Union[str, errors.Error]) -> None:
        with self._lock:
            waits = self._waits.pop(id, [])
            self._looks.pop(id, None)
        for future in waits:
            _settle(future, end)

    # The inbox.

    def _opened(self) -> None:
        with self._lock:
            for id in self._looks:
                self._looks[id] = 0.0
            workers = list(self._workers.values())
            self._bell.notify_all()
        for worker in workers:
            worker._look()

    def _hear(self, message: str) -> None:
        words = parse_message(message)
        if len(words) < 2:
            return
        if words[0] == "ended" and len(words) >= 4:
            self._end_wait(words[1], self._outcome(words[1], words[2], words[3]))
            return
        with self._lock:
            worker = self._workers.get(words[1])
        if worker is not None:
            worker._hear(words)


def _settle(future: concurrent.futures.Future[str], end: Union[str, BaseException]) -> None:
    try:
        if isinstance(end, str):
            future.set_result(end)
        else:
            future.set_exception(end)
    except concurrent.futures.InvalidStateError:
        pass  # the caller has gone


def parse_message(message: str) -> list[str]:
    """The words of a message, each as its length in bytes, a colon, and the word. Of what is none there are no words."""
    data, words = message.encode("utf-8", "surrogateescape"), []
    while data:
        length, colon, data = data.partition(b":")
        if not colon or not length.isdigit() or int(length) > len(data):
            return []
        words.append(data[:int(length)].decode("utf-8", "surrogateescape"))
        data = data[int(length):]
    return words
