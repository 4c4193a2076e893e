-- +goose Up
-- An override puts a limit of one customer in the place of its plan's, or beside
-- them, for a time and for a reason. The limit itself is a row of limits.
create table overrides (
    tenant_id       uuid not null references tenants,
    override_id     uuid not null,
    subscription_id uuid not null,
    customer_id     uuid not null,
    reason          text not null check (length(reason) between 1 and 500),
    starts_at       timestamptz not null,
    ends_at         timestamptz check (ends_at >= starts_at),
    actor_kind      text not null,
    actor_id        uuid,
    created_at      timestamptz not null,
    primary key (tenant_id, override_id),
    foreign key (tenant_id, subscription_id) references subscriptions,
    foreign key (tenant_id, customer_id) references customers
);
create index overrides_of on overrides (tenant_id, subscription_id, starts_at);
alter table overrides enable row level security;
alter table overrides force row level security;
create policy tenant on overrides to weir_app using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant select, insert on overrides to weir_app;
grant update (ends_at) on overrides to weir_app;

alter table limits drop constraint limits_owner_kind_check;
alter table limits add constraint limits_owner_kind_check
    check (owner_kind in ('tenant', 'plan_version', 'api_key', 'provider_key', 'pool', 'override'));

create trigger noted after insert or update or delete on overrides
    for each row execute function note_config_change('customer', 'customer_id');

-- What happened to one thing, newest first.
create index audit_entries_object on audit_entries (tenant_id, object, position);

-- +goose Down
drop index audit_entries_object;
delete from limits where owner_kind = 'override';
alter table limits drop constraint limits_owner_kind_check;
alter table limits add constraint limits_owner_kind_check
    check (owner_kind in ('tenant', 'plan_version', 'api_key', 'provider_key', 'pool'));
drop table overrides;
