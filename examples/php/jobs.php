<?php

// Runs jobs of a queue, or pushes one and waits for its result, together with everybody else who uses the queue.
//
//   php jobs.php work QUEUE [--slots N] [--lease S] [--url URL]
//   php jobs.php push QUEUE KIND ARGUMENTS [--id ID] [--url URL]
//
// The worker knows three kinds: sum adds numbers, stay stays until it is told to end, flaky fails once.

declare(strict_types=1);

require __DIR__ . '/../../clients/php/signalbox.php'; // or composer requires it

$options = [
    'slots' => '2', // jobs at once
    'lease' => '15', // seconds after which a dead worker is replaced
    'id' => null,
    'url' => getenv('SIGNALBOX_URL') ?: 'redis://localhost:6379',
];
$words = [];
for ($i = 1; $i < $argc; $i++) {
    if (str_starts_with($argv[$i], '--')) {
        $options[substr($argv[$i], 2)] = $argv[++$i];
    } else {
        $words[] = $argv[$i];
    }
}
$me = getmypid(); // each job has a process of its own

function say(string $text): void
{
    global $me;
    fwrite(STDOUT, "php:$me $text\n");
}

function work(Signalbox\Queue $queue, int $slots): void
{
    $worker = $queue->worker('jobs.php', slots: $slots);
    $worker->handle('sum', function (Signalbox\Job $job): int|float {
        say("runs $job->id with token $job->token");
        $job->progress(50, 'adding');
        return array_sum($job->args);
    });
    $worker->handle('stay', function (Signalbox\Job $job): never {
        say("stays with $job->id");
        try {
            while (true) {
                sleep(60);
            }
        } catch (Signalbox\SignalboxException $error) {
            say("leaves $job->id: " . (new ReflectionClass($error))->getShortName());
            throw $error;
        }
    });
    $worker->handle('flaky', function (Signalbox\Job $job): int {
        return $job->attempt > 1 ? $job->attempt : throw new RuntimeException('not the first time');
    }, backoff: fn (int $attempt) => 0.01);
    pcntl_async_signals(true);
    foreach ([SIGTERM, SIGINT] as $signal) {
        pcntl_signal($signal, fn () => $worker->stop());
    }
    $worker->run();
    say('has ended');
}

function push(Signalbox\Queue $queue, string $kind, string $arguments, ?string $id): void
{
    $job = $queue->enqueue($kind, json_decode($arguments, true), id: $id);
    say("pushed $job->id");
    say('result ' . json_encode($job->result(timeout: 60)));
}

try {
    $queue = new Signalbox\Queue($options['url'], $words[1], lease: (float) $options['lease']);
    $words[0] === 'work' ? work($queue, (int) $options['slots']) : push($queue, $words[2], $words[3], $options['id']);
    $queue->close();
} catch (Signalbox\SignalboxException $error) {
    say((new ReflectionClass($error))->getShortName() . ': ' . $error->getMessage());
    exit(1);
}
