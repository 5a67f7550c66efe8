<?php

declare(strict_types=1);

namespace Tests;

use Signalbox\{Acquisition, Box, Busy, Closed, Forced, Invalid, LeaseLost, Refusal, ServerError, Term, Timeout, TooHeavy, Unavailable, UnsupportedServer, Wire};
use Site;
use Proxy;

use function holds;
use function same;
use function throws;

function a_mutex_excludes_and_tokens_grow(Site $site): void
{
    [$box, $other] = [new Box($site->url), new Box($site->url)];
    $first = $box->mutex($site->name)->acquire();
    $busy = throws(Busy::class, fn () => $other->mutex($site->name)->tryAcquire());
    holds($busy->retryAfter > 20, 'it says when to try again');
    $first->release();
    $second = $other->mutex($site->name)->tryAcquire();
    holds($second->token > $first->token, 'tokens grow');
    $second->release();
    same([0, 0, 0], $site->left());
}

function waiters_come_in_the_order_of_arrival(Site $site): void
{
    $held = (new Box($site->url))->semaphore($site->name, 2)->acquire(weight: 2);
    for ($i = 0; $i < 6; $i++) {
        $site->apart(function () use ($site, $i): void {
            $lease = (new Box($site->url))->semaphore($site->name, 2)->acquire(onWait: fn ($ahead) => $site->note("ahead $i $ahead"));
            $site->note("$lease->token $i");
            $lease->release();
        });
        $site->eventually(fn () => in_array("ahead $i $i", $site->notes(), true), "$i waits");
    }
    $held->release();
    $order = fn () => array_values(array_filter($site->notes(), fn ($line) => !str_starts_with($line, 'ahead')));
    $site->eventually(fn () => count($order()) === 6, 'all have come');
    $came = $order();
    sort($came);
    same(['0', '1', '2', '3', '4', '5'], array_map(fn ($line) => explode(' ', $line)[1], $came));
    $site->eventually(fn () => $site->left() === [0, 0, 0], 'nothing is left');
}

function a_release_is_told_at_once(Site $site): void
{
    $lease = (new Box($site->url))->mutex($site->name)->acquire();
    $site->apart(function () use ($site): void {
        $waited = 0;
        (new Box($site->url))->mutex($site->name)->acquire(onWait: function () use ($site): void {
            $site->note('waits');
        });
        $site->note('inside');
    });
    $site->eventually(fn () => $site->notes() === ['waits'], 'it waits');
    $lease->release();
    same(1, $site->left()[0]); // it was handed over
    $site->eventually(fn () => $site->notes() === ['waits', 'inside'], 'it is inside');
}

function who_gives_up_leaves_nothing(Site $site): void
{
    [$box, $other] = [new Box($site->url), new Box($site->url)];
    $box->mutex($site->name)->acquire();
    throws(Timeout::class, fn () => $other->mutex($site->name)->acquire(timeout: 0.1));
    same(0, $site->left()[2]);
    throws(\DomainException::class, fn () => $other->mutex($site->name)->acquire(onWait: fn () => throw new \DomainException('enough')));
    same(0, $site->left()[2]);
}

function a_lease_is_renewed_by_who_waits_and_checks(Site $site): void
{
    [$box, $other] = [new Box($site->url), new Box($site->url)];
    $lease = $box->mutex($site->name)->acquire(ttl: 4);
    $lease->wait(5);
    throws(Busy::class, fn () => $other->mutex($site->name)->tryAcquire());
    $second = $box->mutex("$site->name 2");
    $holder = $other->mutex("$site->name 2")->acquire();
    throws(Timeout::class, fn () => $second->acquire(timeout: 5)); // and by who waits for another one
    $lease->check();
    $lease->release();
    $holder->release();
}

function a_lease_that_nobody_checks_is_lost(Site $site): void
{
    $lease = (new Box($site->url))->mutex($site->name)->acquire(ttl: 0.1);
    usleep(100_000);
    holds($lease->isLost(), 'it is lost');
    throws(LeaseLost::class, $lease->check(...), $site->name);
    throws(LeaseLost::class, $lease->release(...));
}

function an_operator_ends_a_lease(Site $site): void
{
    $box = new Box($site->url);
    $lease = $box->mutex($site->name)->acquire(ttl: 3);
    $site->fcall('signalbox_force', Acquisition::keysOf($site->name), $lease->id, 3000);
    throws(Forced::class, fn () => $lease->wait(60));
    throws(LeaseLost::class, $lease->release(...));
    $lease = $box->mutex($site->name)->acquire();
    $site->fcall('signalbox_force', Acquisition::keysOf($site->name), $lease->id, 3000);
    throws(Forced::class, $lease->release(...));
}

