<?php

/**
 * Distributed locks, fair semaphores and task queues, together with programs in Go and other languages.
 *
 *     $box = new Signalbox\Box('redis://localhost:6379');
 *     $box->mutex('invoice:42')->use(fn ($lease) => store($invoice, $lease->token), timeout: 60);
 *
 * The server needs the functions: `signalbox functions install --url redis://localhost:6379`. Composer loads this file; whoever
 * does without it requires it.
 */

declare(strict_types=1);

foreach (['errors', 'wire', 'locks', 'queue', 'schedule', 'job', 'worker'] as $part) {
    require_once __DIR__ . "/src/$part.php";
}
