-- +goose Up
-- The first path ends with an alert.
alter table setup_steps
    drop constraint setup_steps_step_check,
    add constraint setup_steps_step_check check (step in ('provider', 'plan', 'key', 'call', 'refusal', 'alert', 'team', 'path'));

-- +goose Down
delete from setup_steps where step = 'alert';
alter table setup_steps
    drop constraint setup_steps_step_check,
    add constraint setup_steps_step_check check (step in ('provider', 'plan', 'key', 'call', 'refusal', 'team', 'path'));
