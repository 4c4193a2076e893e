-- +goose Up
-- What came again and was dropped by its id, counted where it is committed; who
-- lives on as an instance that died; and files of the audit.
alter table usage_marks
    add column messages_again bigint not null default 0,
    add column events_again bigint not null default 0;
comment on column usage_marks.messages_again is 'messages whose numbers were all committed before';
comment on column usage_marks.events_again is 'events that were stored before';

alter table instances
    add column adopted_by uuid,
    add column adopted_at timestamptz;
comment on column instances.adopted_by is 'the instance that brings its spool into the books; null: it does so itself';

alter table exports
    drop constraint exports_kind_check,
    add constraint exports_kind_check check (kind in ('usage', 'requests', 'audit'));

-- +goose Down
delete from exports where kind = 'audit';
alter table exports
    drop constraint exports_kind_check,
    add constraint exports_kind_check check (kind in ('usage', 'requests'));
alter table instances drop column adopted_by, drop column adopted_at;
alter table usage_marks drop column messages_again, drop column events_again;
