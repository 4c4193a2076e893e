-- +goose Up
-- A plan may cap answers: a call that states no ceiling is given one upstream,
-- what was reserved for its answer.
alter table plan_versions add column cap_output boolean not null default false;

-- +goose StatementBegin
create or replace function plan_version_is_frozen() returns trigger
    language plpgsql as $$
begin
    if old.status <> 'draft' and (new.base_fee_minor, new.currency, new.period, new.number, new.plan_id, new.cap_output)
        is distinct from (old.base_fee_minor, old.currency, old.period, old.number, old.plan_id, old.cap_output) then
        raise exception 'plan version % is %, and does not change', old.plan_version_id, old.status
            using errcode = 'integrity_constraint_violation', constraint = 'plan_version_is_frozen';
    end if;
    return new;
end
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
create or replace function plan_version_is_frozen() returns trigger
    language plpgsql as $$
begin
    if old.status <> 'draft' and (new.base_fee_minor, new.currency, new.period, new.number, new.plan_id)
        is distinct from (old.base_fee_minor, old.currency, old.period, old.number, old.plan_id) then
        raise exception 'plan version % is %, and does not change', old.plan_version_id, old.status
            using errcode = 'integrity_constraint_violation', constraint = 'plan_version_is_frozen';
    end if;
    return new;
end
$$;
-- +goose StatementEnd
alter table plan_versions drop column cap_output;
