-- +goose Up
-- The operator looks at what could not be counted, and asks to have it tried
-- again; the worker does so.
alter table dead_letters add column asked_at timestamptz, add column refused text;
comment on column dead_letters.asked_at is 'somebody asked to count it after all; null once that was tried';
comment on column dead_letters.refused is 'why the last try did not count it';
create index dead_letters_new on dead_letters (created_at, dead_letter_id);
create index dead_letters_asked on dead_letters (asked_at) where asked_at is not null;
grant select, update (asked_at, refused) on dead_letters to weir_app;

-- +goose Down
revoke select, update (asked_at, refused) on dead_letters from weir_app;
drop index dead_letters_new, dead_letters_asked;
alter table dead_letters drop column asked_at, drop column refused;
