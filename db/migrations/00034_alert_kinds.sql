-- +goose Up
-- Alerts have names and can rest, and watch two things more: whether the books
-- keep up, and whether they agree with themselves.
alter table alerts
    add column name text not null default '' check (length(name) <= 200),
    add column minutes integer check (minutes between 1 and 1440),
    add column paused_at timestamptz,
    drop constraint alerts_kind_check,
    drop constraint alerts_check,
    add constraint alerts_kind_check check (kind in ('usage', 'provider_key_cooling', 'provider_key_failed', 'unpriced', 'pipeline_behind', 'books_differ')),
    add constraint alerts_threshold_check check (
        num_nonnulls(percent, amount) = case when kind = 'usage' then 1 else 0 end
        and num_nonnulls(minutes) = case when kind = 'pipeline_behind' then 1 else 0 end);
comment on column alerts.name is 'none: what it watches, in words';
comment on column alerts.minutes is 'how far behind the books are';

-- What has no period fires once until it was well again.
alter table alert_firings add column stands boolean not null default false;
comment on column alert_firings.stands is 'what it tells of was not well since; of a period''s threshold always false';
create unique index alert_firings_stands on alert_firings (tenant_id, alert_id, subject) where stands;
grant update (stands) on alert_firings to weir_app;

alter table reconciliations add column found_at timestamptz;
update reconciliations set found_at = checked_at where differences <> '[]';
comment on column reconciliations.found_at is 'when the difference that stands was first seen; null: the day is equal';
create index reconciliations_found on reconciliations (tenant_id, day) where found_at is not null;

-- +goose StatementBegin
create or replace function lookup_alerting() returns table (tenant_id uuid)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$ select distinct a.tenant_id from public.alerts a where a.removed_at is null and a.paused_at is null $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
create or replace function lookup_alerting() returns table (tenant_id uuid)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$ select distinct a.tenant_id from public.alerts a where a.removed_at is null $$;
-- +goose StatementEnd
drop index reconciliations_found;
alter table reconciliations drop column found_at;
revoke update (stands) on alert_firings from weir_app;
drop index alert_firings_stands;
alter table alert_firings drop column stands;
delete from alert_firings f using alerts a where a.tenant_id = f.tenant_id and a.alert_id = f.alert_id and a.kind in ('pipeline_behind', 'books_differ');
delete from alerts where kind in ('pipeline_behind', 'books_differ');
alter table alerts
    drop constraint alerts_threshold_check,
    drop constraint alerts_kind_check,
    drop column name,
    drop column minutes,
    drop column paused_at,
    add constraint alerts_kind_check check (kind in ('usage', 'provider_key_cooling', 'provider_key_failed', 'unpriced')),
    add constraint alerts_check check (num_nonnulls(percent, amount) = case when kind = 'usage' then 1 else 0 end);
