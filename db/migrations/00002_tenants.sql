-- +goose Up
create table tenants (
    tenant_id    uuid primary key,
    name         text not null check (length(name) between 1 and 200),
    zone         text not null,
    currency     text not null check (currency ~ '^[A-Z]{3}$'),
    is_operator  boolean not null default false,
    created_at   timestamptz not null default now(),
    suspended_at timestamptz
);
create unique index tenants_one_operator on tenants (is_operator) where is_operator;
alter table tenants enable row level security;
alter table tenants force row level security;
create policy tenant on tenants to weir_app
    using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
create policy lookup on tenants for select to weir_lookup using (true);
grant select, insert, update on tenants to weir_app;

-- People are not a tenant's: one person may belong to several.
create table users (
    user_id    uuid primary key,
    email      text not null check (email = lower(email) and length(email) between 3 and 254),
    name       text not null default '' check (length(name) <= 200),
    created_at timestamptz not null default now()
);
create unique index users_email_key on users (email);
grant select, insert, update on users to weir_app;

create table members (
    tenant_id  uuid not null references tenants,
    member_id  uuid not null,
    user_id    uuid not null references users,
    role       text not null check (role in ('owner', 'admin', 'developer', 'billing', 'viewer')),
    created_at timestamptz not null default now(),
    removed_at timestamptz,
    primary key (tenant_id, member_id)
);
create unique index members_active_key on members (tenant_id, user_id) where removed_at is null;
alter table members enable row level security;
alter table members force row level security;
create policy tenant on members to weir_app
    using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
create policy lookup on members for select to weir_lookup using (true);
grant select, insert, update on members to weir_app;
grant select on tenants, users, members to weir_lookup;

-- A session is found by the hash of an opaque cookie, before any tenant is
-- known, and so is a sign-in link; only hashes are kept.
create table sessions (
    session_hash bytea primary key check (length(session_hash) = 32),
    session_id   uuid not null unique,
    user_id      uuid not null references users,
    tenant_id    uuid not null references tenants,
    created_at   timestamptz not null default now(),
    seen_at      timestamptz not null default now(),
    expires_at   timestamptz not null,
    ended_at     timestamptz,
    user_agent   text not null default '',
    ip           inet
);
create index sessions_user on sessions (user_id);
grant select, insert, update on sessions to weir_app;

create table sign_in_links (
    link_hash  bytea primary key check (length(link_hash) = 32),
    user_id    uuid not null references users,
    tenant_id  uuid not null references tenants,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    used_at    timestamptz
);
grant select, insert, update on sign_in_links to weir_app;

-- +goose Down
drop table sign_in_links, sessions, members, users, tenants;
