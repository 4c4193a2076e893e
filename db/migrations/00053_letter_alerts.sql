-- +goose Up
-- The operator is told of what could not be counted.
alter table alerts
    drop constraint alerts_kind_check,
    add constraint alerts_kind_check check (kind in ('usage', 'provider_key_cooling', 'provider_key_failed', 'unpriced', 'pipeline_behind', 'books_differ', 'dead_letters'));

-- +goose Down
delete from alert_firings f using alerts a where a.tenant_id = f.tenant_id and a.alert_id = f.alert_id and a.kind = 'dead_letters';
delete from alerts where kind = 'dead_letters';
alter table alerts
    drop constraint alerts_kind_check,
    add constraint alerts_kind_check check (kind in ('usage', 'provider_key_cooling', 'provider_key_failed', 'unpriced', 'pipeline_behind', 'books_differ'));
