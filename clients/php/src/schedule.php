<?php

/**
 * Ticks of schedules. The server knows no calendars: when a tick has come, the worker that calls next is told, makes the job and
 * sets the tick after it, in one transition that nobody can make a second time. Schedules are set by Go programs and by the
 * signalbox program; what they say is read here as there.
 */

declare(strict_types=1);

namespace Signalbox;

/** @internal */
final class Schedule
{
    private const MOST_MISSED = 100;
    private const NAMED = [
        '@yearly' => '0 0 1 1 *', '@annually' => '0 0 1 1 *', '@monthly' => '0 0 1 * *', '@weekly' => '0 0 * * 0',
        '@daily' => '0 0 * * *', '@midnight' => '0 0 * * *', '@hourly' => '0 * * * *',
    ];
    private const UNITS = ['h' => 3600e3, 'm' => 60e3, 's' => 1e3, 'ms' => 1.0, 'us' => 1e-3, 'µs' => 1e-3, 'ns' => 1e-6];
    private const MONTHS = [1 => 'jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
    private const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

    /**
     * The numbers of a field of cron, and whether it is a star.
     *
     * @param array<int, string> $names
     * @return array{array<int, true>, bool}
     */
    private static function field(string $text, int $low, int $high, array $names = []): array
    {
        [$found, $star] = [[], false];
        $number = fn (string $word): int => ctype_digit($word) ? (int) $word : (($at = array_search($word, $names, true)) === false ? -1 : $at);
        foreach (explode(',', strtolower($text)) as $part) {
            [$span, $step] = explode('/', $part, 2) + [1 => null];
            [$first, $last] = explode('-', $span, 2) + [1 => null];
            [$a, $b] = [$number($first), $last !== null ? $number($last) : ($step !== null ? $high : $number($first))];
            if ($first === '*' || $first === '?') {
                [$a, $b, $star] = [$low, $high, $star || $step === null || $step === '1'];
            }
            $n = $step === null ? 1 : $number($step);
            if ($n < 1 || $a < $low || $b < $a || $b > $high) {
                throw new \ValueError("\"$part\" is not between $low and $high");
            }
            for ($i = $a; $i <= $b; $i += $n) {
                $found[$i] = true;
            }
        }
        return [$found, $star];
    }

    /** The first tick behind a time, both in ms since 1970. */
    public static function nextTick(string $spec, string $zone, int $afterMs): int
    {
        try {
            if (str_starts_with($spec, '@every ')) {
                preg_match_all('/([0-9.]+)(ms|us|µs|ns|h|m|s)/', substr($spec, 7), $parts);
                $every = (int) round(array_sum(array_map(fn ($n, $unit) => (float) $n * self::UNITS[$unit], $parts[1], $parts[2])));
                if ($every < 1000 || implode('', $parts[0]) !== substr($spec, 7)) {
                    throw new \ValueError('it is at least a second');
                }
                return (intdiv($afterMs, $every) + 1) * $every;
            }
            return self::cron(self::NAMED[$spec] ?? $spec, new \DateTimeZone($zone === '' ? 'UTC' : $zone), $afterMs);
        } catch (\Exception | \ValueError $error) {
            throw new Invalid("schedule \"$spec\" in zone \"$zone\": " . $error->getMessage(), 0, $error);
        }
    }

    private static function cron(string $spec, \DateTimeZone $zone, int $afterMs): int
    {
        $words = preg_split('/\s+/', $spec);
        if (count($words) !== 5) {
            throw new \ValueError('it has five fields');
        }
        [$minutes] = self::field($words[0], 0, 59);
        [$hours, $everyHour] = self::field($words[1], 0, 23);
        [$days, $anyDay] = self::field($words[2], 1, 31);
        [$months] = self::field($words[3], 1, 12, self::MONTHS);
        [$weekdays, $anyWeekday] = self::field($words[4], 0, 6, self::DAYS);
        $after = intdiv($afterMs, 1000);
        $offset = fn (int $at): int => $zone->getOffset(new \DateTimeImmutable("@$at"));
        $local = $after + $offset($after);
        for ($day = $local - $local % 86400, $n = 0; $n < 366 * 5; $n++, $day += 86400) {
            [$inMonth, $inWeek] = [isset($days[(int) gmdate('j', $day)]), isset($weekdays[(int) gmdate('w', $day)])];
            // With both given, one is enough.
            $fits = $anyDay || $anyWeekday ? $inMonth && $inWeek : $inMonth || $inWeek;
            if (!$fits || !isset($months[(int) gmdate('n', $day)])) {
                continue;
            }
            // Clocks are changed at most once in these days: an hour may be left out, or come twice.
            $around = array_unique([$offset($day - 86400), $offset($day + 2 * 86400)]);
            $first = PHP_INT_MAX;
            foreach ($hours as $hour => $_) {
                foreach ($minutes as $minute => $_) {
                    $times = [];
                    foreach ($around as $ahead) {
                        $at = $day + 3600 * $hour + 60 * $minute - $ahead;
                        if ($offset($at) === $ahead) {
                            $times[] = $at;
                        }
                    }
                    sort($times);
                    foreach ($everyHour ? $times : array_slice($times, 0, 1) as $at) {
                        if (1000 * $at > $afterMs) {
                            $first = min($first, $at);
                        }
                    }
                }
            }
            if ($first < PHP_INT_MAX) {
                return 1000 * $first;
            }
        }
        throw new \ValueError('it never comes');
    }

    /** The arguments of signalbox_queue_enqueue for a tick. */
    public static function enqueueArguments(string $name, string $text, string $seed, int $nowMs): array
    {
        [$tick, $json] = explode("\n", $text, 2);
        $schedule = json_decode($json, true, 64, JSON_THROW_ON_ERROR);
        $due = [(int) $tick];
        while (($following = self::nextTick($schedule['spec'], $schedule['zone'] ?? '', $due[count($due) - 1])) <= $nowMs) {
            $due = array_slice([...$due, $following], -self::MOST_MISSED);
        }
        if ($schedule['missed'] !== 'each') {
            $due = array_slice($due, -1);
        }
        if ($schedule['missed'] === 'skip' && $nowMs - $due[0] > 60_000) {
            $due = [];
        }
        $item = $schedule['item'];
        $terms = [
            (string) ($item['Priority'] ?? 0), (string) intdiv($item['Retention'] ?? 0, 1_000_000), $item['UniqueIn'] ?? '', $item['UniqueField'] ?? '',
        ];
        $plain = $terms === ['0', '0', '', ''];
        $lane = $item['Lane'];
        $lane = implode("\t", [$lane['Kind'], implode(',', $lane['Tags'] ?? []), $lane['Cost'] ?? '', $lane['Key'] ?? '']);
        $words = [0, $seed, $name, (int) $tick, $following, $plain ? '1' : '0'];
        foreach ($due as $at) {
            array_push($words, "$name@$at", $lane, $plain ? '' : implode("\t", ['0', ...$terms, '']), "\n" . $item['Rest']);
        }
        return $words;
    }
}
