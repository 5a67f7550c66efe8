<?php

declare(strict_types=1);

namespace Tests;

use Signalbox\{Invalid, Schedule, Words};
use Site;

use function same;
use function throws;

function calendars(Site $site): void
{
    $ticks = function (string $spec, string $zone, string $after, int $n = 3): array {
        [$ms, $found] = [1000 * strtotime($after), []];
        while (count($found) < $n) {
            $ms = Schedule::nextTick($spec, $zone, $ms);
            $found[] = gmdate('m-d H:i', intdiv($ms, 1000));
        }
        return $found;
    };
    same(['01-05 09:00', '01-05 09:20', '01-05 09:40'], $ticks('*/20 9-10 * * mon', '', '2026-01-01T00:00Z'));
    same(['01-02 00:00', '01-09 00:00', '01-13 00:00'], $ticks('0 0 13 * fri', '', '2026-01-01T00:00Z'));
    // The clocks of Berlin leave out 02:30 on March 29, and repeat it on October 25.
    same(['03-30 00:30', '03-31 00:30'], $ticks('30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', 2));
    same(['10-25 00:30', '10-26 01:30'], $ticks('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', 2));
    same(['10-25 00:30', '10-25 01:30', '10-25 02:30'], $ticks('30 * * * *', 'Europe/Berlin', '2026-10-25T00:00Z'));
    same(['01-01 00:01', '01-01 00:03'], $ticks('@every 1m30s', '', '2026-01-01T00:00Z', 2));
    foreach (['@every 1ms', '61 * * * *', '* * *', '0 0 30 2 *'] as $bad) {
        throws(Invalid::class, fn () => Schedule::nextTick($bad, '', 0));
    }
    throws(Invalid::class, fn () => Schedule::nextTick('* * * * *', 'Nowhere', 0));
}

function messages(Site $site): void
{
    same(['wake', 'p/ü', ''], Words::ofMessage('4:wake4:p/ü0:'));
    same([], Words::ofMessage('9:x'));
    same([], Words::ofMessage('x'));
}
