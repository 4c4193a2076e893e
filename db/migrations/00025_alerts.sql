-- +goose Up
-- When somebody is told. Amounts of money are micro-units of the tenant's
-- currency.
create table alerts (
    tenant_id  uuid not null references tenants,
    alert_id   uuid not null,
    kind       text not null check (kind in ('usage', 'provider_key_cooling', 'provider_key_failed', 'unpriced')),
    scope      text not null check (scope in ('', 'tenant', 'customer', 'api_key', 'provider_key')),
    scope_id   uuid,
    dimension  text not null default '' check (dimension in ('', 'requests', 'tokens', 'input_tokens', 'output_tokens', 'units', 'spend')),
    win        text not null default '' check (win in ('', 'day', 'month')),
    percent    integer check (percent between 1 and 1000),
    amount     bigint check (amount > 0),
    emails     text[] not null default '{}',
    mail       boolean not null,
    webhook    boolean not null,
    created_at timestamptz not null,
    removed_at timestamptz,
    primary key (tenant_id, alert_id),
    check (num_nonnulls(percent, amount) = case when kind = 'usage' then 1 else 0 end)
);
comment on column alerts.percent is 'of every limit of the dimension and window at the scope';
comment on column alerts.emails is 'none: owners and admins';

-- The key is what makes an alert fire once: whose threshold, which one, in which
-- period. Whoever inserts the row tells.
create table alert_firings (
    tenant_id    uuid not null references tenants,
    alert_id     uuid not null,
    subject      text not null check (length(subject) <= 1000),
    period_start timestamptz not null,
    threshold    text not null,
    name         text not null,
    value        bigint not null,
    of_amount    bigint not null,
    fired_at     timestamptz not null,
    primary key (tenant_id, alert_id, subject, period_start, threshold),
    foreign key (tenant_id, alert_id) references alerts
);
create index alert_firings_last on alert_firings (tenant_id, fired_at desc);

-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['alerts', 'alert_firings'] loop
        execute format('alter table %I enable row level security', t);
        execute format('alter table %I force row level security', t);
        execute format('create policy tenant on %I to weir_app using (tenant_id = app_tenant()) with check (tenant_id = app_tenant())', t);
    end loop;
end
$$;
-- +goose StatementEnd
grant select, insert, update on alerts to weir_app;
grant select, insert on alert_firings to weir_app;
create policy lookup on alerts for select to weir_lookup using (true);
grant select on alerts to weir_lookup;

grant create on schema public to weir_lookup;
-- +goose StatementBegin
create function lookup_alerting() returns table (tenant_id uuid)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$ select distinct a.tenant_id from public.alerts a where a.removed_at is null $$;
-- +goose StatementEnd
alter function lookup_alerting() owner to weir_lookup;
revoke create on schema public from weir_lookup;
revoke all on function lookup_alerting() from public;
grant execute on function lookup_alerting() to weir_app;

-- +goose Down
drop function lookup_alerting();
drop table alert_firings, alerts;
