<?php

/**
 * Task queues: who enqueues, and who waits for results. Who runs jobs is in worker.php.
 *
 * A Queue makes one call of its producer at a time, numbered: the server tells a call that comes again, since its reply was
 * lost, from a new one. Results are heard of in the inbox, and looked for when messages may have been lost.
 * docs/functions-queue.md describes the calls.
 */

declare(strict_types=1);

namespace Signalbox;

/** Names, JSON and costs, as they cross the wire. @internal */
final class Words
{
    public const PAYLOAD = 1 << 20; // bytes of arguments, or of a result

    public static function checkName(string $what, string $name, int $most = 128, bool $commas = false): string
    {
        if ($name === '' || strlen($name) > $most || preg_match('/[\x00-\x1f\x7f]/', $name) === 1 || !$commas && str_contains($name, ',')) {
            throw new Invalid("$what " . var_export(substr($name, 0, 40), true) . ": it is 1 to $most bytes without control characters"
                . ($commas ? '' : ' and commas'));
        }
        return $name;
    }

    public static function encode(mixed $value, string $what): string
    {
        try {
            $text = json_encode(
                $value, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_PRESERVE_ZERO_FRACTION);
        } catch (\JsonException $error) {
            throw new Invalid("$what does not encode as JSON: " . $error->getMessage(), 0, $error);
        }
        if (strlen($text) > self::PAYLOAD) {
            throw new Invalid("$what has " . strlen($text) . ' bytes, at most ' . self::PAYLOAD
                . ' are allowed: keep it elsewhere, and pass its place');
        }
        return $text;
    }

    /** Objects of JSON are arrays with words as keys. */
    public static function decode(string $text): mixed
    {
        return $text === '' ? null : json_decode($text, true, 512, JSON_THROW_ON_ERROR);
    }

    /** @param array<string, int> $cost */
    public static function cost(array $cost, string $by): string
    {
        foreach ($cost as $name => $amount) {
            self::checkName('capacity', (string) $name);
            if (preg_match('/[:=]/', (string) $name) === 1 || !is_int($amount) || $amount < 0 || $amount > 1 << 30) {
                throw new Invalid("capacity $name: no colon, no equals sign, a whole number from 0 to 2^30");
            }
        }
        ksort($cost, SORT_STRING);
        return implode(',', array_map(fn ($name, $amount) => "$name$by$amount", array_keys($cost), $cost));
    }

    /** @param iterable<string> $names */
    public static function sorted(iterable $names, string $what): array
    {
        $found = [];
        foreach ($names as $name) {
            $found[] = self::checkName($what, $name);
        }
        $found = array_values(array_unique($found));
        sort($found, SORT_STRING);
        return $found;
    }

    /** The words of a message, each as its length in bytes, a colon, and the word. Of what is none there are no words. */
    public static function ofMessage(string $message): array
    {
        $words = [];
        while ($message !== '') {
            [$length, $rest] = explode(':', $message, 2) + [1 => null];
            if ($rest === null || !ctype_digit($length) || (int) $length > strlen($rest)) {
                return [];
            }
            $words[] = substr($rest, 0, (int) $length);
            $message = substr($rest, (int) $length);
        }
        return $words;
    }
}

/** A job to enqueue. Times are seconds. */
final class Request
{
    /** @internal */
    public readonly string $lane;
    /** @internal */
    public readonly string $terms;
    /** @internal */
    public readonly string $text;

