-- +goose Up
-- What a version may say beside limits and a fee: trial days, a minimum, and
-- prices in tiers and packages. All of it is frozen with the version.
alter table plan_versions
    add column trial_days    integer not null default 0 check (trial_days between 0 and 365),
    add column minimum_minor bigint not null default 0 check (minimum_minor >= 0);
alter table plan_prices
    add column scheme       text not null default 'per_unit' check (scheme in ('per_unit', 'graduated', 'volume', 'package')),
    add column included     bigint not null default 0 check (included between 0 and 1000000000000000),
    add column package_size bigint not null default 0 check (package_size between 0 and 1000000000000000),
    add column tiers        jsonb not null default '[]' check (jsonb_typeof(tiers) = 'array'),
    add constraint plan_prices_parts_check check (
        (scheme in ('graduated', 'volume')) = (jsonb_array_length(tiers) > 0) and (scheme = 'package') = (package_size > 0));

-- +goose StatementBegin
create or replace function plan_version_is_frozen() returns trigger
    language plpgsql as $$
begin
    if old.status <> 'draft' and (new.base_fee_minor, new.currency, new.period, new.number, new.plan_id, new.cap_output, new.trial_days, new.minimum_minor)
        is distinct from (old.base_fee_minor, old.currency, old.period, old.number, old.plan_id, old.cap_output, old.trial_days, old.minimum_minor) then
        raise exception 'plan version % is %, and does not change', old.plan_version_id, old.status
            using errcode = 'integrity_constraint_violation', constraint = 'plan_version_is_frozen';
    end if;
    if (old.status, new.status) not in (('draft', 'draft'), ('draft', 'published'), ('published', 'published'), ('published', 'retired'), ('retired', 'retired')) then
        raise exception 'plan version % is %, and does not become %', old.plan_version_id, old.status, new.status
            using errcode = 'integrity_constraint_violation', constraint = 'plan_version_is_frozen';
    end if;
    return new;
end
$$;
-- +goose StatementEnd

-- A subscription's life.
alter table subscriptions
    add column anchor             timestamp,
    add column period_ends_at     timestamptz,
    add column trial_ends_at      timestamptz,
    add column past_due_at        timestamptz,
    add column cancelled_at       timestamptz,
    add column suspended_at       timestamptz,
    add column pending_version_id uuid,
    add column revision           integer not null default 1,
    add column last_token         bytea,
    add foreign key (tenant_id, pending_version_id) references plan_versions;
comment on column subscriptions.anchor is 'the local time, on no zone''s clock, from which periods are counted';
comment on column subscriptions.period_ends_at is 'the end of its newest period';
comment on column subscriptions.pending_version_id is 'what it goes to when its period ends';
comment on column subscriptions.revision is 'how many times it was changed: a preview is of one of them';
comment on column subscriptions.last_token is 'of the preview that was carried out last';

alter table subscription_periods
    add column number integer not null default 0,
    add column trial  boolean not null default false,
    add column zone   text not null default 'UTC',
    add unique (tenant_id, subscription_id, number);
comment on column subscription_periods.number is 'counted from the anchor; a trial stands before it, at -1';

-- The owner of a table is held to its policies only where that is forced.
alter table subscriptions no force row level security;
alter table subscription_periods no force row level security;
alter table subscriptions disable trigger noted;
update subscription_periods p set zone = s.zone
from subscriptions s
where s.tenant_id = p.tenant_id and s.subscription_id = p.subscription_id;
update subscriptions s set
    anchor = s.started_at at time zone s.zone,
    period_ends_at = (select max(p.ends_at) from subscription_periods p where p.tenant_id = s.tenant_id and p.subscription_id = s.subscription_id);
alter table subscriptions enable trigger noted;
alter table subscriptions force row level security;
alter table subscription_periods force row level security;
alter table subscription_periods alter column zone drop default, alter column number drop default;
alter table subscriptions
    alter column anchor set not null,
    alter column period_ends_at set not null,
    drop constraint subscriptions_status_check,
    add constraint subscriptions_status_check check (
        status in ('trialing', 'active', 'past_due', 'cancelled', 'ended')
        and (status = 'ended') = (ended_at is not null)
        and (status <> 'trialing' or trial_ends_at is not null)
        and (status <> 'past_due' or past_due_at is not null)
        and (status <> 'cancelled' or cancelled_at is not null));
