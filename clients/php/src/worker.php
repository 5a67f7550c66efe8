<?php

/**
 * Workers: who runs jobs.
 *
 * A worker talks to the server in one call (exchange), which says what it has done, renews its lease and brings what it has
 * room for. Its loop makes a call when there is something to say, when a message says that there is something to hear, and
 * three times in a lease; else it waits for a message, for what its jobs say, and for the next date. The handlers run in
 * processes of their own (job.php), so that none can hold up the lease of the others, and that one which does not stop can be
 * made to. These processes are a group that a last one, the guard, leads: it ends them all when the worker dies.
 *
 * The rules are those of docs/functions-queue.md.
 */

declare(strict_types=1);

namespace Signalbox;

/**
 * Runs jobs: of the kinds that have a handler, for which it has the tags and the room.
 *
 *     $worker = $queue->worker('mailer', slots: 4);
 *     $worker->handle('mail.send', fn ($job) => send($job->args));
 *     $worker->run();
 */
final class Worker
{
    public const DEAD_RETAIN = 90 * 86400.0;
    private const MOST_CLAIMS = 100;
    private const MOST_REPORTS = 500;
    private const STOP_PATIENCE = 10.0; // seconds for which a worker waits for jobs that were told to stop

    private readonly array $capacity;
    /** @var list<string> */
    private readonly array $tags;
    /** @var array<string, array{callable, \Closure}> */
    private array $handlers = [];
    /** @var ?array{int, resource} the guard's process, and what it waits for the end of */
    private ?array $guard = null;
    private string $id = '';
    private int $incarnations = 0;
    private int $call = 0;
    private int $failures = 0;
    private string $state = 'online';
    private bool $register = true; // the next call is the first of its id
    private bool $rung = true; // there is something to call for
    private bool $full = true; // the next call gives the inventory
    private bool $expired = false; // the lease is over
    private float $beat = 0.0; // when to call at the latest
    private float $again = 0.0; // not before, after a failure
    private float $told = 0.0; // when the inventory was given
    private float $deadline = INF; // of the lease
    private bool $stopping = false;
    private bool $stopped = false; // the jobs were told
    private float $drained = INF; // when the time to drain is over
    /** @var array<string, Attempt> that are this worker's, by id */
    private array $jobs = [];
    /** @var array<string, Attempt> that run: some may be others' by now, by token */
    private array $running = [];
    /** @var list<array{string, string, string, int, string}> id, token, verb, number, text */
    private array $reports = [];
    /** @var array<string, true> the last tokens */
    private array $seen = [];

    /**
     * @param int $slots how many jobs without a cost it runs at once
     * @param ?array<string, int> $capacity instead: what it can do at once of each thing, ['call' => 1, 'chat' => 3]
     * @param iterable<string> $tags what it has
     * @param float $drain how many seconds it waits for what runs, when it is told to end
     */
    public function __construct(
        private readonly Queue $queue, public readonly string $name = 'worker', int $slots = 1, ?array $capacity = null,
        iterable $tags = [], private readonly float $drain = 30.0,
    ) {
        Words::checkName('worker', $name);
        $this->capacity = $capacity ?? ['slot' => $slots];
        Words::cost($this->capacity, ':');
        $this->tags = Words::sorted($tags, 'tag');
    }

    /**
     * Registers a handler of a kind, before run. What it returns is the result. What it throws has the job tried again after
     * backoff(attempt) seconds, which doubles from one to an hour if it is not given; see also Retry, Fail and Snooze.
     *
     * It runs in a process of its own: connections that were open before are the worker's, so it opens those that it uses.
     * When its work is to stop, Canceled, LeaseLost, Timeout or Stopped is thrown inside it, wherever it is.
     *
     * @param callable(Job): mixed $handler
     * @param ?callable(int): float $backoff
     */
    public function handle(string $kind, callable $handler, ?callable $backoff = null): self
    {
        $this->handlers[Words::checkName('kind', $kind)] = [$handler, ($backoff ?? self::doubling(...))(...)];
        return $this;
    }

