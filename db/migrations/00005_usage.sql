-- +goose Up
-- One row is one finished, failed, refused, expired or corrected call. The day
-- is derived from the event id, so that the key which refuses a duplicate holds
-- inside one partition.
create table usage_events (
    tenant_id       uuid not null,
    day_utc         date not null,
    event_id        uuid not null,
    request_id      uuid not null,
    customer_id     uuid,
    subscription_id uuid,
    plan_version_id uuid,
    api_key_id      uuid,
    counter_id      uuid,
    provider_key_id uuid,
    end_user        text,
    tags            jsonb,
    model_asked     text not null,
    model_served    text not null default '',
    kind            text not null,
    started_at      timestamptz not null,
    ended_at        timestamptz not null,
    local_day       timestamptz not null,
    outcome         text not null,
    requests        bigint not null,
    refused         bigint not null,
    input_tokens    bigint not null,
    cached_input_tokens bigint not null,
    cache_write_tokens  bigint not null,
    output_tokens   bigint not null,
    reasoning_tokens    bigint not null,
    units           bigint not null,
    estimated       text not null default '',
    charge_pico     numeric(38, 0) not null,
    currency        text not null,
    cost_pico       numeric(38, 0),
    cost_currency   text,
    test            boolean not null,
    corrects        uuid,
    detail          jsonb not null,
    body_hash       bytea not null,
    instance_id     uuid not null,
    shard           integer not null,
    number          bigint not null,
    stored_at       timestamptz not null default now(),
    primary key (tenant_id, day_utc, event_id)
) partition by range (day_utc);
comment on column usage_events.detail is 'attempts, calendar charges, estimate, price ids, refusal: what pages show of one call';
create index usage_events_request on usage_events (tenant_id, request_id);
create index usage_events_log on usage_events (tenant_id, started_at desc, event_id desc);

-- Sums by bucket of the instant of admission. A dimension that a call does not
-- have is the zero uuid or ''; so is the cost currency of a call without a price.
-- requests counts the calls that were admitted, refused those that were not:
-- outcome keeps which limit's dimension and window refused. usage_day is keyed
-- by the start of the tenant's civil day.
-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['usage_minute', 'usage_quarter', 'usage_day'] loop
        execute format($f$
            create table %I (
                tenant_id       uuid not null,
                bucket          timestamptz not null,
                customer_id     uuid not null,
                counter_id      uuid not null,
                provider_key_id uuid not null,
                model_asked     text not null,
                model_served    text not null,
                outcome         text not null,
                test            boolean not null,
                currency        text not null,
                cost_currency   text not null,
                requests        bigint not null,
                refused         bigint not null,
                input_tokens    bigint not null,
                cached_input_tokens bigint not null,
                cache_write_tokens  bigint not null,
                output_tokens   bigint not null,
                reasoning_tokens    bigint not null,
                units           bigint not null,
                charge_pico     numeric(38, 0) not null,
                cost_pico       numeric(38, 0) not null,
                primary key (tenant_id, bucket, customer_id, counter_id, provider_key_id,
                             model_asked, model_served, outcome, test, currency, cost_currency)
            ) with (fillfactor = 80)$f$, t);
    end loop;
end
$$;
-- +goose StatementEnd

create table cap_totals (
    tenant_id    uuid not null,
    ledger       text not null,
    window_start timestamptz not null,
    used         bigint not null,
    primary key (tenant_id, ledger, window_start)
) with (fillfactor = 80);

-- How far the events of one instance and shard are committed. A range set, not
-- a number: messages may commit out of order.
create table usage_marks (
    instance_id uuid not null,
    shard       integer not null,
    committed   int8multirange not null,
    updated_at  timestamptz not null default now(),
    primary key (instance_id, shard)
) with (fillfactor = 50);

create table instances (
    instance_id uuid primary key,
    host        text not null,
    started_at  timestamptz not null,
    seen_at     timestamptz not null,
    numbers     bigint[] not null default '{}',
    oldest_open timestamptz,
    fresh_at    timestamptz,
    stopped_at  timestamptz,
    retired_at  timestamptz
);
comment on column instances.numbers is 'the last number given out, by shard';
comment on column instances.fresh_at is 'every call of the instance that ended before is committed';
comment on column instances.stopped_at is 'it ended cleanly and everything of it is committed';

-- What the worker could not count, kept with the reason.
create table dead_letters (
    dead_letter_id uuid primary key,
    reason         text not null,
    subject        text not null,
    headers        jsonb not null,
    payload        bytea not null,
    instance_id    uuid,
    shard          integer,
    number         bigint,
    created_at     timestamptz not null default now(),
    replayed_at    timestamptz
);

-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['usage_events', 'usage_minute', 'usage_quarter', 'usage_day', 'cap_totals'] loop
        execute format('alter table %I enable row level security', t);
        execute format('alter table %I force row level security', t);
        execute format('create policy tenant on %I for select to weir_app using (tenant_id = app_tenant())', t);
        execute format('create policy worker on %I to weir_worker using (true) with check (true)', t);
        execute format('grant select on %I to weir_app', t);
        execute format('grant select, insert, update on %I to weir_worker', t);
    end loop;
end
$$;
-- +goose StatementEnd
revoke update on usage_events from weir_worker;
grant delete on usage_minute to weir_worker;
grant select on usage_marks to weir_app;
grant select, insert, update on usage_marks to weir_worker;
grant select, insert, update on instances to weir_app;
grant select on instances to weir_worker;
grant select, insert, update on dead_letters to weir_worker;

-- Partitions are made by whoever stores an event of a new day; the worker owns
-- no table, so this runs as the owner. It does nothing when the day exists, and
-- refuses days that no honest event can have. Attaching lets reads and writes of
-- other days go on, which "partition of" would not.
-- +goose StatementBegin
create function usage_ensure_day(day date) returns void
    language plpgsql security definer set search_path = pg_catalog, public, pg_temp
    as $$
declare
    partition text := 'usage_events_' || to_char(day, 'YYYYMMDD');
begin
    if day < date '2020-01-01' or day > current_date + 40 then
        raise exception 'no partition for %', day using errcode = 'check_violation', constraint = 'usage_day_range';
    end if;
    if to_regclass('public.' || partition) is not null then
        return;
    end if;
    perform pg_advisory_xact_lock(hashtext('usage_ensure_day'));
    execute format('create table public.%I (like public.usage_events including defaults including constraints)', partition);
    execute format('alter table public.usage_events attach partition public.%I for values from (%L) to (%L)', partition, day, day + 1);
exception when duplicate_table then -- made by another worker meanwhile
    null;
end
$$;
-- +goose StatementEnd
revoke all on function usage_ensure_day(date) from public;
grant execute on function usage_ensure_day(date) to weir_worker;

-- +goose Down
drop function usage_ensure_day(date);
drop table dead_letters, instances, usage_marks, cap_totals, usage_day, usage_quarter, usage_minute, usage_events;
