-- +goose Up
-- Provider keys that share one account at their provider, and so one quota. The
-- zone is that in which the provider's days end, as for a key.
create table pools (
    tenant_id  uuid not null references tenants,
    pool_id    uuid not null,
    provider   text not null,
    name       text not null check (length(name) between 1 and 200),
    zone       text not null default 'UTC',
    past_zones jsonb not null default '[]' check (jsonb_typeof(past_zones) = 'array'),
    created_at timestamptz not null,
    removed_at timestamptz,
    primary key (tenant_id, pool_id)
);
create unique index pools_name_key on pools (tenant_id, lower(name)) where removed_at is null;

alter table provider_keys add column pool_id uuid;
alter table provider_keys add constraint provider_keys_pool_fkey foreign key (tenant_id, pool_id) references pools;
create index provider_keys_pool on provider_keys (tenant_id, pool_id) where pool_id is not null;

alter table limits drop constraint limits_owner_kind_check;
alter table limits add constraint limits_owner_kind_check
    check (owner_kind in ('tenant', 'plan_version', 'api_key', 'provider_key', 'pool'));

-- A tenant's own name of a model, and what serves it, in order.
create table model_aliases (
    tenant_id   uuid not null references tenants,
    alias_id    uuid not null,
    name        text not null check (length(name) between 1 and 200),
    description text not null default '' check (length(description) <= 500),
    sticky      boolean not null default false,
    created_at  timestamptz not null,
    primary key (tenant_id, alias_id),
    constraint model_aliases_name_key unique (tenant_id, name)
);

create table alias_candidates (
    tenant_id       uuid not null references tenants,
    alias_id        uuid not null,
    position        integer not null,
    model           text not null check (length(model) between 1 and 200),
    provider        text check (length(provider) between 1 and 100),
    provider_key_id uuid,
    pool_id         uuid,
    priority        integer not null check (priority between 1 and 100),
    weight          integer not null check (weight between 1 and 1000),
    primary key (tenant_id, alias_id, position),
    foreign key (tenant_id, alias_id) references model_aliases on delete cascade,
    constraint alias_candidates_provider_key_fkey foreign key (tenant_id, provider_key_id) references provider_keys,
    constraint alias_candidates_pool_fkey foreign key (tenant_id, pool_id) references pools,
    check (num_nonnulls(provider, provider_key_id, pool_id) <= 1)
);

-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['pools', 'model_aliases', 'alias_candidates'] loop
        execute format('alter table %I enable row level security', t);
        execute format('alter table %I force row level security', t);
        execute format('create policy tenant on %I to weir_app using (tenant_id = app_tenant()) with check (tenant_id = app_tenant())', t);
        execute format('grant select, insert, update on %I to weir_app', t);
    end loop;
end
$$;
-- +goose StatementEnd
grant delete on model_aliases, alias_candidates to weir_app;

create trigger noted after insert or update or delete on pools
    for each row execute function note_config_change('pool', 'pool_id');
create trigger noted after insert or update or delete on model_aliases
    for each row execute function note_config_change('alias', 'alias_id');
create trigger noted after insert or update or delete on alias_candidates
    for each row execute function note_config_change('alias', 'alias_id');

-- +goose Down
drop table alias_candidates, model_aliases;
delete from limits where owner_kind = 'pool';
alter table limits drop constraint limits_owner_kind_check;
alter table limits add constraint limits_owner_kind_check
    check (owner_kind in ('tenant', 'plan_version', 'api_key', 'provider_key'));
alter table provider_keys drop column pool_id;
drop table pools;
