"""Run by `python3 -m unittest discover -t . -s tests`, with SIGNALBOX_URL for a server that has the functions. `make test` runs
them on a real Redis and on the engine."""

import os
import threading
import time
import unittest

import redis

URL = os.environ.get("SIGNALBOX_URL") or "redis://localhost:6379"


class Case(unittest.TestCase):
    """Has a name of its own for what it locks, and leaves no thread behind."""

    def setUp(self) -> None:
        self.name = f"{self.id()}:{os.getpid()} }}%7D{{größe}}"
        before = set(threading.enumerate())
        self.addCleanup(lambda: self.eventually(
            lambda: not [t for t in set(threading.enumerate()) - before if t.name.startswith("signalbox")], "threads end"))
        self.server = redis.Redis.from_url(URL, decode_responses=True)
        self.addCleanup(self.server.close)

    def eventually(self, holds, what: str) -> None:
        until = time.monotonic() + 60
        while not holds():
            if time.monotonic() > until:
                self.fail(f"never: {what}")
            time.sleep(0.01)
