-- +goose Up
-- What has changed of the configuration that API processes remember: written
-- in the transaction that changes it, by the database itself, so that nobody
-- who writes can forget it. A process asks for what has committed since it
-- last asked, by snapshot: numbers would be handed out in another order than
-- transactions commit in.
create table config_changes (
    xid       xid8 not null default pg_current_xact_id(),
    tenant_id uuid not null,
    kind      text not null,
    object_id uuid not null,
    primary key (xid, tenant_id, kind, object_id)
);
comment on column config_changes.xid is 'first, for it is what is looked for';
alter table config_changes enable row level security;
alter table config_changes force row level security;
create policy lookup on config_changes to weir_lookup using (true) with check (true);
create policy prune on config_changes to weir_worker using (true);
grant select, insert on config_changes to weir_lookup;
grant select, delete on config_changes to weir_worker;

grant create on schema public to weir_lookup;
-- +goose StatementBegin
-- The first argument is the kind of thing that changed, the second the column
-- that says which. For limits the row itself says both.
create function note_config_change() returns trigger
    language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
    changed jsonb;
begin
    foreach changed in array array[to_jsonb(old), to_jsonb(new)] loop
        continue when changed is null;
        insert into public.config_changes (tenant_id, kind, object_id)
        values ((changed ->> 'tenant_id')::uuid,
                case when tg_argv[0] = '' then changed ->> 'owner_kind' else tg_argv[0] end,
                (changed ->> tg_argv[1])::uuid)
        on conflict do nothing;
    end loop;
    return null;
end
$$;
-- What has committed and was not seen by a snapshot: of the transactions that
-- ran then, and of those that began since. However long one runs, no more rows
-- are looked at than are new.
create function lookup_config_changes(seen pg_snapshot, most integer)
    returns table (tenant_id uuid, kind text, object_id uuid)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$
        select distinct c.tenant_id, c.kind, c.object_id
        from (
            select x.tenant_id, x.kind, x.object_id from public.config_changes x
            where x.xid >= pg_snapshot_xmax(seen)
            union all
            select x.tenant_id, x.kind, x.object_id from public.config_changes x
            where x.xid = any(array(select pg_snapshot_xip(seen)))
        ) c
        limit most
    $$;
-- +goose StatementEnd
alter function note_config_change() owner to weir_lookup;
alter function lookup_config_changes(pg_snapshot, integer) owner to weir_lookup;
revoke create on schema public from weir_lookup;
revoke all on function note_config_change(), lookup_config_changes(pg_snapshot, integer) from public;
grant execute on function lookup_config_changes(pg_snapshot, integer) to weir_app;

-- Nobody remembers what does not exist yet: new tenants, customers and keys are
-- no change, so that a million of them can be brought in quietly. When a key
-- was last used is no configuration.
create trigger noted after update or delete on tenants
    for each row execute function note_config_change('tenant', 'tenant_id');
create trigger noted after update or delete on customers
    for each row execute function note_config_change('customer', 'customer_id');
create trigger noted after delete on api_keys
    for each row execute function note_config_change('api_key', 'api_key_id');
create trigger noted_update after update of tenant_id, api_key_id, counter_id, kind, customer_id, name, secret_hash, first4, last4,
    test, may_settle, scopes, models, ip_allow, created_at, expires_at, revoked_at, replaced_by on api_keys
    for each row execute function note_config_change('api_key', 'api_key_id');
create trigger noted after insert or update or delete on limits
    for each row execute function note_config_change('', 'owner_id');
create trigger noted after insert or update or delete on subscriptions
    for each row execute function note_config_change('customer', 'customer_id');
create trigger noted after update or delete on plans
    for each row execute function note_config_change('plan', 'plan_id');
create trigger noted after update or delete on plan_versions
    for each row execute function note_config_change('plan_version', 'plan_version_id');
create trigger noted after insert or update or delete on plan_prices
    for each row execute function note_config_change('plan_version', 'plan_version_id');
create trigger noted after insert or update or delete on provider_keys
    for each row execute function note_config_change('provider_key', 'provider_key_id');
create trigger noted after insert or update or delete on provider_health
    for each row execute function note_config_change('provider_key', 'provider_key_id');
create trigger noted after insert or update or delete on learned_limits
    for each row execute function note_config_change('provider_key', 'provider_key_id');
create trigger noted after insert or update or delete on model_streaks
    for each row execute function note_config_change('streak', 'tenant_id');
create trigger noted after update or delete on data_keys
    for each row execute function note_config_change('data_key', 'data_key_id');

-- A process may remember which key a secret belongs to for as long as it lives.
-- +goose StatementBegin
create function secret_is_frozen() returns trigger
    language plpgsql as $$
begin
    if new.secret_hash is distinct from old.secret_hash then
        raise exception 'the secret of key % does not change', old.api_key_id
            using errcode = 'integrity_constraint_violation', constraint = 'secret_is_frozen';
    end if;
    return new;
end
$$;
-- +goose StatementEnd
create trigger frozen before update of secret_hash on api_keys
    for each row execute function secret_is_frozen();

-- +goose Down
drop trigger frozen on api_keys;
drop function secret_is_frozen;
drop trigger noted on tenants;
drop trigger noted on customers;
drop trigger noted on api_keys;
drop trigger noted_update on api_keys;
drop trigger noted on limits;
drop trigger noted on subscriptions;
drop trigger noted on plans;
drop trigger noted on plan_versions;
drop trigger noted on plan_prices;
drop trigger noted on provider_keys;
drop trigger noted on provider_health;
drop trigger noted on learned_limits;
drop trigger noted on model_streaks;
drop trigger noted on data_keys;
drop function note_config_change, lookup_config_changes;
drop table config_changes;