function the_holder_knows_by_itself(Site $site): void
{
    $proxy = new Proxy($site);
    [$box, $other] = [new Box($proxy->url), new Box($site->url)];
    $lease = $box->mutex($site->name)->acquire(ttl: 1);
    $proxy->cut(true);
    throws(LeaseLost::class, fn () => $lease->wait(60));
    holds($other->mutex($site->name)->acquire()->token > $lease->token, 'tokens grow');
}

function a_lost_reply_costs_nothing(Site $site): void
{
    $proxy = new Proxy($site);
    $box = new Box($proxy->url);
    $box->mutex($site->name)->acquire()->release();
    $proxy->cut(true); // the next request arrives, and its answer does not
    $site->apart(function () use ($site, $proxy): void {
        $site->eventually(fn () => $site->left()[0] === 1, 'it has arrived');
        $proxy->cut(false);
    });
    $lease = $box->mutex($site->name)->acquire();
    same([1, 1], array_slice($site->left(), 0, 2));
    $lease->release();
    same([0, 0, 0], $site->left());
}

function work_is_inside_its_lease(Site $site): void
{
    $mutex = (new Box($site->url))->mutex($site->name);
    same(1, $mutex->use(fn () => $site->left()[0]));
    same([0, 0, 0], $site->left());
    throws(\DomainException::class, fn () => $mutex->use(fn () => throw new \DomainException('inside')));
    same([0, 0, 0], $site->left());
    throws(LeaseLost::class, fn () => $mutex->use(fn () => usleep(100_000), ttl: 0.1));
}

function readers_and_writers(Site $site): void
{
    [$one, $other] = [(new Box($site->url))->rwlock($site->name), (new Box($site->url))->rwlock($site->name)];
    $leases = [$one->read(), $other->read()];
    throws(Timeout::class, fn () => $one->write(timeout: 0.1));
    foreach ($leases as $lease) {
        $lease->release();
    }
    $lease = $one->write();
    throws(Timeout::class, fn () => $other->read(timeout: 0.1));
    $lease->release();
}

function an_election_passes_on(Site $site): void
{
    $term = (new Box($site->url))->election($site->name)->campaign();
    $site->apart(function () use ($site): void {
        (new Box($site->url))->election($site->name)->campaign();
        $site->note('leads');
    });
    $site->eventually(fn () => $site->left()[2] === 1, 'it waits');
    holds($term instanceof Term, 'a term');
    $term->resign();
    $site->eventually(fn () => $site->notes() === ['leads'], 'it leads');
}

function close_releases(Site $site): void
{
    $box = new Box($site->url);
    $box->mutex($site->name)->acquire();
    $box->close();
    same([0, 0, 0], $site->left());
    throws(Closed::class, fn () => $box->mutex($site->name)->acquire());
}

function a_process_that_was_forked_has_its_own_connections_and_leases(Site $site): void
{
    $box = new Box($site->url);
    $lease = $box->mutex($site->name)->acquire();
    $pid = $site->apart(function () use ($box, $site): void {
        throws(Busy::class, fn () => $box->mutex($site->name)->tryAcquire());
        $box->close();
        $site->note('closed');
    });
    $site->ends($pid);
    same(['closed'], $site->notes());
    same(1, $site->left()[0]);
    $lease->check();
    $lease->release();
}

function what_is_invalid_is_told_without_a_server(Site $site): void
{
    $box = new Box('redis://localhost:1');
    throws(Invalid::class, fn () => $box->mutex('')->acquire());
    throws(Invalid::class, fn () => $box->semaphore('x', 0)->acquire());
    throws(Invalid::class, fn () => $box->mutex('x')->acquire(ttl: 0.001));
    throws(Invalid::class, fn () => new Box('localhost:6379'));
    throws(TooHeavy::class, fn () => (new Box($site->url))->semaphore($site->name, 2)->acquire(weight: 3));
}

function errors_say_what_to_do(Site $site): void
{
    $missing = Wire::explained('db', new Refusal('ERR Function not found'));
    holds($missing instanceof UnsupportedServer && str_contains($missing->getMessage(), 'signalbox functions install'), 'it says what to run');
    $old = Wire::explained('db', new Refusal('WIRE these functions speak wire version 1 of the queue, and the client 2: update'));
    holds($old instanceof UnsupportedServer, 'another wire version');
    holds(Wire::explained('db', new Refusal('NOPERM no')) instanceof ServerError, 'what does not pass');
    $listener = stream_socket_server('tcp://127.0.0.1:0');
    $address = stream_socket_get_name($listener, false);
    fclose($listener);
    throws(Unavailable::class, fn () => (new Box("redis://$address"))->mutex('db')->tryAcquire(), 'db: connecting to');
}
