<?php

declare(strict_types=1);

namespace Tests;

use Signalbox\{Canceled, Closed, Dead, Fail, Invalid, Job, LeaseLost, ParentFailed, Queue, Request, Retry, SignalboxException, Snooze, Timeout, UnknownJob};
use Site;
use Proxy;

use function holds;
use function same;
use function throws;

function results_come_back(Site $site): void
{
    $site->work(['echo' => fn (Job $job) => $job->args]);
    $queue = new Queue($site->url, $site->name);
    foreach ([null, 0, '', [1, "ü\n\t", ['a' => null]], 1.5] as $value) {
        same($value, $queue->enqueue('echo', $value)->result(60));
    }
}

function how_jobs_end(Site $site): void
{
    $site->work([
        'fail' => fn () => throw new Fail('never'),
        'flaky' => fn (Job $job) => $job->attempt < 3 ? throw new \DomainException('not yet') : $job->attempt,
        'again' => fn (Job $job) => $job->attempt < 2 ? throw new Retry('busy', 0.01) : $job->attempt,
        'snooze' => fn (Job $job) => microtime(true) < $job->args ? throw new Snooze(0.1) : $job->attempt,
        'odd' => fn () => NAN,
        'stay' => fn () => sleep(60),
        'exit' => function (): never {
            exit(1);
        },
        'killed' => fn () => posix_kill(getmypid(), SIGKILL),
        'hungry' => function (): void {
            ini_set('memory_limit', '32M');
            str_repeat('x', 1 << 28);
        },
    ], slots: 4);
    $queue = new Queue($site->url, $site->name);
    $end = fn (string $kind, mixed ...$terms) => $queue->enqueue($kind, microtime(true) + 0.2, ...$terms)->result(60);
    same('never', throws(Dead::class, fn () => $end('fail'))->reason);
    same(3, $end('flaky'));
    same('DomainException: not yet', throws(Dead::class, fn () => $end('flaky', attempts: 2))->reason);
    same(2, $end('again'));
    throws(Dead::class, fn () => $end('stay', timeout: 0.1, attempts: 1), 'timed out');
    throws(Dead::class, fn () => $end('odd'), 'does not encode');
    throws(Dead::class, fn () => $end('exit', attempts: 1), 'has ended its process');
    throws(Dead::class, fn () => $end('killed', attempts: 1), 'was killed');
    throws(Dead::class, fn () => $end('hungry', attempts: 1), 'memory');
    same(1, $end('snooze'));
    $job = $queue->enqueue('stay');
    $site->eventually(fn () => $queue->cancel($job->id, 'enough') === 'told', 'it runs');
    throws(Canceled::class, fn () => $job->result(60), 'enough');
    throws(UnknownJob::class, fn () => $queue->job('nobody')->result(60));
}

function terms(Site $site): void
{
    $queue = new Queue($site->url, $site->name);
    [$first, $again] = [$queue->enqueue('echo', 1, id: 'mine'), $queue->enqueue('echo', 2, id: 'mine')];
    same([false, true, 'mine'], [$first->duplicate, $again->duplicate, $again->id]);
    $one = $queue->enqueue('echo', 1, unique: 'u', while: Queue::ALIVE);
    same($one->id, $queue->enqueue('echo', 2, unique: 'u', while: Queue::ALIVE)->id);
    $later = $queue->enqueue('order', 'later', delay: 3600);
    $child = $queue->enqueue('order', 'child', after: [$later->id]);
    $low = $queue->enqueue('order', 'low', priority: -5);
    $high = $queue->enqueue('order', 'high', priority: 5);
    $site->work(['order' => fn (Job $job) => $site->note($job->args), 'fail' => fn () => throw new Fail('never')]);
    foreach ([$low, $high] as $job) {
        $job->result(60);
    }
    same(['high', 'low'], $site->notes());
    same('ok', $queue->retry($later->id));
    foreach ([$later, $child] as $job) {
        $job->result(60);
    }
    same(['later', 'child'], array_slice($site->notes(), 2));
    $failed = $queue->enqueue('fail');
    throws(Dead::class, fn () => $failed->result(60));
    throws(ParentFailed::class, fn () => $queue->enqueue('order', 'orphan', after: [$failed->id]));
    throws(Invalid::class, fn () => new Request('a,b'));
    throws(Invalid::class, fn () => new Request('x', attempts: 0));
    throws(Invalid::class, fn () => new Request('x', NAN));
    throws(Invalid::class, fn () => new Request('x', id: 'a', unique: 'b'));
}

