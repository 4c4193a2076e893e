-- +goose Up
-- The zones in which a provider's days ended before somebody corrected it, as
-- tenants.past_zones.
alter table provider_keys add column past_zones jsonb not null default '[]' check (jsonb_typeof(past_zones) = 'array');

-- +goose Down
alter table provider_keys drop column past_zones;
