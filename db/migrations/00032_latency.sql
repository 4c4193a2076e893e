-- +goose Up
-- How long calls took that reached a provider and ended: everything that was
-- admitted but what expired, whose end nobody told, and what an import states
-- no duration of. One call is 10^(16 × its bucket), so that each bucket is
-- sixteen digits of one number and a sum of rows is the sum of their histograms,
-- exact and in any order. Buckets begin at the preferred numbers R10 of ISO 3,
-- from 10 ms to 630 s; bucket 0 is what took less. internal/usage/latency.go has
-- the same ones.
-- +goose StatementBegin
create function usage_latency(outcome text, requests bigint, took interval) returns numeric
    language sql immutable parallel safe
    as $$
    select case when requests > 0 and took > interval '0' and outcome in ('ok', 'client_error', 'provider_error', 'provider_limited', 'aborted')
        then ('1e' || (16 * width_bucket(took, array[
            interval '10 ms', '12.5 ms', '16 ms', '20 ms', '25 ms', '31.5 ms', '40 ms', '50 ms', '63 ms', '80 ms',
            '100 ms', '125 ms', '160 ms', '200 ms', '250 ms', '315 ms', '400 ms', '500 ms', '630 ms', '800 ms',
            '1 s', '1.25 s', '1.6 s', '2 s', '2.5 s', '3.15 s', '4 s', '5 s', '6.3 s', '8 s',
            '10 s', '12.5 s', '16 s', '20 s', '25 s', '31.5 s', '40 s', '50 s', '63 s', '80 s',
            '100 s', '125 s', '160 s', '200 s', '250 s', '315 s', '400 s', '500 s', '630 s']))::text)::numeric
        else 0 end
    $$;
-- +goose StatementEnd

-- The calls that are stored are counted in the rows that they made. The owner has
-- to see the rows of every tenant for that.
-- +goose StatementBegin
do $$
declare
    r record;
begin
    alter table usage_events no force row level security;
    for r in select * from (values
        ('usage_minute', 'date_trunc(''minute'', started_at)'),
        ('usage_quarter', 'date_bin(''15 minutes'', started_at, timestamptz ''2000-01-01'')'),
        ('usage_day', 'local_day')) as t (name, bucket)
    loop
        execute format('alter table %I no force row level security', r.name);
        execute format('alter table %I add column latency numeric not null default 0', r.name);
        execute format($f$
            update %I b set latency = e.latency
            from (
                select tenant_id, %s as bucket, coalesce(customer_id, nil) as customer_id, coalesce(counter_id, nil) as counter_id,
                       coalesce(provider_key_id, nil) as provider_key_id, model_asked, model_served, outcome, test, currency,
                       coalesce(cost_currency, '') as cost_currency, sum(usage_latency(outcome, requests, ended_at - started_at)) as latency
                from usage_events, (select '00000000-0000-0000-0000-000000000000'::uuid as nil) zero
                group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
            ) e
            where (b.tenant_id, b.bucket, b.customer_id, b.counter_id, b.provider_key_id, b.model_asked, b.model_served, b.outcome, b.test, b.currency, b.cost_currency)
                = (e.tenant_id, e.bucket, e.customer_id, e.counter_id, e.provider_key_id, e.model_asked, e.model_served, e.outcome, e.test, e.currency, e.cost_currency)
              and e.latency > 0$f$, r.name, r.bucket);
        execute format('alter table %I force row level security', r.name);
    end loop;
    alter table usage_events force row level security;
end
$$;
-- +goose StatementEnd

-- +goose Down
alter table usage_minute drop column latency;
alter table usage_quarter drop column latency;
alter table usage_day drop column latency;
drop function usage_latency(text, bigint, interval);
