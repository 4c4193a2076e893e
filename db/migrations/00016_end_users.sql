-- +goose Up
-- Whose a limit is: its owner's as a whole, or each end user's that calls state.
alter table limits add column scope text not null default 'owner' check (scope in ('owner', 'end_user'));
drop index limits_identity_key;
create unique index limits_identity_key on limits (tenant_id, owner_kind, owner_id, scope, dimension, win, models, each_model);

-- +goose Down
delete from limits where scope = 'end_user';
drop index limits_identity_key;
alter table limits drop column scope;
create unique index limits_identity_key on limits (tenant_id, owner_kind, owner_id, dimension, win, models, each_model);