    /** Works until stop is called, or somebody drains the worker. Throws what it ended with, if that is an error. */
    public function run(): void
    {
        if ($this->handlers === []) {
            throw new Invalid("worker $this->name: it has no handlers: register them first");
        }
        if (!function_exists('pcntl_fork') || !function_exists('posix_kill')) {
            throw new Invalid("worker $this->name: PHP lacks pcntl or posix: run it by php on the command line (Debian: php-cli)");
        }
        if ($this->guard !== null) {
            throw new Invalid("worker $this->name: it runs, or has run: make another one");
        }
        $this->guard = self::startGuard();
        try {
            $this->incarnate();
            $this->work();
        } catch (Refusal | NoAnswer $error) {
            throw Wire::explained("worker $this->name of queue {$this->queue->name}", $error);
        } finally {
            foreach ($this->running as $attempt) {
                $attempt->kill();
            }
            posix_kill($this->guard[0], SIGKILL);
            pcntl_waitpid($this->guard[0], $status);
            fclose($this->guard[1]);
        }
    }

    /**
     * Has it take nothing new, and end when nothing runs any more, or the time to drain is over. It is made to be called by a
     * handler of signals.
     */
    public function stop(?float $drain = null): void
    {
        $this->drained = min($this->drained, Wire::clock() + ($drain ?? $this->drain));
        $this->stopping = true;
    }

    /** Has it take nothing new, and go on with what it runs, until away(false). */
    public function away(bool $away = true): void
    {
        if ($this->state === 'online' || $this->state === 'away') {
            [$this->state, $this->rung] = [$away ? 'away' : 'online', true];
        }
    }

    /** @return array{int, resource} */
    private static function startGuard(): array
    {
        [$mine, $its] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $pid = pcntl_fork();
        if ($pid === -1) {
            throw new \RuntimeException('no process could be started: ' . pcntl_strerror(pcntl_get_last_error()));
        }
        if ($pid === 0) {
            posix_setpgid(0, 0);
            fclose($mine);
            foreach ([SIGTERM, SIGINT, SIGHUP] as $signal) {
                pcntl_signal($signal, SIG_IGN);
            }
            do {
                @fread($its, 1);
            } while (!feof($its));
            posix_kill(0, SIGKILL); // the group: the jobs, and this process
        }
        @posix_setpgid($pid, $pid); // whoever of the two comes first
        fclose($its);
        return [$pid, $mine];
    }

    /** Gives the worker an id. One whose lease has ended begins anew, with another part behind the dot. */
    private function incarnate(): void
    {
        $number = dechex(++$this->incarnations);
        $first = explode('.', $this->id)[0];
        $this->id = $first === '' ? $this->queue->process() . '/' . bin2hex(random_bytes(4)) : "$first.$number";
        [$this->call, $this->register, $this->expired, $this->deadline] = [0, true, false, INF];
        $this->rung = $this->full = true;
    }

    // The loop.

    private function work(): void
    {
        while (true) {
            $this->hear();
            $this->watch();
            if ($this->expired) {
                $this->incarnate();
            }
            if ($this->stopping && $this->drain()) {
                $this->farewell();
                return;
            }
            $now = Wire::clock();
            if ($now >= $this->again && ($this->rung || $now >= $this->beat)) {
                $this->makeCall();
            } else {
                $this->nap($this->rung ? $this->again : max($this->beat, $this->again));
            }
        }
    }

    private function nap(float $until): void
    {
        $until = min($until, $this->deadline, $this->stopping ? $this->drained : INF);
        $streams = array_filter(['inbox' => $this->queue->inbox()->stream()]);
        foreach ($this->running as $token => $attempt) {
            $until = min($until, $attempt->until);
            $streams["job $token"] = $attempt->pipe;
        }
        Wire::select($streams, $until - Wire::clock());
    }

