-- +goose Up
-- Money is counted in micro-units, and exactly: the pico-units beyond them are
-- summed beside them.
alter table cap_totals add column used_pico bigint not null default 0;

-- +goose Down
alter table cap_totals drop column used_pico;
