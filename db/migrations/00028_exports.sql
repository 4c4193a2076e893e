-- +goose Up
-- Files that a tenant asked for. A worker makes one under a lease; a file is
-- kept here in pieces, so that any replica can hand it out.
create table exports (
    tenant_id  uuid not null references tenants,
    export_id  uuid not null,
    kind       text not null check (kind in ('usage', 'requests')),
    format     text not null check (format in ('csv', 'json')),
    asked      jsonb not null,
    state      text not null check (state in ('queued', 'running', 'ready', 'failed')),
    begun      integer not null default 0,
    next_at    timestamptz not null,
    lease      uuid,
    progress   double precision not null default 0,
    written    bigint not null default 0,
    bytes      bigint not null default 0,
    sha256     bytea,
    reason     text not null default '',
    created_at timestamptz not null,
    ended_at   timestamptz,
    expires_at timestamptz not null,
    primary key (tenant_id, export_id)
);
comment on column exports.next_at is 'when a worker may take it: at once, or when the lease has run out';
comment on column exports.begun is 'how many times a worker has';
create index exports_due on exports (next_at) where state in ('queued', 'running');
create index exports_old on exports (expires_at);

create table export_chunks (
    tenant_id uuid not null,
    export_id uuid not null,
    number    integer not null,
    body      bytea not null,
    primary key (tenant_id, export_id, number),
    foreign key (tenant_id, export_id) references exports on delete cascade
);

-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['exports', 'export_chunks'] loop
        execute format('alter table %I enable row level security', t);
        execute format('alter table %I force row level security', t);
        execute format('create policy tenant on %I to weir_app using (tenant_id = app_tenant()) with check (tenant_id = app_tenant())', t);
        execute format('grant select, insert, update, delete on %I to weir_app', t);
    end loop;
end
$$;
-- +goose StatementEnd
create policy lookup on exports for select to weir_lookup using (true);
grant select on exports to weir_lookup;

-- What is due is asked across tenants, one of each tenant at a time: a tenant
-- that asks for many holds up no other.
grant create on schema public to weir_lookup;
-- +goose StatementBegin
create function lookup_due_exports(due timestamptz, most integer)
    returns table (tenant_id uuid, export_id uuid)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$
        select f.tenant_id, f.export_id
        from (
            select distinct on (e.tenant_id) e.tenant_id, e.export_id, e.next_at
            from public.exports e
            where e.state in ('queued', 'running') and e.next_at <= due
            order by e.tenant_id, e.next_at, e.export_id
        ) f
        order by f.next_at
        limit most
    $$;
create function lookup_old_exports(at timestamptz)
    returns table (tenant_id uuid)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$
        select distinct e.tenant_id from public.exports e where e.expires_at <= at
    $$;
-- +goose StatementEnd
alter function lookup_due_exports(timestamptz, integer) owner to weir_lookup;
alter function lookup_old_exports(timestamptz) owner to weir_lookup;
revoke create on schema public from weir_lookup;
revoke all on function lookup_due_exports(timestamptz, integer), lookup_old_exports(timestamptz) from public;
grant execute on function lookup_due_exports(timestamptz, integer), lookup_old_exports(timestamptz) to weir_app;

-- +goose Down
drop function lookup_due_exports(timestamptz, integer), lookup_old_exports(timestamptz);
drop table export_chunks, exports;
