-- +goose Up
-- How a customer's people get into their portal: one-time links, and sessions of
-- their own kind, which open nothing of the dashboard. Only hashes are kept.
create table portal_links (
    tenant_id   uuid not null references tenants,
    link_hash   bytea not null check (length(link_hash) = 32),
    customer_id uuid not null,
    email       text not null default '' check (length(email) <= 254),
    why         text not null check (why in ('asked', 'sent', 'accepted')),
    created_at  timestamptz not null,
    expires_at  timestamptz not null,
    used_at     timestamptz,
    primary key (tenant_id, link_hash),
    foreign key (tenant_id, customer_id) references customers
);
comment on column portal_links.email is 'whom it was sent to; empty: it was handed out by the tenant';
create index portal_links_customer on portal_links (tenant_id, customer_id);
create unique index portal_links_hash on portal_links (link_hash);

create table portal_sessions (
    tenant_id    uuid not null references tenants,
    session_hash bytea not null check (length(session_hash) = 32),
    session_id   uuid not null,
    customer_id  uuid not null,
    email        text not null default '',
    created_at   timestamptz not null,
    seen_at      timestamptz not null,
    expires_at   timestamptz not null,
    ended_at     timestamptz,
    user_agent   text not null default '',
    ip           inet,
    primary key (tenant_id, session_hash),
    foreign key (tenant_id, customer_id) references customers
);
create index portal_sessions_customer on portal_sessions (tenant_id, customer_id);
create unique index portal_sessions_hash on portal_sessions (session_hash);

-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['portal_links', 'portal_sessions'] loop
        execute format('alter table %I enable row level security', t);
        execute format('alter table %I force row level security', t);
        execute format('create policy tenant on %I to weir_app using (tenant_id = app_tenant()) with check (tenant_id = app_tenant())', t);
        execute format('create policy lookup on %I for select to weir_lookup using (true)', t);
        execute format('grant select, insert, update, delete on %I to weir_app', t);
    end loop;
end
$$;
-- +goose StatementEnd
grant select (tenant_id, link_hash) on portal_links to weir_lookup;
grant select (tenant_id, session_hash) on portal_sessions to weir_lookup;

-- Who asks for a link names an address, and the tenant is not known yet.
create index customers_email on customers (lower(email)) where email is not null and removed_at is null;
create policy lookup on customers for select to weir_lookup using (true);
grant select (tenant_id, customer_id, email, removed_at) on customers to weir_lookup;
grant create on schema public to weir_lookup;
-- +goose StatementBegin
create function lookup_portal_link(hash bytea) returns table (tenant_id uuid)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$ select l.tenant_id from public.portal_links l where l.link_hash = hash $$;
create function lookup_portal_session(hash bytea) returns table (tenant_id uuid)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$ select s.tenant_id from public.portal_sessions s where s.session_hash = hash $$;
create function lookup_portal_customers(address text, most integer) returns table (tenant_id uuid, customer_id uuid)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$
        select c.tenant_id, c.customer_id
        from public.customers c join public.tenants t on t.tenant_id = c.tenant_id
        where lower(c.email) = lower(address) and c.removed_at is null and t.suspended_at is null
        order by c.customer_id limit most
    $$;
-- +goose StatementEnd
alter function lookup_portal_link(bytea) owner to weir_lookup;
alter function lookup_portal_session(bytea) owner to weir_lookup;
alter function lookup_portal_customers(text, integer) owner to weir_lookup;
revoke create on schema public from weir_lookup;
revoke all on function lookup_portal_link(bytea), lookup_portal_session(bytea), lookup_portal_customers(text, integer) from public;
grant execute on function lookup_portal_link(bytea), lookup_portal_session(bytea), lookup_portal_customers(text, integer) to weir_app;

-- What a customer does in its portal is audited as its own.
alter table audit_entries drop constraint audit_entries_actor_kind_check;
alter table audit_entries add constraint audit_entries_actor_kind_check check (actor_kind in ('user', 'api_key', 'operator', 'system', 'customer'));

-- A link in a mail that is owed is sealed until it is sent.
alter table mails add column sealed_link bytea;

-- +goose Down
alter table mails drop column sealed_link;
drop function lookup_portal_customers(text, integer), lookup_portal_session(bytea), lookup_portal_link(bytea);
drop policy lookup on customers;
drop index customers_email;
revoke select (tenant_id, customer_id, email, removed_at) on customers from weir_lookup;
drop table portal_sessions, portal_links;

alter table audit_entries drop constraint audit_entries_actor_kind_check;
alter table audit_entries add constraint audit_entries_actor_kind_check check (actor_kind in ('user', 'api_key', 'operator', 'system'));
