<?php

/** What can go wrong. The names are those of the Go library, without its "Err". */

declare(strict_types=1);

namespace Signalbox;

/** What all errors of this package have in common. */
class SignalboxException extends \RuntimeException
{
}

/** An argument that no server was asked about. */
final class Invalid extends SignalboxException
{
}

/** The server was out of reach, or not ready, for too long. */
final class Unavailable extends SignalboxException
{
}

/** The server refused for a reason that does not pass, such as missing rights. */
final class ServerError extends SignalboxException
{
}

/** The server lacks the functions, or has those of another wire version. */
final class UnsupportedServer extends SignalboxException
{
}

/** The Box or Queue was closed. */
final class Closed extends SignalboxException
{
}

/** tryAcquire found no permit free. */
final class Busy extends SignalboxException
{
    /** @param float $retryAfter seconds until the earliest lease can expire */
    public function __construct(string $name, public readonly float $retryAfter, public readonly int $held, public readonly int $limit)
    {
        parent::__construct("$name: $held of $limit permits are held");
    }
}

/** The weight is more than the limit, and could never be granted. */
final class TooHeavy extends SignalboxException
{
}

/** It took longer than the caller would wait. */
final class Timeout extends SignalboxException
{
}

/** The lease was not renewed in time: somebody else may hold the permits, or run the job. */
class LeaseLost extends SignalboxException
{
}

/** An operator ended the lease, or sent the waiter away. */
final class Forced extends LeaseLost
{
}

/** There is no such job. It may have ended, and was enqueued without retention. */
final class UnknownJob extends SignalboxException
{
}

/** The job was canceled. */
final class Canceled extends SignalboxException
{
}

/** The job was to wait for one that has failed. */
final class ParentFailed extends SignalboxException
{
}

/** The worker ends, and the job runs again elsewhere. */
final class Stopped extends SignalboxException
{
}

/** The job has failed for good. */
final class Dead extends SignalboxException
{
    public function __construct(public readonly string $id, public readonly string $reason)
    {
        parent::__construct("job $id: $reason");
    }
}

/** Thrown by a handler: run the job again after so many seconds. It counts as an attempt. */
final class Retry extends \RuntimeException
{
    public function __construct(string $error, public readonly float $after)
    {
        parent::__construct($error);
    }
}

/** Thrown by a handler: the job is dead, whatever attempts are left. */
final class Fail extends \RuntimeException
{
}

/** Thrown by a handler: run the job again after so many seconds. It does not count as an attempt. */
final class Snooze extends \RuntimeException
{
    public function __construct(public readonly float $after)
    {
        parent::__construct('snoozed');
    }
}
