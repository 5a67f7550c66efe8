<?php

/**
 * Semaphores, mutexes, read/write locks and elections.
 *
 * PHP does one thing at a time, and nothing in the background: an acquisition is a loop that asks and waits for a message, and
 * a lease is renewed when somebody calls check, wait or acquire and a third of its ttl is over (Box::tend). The deadline of a
 * lease is by the clock of this process, so that whoever checks learns that a lease is lost, whatever the server can say. The
 * rules by number are those of docs/functions.md.
 */

declare(strict_types=1);

namespace Signalbox;

/** The door to everything that is locked on one server. A process needs one. */
final class Box
{
    private readonly Connection $connection;
    private Inbox $inbox;
    private string $process = '';
    private int $pid = 0;
    private int $numbers = 0;
    private bool $listens = false;
    private bool $closed = false;
    private bool $opened = false; // the inbox was, and nobody who waits has asked since
    /** @var array<string, Lease> that are held, by id */
    private array $leases = [];
    /** @var array<string, float> when it is worth asking for what waits, by id */
    private array $rung = [];

    /**
     * @param string $url redis://, rediss:// or unix://, with name and password if there are any
     * @param ?string $owner shown to people; host and process id if not given
     */
    public function __construct(private readonly string $url = 'redis://localhost:6379', private readonly ?string $owner = null)
    {
        $this->connection = new Connection($url);
        $this->own();
    }

    /** The semaphore of a name, which has 1 to 512 bytes. The limit counts for what is acquired through this value. */
    public function semaphore(string $name, int $limit): Semaphore
    {
        return new Semaphore($this, $name, $limit);
    }

    /** A semaphore with one permit. */
    public function mutex(string $name): Semaphore
    {
        return new Semaphore($this, $name, 1);
    }

    /** Any number of readers, or one writer, in the order in which they came. */
    public function rwlock(string $name): RWLock
    {
        return new RWLock($this, $name);
    }

    /** A mutex that is held for long. */
    public function election(string $name): Election
    {
        return new Election($this, $name);
    }

    /** Releases what is held, and ends the connections. */
    public function close(): void
    {
        $this->own();
        try {
            foreach ($this->leases as $lease) {
                try {
                    $lease->release();
                } catch (LeaseLost) {
                    // it is over, too
                }
            }
        } finally {
            $this->closed = true;
            $this->inbox->close();
            $this->connection->close();
        }
    }

    /** A process that was forked has its own name, connections and leases: those of its parent are its parent's. */
    private function own(): void
    {
        if ($this->pid === getmypid()) {
            return;
        }
        if ($this->pid !== 0) {
            $this->connection->abandon();
            $this->inbox->abandon();
        }
        $this->pid = (int) getmypid();
        $this->process = bin2hex(random_bytes(8)); // begins every id and names the inbox, so it must be nobody else's
        $this->inbox = new Inbox($this->url, "signalbox:inbox:$this->process");
        [$this->leases, $this->rung, $this->listens] = [[], [], false];
    }

    /** @internal */
    public function newId(string $name): string
    {
        $this->own();
        if ($this->closed) {
            throw new Closed("$name: the box was closed");
        }
        return $this->process . ':' . ++$this->numbers;
    }

    /** @internal */
    public function owner(): string
    {
        return $this->owner ?? gethostname() . ':' . getmypid();
    }

    /** @internal */
    public function call(string $request, array $keys, array $arguments, float $within = Wire::ANSWER_WITHIN): mixed
    {
        return $this->connection->fcall("signalbox_$request", $keys, $arguments, max($within, 0.01));
    }

    /** @internal */
    public function keep(Lease $lease): void
    {
        $this->leases[$lease->id] = $lease;
    }

    /** @internal */
    public function forget(string $id): void
    {
        unset($this->leases[$id]);
    }

    /** Renews what is due, and notes what is lost. Returns when to do so again. @internal */
    public function tend(): float
    {
        $this->own();
        $this->hear();
        $next = INF;
        foreach ($this->leases as $lease) {
            $next = min($next, $lease->tend());
        }
        return $next;
    }

