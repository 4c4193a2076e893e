-- +goose Up
-- How a tenant looks to its customers. What is empty is as the tenant is called,
-- or left out.
create table brands (
    tenant_id     uuid primary key references tenants,
    display_name  text not null default '' check (length(display_name) <= 80),
    legal_line    text not null default '' check (length(legal_line) <= 300),
    hue           text not null default '' check (hue ~ '^[a-z]{0,20}$'),
    sender_name   text not null default '' check (length(sender_name) <= 80),
    reply_to      text not null default '' check (length(reply_to) <= 254),
    support_email text not null default '' check (length(support_email) <= 254),
    terms_url     text not null default '' check (length(terms_url) <= 500),
    names_weir    boolean not null default true,
    logo          bytea check (length(logo) <= 2097152),
    logo_hash     bytea check (length(logo_hash) = 32),
    logo_type     text check (logo_type in ('image/png', 'image/jpeg')),
    logo_width    integer,
    logo_height   integer,
    changed_at    timestamptz not null,
    check (num_nonnulls(logo, logo_hash, logo_type, logo_width, logo_height) in (0, 5))
);
comment on column brands.logo is 'drawn again by us, never the bytes that were sent';
create index brands_logo on brands (logo_hash) where logo_hash is not null;
alter table brands enable row level security;
alter table brands force row level security;
create policy tenant on brands to weir_app using (tenant_id = app_tenant()) with check (tenant_id = app_tenant());
create policy lookup on brands for select to weir_lookup using (true);
grant select, insert, update on brands to weir_app;
grant select (tenant_id, logo, logo_hash, logo_type) on brands to weir_lookup;

-- A logo is public: it is found by its hash alone.
grant create on schema public to weir_lookup;
-- +goose StatementBegin
create function lookup_logo(hash bytea) returns table (body bytea, type text)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$ select b.logo, b.logo_type from public.brands b where b.logo_hash = hash limit 1 $$;
-- +goose StatementEnd
alter function lookup_logo(bytea) owner to weir_lookup;
revoke create on schema public from weir_lookup;
revoke all on function lookup_logo(bytea) from public;
grant execute on function lookup_logo(bytea) to weir_app;

-- Whom a mail is from, and who gets the answer; empty: the installation.
alter table mails add column from_name text not null default '', add column reply_to text not null default '';

-- +goose Down
alter table mails drop column reply_to, drop column from_name;
drop function lookup_logo(bytea);
drop table brands;
