-- +goose Up
-- When a subscription went from one plan version to another: its pieces, for
-- the invoice of the period in which it did.
create table subscription_changes (
    tenant_id       uuid not null references tenants,
    subscription_id uuid not null,
    changed_at      timestamptz not null,
    from_version_id uuid not null,
    to_version_id   uuid not null,
    primary key (tenant_id, subscription_id, changed_at),
    foreign key (tenant_id, subscription_id) references subscriptions,
    foreign key (tenant_id, from_version_id) references plan_versions,
    foreign key (tenant_id, to_version_id) references plan_versions
);
alter table subscription_changes enable row level security;
alter table subscription_changes force row level security;
create policy tenant on subscription_changes to weir_app
    using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant select, insert on subscription_changes to weir_app;

-- +goose Down
drop table subscription_changes;
