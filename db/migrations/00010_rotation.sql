-- +goose Up
-- The key that took over when this one was rotated. Both share their counter.
alter table api_keys add column replaced_by uuid;
alter table api_keys add constraint api_keys_replaced_by_fkey
    foreign key (tenant_id, replaced_by) references api_keys (tenant_id, api_key_id);
create index api_keys_counter on api_keys (tenant_id, counter_id);

-- +goose Down
drop index api_keys_counter;
alter table api_keys drop column replaced_by;
