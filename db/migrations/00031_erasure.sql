-- +goose Up
-- Customers whose personal data is to go from their calls: end users and tags.
-- Figures stay. The worker does it, and looks again for what came late.
create table usage_erasures (
    tenant_id   uuid not null,
    customer_id uuid not null,
    asked_at    timestamptz not null default now(),
    looked_at   timestamptz,
    primary key (tenant_id, customer_id)
);
alter table usage_erasures enable row level security;
alter table usage_erasures force row level security;
create policy tenant on usage_erasures to weir_app using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
create policy worker on usage_erasures to weir_worker using (true) with check (true);
grant select, insert, update on usage_erasures to weir_app;
grant select, update, delete on usage_erasures to weir_worker;

revoke update (end_user, tags) on usage_events from weir_app;
drop policy erase on usage_events;
grant update (end_user, tags) on usage_events to weir_worker;

-- +goose Down
revoke update (end_user, tags) on usage_events from weir_worker;
create policy erase on usage_events for update to weir_app using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant update (end_user, tags) on usage_events to weir_app;
drop table usage_erasures;
