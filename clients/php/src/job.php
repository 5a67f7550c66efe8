<?php

/**
 * One attempt of a job, on both sides of the fork: its handler runs in a process of its own (Child), which says by a pipe how it
 * goes on and how it ended, and the worker that started it keeps it (Attempt): it ends it when the job is to stop.
 *
 * Lines of JSON go both ways. To the worker: ["progress", percent, what], ["log", text], ["end", verb, number, text]. To the
 * child: why it is to stop, beside a signal, at which the handler gets that as an exception, wherever it is.
 */

declare(strict_types=1);

namespace Signalbox;

/** One attempt of a job, as its handler sees it. */
final class Job
{
    public readonly string $id;
    public readonly string $kind;
    public readonly string $key;
    public readonly mixed $args;
    /** Larger with every claim of any job of the queue: a guarded store can refuse who comes late. */
    public readonly int $token;
    /** 1 for the first. */
    public readonly int $attempt;
    /** How many workers died over it. */
    public readonly int $crashes;
    public readonly \DateTimeImmutable $enqueued;
    /** @internal */
    public readonly string $cost;
    /** @internal */
    public readonly int $retainMs;
    /** @internal */
    public readonly string $note;
    /** @internal how long an attempt may take, and after how many it is dead */
    public float $timeout = INF;
    /** @internal */
    public int $attempts = Queue::ATTEMPTS;
    /** @internal why it is to stop */
    public ?SignalboxException $cause = null;
    /** @internal what it says is told by this */
    public ?\Closure $tell = null;
    private readonly string $envelope;

    /** @internal */
    public function __construct(string $id, public readonly string $wireToken, string $record)
    {
        [$header, $this->envelope, $this->note] = explode("\n", $record, 3) + [1 => '', 2 => ''];
        $f = explode("\t", $header);
        if (count($f) < 14) {
            throw new \ValueError('this is no record');
        }
        [$this->id, $this->kind, $this->cost, $this->key] = [$id, $f[10], $f[12], $f[13]];
        [$this->token, $this->attempt, $this->crashes, $this->retainMs] = [(int) $wireToken, (int) $f[3] + 1, (int) $f[4], (int) $f[5]];
        $this->enqueued = \DateTimeImmutable::createFromFormat('U.u', sprintf('%d.%06d', intdiv((int) $f[8], 1000), (int) $f[8] % 1000 * 1000));
    }

    /** Reads the envelope. @internal */
    public function open(): void
    {
        try {
            $envelope = json_decode($this->envelope, true, 512, JSON_THROW_ON_ERROR);
        } catch (\JsonException $error) {
            throw new Fail('the job does not decode: ' . $error->getMessage(), 0, $error);
        }
        if (!is_array($envelope) || ($envelope['codec'] ?? '') !== '') {
            throw new Fail("the arguments are not JSON, and $this->kind is decoded as JSON: define it alike on both sides");
        }
        $this->args = $envelope['args'] ?? null;
        $this->timeout = ($envelope['timeout_ms'] ?? 0) > 0 ? $envelope['timeout_ms'] / 1000 : INF;
        $this->attempts = ($envelope['attempts'] ?? 0) > 0 ? $envelope['attempts'] : Queue::ATTEMPTS;
    }

    /** Throws if the work is to stop: Canceled, LeaseLost, Timeout or Stopped. The worker has that thrown by itself, once. */
    public function check(): void
    {
        if ($this->cause !== null) {
            throw $this->cause;
        }
    }

    /** Says how far the job is, 0 to 100. Who looks at it sees that within a third of the queue's lease. */
    public function progress(float $percent, string $what = ''): void
    {
        ($this->tell)(['progress', min(max($percent, 0), 100), $what]);
    }

    /** Adds a line to the log of the job. The last 8 KiB are kept, over all attempts. */
    public function log(string $text): void
    {
        ($this->tell)(['log', $text]);
    }