    /**
     * @param mixed $args anything that JSON has, at most 1 MiB of it
     * @param ?string $id of the caller's own; enqueued again it changes nothing
     * @param ?float $at a time of the server's clock, in seconds since 1970
     * @param int $priority as if it had been enqueued so many minutes earlier
     * @param string $key whose it is, for limits
     * @param iterable<string> $tags that the worker has to have
     * @param array<string, int> $cost what it takes of the worker's capacities, one "slot" without it
     * @param float $retain for how long it is kept with its result when it is done
     * @param float $timeout how long an attempt may take; 0: as long as it likes
     * @param int $attempts after how many it is dead
     * @param string $unique refuses a second one with the same words, while the first is in the states $while
     * @param list<string> $after ids of jobs that have to be done before, all or ($afterAny) one
     * @param string $onFailure of one of these: "cancel", "hold" or "go"
     */
    public function __construct(
        public readonly string $kind, mixed $args = null, public readonly ?string $id = null, float $delay = 0.0, ?float $at = null,
        int $priority = 0, string $key = '', iterable $tags = [], array $cost = [], float $retain = Queue::RETAIN, float $timeout = 0.0,
        int $attempts = Queue::ATTEMPTS, string $unique = '', string $while = Queue::WAITING, array $after = [], bool $afterAny = false,
        string $onFailure = 'cancel',
    ) {
        Words::checkName('kind', $kind);
        $tags = Words::sorted($tags, 'tag');
        $parents = Words::sorted($after, 'job id');
        if ($key !== '') {
            Words::checkName('key', $key, 512, true);
        }
        if (count($tags) > 16 || $attempts < 1 || abs($priority) > 1 << 20 || count($after) > 1000
            || !in_array($onFailure, ['cancel', 'hold', 'go'], true)) {
            throw new Invalid("$kind: at most 16 tags and 1000 parents, a priority up to 2^20, an attempt at least, and onFailure is cancel, hold or go");
        }
        if ($id !== null) {
            Words::checkName('job id', $id);
            if ($unique !== '' || in_array($id, $after, true)) {
                throw new Invalid("$kind: a job has an id of its own or a fingerprint, not both, and does not wait for itself");
            }
        }
        if ($unique !== '') {
            Words::checkName('fingerprint', $unique, 512, true);
        }
        $this->lane = implode("\t", [$kind, implode(',', $tags), Words::cost($cost, '='), $key]);
        $due = $at === null ? (string) self::ms($delay) : '@' . self::ms($at);
        $fingerprint = $id !== null ? 'id' : ($unique === 'id' ? 'id ' : $unique);
        $terms = [$due, (string) $priority, (string) self::ms($retain), $unique === '' ? '' : $while, $fingerprint];
        $links = $parents === [] ? [''] : [$afterAny ? 'any' : 'all', $onFailure, implode(',', $parents)];
        $this->terms = $terms === ['0', '0', '0', '', ''] && $parents === [] ? '' : implode("\t", [...$terms, ...$links]);
        $this->text = "\n{\"args\":" . Words::encode($args, "the argument of $kind")
            . ($timeout > 0 ? ',"timeout_ms":' . max(self::ms($timeout), 1) : '')
            . ($attempts !== Queue::ATTEMPTS ? ",\"attempts\":$attempts" : '') . '}';
    }

    private static function ms(float $seconds): int
    {
        return max((int) (1000 * $seconds), 0);
    }
}

/** A job as its producer sees it. */
final class Enqueued
{
    /**
     * @internal
     * @param bool $duplicate nothing was enqueued: this job has the same fingerprint or id
     */
    public function __construct(private readonly Queue $queue, public readonly string $id, public readonly bool $duplicate = false)
    {
    }

    /**
     * Waits for the end of the job and returns its result, null if it has none. Throws Dead if it failed for good, Canceled,
     * UnknownJob if the server does not know it (any more), and Timeout.
     */
    public function result(?float $timeout = null): mixed
    {
        return Words::decode($this->queue->await($this->id, $timeout));
    }
}

/** A door to one queue. A process needs one. */
final class Queue
{
    public const ATTEMPTS = 20; // how often a job is tried
    public const RETAIN = 60.0; // seconds for which a job that is done is kept, with its result
    /** For while: the job is the only one with its fingerprint until it runs, */
    public const WAITING = 'wlh';
    /** or until it has ended. */
    public const ALIVE = 'wlhc';
    private const WIRE = '1'; // the wire version that this client speaks
    private const MOST = 500; // jobs in a call
    private const LOOK = 30.0; // how often a waiter looks by itself, in seconds, should all messages be lost

    private readonly Connection $connection;
    private Inbox $inbox;
    private string $process = '';
    private int $pid = 0;
    private int $ids = 0;
    private int $call = 0;
    private int $seeds = 0;
    /** @var ?list<string> */
    private ?array $keys = null;
    /** @var ?list<string|int> the arguments of a call of which nobody knows whether it has run */
    private ?array $unknown = null;
    private bool $closed = false;

    /** @param float $lease seconds for which the server believes in a worker that falls silent: 1 to 3600 */
    public function __construct(
        private readonly string $url = 'redis://localhost:6379', public readonly string $name = 'default', public readonly float $lease = 15.0,
    ) {
        if (!($lease >= 1 && $lease <= 3600)) {
            throw new Invalid("a lease of $lease seconds is not between a second and an hour");
        }
        Words::checkName('queue', $name, 256, true);
        $this->connection = new Connection($url);
        $this->own();
    }

