-- +goose Up
-- The zones that counted before a tenant asked for its present one, each with
-- the instant of that request: windows begun in them may still run.
alter table tenants add column past_zones jsonb not null default '[]' check (jsonb_typeof(past_zones) = 'array');

-- +goose Down
alter table tenants drop column past_zones;