    /**
     * What the worker reports of an attempt: verb, number, text.
     *
     * @internal
     * @param callable(int): float $backoff
     * @return array{string, int, string}
     */
    public function outcome(callable $backoff, string $text, ?\Throwable $error): array
    {
        if ($error === null) {
            return ['done', $this->retainMs, $text];
        }
        $ms = fn (float $seconds): int => max((int) (1000 * $seconds), 0);
        $said = self::oneLine((new \ReflectionClass($error))->getShortName() . ': ' . $error->getMessage());
        return match (true) {
            $error instanceof Snooze => ['snooze', $ms($error->after), ''],
            $error instanceof Fail => ['dead', $ms(Worker::DEAD_RETAIN), self::oneLine($error->getMessage())],
            $this->cause instanceof Canceled =>
                ['cancelled', max($this->retainMs, $ms(Queue::RETAIN)), self::oneLine($this->cause->getMessage())],
            $this->cause instanceof Stopped, $error instanceof Stopped => ['back', 0, ''],
            $this->attempt >= $this->attempts => ['dead', $ms(Worker::DEAD_RETAIN), $said],
            default => ['retry', $ms($error instanceof Retry ? $error->after : $backoff($this->attempt)), $said],
        };
    }

    /** @internal */
    public static function oneLine(string $text): string
    {
        $text = preg_replace('/[\x00-\x1f\x7f]/', ' ', $text);
        // Cut between characters.
        return strlen($text) <= 1000 ? $text : preg_replace('/[\xC0-\xFF][\x80-\xBF]*$/', '', substr($text, 0, 1000));
    }
}

/** The process in which a handler runs. @internal */
final class Child
{
    private bool $over = false;
    private string $told = '';

    /** @param resource $pipe */
    public function __construct(private readonly Job $job, private $pipe)
    {
        $job->tell = function (array $line): void {
            $text = json_encode($line, JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES) . "\n";
            while ($text !== '' && ($n = @fwrite($this->pipe, $text)) !== false && $n > 0) {
                $text = substr($text, $n);
            }
        };
    }

    /** Runs the handler, and ends the process as if by force, so that nothing that the worker has open is closed here. */
    public function run(callable $handler, callable $backoff): never
    {
        pcntl_async_signals(true);
        foreach ([SIGTERM, SIGINT, SIGHUP] as $signal) {
            pcntl_signal($signal, static function (): void {}); // the worker says when to stop
        }
        register_shutdown_function(function () use ($backoff): void {
            $last = error_get_last();
            $fatal = $last !== null && ($last['type'] & (E_ERROR | E_PARSE | E_COMPILE_ERROR | E_RECOVERABLE_ERROR)) !== 0;
            $this->end($backoff, '', new \RuntimeException($fatal ? $last['message'] : 'the handler has ended its process'));
        });
        $text = '';
        try {
            pcntl_signal(SIGUSR1, fn () => $this->stop());
            pcntl_sigprocmask(SIG_UNBLOCK, [SIGUSR1]);
            $result = $handler($this->job);
            $text = $result === null ? '' : self::encode($result);
            $this->end($backoff, $text, null);
        } catch (\Throwable $error) {
            $this->end($backoff, '', $error);
        }
    }

    private static function encode(mixed $result): string
    {
        try {
            return Words::encode($result, 'the result');
        } catch (Invalid $invalid) {
            throw new Fail($invalid->getMessage(), 0, $invalid);
        }
    }

    private function stop(): void
    {
        if ($this->over || $this->job->cause !== null) {
            return;
        }
        $this->told .= (string) fgets($this->pipe);
        [$class, $message] = json_decode($this->told, true) ?? ['Stopped', 'the worker ends'];
        $this->job->cause = match ($class) {
            'Canceled' => new Canceled($message),
            'LeaseLost' => new LeaseLost($message),
            'Timeout' => new Timeout($message),
            default => new Stopped($message),
        };
        throw $this->job->cause;
    }

    private function end(callable $backoff, string $text, ?\Throwable $error): never
    {
        $this->over = true;
        try {
            $outcome = $this->job->outcome($backoff, $text, $error);
        } catch (\Throwable $broken) { // the caller's own backoff
            $outcome = ['dead', (int) (1000 * Worker::DEAD_RETAIN), Job::oneLine('the backoff failed: ' . $broken->getMessage())];
        }
        ($this->job->tell)(['end', ...$outcome]);
        while (ob_get_level() > 0) {
            ob_end_flush();
        }
        flush();
        posix_kill((int) getmypid(), SIGKILL);
        exit; // not reached
    }
}

