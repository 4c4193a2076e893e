-- +goose Up
-- Whom a quote is for is part of what was sent: the next version may be for others.
alter table quote_versions
    add column to_name    text not null default '' check (length(to_name) <= 200),
    add column to_email   text not null default '' check (to_email = '' or length(to_email) between 3 and 320),
    add column to_company text not null default '' check (length(to_company) <= 200);
alter table quotes no force row level security;
alter table quote_versions no force row level security;
update quote_versions v set to_name = q.to_name, to_email = q.to_email, to_company = q.to_company
from quotes q
where q.tenant_id = v.tenant_id and q.quote_id = v.quote_id;
alter table quotes force row level security;
alter table quote_versions force row level security;
alter table quotes drop column to_name, drop column to_email, drop column to_company;

-- +goose StatementBegin
create or replace function quote_version_is_frozen() returns trigger
    language plpgsql as $$
begin
    if old.state in ('out', 'superseded') and ((new.plan_version_id, new.own_terms, new.volumes, new.valid_until, new.ratio_percent, new.reason, new.sent_at)
        is distinct from (old.plan_version_id, old.own_terms, old.volumes, old.valid_until, old.ratio_percent, old.reason, old.sent_at)
        or new.note not in (old.note, '')
        or (new.to_name, new.to_email, new.to_company) is distinct from (old.to_name, old.to_email, old.to_company) and (new.to_email, new.to_company) <> ('', '')) then
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
alter table quotes
    add column to_name    text not null default 'x' check (length(to_name) between 1 and 200),
    add column to_email   text not null default '' check (to_email = '' or length(to_email) between 3 and 320),
    add column to_company text not null default '' check (length(to_company) <= 200);
alter table quotes no force row level security;
alter table quote_versions no force row level security;
update quotes q set to_name = v.to_name, to_email = v.to_email, to_company = v.to_company
from quote_versions v
where v.tenant_id = q.tenant_id and v.quote_id = q.quote_id
  and v.version = coalesce(q.out_version, (select max(d.version) from quote_versions d where d.tenant_id = q.tenant_id and d.quote_id = q.quote_id));
alter table quotes force row level security;
alter table quote_versions force row level security;
alter table quotes alter column to_name drop default, alter column to_email drop default;
alter table quote_versions drop column to_name, drop column to_email, drop column to_company;
