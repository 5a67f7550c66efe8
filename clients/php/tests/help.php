<?php

declare(strict_types=1);

/** A test's place of work: a name of its own, a file that processes write to, and what has to be ended. */
final class Site
{
    public readonly string $url;
    public readonly string $name;
    private readonly Signalbox\Connection $server;
    private readonly string $log;
    /** @var list<int> */
    private array $processes = [];
    private readonly int $pid;

    public function __construct(string $test)
    {
        $this->url = getenv('SIGNALBOX_URL') ?: 'redis://localhost:6379';
        $this->pid = (int) getmypid();
        $this->name = "$test:$this->pid }%7D{größe}";
        $this->server = new Signalbox\Connection($this->url);
        $this->log = (string) tempnam(sys_get_temp_dir(), 'signalbox');
    }

    public function fcall(string $function, array $keys, mixed ...$arguments): mixed
    {
        return $this->server->fcall($function, $keys, $arguments);
    }

    /** Permits held, leases and waiters of the resource. */
    public function left(): array
    {
        return array_slice($this->fcall('signalbox_inspect', Signalbox\Acquisition::keysOf($this->name), 10), 4, 3);
    }

    public function queueKeys(): array
    {
        return array_map(
            fn ($word) => 'signalbox:queue:{' . Signalbox\Wire::encode($this->name) . "}:$word", $this->fcall('signalbox_queue_keys', []));
    }

    /** How many jobs have not ended. */
    public function jobs(): int
    {
        return $this->fcall('signalbox_queue_stats', $this->queueKeys())[1];
    }

    /** Runs something in another process, which is ended when the test is over. Returns its id. */
    public function apart(callable $do): int
    {
        $pid = pcntl_fork();
        if ($pid === 0) {
            $this->server->abandon();
            pcntl_async_signals(true);
            try {
                $do();
            } catch (Throwable $error) {
                fwrite(STDERR, "in another process: $error\n");
            }
            posix_kill((int) getmypid(), SIGKILL);
        }
        $this->processes[] = $pid;
        return $pid;
    }

    /** Runs a worker in another process. SIGTERM stops it. */
    public function work(array $handlers, ?string $url = null, float $lease = 30.0, mixed ...$options): int
    {
        return $this->apart(function () use ($handlers, $url, $lease, $options): void {
            $worker = (new Signalbox\Queue($url ?? $this->url, $this->name, $lease))->worker('test', ...$options);
            foreach ($handlers as $kind => $handler) {
                $worker->handle($kind, $handler, backoff: fn ($attempt) => 0.01);
            }
            pcntl_signal(SIGTERM, fn () => $worker->stop());
            $worker->run();
        });
    }

    public function ends(int $pid): void
    {
        $this->eventually(fn () => pcntl_waitpid($pid, $status, WNOHANG) === $pid, 'a process ends');
        $this->processes = array_diff($this->processes, [$pid]);
    }

    /** Has a line written, by any process. */
    public function note(string $line): void
    {
        file_put_contents($this->log, "$line\n", FILE_APPEND | LOCK_EX);
    }

    public function notes(): array
    {
        return file($this->log, FILE_IGNORE_NEW_LINES) ?: [];
    }

    public function eventually(callable $holds, string $what): void
    {
        for ($until = hrtime(true) + 60e9; !$holds(); usleep(10_000)) {
            if (hrtime(true) > $until) {
                throw new Exception("never: $what");
            }
        }
    }

    public function clean(): void
    {
        foreach ($this->processes as $pid) {
            posix_kill($pid, SIGKILL);
            pcntl_waitpid($pid, $status);
        }
        @unlink($this->log);
        $this->server->close();
    }
}

/** Stands between a client and the server. While it is cut, no answer comes through, and no new connection. */
final class Proxy
{
    public readonly string $url;
    /** @var resource */
    private $listener;
    /** @var resource */
    private $control;

    public function __construct(Site $site)
    {
        $this->listener = stream_socket_server('tcp://127.0.0.1:0');
        $this->url = 'redis://' . stream_socket_get_name($this->listener, false);
        [$this->control, $its] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $site->apart(fn () => $this->run($its, str_replace('redis://', 'tcp://', $site->url)));
        fclose($this->listener);
        fclose($its);
    }

    /** Cuts it, or not, and returns when that is so. */
    public function cut(bool $cut): void
    {
        fwrite($this->control, $cut ? 'c' : 'u');
        fread($this->control, 1);
    }

    private function run($control, string $target): void
    {
        [$cut, $peers, $streams, $answers] = [false, [], [], []];
        while (true) {
            $read = [$control, $this->listener, ...$streams];
            [$write, $except] = [null, null];
            stream_select($read, $write, $except, 1);
            foreach ($read as $stream) {
                if ($stream === $control) {
                    $cut = fread($control, 1) === 'c';
                    fwrite($control, '.');
                } elseif ($stream === $this->listener) {
                    $client = stream_socket_accept($this->listener);
                    if ($cut) {
                        fclose($client);
                        continue;
                    }
                    $server = stream_socket_client($target);
                    [$peers[(int) $client], $peers[(int) $server]] = [$server, $client];
                    [$streams[(int) $client], $streams[(int) $server], $answers[(int) $server]] = [$client, $server, true];
                } elseif (isset($streams[(int) $stream])) {
                    $data = fread($stream, 1 << 16);
                    $peer = $peers[(int) $stream];
                    if ($data !== '' && $data !== false && !($cut && isset($answers[(int) $stream]))) {
                        fwrite($peer, $data);
                        continue;
                    }
                    foreach ([$stream, $peer] as $ended) {
                        unset($streams[(int) $ended], $peers[(int) $ended], $answers[(int) $ended]);
                        fclose($ended);
                    }
                }
            }
        }
    }
}

function same(mixed $want, mixed $got): void
{
    if ($want !== $got) {
        throw new Exception('want ' . var_export($want, true) . ', got ' . var_export($got, true));
    }
}

function holds(bool $holds, string $what): void
{
    if (!$holds) {
        throw new Exception("it does not hold: $what");
    }
}

/** @return Throwable what was thrown */
function throws(string $class, callable $do, string $message = ''): Throwable
{
    try {
        $do();
    } catch (Throwable $error) {
        holds($error instanceof $class && str_contains($error->getMessage(), $message), "$error is a $class that says '$message'");
        return $error;
    }
    throw new Exception("nothing was thrown, and not $class");
}
