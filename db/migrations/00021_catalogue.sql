-- +goose Up
-- What a tenant knows of models, published limits and prices beside, and
-- before, what is built in. Rows are dated and say where they are from.
create table catalogue_models (
    tenant_id      uuid not null references tenants,
    provider       text not null check (length(provider) between 1 and 60),
    model          text not null check (length(model) between 1 and 200),
    context        bigint not null check (context >= 0),
    max_output     bigint not null check (max_output >= 0),
    default_output bigint not null check (default_output >= 0),
    input          text[] not null,
    tools          boolean not null,
    valid_from     date not null,
    source         text not null check (length(source) between 1 and 500),
    primary key (tenant_id, provider, model, valid_from)
);
comment on column catalogue_models.context is 'tokens; 0: not known';

create table catalogue_limits (
    tenant_id    uuid not null references tenants,
    provider     text not null check (length(provider) between 1 and 60),
    model        text not null check (length(model) between 1 and 200),
    tier         text not null check (length(tier) between 1 and 60),
    dimension    text not null,
    win          text not null,
    amount       bigint not null check (amount >= 0),
    cached_input text not null check (cached_input in ('counted', 'free')),
    valid_from   date not null,
    valid_to     date check (valid_to > valid_from),
    source       text not null check (length(source) between 1 and 500),
    primary key (tenant_id, provider, model, tier, dimension, win, valid_from)
);
comment on column catalogue_limits.model is 'a name, or a pattern whose models share the quota; * is the whole account';

create table catalogue_prices (
    tenant_id          uuid not null references tenants,
    provider           text not null check (length(provider) between 1 and 60),
    model              text not null check (length(model) between 1 and 200),
    class              text not null check (class in ('input', 'cached_input', 'cache_write', 'output', 'reasoning', 'request')),
    above              bigint not null check (above >= 0),
    micros_per_million bigint not null check (micros_per_million >= 0),
    currency           text not null check (length(currency) = 3),
    valid_from         date not null,
    source             text not null check (length(source) between 1 and 500),
    primary key (tenant_id, provider, model, class, above, valid_from)
);
comment on column catalogue_prices.above is 'it counts for prompts of more tokens than this';

-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['catalogue_models', 'catalogue_limits', 'catalogue_prices'] loop
        execute format('alter table %I enable row level security', t);
        execute format('alter table %I force row level security', t);
        execute format('create policy tenant on %I to weir_app using (tenant_id = app_tenant()) with check (tenant_id = app_tenant())', t);
        execute format('grant select, insert, delete on %I to weir_app', t);
        execute format('create trigger noted after insert or update or delete on %I for each row execute function note_config_change(''catalogue'', ''tenant_id'')', t);
    end loop;
end
$$;
-- +goose StatementEnd

-- The tier that the provider's account is on, by whose published limits a key is
-- judged.
alter table provider_keys add column tier text not null default '' check (length(tier) <= 60);

-- +goose Down
alter table provider_keys drop column tier;
drop table catalogue_prices, catalogue_limits, catalogue_models;