    /** Takes in what messages and jobs have said. */
    private function hear(): void
    {
        $inbox = $this->queue->inbox();
        if ($inbox->open(max(min(Wire::ANSWER_WITHIN, $this->deadline - Wire::clock()), 0.05))) {
            $this->full = $this->rung = true; // some may have gone by
        }
        foreach ($inbox->messages() as $message) {
            $words = Words::ofMessage($message);
            if (($words[1] ?? '') !== $this->id) {
                continue;
            }
            if ($words[0] === 'jobs') {
                $this->handed(array_slice($words, 2));
            } elseif ($words[0] === 'look' || $words[0] === 'wake') {
                $this->full = $this->full || $words[0] === 'look';
                $this->rung = true;
            } elseif ($words[0] === 'cancel' && count($words) >= 4) {
                $this->toldToCancel($words[2], $words[3]);
            }
        }
        foreach ($this->running as $token => $attempt) {
            $end = $attempt->hear();
            if ($end !== null) {
                $this->finished($token, $attempt, $end);
            }
        }
    }

    private function toldToCancel(string $id, string $cause): void
    {
        if ($id === '') {
            $this->stop();
        } elseif (isset($this->jobs[$id])) {
            $this->jobs[$id]->stop(new Canceled('job canceled' . ($cause === '' ? '' : ": $cause")));
        }
    }

    /** Ends what is over, by the clock. */
    private function watch(): void
    {
        $now = Wire::look();
        if ($this->deadline <= $now) {
            $this->loseLease();
        }
        foreach ($this->running as $attempt) {
            $attempt->watch($now);
        }
    }

    /** Whether the worker has nothing to wait for any more. */
    private function drain(): bool
    {
        if ($this->state !== 'draining') {
            [$this->state, $this->rung] = ['draining', true];
        }
        $late = Wire::clock() >= $this->drained;
        if ($this->running === [] || $late && $this->stopped) {
            return true;
        }
        if ($late) {
            [$this->stopped, $this->drained] = [true, Wire::clock() + self::STOP_PATIENCE];
            foreach ($this->jobs as $attempt) {
                $attempt->stop(new Stopped('the worker ends'));
            }
        }
        return false;
    }

    private function makeCall(): void
    {
        $this->rung = false;
        try {
            $this->exchange();
            $this->failures = 0;
        } catch (Refusal | NoAnswer $error) {
            if (!Wire::passes($error) && !str_starts_with($error->getMessage(), 'LATE')) {
                throw $error;
            }
            $this->again = Wire::clock() + Wire::pause(++$this->failures, $this->queue->lease);
            $this->full = $this->rung = true;
        }
    }

    /** The last calls: what has ended, and that the worker goes. What has not ended goes to others when the lease is over. */
    private function farewell(): void
    {
        for ($until = Wire::clock() + self::STOP_PATIENCE / 2; Wire::clock() < $until;) {
            $last = count($this->firstReports()) === count($this->reports);
            if ($last && $this->running === []) {
                $this->state = 'gone';
            }
            try {
                $this->exchange();
                if ($last) {
                    return;
                }
            } catch (Refusal | NoAnswer $error) {
                if (!Wire::passes($error)) {
                    throw $error;
                }
                Wire::sleep(Wire::pause(++$this->failures, 3));
            }
        }
    }

    private function firstReports(): array
    {
        $size = 0;
        foreach ($this->reports as $i => $report) {
            $size += strlen($report[4]);
            if ($i === self::MOST_REPORTS || $i > 0 && $size > 4 * Words::PAYLOAD) {
                return array_slice($this->reports, 0, $i);
            }
        }
        return $this->reports;
    }

