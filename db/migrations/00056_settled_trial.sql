-- +goose Up
-- What was owed in a trial can be settled in it.
-- +goose StatementBegin
create or replace function subscription_transition() returns trigger
    language plpgsql as $$
begin
    if old.status = 'ended' or old.status <> new.status and (old.status, new.status) not in (
        ('trialing', 'active'), ('trialing', 'past_due'), ('trialing', 'cancelled'), ('trialing', 'ended'),
        ('active', 'past_due'), ('active', 'cancelled'), ('active', 'ended'),
        ('past_due', 'trialing'), ('past_due', 'active'), ('past_due', 'cancelled'), ('past_due', 'ended'),
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

-- +goose Down
-- +goose StatementBegin
create or replace function subscription_transition() returns trigger
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
