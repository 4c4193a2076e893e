-- +goose Up
-- When a call last tried out whether a model is well again that cools by a
-- guess: whichever process sets it lets its call through.
alter table provider_health add column tried_at timestamptz;

-- +goose Down
alter table provider_health drop column tried_at;
