-- +goose Up
-- How much of what its provider keys carry a tenant sells at most without a reason.
alter table tenants add column ceiling_percent bigint check (ceiling_percent between 1 and 100000);
alter table quote_versions rename column ratio_milli to ratio_percent;
comment on column quote_versions.ratio_percent is 'what was sold in percent of what the keys could carry, when it was sent';

-- +goose StatementBegin
create or replace function quote_version_is_frozen() returns trigger
    language plpgsql as $$
begin
    if old.state in ('out', 'superseded') and (new.plan_version_id, new.own_terms, new.volumes, new.note, new.valid_until, new.ratio_percent, new.reason, new.sent_at)
        is distinct from (old.plan_version_id, old.own_terms, old.volumes, old.note, old.valid_until, old.ratio_percent, old.reason, old.sent_at) then
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

-- +goose Down
alter table quote_versions rename column ratio_percent to ratio_milli;
alter table tenants drop column ceiling_percent;
