-- +goose Up
-- Whoever stores events copies them into the partition of their day. COPY knows no
-- row-level security, which the partitions never had: the worker's policy on the
-- table lets every row through, and nobody else may touch a partition. What pages
-- show of a call is kept as it was written, which takes a third of the time; this
-- writes every event anew, once.
alter table usage_events alter column detail type json using detail::json;

-- +goose StatementBegin
create or replace function usage_ensure_day(day date) returns void
    language plpgsql security definer set search_path = pg_catalog, public, pg_temp
    as $$
declare
    partition text := 'usage_events_' || to_char(day, 'YYYYMMDD');
begin
    if day < date '2020-01-01' or day > current_date + 40 then
        raise exception 'no partition for %', day using errcode = 'check_violation', constraint = 'usage_day_range';
    end if;
    if to_regclass('public.' || partition) is not null or exists (select from public.usage_retention r where day < r.gone_before) then
        return;
    end if;
    perform pg_advisory_xact_lock(hashtext('usage_ensure_day'));
    execute format('create table public.%I (like public.usage_events including defaults including constraints)', partition);
    execute format('grant insert on public.%I to weir_worker', partition);
    execute format('alter table public.usage_events attach partition public.%I for values from (%L) to (%L)', partition, day, day + 1);
exception when duplicate_table then -- made by another worker meanwhile
    null;
end
$$;

do $$
declare
    partition regclass;
begin
    for partition in select i.inhrelid::regclass from pg_inherits i where i.inhparent = 'usage_events'::regclass loop
        execute format('grant insert on %s to weir_worker', partition);
    end loop;
end
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
create or replace function usage_ensure_day(day date) returns void
    language plpgsql security definer set search_path = pg_catalog, public, pg_temp
    as $$
declare
    partition text := 'usage_events_' || to_char(day, 'YYYYMMDD');
begin
    if day < date '2020-01-01' or day > current_date + 40 then
        raise exception 'no partition for %', day using errcode = 'check_violation', constraint = 'usage_day_range';
    end if;
    if to_regclass('public.' || partition) is not null or exists (select from public.usage_retention r where day < r.gone_before) then
        return;
    end if;
    perform pg_advisory_xact_lock(hashtext('usage_ensure_day'));
    execute format('create table public.%I (like public.usage_events including defaults including constraints)', partition);
    execute format('alter table public.usage_events attach partition public.%I for values from (%L) to (%L)', partition, day, day + 1);
exception when duplicate_table then -- made by another worker meanwhile
    null;
end
$$;

do $$
declare
    partition regclass;
begin
    for partition in select i.inhrelid::regclass from pg_inherits i where i.inhparent = 'usage_events'::regclass loop
        execute format('revoke insert on %s from weir_worker', partition);
    end loop;
end
$$;
-- +goose StatementEnd
alter table usage_events alter column detail type jsonb using detail::jsonb;
