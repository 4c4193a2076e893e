-- +goose Up
-- A period that is over still tells what came late, of thresholds that stood then.
alter table alerts add column set_at timestamptz;
comment on column alerts.set_at is 'when its threshold last changed; null: never';

-- +goose Down
alter table alerts drop column set_at;
