-- +goose Up
-- Roles belong to the cluster, not to the database: another database of the
-- same cluster may have made them already, also at this very moment.
-- weir_app serves the API, weir_worker the pipeline; neither owns anything.
-- weir_lookup owns the few functions that must see across tenants.
-- +goose StatementBegin
do $$
declare
    r text;
begin
    foreach r in array array['weir_app', 'weir_worker', 'weir_lookup'] loop
        begin
            execute format('create role %I', r);
        exception when duplicate_object or unique_violation then null;
        end;
    end loop;
    -- Handing a function to weir_lookup needs membership in it.
    if not pg_has_role(current_user, 'weir_lookup', 'member') then
        execute format('grant weir_lookup to %I', current_user);
    end if;
end
$$;
-- +goose StatementEnd

revoke all on schema public from public;
grant usage on schema public to weir_app, weir_worker;
grant usage, create on schema public to weir_lookup;

-- The tenant of the running transaction. After a transaction the setting is ''
-- and not null: nullif makes it fail closed.
-- +goose StatementBegin
create function app_tenant() returns uuid
    language sql stable parallel safe
    as $$ select nullif(current_setting('app.tenant_id', true), '')::uuid $$;
-- +goose StatementEnd
revoke all on function app_tenant() from public;
grant execute on function app_tenant() to weir_app, weir_worker, weir_lookup;

-- +goose Down
drop function app_tenant();