function capacities_and_tags(Site $site): void
{
    $queue = new Queue($site->url, $site->name);
    $site->work(['call' => function () use ($site): void {
        $site->note('+');
        usleep(20_000);
        $site->note('-');
    }], capacity: ['call' => 2], tags: ['de']);
    $jobs = $queue->enqueueMany(array_map(fn () => new Request('call', cost: ['call' => 1], tags: ['de']), range(1, 10)));
    $foreign = $queue->enqueue('call', cost: ['call' => 1], tags: ['fr']);
    foreach ($jobs as $job) {
        $job->result(60);
    }
    [$running, $most] = [0, 0];
    foreach ($site->notes() as $note) {
        $running += $note === '+' ? 1 : -1;
        $most = max($most, $running);
    }
    same([0, 20], [$running, count($site->notes())]);
    holds($most <= 2, "at most two at once, not $most");
    throws(Timeout::class, fn () => $foreign->result(0.1));
}

function many_jobs_from_many_processes_run_once(Site $site): void
{
    $site->work(['note' => fn (Job $job) => $site->note((string) $job->args)], slots: 2);
    $queue = new Queue($site->url, $site->name);
    $queue->enqueue('note', 0); // a producer that is forked is another one
    foreach ([1, 2] as $n) {
        $site->apart(function () use ($queue, $n): void {
            for ($i = 0; $i < 20; $i++) {
                $queue->enqueue('note', 2 * $i + $n);
            }
        });
    }
    $site->eventually(fn () => count($site->notes()) >= 41, 'all run');
    $ran = array_map(intval(...), $site->notes());
    sort($ran);
    same(range(0, 40), $ran);
}

function lost_replies_do_nothing_twice(Site $site): void
{
    $proxy = new Proxy($site);
    $queue = new Queue($proxy->url, $site->name, lease: 5);
    $queue->enqueue('note', 'first', retain: 0);
    $proxy->cut(true);
    $site->apart(function () use ($site, $proxy): void {
        $site->eventually(fn () => $site->jobs() === 2, 'it has arrived');
        $proxy->cut(false);
    });
    holds(!$queue->enqueue('note', 'second', retain: 0)->duplicate, 'it is new');
    $site->work(['note' => fn (Job $job) => $site->note($job->args)], $proxy->url);
    $site->eventually(fn () => count($site->notes()) === 2, 'both have run');
    $queue->enqueue('note', 'third')->result(60);
    same(['first', 'second', 'third'], $site->notes());
}

function a_worker_that_loses_its_lease_ends_its_jobs(Site $site): void
{
    $proxy = new Proxy($site);
    $site->work(['stay' => function (Job $job) use ($site): string {
        $site->note("crashes $job->crashes");
        try {
            while ($job->crashes === 0) {
                sleep(60);
            }
        } catch (LeaseLost $error) {
            $site->note('lost');
            throw $error;
        }
        return 'done';
    }], $proxy->url, 3.0);
    $job = (new Queue($site->url, $site->name))->enqueue('stay');
    $site->eventually(fn () => $site->notes() !== [], 'it runs');
    $proxy->cut(true);
    $site->eventually(fn () => in_array('lost', $site->notes(), true), 'its work ends');
    $proxy->cut(false);
    same('done', $job->result(60));
    same(['crashes 0', 'lost', 'crashes 1'], $site->notes());
}

