-- +goose Up
-- What proves who a person is, apart from who they are. Only hashes are kept.
create table passwords (
    user_id    uuid primary key references users,
    hash       text not null,
    changed_at timestamptz not null default now()
);

-- A sign-up that waits for its mail to be opened.
create table sign_ups (
    link_hash     bytea primary key check (length(link_hash) = 32),
    email         text not null,
    name          text not null,
    password_hash text not null,
    tenant_name   text not null,
    zone          text not null,
    currency      text not null,
    created_at    timestamptz not null default now(),
    expires_at    timestamptz not null,
    used_at       timestamptz
);

create table reset_links (
    link_hash  bytea primary key check (length(link_hash) = 32),
    user_id    uuid not null references users,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    used_at    timestamptz
);
create index reset_links_user on reset_links (user_id);
grant select, insert, update on passwords, sign_ups, reset_links to weir_app;
grant delete on sign_ups to weir_app;

-- How far a new tenant is on its first path, and what it chose to skip. What is
-- there already (a key, a plan) is read from there.
create table setup_steps (
    tenant_id  uuid not null references tenants,
    step       text not null check (step in ('provider', 'plan', 'key', 'call', 'refusal', 'team', 'path')),
    skipped_at timestamptz,
    done_at    timestamptz,
    primary key (tenant_id, step)
);
alter table setup_steps enable row level security;
alter table setup_steps force row level security;
create policy tenant on setup_steps to weir_app
    using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
grant select, insert, update on setup_steps to weir_app;

-- +goose Down
drop table setup_steps, reset_links, sign_ups, passwords;