    private function exchange(): void
    {
        $sent = Wire::clock();
        $reports = $this->firstReports();
        $noted = $this->noted($sent);
        $inventory = $this->inventory(count($reports), $sent);
        try {
            // No longer than the lease: what it ends must not wait.
            $reply = $this->queue->ask('work', $this->arguments($reports, $noted, $inventory),
                max(min(Wire::ANSWER_WITHIN, $this->deadline - $sent), 0.05));
        } catch (\Throwable $error) {
            foreach ($noted as [$attempt]) {
                $attempt->sent = $attempt->known;
            }
            throw $error;
        }
        [$said, $nextMs, , $claims, $cancels, $foreign, $missing, $ticks] = $reply;
        if ($said === 'unknown') {
            $this->loseLease();
            return;
        }
        foreach ($noted as [$attempt, $version]) {
            $attempt->known = $version;
        }
        $more = $said === 'more';
        $this->full = $this->full && $inventory === null || $more;
        // The first call claims nothing, and one brings so many and no more.
        $this->rung = $this->rung || $this->register || $more || count($claims) >= self::MOST_CLAIMS || count($this->reports) > count($reports);
        [$this->call, $this->register, $this->deadline] = [$this->call + 1, false, $sent + $this->queue->lease * 0.9];
        array_splice($this->reports, 0, count($reports));
        if ($inventory !== null) {
            $this->told = $sent;
            foreach (array_intersect($foreign, $inventory) as $id) {
                if (isset($this->jobs[$id])) {
                    $this->disown($this->jobs[$id]);
                }
            }
        }
        $this->beat = $sent + min($this->queue->lease / 3, $nextMs >= 0 ? max($nextMs / 1000, 0.001) : INF);
        $this->handed($missing);
        $this->handed($claims);
        foreach ($cancels as $id) {
            $this->toldToCancel($id, '');
        }
        foreach (array_chunk($ticks, 2) as [$name, $text]) {
            $this->tick($name, $text);
        }
    }

    /** The notes that are to be told, at most once a second for a job: attempts and versions. */
    private function noted(float $now): array
    {
        $noted = [];
        foreach ($this->jobs as $attempt) {
            if ($attempt->written !== $attempt->sent && $now - $attempt->sentAt >= 1 && count($noted) < 100) {
                [$attempt->sent, $attempt->sentAt] = [$attempt->written, $now];
                $noted[] = [$attempt, $attempt->written];
            }
        }
        return $noted;
    }

    /** @return ?list<string> what it runs, and what is reported by the next call, or null if that is left open */
    private function inventory(int $reported, float $now): ?array
    {
        if (!$this->full && $this->failures === 0 && $reported > 0 && $now - $this->told <= $this->queue->lease / 3) {
            return null;
        }
        $ids = array_unique([...array_map(strval(...), array_keys($this->jobs)), ...array_column(array_slice($this->reports, $reported), 0)]);
        sort($ids, SORT_STRING);
        return $ids;
    }

    private function arguments(array $reports, array $noted, ?array $inventory): array
    {
        $info = json_encode(
            ['name' => $this->name, 'host' => gethostname(), 'pid' => getmypid(), 'lease_ms' => (int) (1000 * $this->queue->lease)],
            JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_UNICODE);
        $said = [...$reports, ...array_map(fn ($n) => $n[0]->note(), $noted)];
        $plain = array_filter($said, fn ($r) => $r[2] !== 'done' || $r[3] !== 0 || $r[4] !== '') === [];
        $kinds = Words::sorted(array_map(strval(...), array_keys($this->handlers)), 'kind');
        $arguments = [
            $this->id, $this->call + 1, $this->queue->seed(), (int) (1000 * $this->queue->lease), $this->state, Words::cost($this->room(), ':'),
            implode(',', $this->tags), implode(',', $kinds), $info, $this->state === 'online' ? self::MOST_CLAIMS : 0,
            $this->register ? 1 : 0, $inventory === null ? '-' : implode(',', $inventory), $plain ? 2 : 5,
        ];
        foreach ($said as $report) {
            array_push($arguments, ...($plain ? array_slice($report, 0, 2) : $report));
        }
        return $arguments;
    }

    /** What is others' by now, and runs still, takes room of which the server does not know. */
    private function room(): array
    {
        $room = $this->capacity;
        foreach ($this->running as $attempt) {
            if (!$attempt->disowned) {
                continue;
            }
            foreach (explode(',', $attempt->job->cost === '' ? 'slot=1' : $attempt->job->cost) as $part) {
                [$name, $n] = explode('=', $part);
                if (isset($room[$name])) {
                    $room[$name] = max($room[$name] - (int) $n, 0);
                }
            }
        }
        return $room;
    }

