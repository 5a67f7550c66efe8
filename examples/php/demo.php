<?php

// Takes turns inside a semaphore, together with everybody else who uses its name.
//
//   php demo.php NAME [--limit N] [--weight N] [--ttl S] [--hold S] [--turns N] [--timeout S] [--try | --campaign] [--url URL]

declare(strict_types=1);

require __DIR__ . '/../../clients/php/signalbox.php'; // or composer requires it

final class Interrupted extends Exception
{
}

$options = [
    'limit' => '2', // how many may be inside
    'weight' => '1', // how many permits to hold
    'ttl' => '10', // seconds for which the permits outlive a crash
    'hold' => '3', // seconds to stay inside
    'turns' => '1', // how often to go inside
    'timeout' => null, // seconds to wait at most
    'try' => false, // do not wait
    'campaign' => false, // win the election of that name, instead
    'url' => getenv('SIGNALBOX_URL') ?: 'redis://localhost:6379',
];
$name = $argv[1] ?? exit("usage: php demo.php NAME\n");
for ($i = 2; $i < $argc; $i++) {
    $option = substr($argv[$i], 2);
    $options[$option] = is_bool($options[$option]) ? true : $argv[++$i];
}

function say(string $text): void
{
    fwrite(STDOUT, 'php:' . getmypid() . " $text\n");
}

function turn(Signalbox\Box $box, string $name, array $options): void
{
    $semaphore = $box->semaphore($name, (int) $options['limit']);
    $terms = ['ttl' => (float) $options['ttl'], 'label' => 'demo.php'];
    $timeout = $options['timeout'] === null ? null : (float) $options['timeout'];
    $weight = (int) $options['weight'];
    $lease = match (true) {
        $options['campaign'] => $box->election($name)->campaign(...$terms, timeout: $timeout),
        $options['try'] => $semaphore->tryAcquire(...$terms, weight: $weight),
        default => $semaphore->acquire(
            ...$terms, weight: $weight, timeout: $timeout, onWait: fn ($ahead) => say("waits with $ahead ahead")),
    };
    try {
        say("is inside with token $lease->token");
        $lease->wait((float) $options['hold']); // the work would be here, and would call check() between its parts
        say('goes');
    } finally {
        if (!$lease->isLost()) {
            $lease->release();
        }
    }
}

pcntl_async_signals(true);
pcntl_signal(SIGINT, fn () => throw new Interrupted());
$box = new Signalbox\Box($options['url']);
$status = 0;
try {
    for ($n = 0; $n < (int) $options['turns']; $n++) {
        turn($box, $name, $options);
    }
} catch (Signalbox\SignalboxException $error) {
    say((new ReflectionClass($error))->getShortName() . ': ' . $error->getMessage());
    $status = 1;
} catch (Interrupted) {
    say('gives up');
    $status = 130;
}
$box->close();
exit($status);
