-- +goose Up
-- What a quote offers that no plan of the list does is a plan of the quote's own.
alter table plans add column quote_id uuid;
drop index plans_name_key;
create unique index plans_name_key on plans (tenant_id, lower(name)) where removed_at is null and quote_id is null;

create table quotes (
    tenant_id   uuid not null references tenants,
    quote_id    uuid not null,
    year        integer not null,
    sequence    integer not null check (sequence > 0),
    customer_id uuid,
    to_name     text not null check (length(to_name) between 1 and 200),
    to_email    text not null check (length(to_email) between 3 and 320),
    to_company  text not null default '' check (length(to_company) <= 200),
    status      text not null check (status in ('draft', 'sent', 'viewed', 'accepted', 'declined', 'expired', 'withdrawn')),
    out_version integer,
    link_hash   bytea check (length(link_hash) = 32),
    link_sealed bytea,
    created_at  timestamptz not null,
    primary key (tenant_id, quote_id),
    foreign key (tenant_id, customer_id) references customers,
    unique (tenant_id, year, sequence),
    check (status in ('draft', 'withdrawn') or out_version is not null)
);
create unique index quotes_link on quotes (link_hash) where link_hash is not null;
create index quotes_out on quotes (tenant_id, status) where status in ('sent', 'viewed');

-- A version is a draft until it is sent; from then on what it offers is frozen.
create table quote_versions (
    tenant_id       uuid not null references tenants,
    quote_id        uuid not null,
    version         integer not null check (version > 0),
    state           text not null check (state in ('draft', 'out', 'superseded', 'discarded')),
    plan_version_id uuid not null,
    own_terms       boolean not null,
    volumes         jsonb not null default '[]',
    note            text not null default '' check (length(note) <= 2000),
    valid_until     timestamptz not null,
    ratio_milli     bigint,
    reason          text not null default '' check (length(reason) <= 500),
    created_at      timestamptz not null,
    sent_at         timestamptz,
    viewed_at       timestamptz,
    views           bigint not null default 0,
    decided_at      timestamptz,
    decided_name    text not null default '',
    decided_email   text not null default '',
    decline_reason  text not null default '' check (length(decline_reason) <= 1000),
    customer_id     uuid,
    subscription_id uuid,
    api_key_id      uuid,
    primary key (tenant_id, quote_id, version),
    foreign key (tenant_id, quote_id) references quotes,
    foreign key (tenant_id, plan_version_id) references plan_versions,
    foreign key (tenant_id, customer_id) references customers,
    foreign key (tenant_id, subscription_id) references subscriptions
);
create unique index quote_versions_draft on quote_versions (tenant_id, quote_id) where state = 'draft';
create unique index quote_versions_out on quote_versions (tenant_id, quote_id) where state = 'out';
comment on column quote_versions.ratio_milli is 'thousandths: the highest share of what is sold to what the keys can carry, when it was sent';

-- A customer accepts, and later keeps its own keys.
alter table audit_entries drop constraint audit_entries_actor_kind_check;
alter table audit_entries add constraint audit_entries_actor_kind_check check (actor_kind in ('user', 'api_key', 'operator', 'system', 'customer'));

create table quote_numbers (
    tenant_id uuid not null references tenants,
    year      integer not null,
    last      integer not null,
    primary key (tenant_id, year)
);

-- +goose StatementBegin
create function quote_version_is_frozen() returns trigger
    language plpgsql as $$
begin
    if old.state in ('out', 'superseded') and (new.plan_version_id, new.own_terms, new.volumes, new.note, new.valid_until, new.ratio_milli, new.reason, new.sent_at)
        is distinct from (old.plan_version_id, old.own_terms, old.volumes, old.note, old.valid_until, old.ratio_milli, old.reason, old.sent_at) then
        raise exception 'version % of quote % was sent, and does not change', old.version, old.quote_id
            using errcode = 'integrity_constraint_violation', constraint = 'quote_version_is_frozen';
    end if;
    if old.decided_at is not null and (new.decided_at, new.decided_name, new.decided_email, new.customer_id, new.subscription_id, new.api_key_id)
        is distinct from (old.decided_at, old.decided_name, old.decided_email, old.customer_id, old.subscription_id, old.api_key_id) then
        raise exception 'version % of quote % is decided', old.version, old.quote_id
            using errcode = 'integrity_constraint_violation', constraint = 'quote_version_is_frozen';
    end if;
    return new;
end
$$;
-- +goose StatementEnd
create trigger frozen before update on quote_versions for each row execute function quote_version_is_frozen();

-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['quotes', 'quote_versions', 'quote_numbers'] loop
        execute format('alter table %I enable row level security', t);
        execute format('alter table %I force row level security', t);
        execute format('create policy tenant on %I to weir_app using (tenant_id = app_tenant()) with check (tenant_id = app_tenant())', t);
        execute format('grant select, insert, update on %I to weir_app', t);
    end loop;
end
$$;
-- +goose StatementEnd
create policy lookup on quotes for select to weir_lookup using (true);
create policy lookup on quote_versions for select to weir_lookup using (true);
grant select on quotes, quote_versions to weir_lookup;

grant create on schema public to weir_lookup;
-- +goose StatementBegin
create function lookup_quote(hash bytea) returns table (tenant_id uuid, quote_id uuid)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$ select q.tenant_id, q.quote_id from public.quotes q where q.link_hash = hash $$;
create function lookup_lapsed_quotes(at timestamptz, most integer) returns table (tenant_id uuid, quote_id uuid)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$
        select q.tenant_id, q.quote_id from public.quotes q
        join public.quote_versions v on v.tenant_id = q.tenant_id and v.quote_id = q.quote_id and v.version = q.out_version
        where q.status in ('sent', 'viewed') and v.valid_until <= at
        limit most
    $$;
-- +goose StatementEnd
alter function lookup_quote(bytea) owner to weir_lookup;
alter function lookup_lapsed_quotes(timestamptz, integer) owner to weir_lookup;
revoke create on schema public from weir_lookup;
revoke all on function lookup_quote(bytea), lookup_lapsed_quotes(timestamptz, integer) from public;
grant execute on function lookup_quote(bytea), lookup_lapsed_quotes(timestamptz, integer) to weir_app;

-- +goose Down
alter table audit_entries drop constraint audit_entries_actor_kind_check;
alter table audit_entries add constraint audit_entries_actor_kind_check check (actor_kind in ('user', 'api_key', 'operator', 'system'));
drop function lookup_lapsed_quotes(timestamptz, integer);
drop function lookup_quote(bytea);
drop table quote_numbers, quote_versions, quotes;
drop function quote_version_is_frozen;
drop index plans_name_key;
create unique index plans_name_key on plans (tenant_id, lower(name)) where removed_at is null;
alter table plans drop column quote_id;
