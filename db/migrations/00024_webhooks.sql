-- +goose Up
-- Where a tenant is told what happened. Secrets are sealed; the old one signs
-- too until old_until.
create table webhook_endpoints (
    tenant_id         uuid not null references tenants,
    endpoint_id       uuid not null,
    url               text not null check (length(url) between 1 and 2048),
    description       text not null default '' check (length(description) <= 200),
    types             text[] not null default '{}',
    sealed_secret     bytea,
    last4             text not null,
    old_sealed_secret bytea,
    old_last4         text not null default '',
    old_until         timestamptz,
    created_at        timestamptz not null,
    failing_since     timestamptz,
    disabled_at       timestamptz,
    disabled_why      text not null default '' check (disabled_why in ('', 'person', 'gone', 'failing')),
    removed_at        timestamptz,
    primary key (tenant_id, endpoint_id)
);
comment on column webhook_endpoints.types is 'message types, or group.*; none: every type';
comment on column webhook_endpoints.failing_since is 'the first failed try after the last one that was taken';

-- What is told, in the bytes that every try sends.
create table webhook_messages (
    tenant_id  uuid not null references tenants,
    message_id uuid not null,
    type       text not null check (length(type) between 1 and 100),
    body       text not null check (length(body) <= 65536),
    created_at timestamptz not null,
    primary key (tenant_id, message_id)
);

-- One message for one endpoint. While a worker has it, lease is set and next_at
-- is when another worker may take it over.
create table webhook_deliveries (
    tenant_id   uuid not null references tenants,
    endpoint_id uuid not null,
    message_id  uuid not null,
    state       text not null check (state in ('waiting', 'taken', 'dead', 'held')),
    tries       integer not null default 0,
    next_at     timestamptz not null,
    lease       uuid,
    last_at     timestamptz,
    last_status integer not null default 0,
    last_ms     integer not null default 0,
    last_error  text not null default '',
    primary key (tenant_id, endpoint_id, message_id),
    foreign key (tenant_id, endpoint_id) references webhook_endpoints,
    foreign key (tenant_id, message_id) references webhook_messages on delete cascade
);
comment on column webhook_deliveries.state is 'held: the endpoint was off when it happened';
comment on column webhook_deliveries.tries is 'since it was first sent, or replayed';
create index webhook_deliveries_due on webhook_deliveries (tenant_id, endpoint_id, next_at) where state = 'waiting';
create index webhook_deliveries_message on webhook_deliveries (tenant_id, message_id desc, endpoint_id);

-- One try. Of an answer only its status is kept: what else a far end says is
-- not ours to store or show.
create table webhook_attempts (
    tenant_id   uuid not null references tenants,
    endpoint_id uuid not null,
    message_id  uuid not null,
    attempt_id  uuid not null,
    at          timestamptz not null,
    status      integer not null,
    ms          integer not null,
    error       text not null,
    primary key (tenant_id, endpoint_id, message_id, attempt_id),
    foreign key (tenant_id, endpoint_id, message_id) references webhook_deliveries on delete cascade
);

-- Mail that is owed: written with what it is about, sent until it is taken.
create table mails (
    tenant_id  uuid not null references tenants,
    mail_id    uuid not null,
    recipient  text not null check (length(recipient) between 3 and 254),
    subject    text not null check (length(subject) between 1 and 300),
    body       text not null check (length(body) <= 20000),
    state      text not null check (state in ('waiting', 'sent', 'dead')),
    tries      integer not null default 0,
    next_at    timestamptz not null,
    lease      uuid,
    created_at timestamptz not null,
    sent_at    timestamptz,
    primary key (tenant_id, mail_id)
);
create index mails_due on mails (next_at) where state = 'waiting';

-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['webhook_endpoints', 'webhook_messages', 'webhook_deliveries', 'webhook_attempts', 'mails'] loop
        execute format('alter table %I enable row level security', t);
        execute format('alter table %I force row level security', t);
        execute format('create policy tenant on %I to weir_app using (tenant_id = app_tenant()) with check (tenant_id = app_tenant())', t);
        execute format('create policy lookup on %I for select to weir_lookup using (true)', t);
        execute format('grant select, insert, update, delete on %I to weir_app', t);
        execute format('grant select on %I to weir_lookup', t);
    end loop;
end
$$;
-- +goose StatementEnd
revoke delete on webhook_endpoints from weir_app;

-- What is due is asked across tenants. Endpoints are visited one by one, so that
-- a long queue at one of them hides nothing of the others.
grant create on schema public to weir_lookup;
-- +goose StatementBegin
create function lookup_due_deliveries(due timestamptz, each integer, most integer)
    returns table (tenant_id uuid, endpoint_id uuid, message_id uuid, failing boolean)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$
        with recursive heads as (
            (select d.tenant_id, d.endpoint_id from public.webhook_deliveries d
             where d.state = 'waiting' order by d.tenant_id, d.endpoint_id limit 1)
            union all
            select n.tenant_id, n.endpoint_id
            from heads h
            cross join lateral (
                select d.tenant_id, d.endpoint_id from public.webhook_deliveries d
                where d.state = 'waiting' and (d.tenant_id, d.endpoint_id) > (h.tenant_id, h.endpoint_id)
                order by d.tenant_id, d.endpoint_id limit 1) n
        )
        select d.tenant_id, d.endpoint_id, d.message_id, e.failing_since is not null
        from heads h
        join public.webhook_endpoints e on e.tenant_id = h.tenant_id and e.endpoint_id = h.endpoint_id
        cross join lateral (
            select w.tenant_id, w.endpoint_id, w.message_id, w.next_at from public.webhook_deliveries w
            where w.tenant_id = h.tenant_id and w.endpoint_id = h.endpoint_id and w.state = 'waiting' and w.next_at <= due
            order by w.next_at limit each) d
        order by e.failing_since is not null, d.next_at
        limit most
    $$;
create function lookup_due_mails(due timestamptz, most integer)
    returns table (tenant_id uuid, mail_id uuid)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$
        select m.tenant_id, m.mail_id from public.mails m
        where m.state = 'waiting' and m.next_at <= due
        order by m.next_at limit most
    $$;
create function lookup_told_before(message uuid)
    returns table (tenant_id uuid)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$
        select t.tenant_id from public.tenants t
        where exists (select from public.webhook_messages m where m.tenant_id = t.tenant_id and m.message_id < message)
           or exists (select from public.mails m where m.tenant_id = t.tenant_id and m.mail_id < message)
    $$;
-- +goose StatementEnd
alter function lookup_due_deliveries(timestamptz, integer, integer) owner to weir_lookup;
alter function lookup_due_mails(timestamptz, integer) owner to weir_lookup;
alter function lookup_told_before(uuid) owner to weir_lookup;
revoke create on schema public from weir_lookup;
revoke all on function lookup_due_deliveries(timestamptz, integer, integer), lookup_due_mails(timestamptz, integer), lookup_told_before(uuid) from public;
grant execute on function lookup_due_deliveries(timestamptz, integer, integer), lookup_due_mails(timestamptz, integer), lookup_told_before(uuid) to weir_app;

-- +goose Down
drop function lookup_due_deliveries(timestamptz, integer, integer), lookup_due_mails(timestamptz, integer), lookup_told_before(uuid);
drop table mails, webhook_attempts, webhook_deliveries, webhook_messages, webhook_endpoints;
