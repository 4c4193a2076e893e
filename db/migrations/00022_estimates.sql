-- +goose Up
-- What calls were expected to take against what they took, by key, model asked
-- for and UTC day of the event: the calls that ended well and whose provider
-- stated its usage. Models beyond a bound share the model ''. Whatever is learned
-- of it weighs days.
create table usage_estimates (
    tenant_id       uuid not null,
    counter_id      uuid not null,
    model           text not null,
    day_utc         date not null,
    calls           bigint not null,
    reserved_input_tokens  bigint not null,
    reserved_output_tokens bigint not null,
    input_tokens    bigint not null,
    output_tokens   bigint not null,
    guesses         bigint not null,
    guessed_tokens  bigint not null,
    guessed_input_tokens bigint not null,
    outputs         integer[] not null,
    primary key (tenant_id, counter_id, model, day_utc)
) with (fillfactor = 80);
comment on column usage_estimates.guesses is 'the calls whose input was guessed: guessed_tokens before any correction, guessed_input_tokens in truth';
comment on column usage_estimates.outputs is 'how many calls had so many output tokens, by bucket';

alter table usage_estimates enable row level security;
alter table usage_estimates force row level security;
create policy tenant on usage_estimates for select to weir_app using (tenant_id = app_tenant());
create policy worker on usage_estimates to weir_worker using (true) with check (true);
grant select on usage_estimates to weir_app;
grant select, insert, update, delete on usage_estimates to weir_worker;

-- +goose Down
drop table usage_estimates;
