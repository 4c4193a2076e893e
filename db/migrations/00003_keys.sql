-- +goose Up
-- A tenant's data keys, wrapped by the operator's key-encryption keys.
create table data_keys (
    tenant_id   uuid not null references tenants,
    data_key_id uuid not null,
    kek         text not null,
    wrapped     bytea not null,
    created_at  timestamptz not null default now(),
    primary key (tenant_id, data_key_id)
);

create table provider_keys (
    tenant_id       uuid not null references tenants,
    provider_key_id uuid not null,
    provider        text not null,
    name            text not null check (length(name) between 1 and 200),
    base_url        text not null default '',
    sealed_secret   bytea,
    last4           text not null default '',
    fingerprint     text not null default '',
    status          text not null check (status in ('active', 'invalid', 'unverified', 'disabled')),
    status_reason   text not null default '',
    zone            text not null default 'UTC',
    models          text[] not null default '{}',
    models_listed   boolean not null default false,
    created_at      timestamptz not null default now(),
    verified_at     timestamptz,
    removed_at      timestamptz,
    primary key (tenant_id, provider_key_id)
);
comment on column provider_keys.models_listed is 'the tenant listed the models itself; otherwise they were discovered';
create unique index provider_keys_name_key on provider_keys (tenant_id, lower(name)) where removed_at is null;

create table customers (
    tenant_id   uuid not null references tenants,
    customer_id uuid not null,
    name        text not null check (length(name) between 1 and 200),
    email       text check (length(email) <= 254),
    external_id text check (length(external_id) between 1 and 200),
    created_at  timestamptz not null default now(),
    suspended_at timestamptz,
    removed_at  timestamptz,
    primary key (tenant_id, customer_id)
);
create unique index customers_external_key on customers (tenant_id, external_id) where removed_at is null;

-- counter_id is the stable identity that usage and ledgers hang on: a rotated
-- pair of keys shares it, so that rotating resets nothing.
create table api_keys (
    tenant_id   uuid not null references tenants,
    api_key_id  uuid not null,
    counter_id  uuid not null,
    kind        text not null check (kind in ('customer', 'management')),
    customer_id uuid,
    name        text not null check (length(name) between 1 and 200),
    secret_hash bytea not null check (length(secret_hash) = 32),
    first4      text not null,
    last4       text not null,
    test        boolean not null default false,
    may_settle  boolean not null default false,
    scopes      text[] not null default '{}',
    models      text[],
    ip_allow    cidr[],
    created_at  timestamptz not null default now(),
    expires_at  timestamptz,
    revoked_at  timestamptz,
    last_used_at timestamptz,
    primary key (tenant_id, api_key_id),
    foreign key (tenant_id, customer_id) references customers,
    check ((kind = 'customer') = (customer_id is not null)),
    check (kind = 'management' or scopes = '{}')
);
create unique index api_keys_secret_key on api_keys (secret_hash);
create index api_keys_customer on api_keys (tenant_id, customer_id);

-- A limit belongs to exactly one owner. Limits of a plan version stand at
-- customer scope; the others at the scope of their owner.
create table limits (
    tenant_id  uuid not null references tenants,
    limit_id   uuid not null,
    owner_kind text not null check (owner_kind in ('tenant', 'plan_version', 'api_key', 'provider_key')),
    owner_id   uuid not null,
    position   integer not null,
    dimension  text not null,
    win        text not null,
    policy     text not null,
    amount     bigint not null check (amount >= 0),
    burst      bigint not null default 0 check (burst >= 0),
    models     text[] not null default '{}',
    each_model boolean not null default false,
    weights    jsonb not null default '{}',
    mode       text not null,
    outage     text not null,
    created_at timestamptz not null default now(),
    primary key (tenant_id, limit_id)
);
create unique index limits_identity_key on limits (tenant_id, owner_kind, owner_id, dimension, win, models, each_model);

-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['data_keys', 'provider_keys', 'customers', 'api_keys', 'limits'] loop
        execute format('alter table %I enable row level security', t);
        execute format('alter table %I force row level security', t);
        execute format('create policy tenant on %I to weir_app using (tenant_id = app_tenant()) with check (tenant_id = app_tenant())', t);
        execute format('grant select, insert, update on %I to weir_app', t);
    end loop;
end
$$;
-- +goose StatementEnd
grant delete on limits to weir_app;
create policy lookup on api_keys for select to weir_lookup using (true);
grant select on api_keys to weir_lookup;

-- +goose Down
drop table limits, api_keys, customers, provider_keys, data_keys;