/** An attempt, as the worker keeps it. @internal */
final class Attempt
{
    private const PATIENCE = 5.0; // seconds for which a handler may go on that was told to stop
    private const NOTES_MOST = 8 << 10;

    public bool $disowned = false;
    /** When it has to be over. */
    public float $until = INF;
    /** Versions of the notes: written, on their way, known to the server. */
    public int $written = 0;
    public int $sent = 0;
    public int $known = 0;
    public float $sentAt = -INF;
    private array $notes;
    private string $read = '';

    /** @param resource $pipe */
    public function __construct(public readonly Job $job, private readonly int $pid, public readonly mixed $pipe, private readonly \Closure $backoff)
    {
        stream_set_blocking($pipe, false);
        $this->until = Wire::clock() + $job->timeout;
        $notes = json_decode($job->note, true);
        $this->notes = is_array($notes) ? $notes : []; // somebody else may have written it
        unset($this->notes['progress']); // of the attempt before
    }

    /** Has it stop: its handler is told, and the process ended if that does not help. */
    public function stop(SignalboxException $cause): void
    {
        if ($this->job->cause !== null) {
            return;
        }
        $this->job->cause = $cause;
        $class = (new \ReflectionClass($cause))->getShortName();
        @fwrite($this->pipe, json_encode([$class, $cause->getMessage()], JSON_INVALID_UTF8_SUBSTITUTE) . "\n");
        posix_kill($this->pid, SIGUSR1);
        $this->until = Wire::clock() + self::PATIENCE;
    }

    /** Does what is due, by the clock. */
    public function watch(float $now): void
    {
        if ($this->until > $now) {
            return;
        }
        if ($this->job->cause === null) {
            $this->stop(new Timeout("job {$this->job->id} timed out"));
        } else {
            posix_kill($this->pid, SIGKILL);
            $this->until = INF;
        }
    }

    /** Reads what the child says. Returns what the worker has to report when it has ended, and null before. */
    public function hear(): ?array
    {
        // In this order: a process that has ended has said before what it had to say.
        $ended = pcntl_waitpid($this->pid, $status, WNOHANG) === $this->pid;
        while (($data = @fread($this->pipe, 1 << 16)) !== false && $data !== '') {
            $this->read .= $data;
        }
        while (($at = strpos($this->read, "\n")) !== false) {
            $line = json_decode(substr($this->read, 0, $at), true);
            $this->read = substr($this->read, $at + 1);
            if (($line[0] ?? '') === 'end') {
                return $this->reap(array_slice($line, 1));
            }
            $this->noted($line ?? []);
        }
        return $ended ? $this->reap(null) : null;
    }

    private function reap(?array $outcome): array
    {
        pcntl_waitpid($this->pid, $status);
        fclose($this->pipe);
        return $outcome ?? $this->job->outcome($this->backoff, '', $this->job->cause ?? new \RuntimeException("the job's process was killed"));
    }

    private function noted(array $line): void
    {
        $at = (new \DateTimeImmutable('now', new \DateTimeZone('UTC')))->format('Y-m-d\TH:i:s.v\Z');
        if ($line[0] === 'progress') {
            $this->notes['progress'] = ['percent' => $line[1], 'what' => Job::oneLine($line[2]), 'at' => $at];
        } else {
            $this->notes['log'][] = ['at' => $at, 'attempt' => $this->job->attempt, 'text' => Job::oneLine($line[1])];
            while (array_sum(array_map(fn ($l) => 60 + strlen($l['text'] ?? ''), $this->notes['log'])) > self::NOTES_MOST) {
                array_shift($this->notes['log']);
            }
        }
        $this->written++;
    }

    /** The report of its notes. */
    public function note(): array
    {
        $text = json_encode($this->notes, JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES);
        return [$this->job->id, $this->job->wireToken, 'note', 0, $text];
    }

    public function kill(): void
    {
        posix_kill($this->pid, SIGKILL);
        pcntl_waitpid($this->pid, $status);
    }
}
