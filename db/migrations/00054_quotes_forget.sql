-- +goose Up
-- Whoever is erased is taken out of the quotes that it was sent, too: names,
-- addresses and what was written to it or by it may go; nothing else of what was
-- sent or decided changes.
alter table quotes drop constraint quotes_to_email_check;
alter table quotes add constraint quotes_to_email_check check (to_email = '' or length(to_email) between 3 and 320);

-- +goose StatementBegin
create or replace function quote_version_is_frozen() returns trigger
    language plpgsql as $$
begin
    if old.state in ('out', 'superseded') and ((new.plan_version_id, new.own_terms, new.volumes, new.valid_until, new.ratio_percent, new.reason, new.sent_at)
        is distinct from (old.plan_version_id, old.own_terms, old.volumes, old.valid_until, old.ratio_percent, old.reason, old.sent_at)
        or new.note not in (old.note, '')) then
        raise exception 'version % of quote % was sent, and does not change', old.version, old.quote_id
            using errcode = 'integrity_constraint_violation', constraint = 'quote_version_is_frozen';
    end if;
    if old.decided_at is not null and ((new.decided_at, new.customer_id, new.subscription_id, new.api_key_id)
        is distinct from (old.decided_at, old.customer_id, old.subscription_id, old.api_key_id)
        or new.decided_name not in (old.decided_name, '') or new.decided_email not in (old.decided_email, '')) then
        raise exception 'version % of quote % is decided', old.version, old.quote_id
            using errcode = 'integrity_constraint_violation', constraint = 'quote_version_is_frozen';
    end if;
    return new;
end
$$;
-- +goose StatementEnd

-- +goose Down
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
alter table quotes drop constraint quotes_to_email_check;
alter table quotes add constraint quotes_to_email_check check (length(to_email) between 3 and 320) not valid;
