"""Distributed locks, fair semaphores and task queues, together with programs in Go and other languages.

    box = signalbox.Box("redis://localhost:6379")
    with box.mutex("invoice:42").acquire(timeout=60) as lease:
        store(invoice, token=lease.token)

The server needs the functions: `signalbox functions install --url redis://localhost:6379`. What asyncio programs use is in
signalbox.aio, with the same names.
"""

from .errors import (
    Busy, Canceled, Closed, Dead, Error, Fail, Forced, Invalid, LeaseLost, Parent, Retry, ServerError, Snooze, Stopped, Timeout,
    TooHeavy, Unavailable, UnknownJob, UnsupportedServer,
)
from .locks import Box, Election, Lease, RWLock, Semaphore, Term
from .queue import ALIVE, WAITING, Enqueued, Queue, Request
from .worker import Job, Worker

__all__ = [
    "ALIVE", "Enqueued", "Job", "Queue", "Request", "WAITING", "Worker",
    "Box", "Busy", "Canceled", "Closed", "Dead", "Election", "Error", "Fail", "Forced", "Invalid", "Lease", "LeaseLost", "Parent",
    "RWLock", "Retry", "Semaphore", "ServerError", "Snooze", "Stopped", "Term", "Timeout", "TooHeavy", "Unavailable", "UnknownJob",
    "UnsupportedServer",
]
