-- +goose Up
-- How long a tenant's calls are kept, in days; null: as long as the
-- installation keeps any.
alter table tenants add column usage_days integer check (usage_days between 30 and 400);

-- What was found when a civil day of a tenant was summed again from its events.
create table reconciliations (
    tenant_id   uuid not null,
    day         timestamptz not null,
    checked_at  timestamptz,
    differences jsonb not null default '[]',
    day_end     timestamptz,
    asked_at    timestamptz,
    rebuilt_at  timestamptz,
    primary key (tenant_id, day)
);
comment on table reconciliations is 'keyed by the start of the civil day';
comment on column reconciliations.differences is 'rows of the books that the events do not confirm, the first hundred';
comment on column reconciliations.asked_at is 'somebody asked to sum the day again; null once that is done';
create index reconciliations_asked on reconciliations (asked_at) where asked_at is not null;

alter table reconciliations enable row level security;
alter table reconciliations force row level security;
create policy tenant on reconciliations to weir_app using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
create policy worker on reconciliations to weir_worker using (true) with check (true);
grant select, insert, update on reconciliations to weir_app, weir_worker;
grant delete on reconciliations to weir_worker;

-- Summing a day again writes every row of it anew.
grant delete on usage_quarter, usage_day, cap_totals to weir_worker;

-- What is past its time goes by whole partitions; the worker owns no table, so
-- this runs as the owner. It refuses what no configuration may ask for.
-- +goose StatementBegin
create function usage_drop_days(before date) returns text[]
    language plpgsql security definer set search_path = pg_catalog, public, pg_temp
    as $$
declare
    gone text[] := '{}';
    part text;
begin
    if before > current_date - 30 then
        raise exception 'days from % on are kept', current_date - 30 using errcode = 'check_violation', constraint = 'usage_kept_days';
    end if;
    for part in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'public.usage_events'::regclass and c.relname ~ '^usage_events_[0-9]{8}$'
          and to_date(right(c.relname, 8), 'YYYYMMDD') < before
        order by 1
    loop
        execute format('drop table public.%I', part);
        gone := gone || part;
    end loop;
    return gone;
end
$$;
-- +goose StatementEnd
revoke all on function usage_drop_days(date) from public;
grant execute on function usage_drop_days(date) to weir_worker;

grant create on schema public to weir_lookup;
-- +goose StatementBegin
create function usage_kept_days() returns table (tenant_id uuid, days integer)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$ select t.tenant_id, t.usage_days from public.tenants t where t.usage_days is not null $$;
-- +goose StatementEnd
alter function usage_kept_days() owner to weir_lookup;
revoke all on function usage_kept_days() from public;
grant execute on function usage_kept_days() to weir_worker;
revoke create on schema public from weir_lookup;

-- Calls of tenants that keep theirs for a shorter time go one by one; their sums
-- stay. What calls say of persons can be erased; their figures cannot be changed.
grant delete on usage_events to weir_worker;
create policy erase on usage_events for update to weir_app using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant update (end_user, tags) on usage_events to weir_app;

-- +goose Down
revoke update (end_user, tags) on usage_events from weir_app;
drop policy erase on usage_events;
revoke delete on usage_events from weir_worker;
drop function usage_kept_days();
drop function usage_drop_days(date);
revoke delete on usage_quarter, usage_day, cap_totals from weir_worker;
drop table reconciliations;
alter table tenants drop column usage_days;