function a_worker_drains(Site $site): void
{
    $pid = $site->work(['stay' => function () use ($site): string {
        $site->note('begun');
        $site->eventually(fn () => count($site->notes()) === 2, 'it may go');
        return 'in time';
    }]);
    $queue = new Queue($site->url, $site->name);
    $job = $queue->enqueue('stay');
    $site->eventually(fn () => $site->notes() !== [], 'it runs');
    posix_kill($pid, SIGTERM);
    $site->note('go');
    same('in time', $job->result(60));
    $site->ends($pid);
    throws(Timeout::class, fn () => $queue->enqueue('stay')->result(0.1));
}

function what_does_not_end_in_time_runs_elsewhere_and_nobody_died_over_it(Site $site): void
{
    $pid = $site->work(['stay' => function () use ($site): void {
        $site->note('begun');
        sleep(60);
    }], drain: 0.0);
    $job = (new Queue($site->url, $site->name))->enqueue('stay');
    $site->eventually(fn () => $site->notes() !== [], 'it runs');
    posix_kill($pid, SIGTERM);
    $site->ends($pid);
    $site->work(['stay' => fn (Job $job) => $job->crashes]);
    same(0, $job->result(60));
}

function the_jobs_of_a_killed_worker_end_with_it(Site $site): void
{
    $pid = $site->work(['stay' => function () use ($site): void {
        $site->note((string) getmypid());
        sleep(60);
    }]);
    (new Queue($site->url, $site->name))->enqueue('stay');
    $site->eventually(fn () => $site->notes() !== [], 'it runs');
    posix_kill($pid, SIGKILL);
    // It may stay in the table of processes until somebody has taken note of its end.
    $gone = fn (string $stat) => $stat === '' || explode(' ', $stat)[2] === 'Z';
    $site->eventually(fn () => $gone((string) @file_get_contents("/proc/{$site->notes()[0]}/stat")), 'its job ends');
}

function notes_are_kept(Site $site): void
{
    $site->work(['chatty' => function (Job $job): void {
        $job->progress(50, "half\nway");
        for ($i = 0; $i < 300; $i++) {
            $job->log("line $i " . str_repeat('x', 50));
        }
        throw new Fail('over');
    }]);
    $job = (new Queue($site->url, $site->name))->enqueue('chatty');
    throws(Dead::class, fn () => $job->result(60));
    $kept = $site->fcall('signalbox_queue_look', $site->queueKeys(), $job->id, '')[1];
    holds(str_contains($kept, '"what":"half way"') && str_contains($kept, 'line 299') && !str_contains($kept, 'line 1 '), 'the last of them');
}

function schedules_tick(Site $site): void
{
    $site->work(['note' => fn (Job $job) => $site->note($job->args)]);
    $schedule = json_encode(['spec' => '@every 1s', 'missed' => 'last', 'item' => [
        'ID' => '', 'Lane' => ['Kind' => 'note', 'Tags' => null, 'Cost' => '', 'Key' => ''], 'Priority' => 1, 'Rest' => '{"args":"tick"}',
    ]]);
    $next = \Signalbox\Schedule::nextTick('@every 1s', '', (int) (1000 * microtime(true)));
    $site->fcall('signalbox_queue_schedule', $site->queueKeys(), 'set', 'often', $next, $schedule);
    $site->eventually(fn () => in_array('tick', $site->notes(), true), 'it ticks');
    $site->fcall('signalbox_queue_schedule', $site->queueKeys(), 'remove', 'often');
}

function a_closed_queue_says_so(Site $site): void
{
    $queue = new Queue($site->url, $site->name);
    $queue->enqueue('note');
    $queue->close();
    throws(Closed::class, fn () => $queue->enqueue('note'), $site->name);
    holds(is_subclass_of(Closed::class, SignalboxException::class), 'all errors have one kind');
}
