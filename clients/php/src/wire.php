<?php

/**
 * The way to the server: names, clocks, which errors pass, a connection, and the inbox. Locks and queues both stand on it.
 *
 * PHP waits for one thing at a time, and a client has to wait for a message, an answer, a process and a date, whichever comes
 * first. php-redis has no subscription that can be waited for beside anything else, so the few lines of Redis's protocol that
 * a client needs are here, on streams, and the package needs no extension for them.
 */

declare(strict_types=1);

namespace Signalbox;

/** What the server said no to. @internal */
final class Refusal extends \RuntimeException
{
}

/** There is no answer: the request was sent, and may have run, or was not. @internal */
final class NoAnswer extends \RuntimeException
{
    public function __construct(string $message, public readonly bool $sent)
    {
        parent::__construct($message);
    }
}

/** @internal */
final class Wire
{
    /** Seconds for which a server may take to answer. A request that takes longer is repeated. */
    public const ANSWER_WITHIN = 3.0;
    /** The longest wait until the next look at the clock, and at what a signal may have changed. */
    public const LONGEST_NAP = 1.0;

    private static float $slept = 0.0;
    private static ?float $awake = null;

    /** Seconds by a clock that nobody sets, and that knows of the computer's sleep as of the last look. */
    public static function clock(): float
    {
        return hrtime(true) / 1e9 + self::$slept;
    }

    /** Looks whether the computer slept, while its server and other clients may not have, and returns the time. */
    public static function look(): float
    {
        $monotonic = hrtime(true) / 1e9;
        $text = PHP_OS_FAMILY === 'Linux' ? @file_get_contents('/proc/uptime') : false;
        if ($text !== false) {
            $ahead = (float) $text - $monotonic;
            self::$awake ??= $ahead;
            if ($ahead - self::$awake - self::$slept > 0.05) { // it has steps of 10 ms
                self::$slept = $ahead - self::$awake;
            }
        }
        return $monotonic + self::$slept;
    }

    public static function encode(string $name): string
    {
        return strtr($name, ['%' => '%25', '}' => '%7D']);
    }

    /** Whether it is worth trying again. */
    public static function passes(\Throwable $error): bool
    {
        return $error instanceof NoAnswer || $error instanceof Refusal && preg_match(
            '/^(LOADING|BUSY|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|OOM|NOREPLICAS|UNKILLABLE)\b/', $error->getMessage()) === 1;
    }

    /** The error of this package that says what has happened. */
    public static function explained(string $what, \Throwable $error): \Throwable
    {
        $text = $error->getMessage();
        if (!$error instanceof Refusal && !$error instanceof NoAnswer) {
            return $error;
        }
        if (str_contains($text, 'Function not found')) {
            return new UnsupportedServer(
                "$what: the server lacks the functions: run signalbox functions install --url … ($text)", 0, $error);
        }
        if (str_starts_with($text, 'WIRE ')) {
            return new UnsupportedServer("$what: " . substr($text, 5), 0, $error);
        }
        return self::passes($error) ? new Unavailable("$what: $text", 0, $error) : new ServerError("$what: $text", 0, $error);
    }

    /** How long to wait after so many failures in a row of what matters for a span of time. */
    public static function pause(int $failures, float $span): float
    {
        return $span / 60 * (1 + mt_rand() / mt_getrandmax()) * 2 ** min(max($failures - 1, 0), 4);
    }

    public static function sleep(float $seconds): void
    {
        if ($seconds > 0) {
            usleep((int) ceil($seconds * 1e6));
        }
    }

    /**
     * Waits until one of the streams has something to read, for so long at most. Returns the keys of those that have. A signal
     * ends it early.
     *
     * @param array<array-key, resource> $streams
     * @return list<array-key>
     */
    public static function select(array $streams, float $seconds): array
    {
        $seconds = min(max($seconds, 0.0), self::LONGEST_NAP);
        if ($streams === []) {
            self::sleep($seconds);
            return [];
        }
        [$write, $except] = [null, null];
        $found = @stream_select($streams, $write, $except, 0, (int) ceil($seconds * 1e6));
        return $found ? array_keys($streams) : [];
    }
}

/** A connection, which is made when it is used. Nothing is repeated here: whoever calls knows what a repetition means. @internal */
final class Connection
{
    /** @var resource|null */
    private $stream = null;
    private string $read = '';
    private readonly string $address;
    /** @var list<list<string>> */
    private array $greeting = [];
    /** @var list<resource> of a process that was forked: closing one would say goodbye for the other */
    private static array $abandoned = [];