    // The lease.

    /** The jobs may be others' by now. The loop begins anew. */
    private function loseLease(): void
    {
        foreach ($this->jobs as $attempt) {
            $this->disown($attempt);
        }
        [$this->reports, $this->deadline, $this->expired] = [[], INF, true];
    }

    private function disown(Attempt $attempt): void
    {
        $attempt->disowned = true;
        unset($this->jobs[$attempt->job->id]);
        $attempt->stop(new LeaseLost("job {$attempt->job->id}: the worker was not heard in time: others may run it now"));
    }

    // Jobs.

    /** @param list<string> $claims */
    private function handed(array $claims): void
    {
        foreach ($claims as $claim) {
            try {
                [$id, $token, $record] = explode("\t", $claim, 3) + [1 => '', 2 => ''];
                $job = new Job($id, $token, $record);
            } catch (\ValueError) {
                continue; // somebody else wrote it
            }
            if (isset($this->seen["t$token"])) {
                continue;
            }
            $this->seen["t$token"] = true;
            if (count($this->seen) > 20_000) {
                $this->seen = array_slice($this->seen, 10_000);
            }
            if (!isset($this->handlers[$job->kind]) || $this->state !== 'online') {
                $this->report($job, ['back', 0, '']);
                continue;
            }
            [$handler, $backoff] = $this->handlers[$job->kind];
            try {
                $job->open();
                $attempt = $this->fork($job, $handler, $backoff);
                $this->jobs[$id] = $this->running["t$token"] = $attempt;
            } catch (Fail | Retry $error) {
                $this->report($job, $job->outcome($backoff, '', $error));
            }
        }
    }

    private function fork(Job $job, callable $handler, \Closure $backoff): Attempt
    {
        [$mine, $its] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        pcntl_sigprocmask(SIG_BLOCK, [SIGUSR1], $before); // until the child knows what it means
        $pid = pcntl_fork();
        if ($pid === 0) {
            posix_setpgid(0, $this->guard[0]);
            fclose($mine);
            fclose($this->guard[1]);
            try {
                (new Child($job, $its))->run($handler, $backoff);
            } finally { // a signal may come where nothing catches it
                posix_kill((int) getmypid(), SIGKILL);
            }
        }
        pcntl_sigprocmask(SIG_SETMASK, $before);
        fclose($its);
        if ($pid === -1) {
            fclose($mine);
            throw new Retry('no process could be started: ' . pcntl_strerror(pcntl_get_last_error()), $backoff($job->attempt));
        }
        return new Attempt($job, $pid, $mine, $backoff);
    }

    private function finished(string $token, Attempt $attempt, array $end): void
    {
        unset($this->running[$token]);
        if (($this->jobs[$attempt->job->id] ?? null) === $attempt) {
            unset($this->jobs[$attempt->job->id]);
        }
        if (!$attempt->disowned) {
            if ($attempt->written !== $attempt->known) {
                $this->reports[] = $attempt->note();
            }
            $this->report($attempt->job, $end);
        }
        $this->rung = true;
    }

    /** @param array{string, int, string} $end */
    private function report(Job $job, array $end): void
    {
        $this->reports[] = [$job->id, $job->wireToken, ...$end];
        $this->rung = true;
    }

    /** A schedule's tick has come. If this fails, another worker is asked after five seconds. */
    private function tick(string $name, string $text): void
    {
        try {
            $now = (int) (1000 * microtime(true));
            $this->queue->ask('enqueue', Schedule::enqueueArguments($name, $text, $this->queue->seed(), $now));
        } catch (Refusal | NoAnswer | SignalboxException | \JsonException | \TypeError $error) {
            trigger_error("schedule $name of queue {$this->queue->name}: " . $error->getMessage(), E_USER_WARNING);
        }
    }

    private static function doubling(int $attempt): float
    {
        $pause = min(2.0 ** min($attempt - 1, 12), 3600.0);
        return $pause / 2 + mt_rand() / mt_getrandmax() * $pause / 2;
    }
}