    /** Waits until a time, or until it is worth asking for an id, and keeps what is held meanwhile. @internal */
    public function wait(float $until, string $id): void
    {
        $this->listens = true;
        $this->rung[$id] = INF;
        try {
            while (true) {
                $tend = $this->tend();
                $ring = min($until, $this->rung[$id]);
                if ($this->opened || Wire::clock() >= $ring) {
                    $this->opened = false;
                    return;
                }
                $this->nap(min($ring, $tend));
            }
        } finally {
            unset($this->rung[$id]);
        }
    }

    /** Waits until a time, and keeps what is held, or until a lease is lost. @internal */
    public function hold(float $until, Lease $lease): void
    {
        while (!$lease->isLost() && Wire::clock() < $until) {
            $this->nap(min($until, $this->tend()));
        }
    }

    private function nap(float $until): void
    {
        $stream = $this->inbox->stream();
        Wire::select($stream === null ? [] : [$stream], $until - Wire::clock());
    }

    private function hear(): void
    {
        // Who holds something does not wait for long: it has to be renewed.
        if ($this->listens && $this->inbox->open($this->leases === [] ? Wire::ANSWER_WITHIN : 0.2)) {
            $this->opened = true;
        }
        foreach ($this->inbox->messages() as $message) {
            $words = explode(' ', $message);
            [$verb, $id] = [$words[0], $words[1] ?? ''];
            if (isset($this->rung[$id])) {
                $this->rung[$id] = min($this->rung[$id], Wire::clock() + ($verb === 'ask' ? (int) ($words[2] ?? 0) / 1000 : 0));
            } elseif ($verb === 'force' && isset($this->leases[$id])) {
                $lease = $this->leases[$id];
                $lease->lose(new Forced("$lease->name: an operator ended the lease"));
            }
        }
    }
}

/** One acquisition, known to the server by its id. Whatever it sends again, it sends with the same id (rule 1). @internal */
final class Acquisition
{
    public const CLAIM = 3.0; // seconds for which the server believes in a waiter that is silent
    public const ARRIVAL = 900.0; // seconds for which a request can stay on its way

    public readonly string $id;
    /** @var list<string> */
    public readonly array $keys;
    /** A request to acquire went unanswered, and may reach the server yet (rule 7). */
    public bool $doubtful = false;
    private bool $waits = false; // the server has it in the queue
    private int $ahead = -1; // as onWait was told

    public function __construct(
        public readonly Box $box, public readonly string $name, private readonly int $limit, private readonly int $weight,
        public readonly float $ttl, private readonly string $label, private readonly bool $wait, private readonly float $timeout = INF,
        private readonly ?\Closure $onWait = null,
    ) {
        if ($name === '' || strlen($name) > 512) {
            throw new Invalid('the name ' . var_export(substr($name, 0, 40), true) . ' has ' . strlen($name) . ' bytes: it is 1 to 512');
        }
        if ($limit < 1 || $limit > 2 ** 31 - 1 || $weight < 1) {
            throw new Invalid("$name: a limit of $limit and a weight of $weight: both are at least 1");
        }
        if (!($ttl >= 0.01 && $ttl <= 31_536_000)) {
            throw new Invalid("$name: a ttl of $ttl seconds: it is between 0.01 and 31536000");
        }
        $this->id = $box->newId($name);
        $this->keys = self::keysOf($name);
    }

    /** The four keys of a resource. They have one hash tag, so a Cluster keeps them together. */
    public static function keysOf(string $name): array
    {
        $state = 'signalbox:{' . Wire::encode($name) . '}';
        if (preg_match('/\{([^}]*)\}/', $name, $found) === 1 && $found[1] !== '') { // the name has a hash tag of its own
            $state = 'signalbox:{' . Wire::encode($found[1]) . '}{' . Wire::encode($name) . '}';
        }
        return [$state, "$state:leases", "$state:queue", "$state:seen"];
    }