    public function __construct(private readonly string $url)
    {
        $parts = parse_url($url);
        $scheme = is_array($parts) ? $parts['scheme'] ?? '' : '';
        if (str_starts_with($url, 'unix://')) { // parse_url knows no unix:///path
            $parts = parse_url('redis://localhost' . substr($url, 7)) ?: [];
            parse_str($parts['query'] ?? '', $query);
            [$this->address, $db] = ['unix://' . ($parts['path'] ?? ''), (string) ($query['db'] ?? '')];
        } elseif ($scheme === 'redis' || $scheme === 'rediss') {
            $this->address = ($scheme === 'redis' ? 'tcp' : 'tls') . '://' . ($parts['host'] ?? 'localhost') . ':' . ($parts['port'] ?? 6379);
            $db = trim($parts['path'] ?? '', '/');
        } else {
            throw new Invalid("the server $url: its URL begins with redis://, rediss:// or unix://");
        }
        if (($parts['pass'] ?? '') !== '') {
            $user = rawurldecode($parts['user'] ?? '');
            $this->greeting[] = ['AUTH', ...($user === '' ? [] : [$user]), rawurldecode($parts['pass'])];
        }
        if ($db !== '' && $db !== '0') {
            $this->greeting[] = ['SELECT', $db];
        }
    }

    /** @return resource|null to wait for */
    public function stream()
    {
        return $this->stream;
    }

    /** @param list<string|int> $arguments */
    public function fcall(string $function, array $keys, array $arguments, float $within = Wire::ANSWER_WITHIN): mixed
    {
        return $this->call(['FCALL', $function, count($keys), ...$keys, ...$arguments], $within);
    }

    /** @param list<string|int> $words */
    public function call(array $words, float $within = Wire::ANSWER_WITHIN): mixed
    {
        $until = Wire::clock() + $within;
        $this->open($until);
        return $this->exchange($words, $until);
    }

    private function open(float $until): void
    {
        if ($this->stream !== null) {
            return;
        }
        $context = stream_context_create(['socket' => ['tcp_nodelay' => true]]);
        $stream = @stream_socket_client(
            $this->address, $number, $error, max($until - Wire::clock(), 0.001), STREAM_CLIENT_CONNECT, $context);
        if ($stream === false) {
            throw new NoAnswer("connecting to $this->address: " . ($error !== '' ? $error : error_get_last()['message'] ?? 'failed'), false);
        }
        stream_set_blocking($stream, false);
        [$this->stream, $this->read] = [$stream, ''];
        foreach ($this->greeting as $words) {
            try {
                $this->exchange($words, $until);
            } catch (NoAnswer $error) {
                throw new NoAnswer($error->getMessage(), false); // what matters was not sent
            } catch (Refusal $error) {
                $this->close();
                throw $error;
            }
        }
    }

    private function exchange(array $words, float $until): mixed
    {
        // Whatever ends it early, an exception in a handler of signals too: an answer without a question would be the next one's.
        $whole = false;
        try {
            $this->write($words, $until);
            while (($reply = $this->parse()) === null) {
                if (!$this->fill($until)) {
                    throw new NoAnswer("$this->address did not answer in time", true);
                }
            }
            $whole = true;
        } finally {
            if (!$whole) {
                $this->close();
            }
        }
        if ($reply[0] instanceof Refusal) {
            throw $reply[0];
        }
        return $reply[0];
    }

    private function write(array $words, float $until): void
    {
        $text = '*' . count($words) . "\r\n";
        foreach ($words as $word) {
            $word = (string) $word;
            $text .= '$' . strlen($word) . "\r\n$word\r\n";
        }
        while ($text !== '') {
            $n = @fwrite($this->stream, $text);
            if ($n === false || $n === 0 && feof($this->stream)) {
                throw new NoAnswer("$this->address has closed the connection", true);
            }
            $text = substr($text, $n);
            if ($text === '') {
                return;
            }
            if (Wire::clock() > $until) {
                throw new NoAnswer("$this->address takes nothing", true);
            }
            [$read, $writable, $except] = [null, [$this->stream], null];
            @stream_select($read, $writable, $except, 0, 100_000);
        }
    }

    /** Reads something more. Returns false if nothing has come by then. */
    private function fill(float $until): bool
    {
        while (true) {
            // Reading first: what TLS has read already, nothing waits for.
            $data = @fread($this->stream, 1 << 16);
            if ($data !== false && $data !== '') {
                $this->read .= $data;
                return true;
            }
            if ($data === false || feof($this->stream)) {
                throw new NoAnswer("$this->address has closed the connection", true);
            }
            $left = $until - Wire::clock();
            if ($left <= 0) {
                return false;
            }
            Wire::select([$this->stream], $left);
        }
    }

