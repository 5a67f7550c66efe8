"""What can go wrong. The names are those of the Go library, without its "Err"."""

from __future__ import annotations


class Error(Exception):
    """What all errors of this package have in common."""


class Invalid(Error, ValueError):
    """An argument that no server was asked about."""


class Unavailable(Error, ConnectionError):
    """The server was out of reach, or not ready, for too long."""


class ServerError(Error):
    """The server refused for a reason that does not pass, such as missing rights."""


class UnsupportedServer(Error):
    """The server lacks the functions, or has those of another wire version."""


class Closed(Error):
    """The Box or Queue was closed."""


class Busy(Error):
    """try_acquire found no permit free."""

    def __init__(self, name: str, retry_after: float, held: int, limit: int) -> None:
        super().__init__(f"{name}: {held} of {limit} permits are held")
        self.retry_after = retry_after  #: seconds until the earliest lease can expire
        self.held, self.limit = held, limit


class TooHeavy(Error):
    """The weight is more than the limit, and could never be granted."""


class Timeout(Error, TimeoutError):
    """It took longer than the caller would wait."""


class LeaseLost(Error):
    """The lease was not renewed in time: somebody else may hold the permits, or run the job."""


class Forced(LeaseLost):
    """An operator ended the lease, or sent the waiter away."""


class UnknownJob(Error):
    """There is no such job. It may have ended, and was enqueued without retention."""


class Canceled(Error):
    """The job was canceled."""


class Parent(Error):
    """The job was to wait for one that has failed."""


class Dead(Error):
    """The job has failed for good."""

    def __init__(self, id: str, reason: str) -> None:
        super().__init__(f"job {id}: {reason}")
        self.id, self.reason = id, reason


class Retry(Exception):
    """Raised by a handler: run the job again after so many seconds. It counts as an attempt."""

    def __init__(self, error: object, after: float) -> None:
        super().__init__(str(error))
        self.after = after


class Fail(Exception):
    """Raised by a handler: the job is dead, whatever attempts are left."""


class Snooze(Exception):
    """Raised by a handler: run the job again after so many seconds. It does not count as an attempt."""

    def __init__(self, after: float) -> None:
        super().__init__("snoozed")
        self.after = after


class Stopped(Error):
    """The worker ends, and the job runs again elsewhere."""