    /**
     * @template T of Lease
     * @param class-string<T> $lease
     * @return T
     */
    public function run(string $lease): Lease
    {
        $answered = false;
        try {
            [$token, $sent] = $this->ask();
            $answered = true;
            return new $lease($this, $token, $sent);
        } catch (Busy | TooHeavy | Forced $refusal) {
            $answered = !$this->doubtful;
            throw $refusal;
        } finally {
            // However it ends, nothing stays behind: not when a handler of signals throws, either.
            if (!$answered && ($this->doubtful || $this->waits)) {
                $this->takeBack();
            }
        }
    }

    /** @return array{int, float} the token, and when it was asked for */
    private function ask(): array
    {
        $heard = $now = Wire::clock();
        [$until, $failures] = [$now + $this->timeout, 0];
        while (true) {
            $due = $now = Wire::clock();
            if ($now >= $until) {
                throw new Timeout("$this->name was not granted in time");
            }
            try {
                $reply = $this->acquire($now, $until);
                [$heard, $failures] = [Wire::clock(), 0];
                if ($reply[0] !== 1) {
                    $due = $this->refusedOrDue($reply, $now);
                } elseif ($heard - $now < $this->ttl / 2) {
                    return [$reply[1], $now];
                } // else it is asked again, for a lease with its whole ttl
            } catch (Refusal | NoAnswer $error) {
                if (!Wire::passes($error) || !$this->wait || Wire::clock() - $heard > self::CLAIM) {
                    throw Wire::explained($this->name, $error);
                }
                $due = Wire::clock() + Wire::pause(++$failures, min($this->ttl, self::CLAIM));
            }
            $this->box->wait(min($due, $until), $this->id);
        }
    }

    private function acquire(float $now, float $until): array
    {
        // A waiter is believed in for CLAIM seconds, and never for longer than it will wait.
        $waitMs = $this->wait ? (int) ceil(1000 * min(self::CLAIM, $until - $now)) : 0;
        $owner = $this->box->owner() . ($this->label === '' ? '' : "\t" . preg_replace('/\s+/', ' ', $this->label));
        $before = $this->doubtful;
        $this->doubtful = true; // until it is answered, or was not sent
        try {
            $reply = $this->box->call('acquire', $this->keys, [
                $this->id, $this->weight, $this->limit, (int) (1000 * $this->ttl), $waitMs, (int) (1000 * self::CLAIM), '-', $owner,
            ], min(Wire::ANSWER_WITHIN, $until - $now));
            $this->doubtful = $before;
            return $reply;
        } catch (Refusal $error) {
            $this->doubtful = $before;
            throw $error;
        } catch (NoAnswer $error) {
            $this->doubtful = $before || $error->sent;
            throw $error;
        }
    }

    private function refusedOrDue(array $reply, float $sent): float
    {
        switch ($reply[0]) {
            case 2:
                [, $ahead, $next] = $reply;
                $changed = $ahead !== $this->ahead;
                [$this->waits, $this->ahead] = [true, $ahead];
                if ($changed && $this->onWait !== null) {
                    ($this->onWait)($ahead);
                }
                // At the latest after a third of the time for which the server waits for a word; or when a lease can expire,
                // staggered, so that not all waiters ask at once (rule 2).
                return $sent + min(self::CLAIM / 3, $next > 0 ? $next / 1000 + 0.005 * ($ahead + 1) : self::CLAIM);
            case 3:
                throw new Busy($this->name, $reply[1] / 1000, $reply[2], $reply[3]);
            case 4:
                throw new Forced("$this->name: an operator sent the waiter away");
            default:
                throw new TooHeavy("$this->name: a weight of $this->weight never fits into $reply[1]");
        }
    }

    /** Cancels on the server, which also bars the id for as long as a late request could bring about a lease that harms (rule 6). */
    public function takeBack(?float $until = null): void
    {
        $until ??= Wire::clock() + self::CLAIM; // by then the server has forgotten a waiter
        for ($failures = 1; ; $failures++) {
            try {
                $this->box->call('cancel', $this->keys, [$this->id, (int) (1000 * max(self::CLAIM, min($this->ttl, self::ARRIVAL)))],
                    min(Wire::ANSWER_WITHIN, $until - Wire::clock()));
                return;
            } catch (Refusal | NoAnswer $error) {
                $pause = Wire::pause($failures, self::CLAIM);
                if (!Wire::passes($error) || Wire::clock() + $pause > $until) {
                    return; // what is left ends by itself
                }
                Wire::sleep($pause);
            }
        }
    }
}

