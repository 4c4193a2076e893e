-- +goose Up
-- What a request with an Idempotency-Key did, written in the transaction that
-- did it, so that the same request does it once. Answers are kept without
-- secrets.
create table idempotency_keys (
    tenant_id     uuid not null references tenants,
    credential_id uuid not null,
    key_hash      bytea not null check (length(key_hash) = 32),
    request_hash  bytea not null check (length(request_hash) = 32),
    request_id    uuid not null,
    status        integer,
    answer        bytea,
    created_at    timestamptz not null,
    primary key (tenant_id, credential_id, key_hash)
);
create index idempotency_keys_age on idempotency_keys (tenant_id, created_at);
alter table idempotency_keys enable row level security;
alter table idempotency_keys force row level security;
create policy tenant on idempotency_keys to weir_app
    using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant select, insert, update, delete on idempotency_keys to weir_app;

-- +goose Down
drop table idempotency_keys;
