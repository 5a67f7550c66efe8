<?php

// Run by `php tests/run.php [PART OF A NAME]`, with SIGNALBOX_URL for a server that has the functions. `make test` runs them on a
// real Redis and on the engine. Each test is a function of locks.php, queue.php or calendars.php; others that work with it are
// processes.

declare(strict_types=1);

require __DIR__ . '/../signalbox.php';
require __DIR__ . '/help.php';
foreach (['locks', 'queue', 'calendars'] as $file) {
    require __DIR__ . "/$file.php";
}

set_error_handler(fn (int $number, string $text, string $file, int $line) =>
    error_reporting() & $number ? throw new ErrorException($text, 0, $number, $file, $line) : false);

[$passed, $failed] = [0, 0];
foreach (get_defined_functions()['user'] as $test) {
    if (!str_starts_with($test, 'tests\\') || !str_contains($test, $argv[1] ?? '')) {
        continue;
    }
    $site = new Site($test);
    $began = microtime(true);
    try {
        $test($site);
        $passed++;
        $how = 'ok';
    } catch (Throwable $error) {
        $failed++;
        $how = "FAILED: $error";
    } finally {
        $site->clean();
    }
    printf("%s (%.1f s) %s\n", substr($test, 6), microtime(true) - $began, $how);
}
echo "$passed passed, $failed failed\n";
exit($failed === 0 && $passed > 0 ? 0 : 1);