/** Permits, held until they are released or lost. */
class Lease
{
    public readonly string $name;
    public readonly string $id;
    private float $deadline = 0.0;
    private float $due = 0.0;
    private int $failures = 0;
    private bool $over = false;
    private ?\Throwable $why = null;

    /**
     * @internal
     * @param int $token larger than that of every grant before it: a store that is given it can refuse a holder that was overtaken
     */
    final public function __construct(private readonly Acquisition $acquisition, public readonly int $token, float $sent)
    {
        [$this->name, $this->id] = [$acquisition->name, $acquisition->id];
        $this->extend($sent);
        $acquisition->box->keep($this);
    }

    /** Renews the lease if a third of its ttl is over. Throws LeaseLost if somebody else may hold the permits by now. */
    public function check(): void
    {
        $this->acquisition->box->tend();
        if ($this->why !== null) {
            throw $this->why;
        }
    }

    /** Whether somebody else may hold the permits by now. It asks no server, and renews nothing. */
    public function isLost(): bool
    {
        if (!$this->over && Wire::look() >= $this->deadline) {
            $this->lose(new LeaseLost("$this->name: the lease was not renewed in time"));
        }
        return $this->why !== null;
    }

    /** Waits, and renews the lease meanwhile. Throws LeaseLost when it is lost. */
    public function wait(float $seconds): void
    {
        $this->acquisition->box->hold(Wire::clock() + $seconds, $this);
        $this->check();
    }

    /** Gives the permits back, and returns when the server knows, or the lease is over anyway. Throws LeaseLost if it was lost before. */
    public function release(): void
    {
        if (!$this->isLost() && !$this->over) {
            $this->giveBack();
        }
        if ($this->why !== null) {
            throw $this->why;
        }
    }

    private function giveBack(): void
    {
        $box = $this->acquisition->box;
        while (!$this->acquisition->doubtful) {
            try {
                $held = $box->call('release', $this->acquisition->keys, [$this->id],
                    min(Wire::ANSWER_WITHIN, $this->deadline - Wire::clock()));
                $this->end();
                if ($held !== 1) {
                    $this->why = $held === 2
                        ? new Forced("$this->name: an operator ended the lease")
                        : new LeaseLost("$this->name: the lease had ended on the server");
                }
                return;
            } catch (Refusal | NoAnswer $error) {
                if (!Wire::passes($error)) {
                    $this->end();
                    throw Wire::explained($this->name, $error);
                }
                // What the next attempt is told may be about this one, and a request to acquire may be on its way (rule 7).
                $this->acquisition->doubtful = true;
            }
        }
        $this->acquisition->takeBack($this->deadline); // then the server ends it by itself
        $this->end();
    }

    /** Renews, if it is due. Returns when it is due again. @internal */
    public function tend(): float
    {
        if ($this->isLost() || Wire::clock() < $this->due) {
            return $this->over ? INF : min($this->due, $this->deadline);
        }
        $sent = Wire::clock();
        try {
            $reply = $this->acquisition->box->call('renew', $this->acquisition->keys,
                [$this->id, (int) (1000 * $this->acquisition->ttl), 0], min(Wire::ANSWER_WITHIN, $this->deadline - $sent));
            if ($reply[0] === 2) {
                $this->lose(new Forced("$this->name: an operator ended the lease"));
            } elseif ($reply[0] === 0) {
                $this->lose(new LeaseLost("$this->name: the lease had expired on the server"));
            } else {
                $this->extend($sent);
            }
        } catch (Refusal | NoAnswer $error) {
            if (!Wire::passes($error)) {
                $this->lose(new LeaseLost("$this->name: the lease cannot be renewed: " . $error->getMessage(), 0, $error));
            }
            $this->due = Wire::clock() + Wire::pause(++$this->failures, min($this->acquisition->ttl, Acquisition::CLAIM));
            $this->isLost();
        }
        return $this->over ? INF : min($this->due, $this->deadline);
    }