create index subscriptions_due on subscriptions (period_ends_at) where status <> 'ended';

-- +goose StatementBegin
create function subscription_transition() returns trigger
    language plpgsql as $$
begin
    if old.status = 'ended' or old.status <> new.status and (old.status, new.status) not in (
        ('trialing', 'active'), ('trialing', 'past_due'), ('trialing', 'cancelled'), ('trialing', 'ended'),
        ('active', 'past_due'), ('active', 'cancelled'), ('active', 'ended'),
        ('past_due', 'active'), ('past_due', 'cancelled'), ('past_due', 'ended'),
        ('cancelled', 'trialing'), ('cancelled', 'active'), ('cancelled', 'past_due'), ('cancelled', 'ended')) then
        raise exception 'subscription % is %, and does not become %', old.subscription_id, old.status, new.status
            using errcode = 'integrity_constraint_violation', constraint = 'subscription_transition';
    end if;
    if (new.customer_id, new.started_at, new.anchor) is distinct from (old.customer_id, old.started_at, old.anchor) then
        raise exception 'subscription % keeps its customer, start and anchor', old.subscription_id
            using errcode = 'integrity_constraint_violation', constraint = 'subscription_transition';
    end if;
    return new;
end
$$;
-- +goose StatementEnd
create trigger transition before update on subscriptions for each row execute function subscription_transition();

alter table subscription_changes
    add column at_period_end boolean not null default false,
    add column batch         uuid;
comment on column subscription_changes.batch is 'of the move of many that it was part of';
create index subscription_changes_batch on subscription_changes (tenant_id, batch) where batch is not null;

-- Whose period has ended is asked across tenants; each is then turned in its
-- own tenant's transaction.
create policy lookup on subscriptions for select to weir_lookup using (true);
grant select on subscriptions to weir_lookup;
grant create on schema public to weir_lookup;
-- +goose StatementBegin
create function lookup_due_subscriptions(due timestamptz, most integer)
    returns table (tenant_id uuid, subscription_id uuid)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
    as $$
        select s.tenant_id, s.subscription_id
        from public.subscriptions s
        where s.status <> 'ended' and s.period_ends_at <= due
        order by s.period_ends_at
        limit most
    $$;
-- +goose StatementEnd
alter function lookup_due_subscriptions(timestamptz, integer) owner to weir_lookup;
revoke create on schema public from weir_lookup;
revoke all on function lookup_due_subscriptions(timestamptz, integer) from public;
grant execute on function lookup_due_subscriptions(timestamptz, integer) to weir_app;

-- +goose Down
drop function lookup_due_subscriptions;
drop policy lookup on subscriptions;
revoke select on subscriptions from weir_lookup;
drop index subscription_changes_batch;
alter table subscription_changes drop column at_period_end, drop column batch;
drop trigger transition on subscriptions;
drop function subscription_transition;
drop index subscriptions_due;
alter table subscriptions no force row level security;
alter table subscriptions disable trigger noted;
update subscriptions set status = 'active' where status not in ('active', 'ended');
alter table subscriptions enable trigger noted;
alter table subscriptions force row level security;
alter table subscriptions
    drop constraint subscriptions_status_check,
    add constraint subscriptions_status_check check (status in ('active', 'ended')),
    drop column anchor, drop column period_ends_at, drop column trial_ends_at, drop column past_due_at, drop column cancelled_at,
    drop column suspended_at, drop column pending_version_id, drop column revision, drop column last_token;
alter table subscription_periods drop column number, drop column trial, drop column zone;
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
alter table plan_prices
    drop constraint plan_prices_parts_check,
    drop column scheme, drop column included, drop column package_size, drop column tiers;
alter table plan_versions drop column trial_days, drop column minimum_minor;
