-- +goose Up
create table audit_entries (
    tenant_id   uuid not null references tenants,
    audit_id    uuid not null,
    at          timestamptz not null default now(),
    actor_kind  text not null check (actor_kind in ('user', 'api_key', 'operator', 'system')),
    actor_id    uuid,
    credential  text not null default '',
    role        text not null default '',
    ip          inet,
    request_id  uuid,
    action      text not null,
    object      text not null default '',
    difference  jsonb not null default '{}',
    prev_hash   bytea,
    hash        bytea not null,
    position    bigint not null,
    primary key (tenant_id, audit_id),
    unique (tenant_id, position)
);
comment on column audit_entries.difference is 'what changed, redacted: no secret ever';
alter table audit_entries enable row level security;
alter table audit_entries force row level security;
create policy tenant on audit_entries to weir_app
    using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant select, insert on audit_entries to weir_app;

-- +goose Down
drop table audit_entries;