    /** Sends what is answered by a message. Whether it was sent, the answer says. */
    public function send(array $words): void
    {
        try {
            $this->write($words, Wire::clock() + Wire::ANSWER_WITHIN);
        } catch (NoAnswer) {
            $this->close();
        }
    }

    /** The next message that has come unasked, or null. */
    public function next(): ?array
    {
        try {
            while (($reply = $this->parse()) === null) {
                if (!$this->fill(0)) {
                    return null;
                }
            }
        } catch (NoAnswer $error) {
            $this->close();
            throw $error;
        }
        return is_array($reply[0]) ? $reply[0] : [];
    }

    /** A reply in a list, or null if it is not all there. */
    private function parse(): ?array
    {
        $at = 0;
        $reply = $this->read === '' ? null : $this->parseAt($at);
        if ($reply !== null) {
            $this->read = substr($this->read, $at);
        }
        return $reply;
    }

    private function parseAt(int &$at): ?array
    {
        $end = strpos($this->read, "\r\n", $at);
        if ($end === false) {
            return null;
        }
        [$type, $line] = [$this->read[$at], substr($this->read, $at + 1, $end - $at - 1)];
        $at = $end + 2;
        switch ($type) {
            case '+':
                return [$line];
            case '-':
                return [new Refusal($line)];
            case ':':
                return [(int) $line];
            case '$':
                if ($line === '-1') {
                    return [null];
                }
                $length = (int) $line;
                if (strlen($this->read) < $at + $length + 2) {
                    return null;
                }
                $text = substr($this->read, $at, $length);
                $at += $length + 2;
                return [$text];
            case '*':
                $list = [];
                for ($n = (int) $line; $n > 0; $n--) {
                    $item = $this->parseAt($at);
                    if ($item === null) {
                        return null;
                    }
                    $list[] = $item[0];
                }
                return [$list];
            default:
                throw new NoAnswer("$this->address does not speak Redis's protocol", true);
        }
    }

    public function close(): void
    {
        if ($this->stream !== null) {
            fclose($this->stream);
        }
        [$this->stream, $this->read] = [null, ''];
    }

    /** In a process that was forked: the connection is its parent's. */
    public function abandon(): void
    {
        if ($this->stream !== null) {
            self::$abandoned[] = $this->stream;
        }
        [$this->stream, $this->read] = [null, ''];
    }
}

/** One subscription for a process. Messages are hints: whenever it is opened (again), some may have gone by. @internal */
final class Inbox
{
    private readonly Connection $connection;
    private const PING_EVERY = 10.0;

    private int $failures = 0;
    private float $again = 0.0;
    private float $heard = 0.0;
    private bool $pinged = false;

    public function __construct(string $url, private readonly string $channel)
    {
        $this->connection = new Connection($url);
    }

    /** Opens it, if it is not, and it is time to try. Returns whether it was opened: whoever waits asks once then. */
    public function open(float $within = Wire::ANSWER_WITHIN): bool
    {
        $this->ping();
        if ($this->connection->stream() !== null || Wire::clock() < $this->again) {
            return false;
        }
        try {
            $this->connection->call(['SUBSCRIBE', $this->channel], $within);
            [$this->failures, $this->heard, $this->pinged] = [0, Wire::clock(), false];
            return true;
        } catch (NoAnswer | Refusal) {
            // Until it is open again, heartbeats do its work, and say what is wrong.
            $this->again = Wire::clock() + Wire::pause(++$this->failures, 3);
            $this->connection->close();
            return false;
        }
    }

    /** Asks a connection on which nothing has come for long whether it still is one. */
    private function ping(): void
    {
        $silent = Wire::clock() - $this->heard;
        if ($this->connection->stream() === null || $silent < self::PING_EVERY) {
            return;
        }
        if ($this->pinged && $silent >= self::PING_EVERY + Wire::ANSWER_WITHIN) {
            $this->connection->close();
        } elseif (!$this->pinged) {
            $this->pinged = true;
            $this->connection->send(['PING']);
        }
    }

    /** @return resource|null to wait for */
    public function stream()
    {
        return $this->connection->stream();
    }

    /** @return list<string> what has come */
    public function messages(): array
    {
        $found = [];
        try {
            while ($this->connection->stream() !== null && ($message = $this->connection->next()) !== null) {
                [$this->heard, $this->pinged] = [Wire::clock(), false];
                if (($message[0] ?? '') === 'message') {
                    $found[] = (string) $message[2];
                }
            }
        } catch (NoAnswer) {
            $this->again = Wire::clock() + Wire::pause(++$this->failures, 3);
        }
        return $found;
    }

    public function close(): void
    {
        $this->connection->close();
    }

    public function abandon(): void
    {
        $this->connection->abandon();
    }
}
