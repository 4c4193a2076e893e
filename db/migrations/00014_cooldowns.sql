-- +goose Up
-- What calls through a provider key have shown of one of its models, or, with
-- the model '', of the key as a whole: its bench, and where it stands on the
-- ladder. Whatever changes a row raises its version, so that a replica knows
-- which of two it knows is newer.
create table provider_health (
    tenant_id       uuid not null references tenants,
    provider_key_id uuid not null,
    model           text not null check (length(model) <= 200),
    version         bigint not null default 1,
    source          text check (source in ('heuristic', 'authoritative', 'credit', 'tier', 'auth')),
    reason          text not null default '',
    status          integer not null default 0,
    detail          text not null default '' check (length(detail) <= 200),
    since           timestamptz,
    until           timestamptz,
    step            integer not null default 0 check (step between 0 and 4),
    limited_at      timestamptz,
    failed_at       timestamptz,
    checks          integer not null default 0 check (checks >= 0),
    check_at        timestamptz,
    check_model     text not null default '',
    primary key (tenant_id, provider_key_id, model),
    foreign key (tenant_id, provider_key_id) references provider_keys,
    check ((source is null) = (since is null)),
    check (until is not null or source is null or source = 'auth')
);
comment on column provider_health.checks is 'our own live checks since a call last passed';
create index provider_health_due on provider_health (check_at) where check_at is not null;

-- Failures of a model over any keys that no success followed, one for each burst.
create table model_streaks (
    tenant_id uuid not null references tenants,
    model     text not null check (length(model) between 1 and 200),
    failures  timestamptz[] not null default '{}',
    primary key (tenant_id, model)
);

create table learned_limits (
    tenant_id       uuid not null references tenants,
    provider_key_id uuid not null,
    model           text not null check (length(model) between 1 and 200),
    dimension       text not null check (dimension in ('requests', 'tokens', 'input_tokens', 'output_tokens')),
    win             text not null check (win in ('minute', 'day')),
    amount          bigint not null check (amount > 0),
    stated_in       text not null check (stated_in in ('header', 'body')),
    detail          text not null default '' check (length(detail) <= 200),
    learned_at      timestamptz not null,
    seen_at         timestamptz not null,
    primary key (tenant_id, provider_key_id, model, dimension, win),
    foreign key (tenant_id, provider_key_id) references provider_keys
);

-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['provider_health', 'model_streaks', 'learned_limits'] loop
        execute format('alter table %I enable row level security', t);
        execute format('alter table %I force row level security', t);
        execute format('create policy tenant on %I to weir_app using (tenant_id = app_tenant()) with check (tenant_id = app_tenant())', t);
        execute format('grant select, insert, update on %I to weir_app', t);
    end loop;
end
$$;
-- +goose StatementEnd
grant delete on learned_limits to weir_app;

-- Which checks are due is asked across tenants.
create policy lookup on provider_health for select to weir_lookup using (true);
grant select on provider_health to weir_lookup;
grant create on schema public to weir_lookup;
-- +goose StatementBegin
create function lookup_due_checks(due timestamptz, most integer)
    returns table (tenant_id uuid, provider_key_id uuid, model text)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$
        select h.tenant_id, h.provider_key_id, h.model
        from public.provider_health h
        where h.check_at <= due
        order by h.check_at
        limit most
    $$;
-- +goose StatementEnd
alter function lookup_due_checks(timestamptz, integer) owner to weir_lookup;
revoke all on function lookup_due_checks(timestamptz, integer) from public;
grant execute on function lookup_due_checks(timestamptz, integer) to weir_app;
revoke create on schema public from weir_lookup;

-- +goose Down
drop function lookup_due_checks(timestamptz, integer);
drop table learned_limits, model_streaks, provider_health;