    private function extend(float $sent): void
    {
        // From the moment of sending, and a little early: clocks run at different rates, and a holder needs a moment (rule 5).
        $ttl = $this->acquisition->ttl;
        $this->deadline = $sent + $ttl - min(max($ttl / 20, 0.002), 0.5);
        [$this->due, $this->failures] = [$sent + $ttl / 3, 0];
    }

    /** @internal */
    public function lose(LeaseLost $why): void
    {
        if (!$this->over) {
            $this->why = $why;
            $this->end();
        }
    }

    private function end(): void
    {
        $this->over = true;
        $this->acquisition->box->forget($this->id);
    }
}

/** Leadership, until it is resigned or lost. */
final class Term extends Lease
{
    public function resign(): void
    {
        $this->release();
    }
}

/** Lets leases of a total weight up to its limit in, in the order they asked. It holds no state. */
final class Semaphore
{
    /** @internal */
    public function __construct(private readonly Box $box, public readonly string $name, public readonly int $limit)
    {
    }

    /** Acquires, or throws Busy at once. ttl: seconds for which the lease outlives a holder that falls silent. */
    public function tryAcquire(int $weight = 1, float $ttl = 30.0, string $label = ''): Lease
    {
        return (new Acquisition($this->box, $this->name, $this->limit, $weight, $ttl, $label, false))->run(Lease::class);
    }

    /**
     * Waits for its turn; throws Timeout after timeout seconds. onWait is told how many are ahead, when that changes. Other
     * leases of the Box are renewed meanwhile.
     */
    public function acquire(
        int $weight = 1, float $ttl = 30.0, string $label = '', ?float $timeout = null, ?callable $onWait = null,
    ): Lease {
        $onWait = $onWait === null ? null : $onWait(...);
        return (new Acquisition($this->box, $this->name, $this->limit, $weight, $ttl, $label, true, $timeout ?? INF, $onWait))
            ->run(Lease::class);
    }

    /**
     * Acquires, runs work with the lease, and releases however it ends. Throws LeaseLost if the lease was lost meanwhile,
     * unless work has thrown.
     *
     * @template T
     * @param callable(Lease): T $work
     * @return T
     */
    public function use(
        callable $work, int $weight = 1, float $ttl = 30.0, string $label = '', ?float $timeout = null, ?callable $onWait = null,
    ): mixed {
        $lease = $this->acquire($weight, $ttl, $label, $timeout, $onWait);
        try {
            $result = $work($lease);
        } catch (\Throwable $error) {
            try {
                $lease->release();
            } catch (SignalboxException) {
                // what went wrong inside says more
            }
            throw $error;
        }
        $lease->release();
        return $result;
    }
}

/** A semaphore of which a reader takes one permit and a writer all. */
final class RWLock
{
    private const WRITER = 1_000_000;

    private readonly Semaphore $semaphore;

    /** @internal */
    public function __construct(Box $box, public readonly string $name)
    {
        $this->semaphore = new Semaphore($box, $name, self::WRITER);
    }

    public function read(float $ttl = 30.0, string $label = '', ?float $timeout = null): Lease
    {
        return $this->semaphore->acquire(1, $ttl, $label, $timeout);
    }

    public function write(float $ttl = 30.0, string $label = '', ?float $timeout = null): Lease
    {
        return $this->semaphore->acquire(self::WRITER, $ttl, $label, $timeout);
    }
}

/** One leader at a time; the next is who has campaigned longest. */
final class Election
{
    /** @internal */
    public function __construct(private readonly Box $box, public readonly string $name)
    {
    }

    /** Returns when this process leads. */
    public function campaign(float $ttl = 15.0, string $label = '', ?float $timeout = null): Term
    {
        return (new Acquisition($this->box, $this->name, 1, 1, $ttl, $label, true, $timeout ?? INF))->run(Term::class);
    }
}