    /** Ends the connections. */
    public function close(): void
    {
        $this->own();
        $this->closed = true;
        $this->inbox->close();
        $this->connection->close();
    }

    /** A process that was forked is another producer, with connections of its own: its parent's numbers are its parent's. */
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
        $this->process = bin2hex(random_bytes(8));
        $this->inbox = new Inbox($this->url, "signalbox:queue-inbox:$this->process");
        [$this->call, $this->ids, $this->keys, $this->unknown] = [0, 0, null, null];
    }

    // Calls, for the worker as well.

    /** Calls a function, with the keys that the library says a queue has. @internal */
    public function ask(string $function, array $arguments, float $within = Wire::ANSWER_WITHIN): mixed
    {
        $this->own();
        if ($this->closed) {
            throw new Closed("queue $this->name was closed");
        }
        $until = Wire::clock() + $within;
        for ($again = false; ; $again = true) {
            if ($this->keys === null) {
                $this->connection->fcall('signalbox_queue_version', [], [self::WIRE], $within);
                $words = $this->connection->fcall('signalbox_queue_keys', [], [], $within);
                $words[] = array_pop($words) . $this->process;
                $this->keys = array_map(fn ($word) => 'signalbox:queue:{' . Wire::encode($this->name) . "}:$word", $words);
            }
            try {
                return $this->connection->fcall("signalbox_queue_$function", $this->keys, $arguments, max($until - Wire::clock(), 0.01));
            } catch (Refusal $error) {
                // There is another version of the library by now. It has done nothing.
                if ($again || !str_starts_with($error->getMessage(), 'KEYS ')) {
                    throw $error;
                }
                $this->keys = null;
            }
        }
    }

    /** @internal */
    public function seed(): string
    {
        return dechex(++$this->seeds * 0x9E3779B9 % 0x100000000);
    }

    /** @internal */
    public function process(): string
    {
        $this->own();
        return $this->process;
    }

    /** @internal */
    public function inbox(): Inbox
    {
        $this->own();
        return $this->inbox;
    }

    /** Asks until the server has answered, or has refused for good. */
    private function untilKnown(string $doing, string $function, array $arguments, float $timeout): mixed
    {
        $until = Wire::clock() + $timeout;
        for ($failures = 1; ; $failures++) {
            try {
                return $this->ask($function, $arguments);
            } catch (Refusal | NoAnswer $error) {
                $pause = Wire::pause($failures, $this->lease);
                if (!Wire::passes($error) || Wire::clock() + $pause > $until) {
                    throw Wire::explained("$doing $this->name", $error);
                }
                Wire::sleep($pause);
            }
        }
    }

    // Producing.

    /**
     * Adds a job; terms are those of Request, by name. When it returns, the job is on the server. What it could not do because
     * the server was out of reach it tries again for $within seconds; a job is not enqueued twice by that.
     */
    public function enqueue(string $kind, mixed $args = null, float $within = 60.0, mixed ...$terms): Enqueued
    {
        $outcome = $this->enqueueMany([new Request($kind, $args, ...$terms)], $within)[0];
        if ($outcome instanceof ParentFailed) {
            throw $outcome;
        }
        return $outcome;
    }

    /**
     * Adds jobs, in one call for each 500. What waits for a job that has failed is an error in its place.
     *
     * @param iterable<Request> $requests
     * @return list<Enqueued|ParentFailed>
     */
    public function enqueueMany(iterable $requests, float $within = 60.0): array
    {
        $this->own();
        [$found, $batch, $size] = [[], [], 0];
        foreach ($requests as $request) {
            if (count($batch) === self::MOST || $batch !== [] && $size + strlen($request->text) > Words::PAYLOAD) {
                array_push($found, ...$this->produce($batch, $within));
                [$batch, $size] = [[], 0];
            }
            $batch[] = $request;
            $size += strlen($request->text);
        }
        if ($batch !== []) {
            array_push($found, ...$this->produce($batch, $within));
        }
        return $found;
    }

    /** @param non-empty-list<Request> $requests */
    private function produce(array $requests, float $within): array
    {
        if ($this->unknown !== null) {
            $this->send($within); // nothing else comes before it
        }
        $plain = array_filter($requests, fn ($request) => $request->terms !== '') === [];
        $arguments = [++$this->call, $this->seed(), '', '', '', $plain ? '1' : '0'];
        $ids = [];
        foreach ($requests as $request) {
            $ids[] = $id = $request->id ?? substr($this->process, 0, 10) . dechex(++$this->ids);
            array_push($arguments, $id, $request->lane, $request->terms, $request->text);
        }
        $this->unknown = $arguments;
        $found = [];
        foreach ($this->send($within) as $i => $outcome) {
            [$what, $other] = [$outcome[0], substr($outcome, 1)];
            $found[] = $what === 'p'
                ? new ParentFailed("enqueue {$requests[$i]->kind}: job $other has failed")
                : new Enqueued($this, $what === 'u' ? $other : $ids[$i], $what === 's' || $what === 'u');
        }
        return $found;
    }

    /** @return list<string> the outcomes of the call that is unknown */
    private function send(float $within): array
    {
        try {
            $reply = $this->untilKnown('enqueue on', 'enqueue', $this->unknown, $within);
        } catch (Unavailable $error) {
            throw $error; // the next to come asks again, under this number
        } catch (SignalboxException $error) {
            $this->unknown = null;
            throw $error;
        }
        $this->unknown = null;
        return $reply[0];
    }

    /** The handle of a job that is known by its id. */
    public function job(string $id): Enqueued
    {
        return new Enqueued($this, $id);
    }

    /** Cancels a job. Returns "ok", "told" if it runs and its worker was told, "ended" or "unknown". */
    public function cancel(string $id, string $cause = ''): string
    {
        return $this->untilKnown('cancel on', 'change', ['cancel', $this->seed(), $cause, '', $id], 60)[0];
    }

    /** Has a dead, canceled or done job that is kept run again, or a delayed one run now. */
    public function retry(string $id): string
    {
        return $this->untilKnown('retry on', 'change', ['retry', $this->seed(), '', '', $id], 60)[0];
    }

    /** A worker for this queue; options are those of Worker, by name. */
    public function worker(string $name = 'worker', mixed ...$options): Worker
    {
        return new Worker($this, $name, ...$options);
    }

    // Waiting.

    /** The result of a job, as text. @internal */
    public function await(string $id, ?float $timeout): string
    {
        $this->own();
        $until = $timeout === null ? INF : Wire::clock() + $timeout;
        [$look, $failures] = [0.0, 0];
        while (true) {
            if ($this->inbox->open()) {
                $look = 0.0;
            }
            foreach ($this->inbox->messages() as $message) {
                $words = Words::ofMessage($message);
                if (count($words) >= 4 && $words[0] === 'ended' && $words[1] === $id) {
                    return $this->outcome($id, $words[2], $words[3]);
                }
            }
            $now = Wire::clock();
            if ($now >= $look) {
                try {
                    $text = $this->look($id);
                    if ($text !== null) {
                        return $text;
                    }
                    [$look, $failures] = [$now + self::LOOK, 0];
                } catch (Refusal | NoAnswer $error) {
                    if (!Wire::passes($error)) {
                        throw Wire::explained("wait for job $id of $this->name", $error);
                    }
                    $look = Wire::clock() + Wire::pause(++$failures, $this->lease);
                }
            }
            if (Wire::clock() >= $until) {
                throw new Timeout("job $id has not ended in $timeout seconds");
            }
            $stream = $this->inbox->stream();
            Wire::select($stream === null ? [] : [$stream], min($look, $until) - Wire::clock());
        }
    }

    private function look(string $id): ?string
    {
        $reply = $this->ask('look', [$id, $this->process]);
        if ($reply[0] === 'unknown') {
            throw new UnknownJob("job $id of $this->name: it may have ended, and not be kept: see retain");
        }
        if ($reply[0] !== 'ended') {
            return null;
        }
        [$header, $rest] = explode("\n", $reply[1], 2);
        [$state, , $length] = explode("\t", $header);
        return $this->outcome($id, $state, substr($rest, 0, (int) $length));
    }

    private function outcome(string $id, string $state, string $text): string
    {
        return match ($state) {
            'd' => $text,
            'x' => throw new Dead($id, $text),
            default => throw new Canceled("job $id: $text"),
        };
    }
}
