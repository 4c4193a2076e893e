-- +goose Up
-- The look-ups that come before a tenant is known. Each is owned by
-- weir_lookup, for which the tables have a policy of their own: under forced
-- row-level security a function of the table owner would see nothing.
-- +goose StatementBegin
create function lookup_api_key(hash bytea)
    returns table (tenant_id uuid, api_key_id uuid)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$ select k.tenant_id, k.api_key_id from public.api_keys k where k.secret_hash = hash $$;
create function lookup_memberships(person uuid)
    returns table (tenant_id uuid, member_id uuid, role text, tenant_name text)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$
        select m.tenant_id, m.member_id, m.role, t.name
        from public.members m join public.tenants t on t.tenant_id = m.tenant_id
        where m.user_id = person and m.removed_at is null
        order by m.created_at, m.tenant_id
    $$;
create function lookup_operator_tenant()
    returns uuid
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$ select t.tenant_id from public.tenants t where t.is_operator $$;
-- +goose StatementEnd
alter function lookup_api_key(bytea) owner to weir_lookup;
alter function lookup_memberships(uuid) owner to weir_lookup;
alter function lookup_operator_tenant() owner to weir_lookup;
revoke all on function lookup_api_key(bytea), lookup_memberships(uuid), lookup_operator_tenant() from public;
grant execute on function lookup_api_key(bytea), lookup_memberships(uuid), lookup_operator_tenant() to weir_app;
revoke create on schema public from weir_lookup;

-- +goose Down
drop function lookup_operator_tenant();
drop function lookup_memberships(uuid);
drop function lookup_api_key(bytea);
