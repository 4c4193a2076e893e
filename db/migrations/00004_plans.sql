-- +goose Up
create table plans (
    tenant_id  uuid not null references tenants,
    plan_id    uuid not null,
    name       text not null check (length(name) between 1 and 200),
    created_at timestamptz not null default now(),
    removed_at timestamptz,
    primary key (tenant_id, plan_id)
);
create unique index plans_name_key on plans (tenant_id, lower(name)) where removed_at is null;

create table plan_versions (
    tenant_id       uuid not null references tenants,
    plan_version_id uuid not null,
    plan_id         uuid not null,
    number          integer not null check (number > 0),
    status          text not null check (status in ('draft', 'published', 'retired')),
    base_fee_minor  bigint not null default 0 check (base_fee_minor >= 0),
    currency        text not null check (currency ~ '^[A-Z]{3}$'),
    period          text not null check (period in ('month')),
    created_at      timestamptz not null default now(),
    published_at    timestamptz,
    primary key (tenant_id, plan_version_id),
    foreign key (tenant_id, plan_id) references plans,
    unique (tenant_id, plan_id, number)
);
create unique index plan_versions_current_key on plan_versions (tenant_id, plan_id) where status = 'published';

create table plan_prices (
    tenant_id          uuid not null references tenants,
    price_id           uuid not null,
    plan_version_id    uuid not null,
    position           integer not null,
    models             text not null,
    class              text not null check (class in ('input', 'cached_input', 'cache_write', 'output', 'reasoning', 'request', 'unit')),
    micros_per_million bigint not null check (micros_per_million between 0 and 1000000000000),
    primary key (tenant_id, price_id),
    foreign key (tenant_id, plan_version_id) references plan_versions,
    unique (tenant_id, plan_version_id, models, class)
);

create table subscriptions (
    tenant_id       uuid not null references tenants,
    subscription_id uuid not null,
    customer_id     uuid not null,
    plan_version_id uuid not null,
    status          text not null check (status in ('active', 'ended')),
    started_at      timestamptz not null,
    ended_at        timestamptz,
    zone            text not null,
    created_at      timestamptz not null default now(),
    primary key (tenant_id, subscription_id),
    foreign key (tenant_id, customer_id) references customers,
    foreign key (tenant_id, plan_version_id) references plan_versions
);
create unique index subscriptions_one_active_key on subscriptions (tenant_id, customer_id) where status <> 'ended';

-- Periods are rows with both ends fixed when they open.
create table subscription_periods (
    tenant_id       uuid not null references tenants,
    subscription_id uuid not null,
    starts_at       timestamptz not null,
    ends_at         timestamptz not null check (ends_at > starts_at),
    primary key (tenant_id, subscription_id, starts_at),
    foreign key (tenant_id, subscription_id) references subscriptions
);

-- What a customer was promised never changes under it.
-- +goose StatementBegin
create function plan_version_is_frozen() returns trigger
    language plpgsql as $$
begin
    if old.status <> 'draft' and (new.base_fee_minor, new.currency, new.period, new.number, new.plan_id)
        is distinct from (old.base_fee_minor, old.currency, old.period, old.number, old.plan_id) then
        raise exception 'plan version % is %, and does not change', old.plan_version_id, old.status
            using errcode = 'integrity_constraint_violation', constraint = 'plan_version_is_frozen';
    end if;
    return new;
end
$$;
create function plan_part_is_frozen() returns trigger
    language plpgsql as $$
declare
    version uuid;
begin
    if tg_table_name = 'limits' then
        if coalesce(new.owner_kind, old.owner_kind) <> 'plan_version' then
            return coalesce(new, old);
        end if;
        version := coalesce(new.owner_id, old.owner_id);
    else
        version := coalesce(new.plan_version_id, old.plan_version_id);
    end if;
    if exists (select from plan_versions v
               where v.tenant_id = coalesce(new.tenant_id, old.tenant_id)
                 and v.plan_version_id = version and v.status <> 'draft') then
        raise exception 'plan version % does not change any more', version
            using errcode = 'integrity_constraint_violation', constraint = 'plan_version_is_frozen';
    end if;
    return coalesce(new, old);
end
$$;
-- +goose StatementEnd
create trigger frozen before update on plan_versions for each row execute function plan_version_is_frozen();
create trigger frozen before insert or update or delete on plan_prices for each row execute function plan_part_is_frozen();
create trigger frozen before insert or update or delete on limits for each row execute function plan_part_is_frozen();

-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['plans', 'plan_versions', 'plan_prices', 'subscriptions', 'subscription_periods'] loop
        execute format('alter table %I enable row level security', t);
        execute format('alter table %I force row level security', t);
        execute format('create policy tenant on %I to weir_app using (tenant_id = app_tenant()) with check (tenant_id = app_tenant())', t);
        execute format('grant select, insert, update on %I to weir_app', t);
    end loop;
end
$$;
-- +goose StatementEnd
revoke update on subscription_periods, plan_prices from weir_app;
grant delete on plan_prices to weir_app;

-- +goose Down
drop table subscription_periods, subscriptions, plan_prices, plan_versions, plans;
drop function plan_part_is_frozen, plan_version_is_frozen;
