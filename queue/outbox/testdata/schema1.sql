-- The outbox of a Signalbox queue, version 1, for PostgreSQL 13 and newer. It may be run again. All names begin with
-- signalbox_outbox. They are looked for along the search_path, so a database may have one outbox in each of its schemas.
--
-- Who writes to it: grant execute on the function signalbox_outbox_add, insert on signalbox_outbox.
-- Who relays: select, update and delete on all three tables, insert on signalbox_outbox_refused.

begin;

-- Jobs to enqueue: job is what queue.Request.Encode has written, JSON in UTF-8.
create table if not exists signalbox_outbox (
  id       bigint generated always as identity primary key,
  enqueued timestamptz not null default clock_timestamp(),
  job      bytea not null
) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.01);

-- Jobs that the queue would not take, and why. They stay until somebody has looked at them.
create table if not exists signalbox_outbox_refused (
  id       bigint primary key,
  enqueued timestamptz not null,
  job      bytea not null,
  refused  timestamptz not null default clock_timestamp(),
  reason   text not null
);

-- One row: how far the relay is. Batch is the rows that are enqueued in call number of the sequence outbox. It is on disk
-- before the call is made, so whoever comes after a relay that died makes the same call again.
create table if not exists signalbox_outbox_state (
  one     boolean primary key default true check (one),
  version integer not null,
  outbox  text not null default gen_random_uuid()::text,
  number  bigint not null default 1,
  batch   bigint[] not null default '{}'
);
insert into signalbox_outbox_state (version) values (1) on conflict do nothing;

-- signalbox_outbox_add adds jobs to the transaction. Keys has a number for each job, a hash of its key, 0 without one.
--
-- A key is locked until the transaction ends: whoever has added a job of that key gets an id after everybody who had one
-- before has committed. So ids of one key are in the order of the commits, which ids by themselves are not. Keys are taken in
-- the order of their numbers; there are 2047 of them, so that no transaction needs more locks than the server has.
--
-- The relay is told only if it sleeps: it holds lock 0 then, or waits for it. Who finds it awake shares the lock, and so has
-- it wait with falling asleep until this transaction has ended, and look once more. A notification has all commits of the
-- server wait for each other, and this leaves most of them out.
create or replace function signalbox_outbox_add(version integer, keys integer[], jobs bytea[]) returns void
language plpgsql as $$
declare
  class constant integer := 'signalbox_outbox'::regclass::oid::integer;
  key integer;
begin
  if version <> 1 then
    raise exception 'the outbox has version 1, the program wants %', version using errcode = 'SB002';
  end if;
  for key in select distinct k from unnest(keys) k where k > 0 order by k loop
    perform pg_advisory_xact_lock(class, key);
  end loop;
  insert into signalbox_outbox (job) select j from unnest(jobs) with ordinality as u(j, n) order by n;
  if not pg_try_advisory_xact_lock_shared(class, 0) then
    perform pg_notify('signalbox_outbox', '');
  end if;
end $$;

-- signalbox_outbox_next is the relay's: call number has been answered, so its rows go; the next ones are chosen, at most
-- so many rows, and so many bytes and one row. Without any it returns nothing. Who is not the relay any more is told so.
create or replace function signalbox_outbox_next(at bigint, rows_most integer, bytes_most bigint)
returns table (id bigint, job bytea, age_ms bigint)
language plpgsql
-- The oldest rows by their index, whatever the statistics say. A plan that does what is off counts as so dear that it would be
-- compiled, for a third of a second.
set enable_seqscan = off set enable_sort = off set jit = off as $$
#variable_conflict use_column
declare
  done bigint[];
  chosen bigint[];
begin
  -- What the queue hears of must not be undone by a crash.
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  select s.batch into done from signalbox_outbox_state s where s.one and s.number = at;
  if not found then
    raise exception 'another relay has gone on from call %', at using errcode = 'SB001';
  end if;
  if done <> '{}' then
    delete from signalbox_outbox o where o.id = any (done);
  end if;
  chosen := array(
    select r.id from (
      select o.id, sum(o.size) over (order by o.id) - o.size as before from (
        select id, octet_length(job) as size from signalbox_outbox order by id limit rows_most) o) r
    where r.before < bytes_most order by r.id);
  if done = '{}' and chosen = '{}' then
    return;
  end if;
  update signalbox_outbox_state s set number = at + 1, batch = chosen where s.one and s.number = at;
  if not found then
    raise exception 'another relay has gone on from call %', at using errcode = 'SB001';
  end if;
  return query select o.id, o.job, signalbox_outbox_age(o.enqueued) from signalbox_outbox o where o.id = any (chosen) order by o.id;
end $$;

-- signalbox_outbox_age is for how long a job has waited, in ms.
create or replace function signalbox_outbox_age(since timestamptz) returns bigint
language sql volatile as $$ select (extract(epoch from clock_timestamp() - since) * 1000)::bigint $$;

commit;
