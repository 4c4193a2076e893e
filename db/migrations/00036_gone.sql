-- +goose Up
-- Calls of days before gone_before were dropped, or are about to be: of the whole
-- installation, and of tenants that keep theirs for a shorter time. It only moves
-- on, also where more days are kept later. No such day is summed again, and no call
-- of one is counted: whether it was counted before, nobody knows any more.
create table usage_retention (
    singleton   boolean primary key default true check (singleton),
    gone_before date not null
);
insert into usage_retention (gone_before) values ('2020-01-01');
alter table usage_retention enable row level security;
alter table usage_retention force row level security;
create policy anybody on usage_retention for select using (true);
create policy worker on usage_retention for update to weir_worker using (true);
grant select, update on usage_retention to weir_worker;

create table usage_gone (
    tenant_id   uuid primary key,
    gone_before date not null
);
alter table usage_gone enable row level security;
alter table usage_gone force row level security;
create policy tenant on usage_gone to weir_app using (tenant_id = app_tenant());
create policy worker on usage_gone to weir_worker using (true) with check (true);
grant select on usage_gone to weir_app;
grant select, insert, update on usage_gone to weir_worker;

create function usage_kept_since() returns date
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$ select r.gone_before from public.usage_retention r $$;
revoke all on function usage_kept_since() from public;
grant execute on function usage_kept_since() to weir_app, weir_worker;

-- A partition that was dropped is not made again for what comes too late.
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
drop function usage_kept_since();
drop table usage_gone, usage_retention;
