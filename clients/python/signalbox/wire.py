"""The way to the server: names, clocks, which errors pass, and the inbox. Locks and queues both stand on it."""

from __future__ import annotations

import random
import threading
import time
from typing import Any, Callable, Optional

import redis
import redis.exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from . import errors

#: Seconds for which a server may take to answer. A request that takes longer is repeated.
ANSWER_WITHIN = 3.0

_CODES = ("LOADING", "BUSY", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "OOM", "NOREPLICAS", "UNKILLABLE")
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)


def clock() -> float:
    """Seconds by a clock that nobody sets. On Linux it goes on while the computer sleeps, as the server's does."""
    return time.clock_gettime(_BOOTTIME) if _BOOTTIME is not None else time.monotonic()


def encode(name: str) -> str:
    return name.replace("%", "%25").replace("}", "%7D")


def passes(error: BaseException) -> bool:
    """Whether it is worth trying again."""
    if isinstance(error, (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OSError)):
        return not isinstance(error, redis.exceptions.AuthenticationError)
    if isinstance(error, (redis.exceptions.BusyLoadingError, redis.exceptions.ReadOnlyError)):
        return True
    # redis-py cuts the code off errors that it knows.
    return isinstance(error, redis.exceptions.ResponseError) and str(error).split(" ")[0] in _CODES


def in_doubt(error: BaseException) -> bool:
    """Whether the request may have reached the server, or may do so yet: it was not answered, and not for want of a connection."""
    answered = isinstance(error, (redis.exceptions.ResponseError, redis.exceptions.BusyLoadingError))
    return not answered and "connecting to" not in str(error)


def explained(what: str, error: BaseException) -> errors.Error:
    """The error of this package that says what has happened."""
    text = str(error)
    if isinstance(error, errors.Error):
        return error
    if "Function not found" in text:
        return errors.UnsupportedServer(
            f"{what}: the server lacks the functions: run signalbox functions install --url … ({text})")
    if text.startswith("WIRE "):
        return errors.UnsupportedServer(f"{what}: {text[5:]}")
    if passes(error):
        return errors.Unavailable(f"{what}: {type(error).__name__}: {text}")
    return errors.ServerError(f"{what}: {text}")


def pause(failures: int, span: float) -> float:
    """How long to wait after so many failures in a row of what matters for span seconds."""
    return span / 60 * (1 + random.random()) * 2 ** min(max(failures - 1, 0), 4)


def connect(url: str) -> redis.Redis:
    # Nothing is repeated below this package: it knows what a repetition means. Bytes may be other than text.
    return redis.Redis.from_url(
        url, socket_timeout=ANSWER_WITHIN, socket_connect_timeout=ANSWER_WITHIN, health_check_interval=10,
        retry=Retry(NoBackoff(), 0), encoding="utf-8", encoding_errors="surrogateescape", decode_responses=True)


class Inbox:
    """One subscription for a process, in a thread of its own. Messages are hints: whenever it is open (again), opened is
    called, since some may have gone by."""

    def __init__(
        self, client: redis.Redis, channel: str, hear: Callable[[str], None], opened: Callable[[], None],
    ) -> None:
        self._client, self._channel, self._hear, self._opened = client, channel, hear, opened
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._thread: Optional[threading.Thread] = None

    def open(self) -> None:
        with self._lock:
            if self._thread is None and not self._ending.is_set():
                self._thread = threading.Thread(target=self._run, name="signalbox inbox", daemon=True)
                self._thread.start()

    def close(self) -> None:
        with self._lock:
            self._ending.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        failures = 0
        while not self._ending.is_set():
            subscription = self._client.pubsub()
            try:
                subscription.subscribe(self._channel)
                while not self._ending.is_set():
                    message = subscription.get_message(timeout=0.25)
                    failures = 0
                    if message is None:
                        continue
                    if message["type"] == "subscribe":
                        self._opened()
                    elif message["type"] == "message":
                        self._hear(str(message["data"]))
            except (redis.exceptions.RedisError, OSError, ValueError):
                # Until it is open again, heartbeats do its work, and say what is wrong.
                failures += 1
                self._ending.wait(pause(failures, 3))
            finally:
                try:
                    subscription.close()
                except (redis.exceptions.RedisError, OSError):
                    pass  # it is closed


def call(client: redis.Redis, function: str, keys: list[str], arguments: list[Any]) -> Any:
    return client.execute_command("FCALL", function, len(keys), *keys, *arguments)
