package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/postgres"
	"weir/internal/postgres/postgrestest"
)

// fill puts a row of the tenant into every table that the app role may write.
func fill(t *testing.T, db *postgres.DB, tenant uuid.UUID) {
	t.Helper()
	err := db.WithTenant(t.Context(), tenant, func(tx pgx.Tx) error {
		customer, plan, version := id.New(), id.New(), id.New()
		subscription, provider, alias := id.New(), id.New(), id.New()
		endpoint, message, export := id.New(), id.New(), id.New()
		for _, q := range []struct {
			sql  string
			args []any
		}{
			{`insert into tenants (tenant_id, name, zone, currency) values ($1, 'T', 'UTC', 'USD')`, nil},
			{`insert into data_keys (tenant_id, data_key_id, kek, wrapped) values ($1, $2, 'k', 'w')`, []any{id.New()}},
			{`insert into customers (tenant_id, customer_id, name) values ($1, $2, 'C')`, []any{customer}},
			{`insert into provider_keys (tenant_id, provider_key_id, provider, name, status) values ($1, $2, 'practice', 'P', 'active')`, []any{provider}},
			{`insert into provider_health (tenant_id, provider_key_id, model) values ($1, $2, 'm')`, []any{provider}},
			{`insert into model_streaks (tenant_id, model) values ($1, 'm')`, nil},
			{`insert into learned_limits (tenant_id, provider_key_id, model, dimension, win, amount, stated_in, learned_at, seen_at) values ($1, $2, 'm', 'requests', 'minute', 1, 'header', now(), now())`, []any{provider}},
			{`insert into pools (tenant_id, pool_id, provider, name, created_at) values ($1, $2, 'practice', 'P', now())`, []any{id.New()}},
			{`insert into model_aliases (tenant_id, alias_id, name, created_at) values ($1, $2, 'fast', now())`, []any{alias}},
			{`insert into alias_candidates (tenant_id, alias_id, position, model, priority, weight) values ($1, $2, 0, 'm', 1, 1)`, []any{alias}},
			{`insert into catalogue_models (tenant_id, provider, model, context, max_output, default_output, input, tools, valid_from, source) values ($1, 'custom', 'm', 0, 0, 0, '{}', false, '2026-01-01', 's')`, nil},
			{`insert into catalogue_limits (tenant_id, provider, model, tier, dimension, win, amount, cached_input, valid_from, source) values ($1, 'custom', '*', 't', 'requests', 'minute', 1, 'counted', '2026-01-01', 's')`, nil},
			{`insert into catalogue_prices (tenant_id, provider, model, class, above, micros_per_million, currency, valid_from, source) values ($1, 'custom', 'm', 'input', 0, 1, 'USD', '2026-01-01', 's')`, nil},
			{`insert into api_keys (tenant_id, api_key_id, counter_id, kind, customer_id, name, secret_hash, first4, last4) values ($1, $2, $2, 'customer', $3, 'K', sha256(uuid_send($2)), 'aaaa', 'bbbb')`, []any{id.New(), customer}},
			{`insert into plans (tenant_id, plan_id, name) values ($1, $2, 'Plan')`, []any{plan}},
			{`insert into plan_versions (tenant_id, plan_version_id, plan_id, number, status, currency, period) values ($1, $2, $3, 1, 'draft', 'USD', 'month')`, []any{version, plan}},
			{`insert into plan_prices (tenant_id, price_id, plan_version_id, position, models, class, micros_per_million) values ($1, $2, $3, 0, '*', 'input', 1)`, []any{id.New(), version}},
			{`insert into limits (tenant_id, limit_id, owner_kind, owner_id, position, dimension, win, policy, amount, mode, outage) values ($1, $2, 'plan_version', $3, 0, 'requests', 'minute', 'bucket', 1, 'enforce', 'share')`, []any{id.New(), version}},
			{`insert into subscriptions (tenant_id, subscription_id, customer_id, plan_version_id, status, started_at, zone, anchor, period_ends_at) values ($1, $2, $3, $4, 'active', now(), 'UTC', localtimestamp, now())`, []any{subscription, customer, version}},
			{`insert into subscription_periods (tenant_id, subscription_id, starts_at, ends_at, number, zone) values ($1, $2, now(), now() + interval '1 month', 0, 'UTC')`, []any{subscription}},
			{`insert into subscription_changes (tenant_id, subscription_id, changed_at, from_version_id, to_version_id) values ($1, $2, now(), $3, $3)`, []any{subscription, version}},
			{`insert into overrides (tenant_id, override_id, subscription_id, customer_id, reason, starts_at, actor_kind, created_at) values ($1, $2, $3, $4, 'r', now(), 'system', now())`, []any{id.New(), subscription, customer}},
			{`insert into quotes (tenant_id, quote_id, year, sequence, status, created_at) values ($1, $2, 2026, 1, 'draft', now())`, []any{endpoint}},
			{`insert into quote_versions (tenant_id, quote_id, version, state, plan_version_id, own_terms, valid_until, created_at) values ($1, $2, 1, 'draft', $3, false, now(), now())`, []any{endpoint, version}},
			{`insert into quote_numbers (tenant_id, year, last) values ($1, 2026, 1)`, nil},
			{`insert into idempotency_keys (tenant_id, credential_id, key_hash, request_hash, request_id, created_at) values ($1, $2, sha256('k'), sha256('r'), $2, now())`, []any{id.New()}},
			{`insert into webhook_endpoints (tenant_id, endpoint_id, url, last4, created_at) values ($1, $2, 'https://x.example', 'aaaa', now())`, []any{endpoint}},
			{`insert into webhook_messages (tenant_id, message_id, type, body, created_at) values ($1, $2, 'x', '{}', now())`, []any{message}},
			{`insert into webhook_deliveries (tenant_id, endpoint_id, message_id, state, next_at) values ($1, $2, $3, 'held', now())`, []any{endpoint, message}},
			{`insert into webhook_attempts (tenant_id, endpoint_id, message_id, attempt_id, at, status, ms, error) values ($1, $2, $3, $3, now(), 200, 1, '')`, []any{endpoint, message}},
			{`insert into alerts (tenant_id, alert_id, kind, scope, mail, webhook, created_at) values ($1, $2, 'unpriced', '', true, false, now())`, []any{endpoint}},
			{`insert into alert_firings (tenant_id, alert_id, subject, period_start, threshold, name, value, of_amount, fired_at) values ($1, $2, 's', now(), 't', 'n', 1, 1, now())`, []any{endpoint}},
			{`insert into mails (tenant_id, mail_id, recipient, subject, body, state, next_at, created_at) values ($1, $2, 'a@b.example', 'S', 'B', 'dead', now(), now())`, []any{id.New()}},
			{`insert into portal_links (tenant_id, link_hash, customer_id, why, created_at, expires_at) values ($1, sha256(uuid_send($2)), $3, 'sent', now(), now())`, []any{id.New(), customer}},
			{`insert into portal_sessions (tenant_id, session_hash, session_id, customer_id, created_at, seen_at, expires_at) values ($1, sha256(uuid_send($2)), $2, $3, now(), now(), now())`, []any{id.New(), customer}},
			{`insert into brands (tenant_id, changed_at) values ($1, now())`, nil},
			{`insert into reconciliations (tenant_id, day) values ($1, now())`, nil},
			{`insert into exports (tenant_id, export_id, kind, format, asked, state, next_at, created_at, expires_at) values ($1, $2, 'usage', 'csv', '{}', 'queued', now(), now(), now())`, []any{export}},
			{`insert into export_chunks (tenant_id, export_id, number, body) values ($1, $2, 0, 'x')`, []any{export}},
			{`insert into setup_steps (tenant_id, step) values ($1, 'plan')`, nil},
			{`insert into audit_entries (tenant_id, audit_id, actor_kind, action, hash, position) values ($1, $2, 'system', 'x', 'h', 1)`, []any{id.New()}},
		} {
			if _, err := tx.Exec(t.Context(), q.sql, append([]any{tenant}, q.args...)...); err != nil {
				return fmt.Errorf("%s: %w", q.sql, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// tenantTables lists every table that belongs to tenants and that the app may
// read.
func tenantTables(t *testing.T, db *postgres.DB) (out []string) {
	t.Helper()
	err := db.Tx(t.Context(), func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `
			select c.relname::text from pg_class c
			where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and c.relrowsecurity
			  and has_table_privilege(c.oid, 'select')
			order by 1`)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func count(ctx context.Context, tx pgx.Tx, table string) (n int, err error) {
	err = tx.QueryRow(ctx, "select count(*) from "+table).Scan(&n)
	return n, err
}

func TestWithoutItsWhereAQueryStillSeesItsOwnTenantOnly(t *testing.T) {
	db := postgrestest.New(t)
	a, b := id.New(), id.New()
	fill(t, db.App, a)
	fill(t, db.App, b)
	for _, table := range tenantTables(t, db.App) {
		written := !strings.HasPrefix(table, "usage_") && table != "cap_totals" && table != "members"
		if err := db.App.WithTenant(t.Context(), a, func(tx pgx.Tx) error {
			n, err := count(t.Context(), tx, table)
			if err != nil {
				return err
			}
			if written && n != 1 || !written && n != 0 {
				t.Errorf("%s: tenant a sees %d rows", table, n)
			}
			var foreign int
			err = tx.QueryRow(t.Context(), "select count(*) from "+table+" where tenant_id = $1", b).Scan(&foreign)
			if foreign != 0 {
				t.Errorf("%s: tenant a sees %d rows of b", table, foreign)
			}
			return err
		}); err != nil {
			t.Errorf("%s: %v", table, err)
		}
		if err := db.App.Tx(t.Context(), func(tx pgx.Tx) error {
			n, err := count(t.Context(), tx, table)
			if n != 0 {
				t.Errorf("%s: %d rows without a tenant", table, n)
			}
			return err
		}); err != nil {
			t.Errorf("%s: %v", table, err)
		}
	}
}

func TestAWriteForAnotherTenantOrForNoneIsRefused(t *testing.T) {
	db := postgrestest.New(t)
	a, b := id.New(), id.New()
	fill(t, db.App, a)
	fill(t, db.App, b)
	insert := func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `insert into customers (tenant_id, customer_id, name) values ($1, $2, 'X')`, b, id.New())
		return err
	}
	if err := db.App.WithTenant(t.Context(), a, insert); postgres.Code(err) != "42501" {
		t.Errorf("insert as a for b: %v", err)
	}
	if err := db.App.Tx(t.Context(), insert); postgres.Code(err) != "42501" {
		t.Errorf("insert as nobody: %v", err)
	}
	if err := db.App.WithTenant(t.Context(), a, func(tx pgx.Tx) error {
		tag, err := tx.Exec(t.Context(), `update customers set name = 'stolen'`)
		if tag.RowsAffected() != 1 {
			t.Errorf("an update without where touched %d rows", tag.RowsAffected())
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestAnAbortedTransactionLeavesNoTenantBehind(t *testing.T) {
	db := postgrestest.New(t)
	one, err := postgres.Open(t.Context(), db.AppURL, postgres.Options{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	a, b := id.New(), id.New()
	fill(t, one, a)
	fill(t, one, b)
	boom := errors.New("boom")
	for range 1000 {
		if err := one.WithTenant(t.Context(), a, func(pgx.Tx) error { return boom }); !errors.Is(err, boom) {
			t.Fatal(err)
		}
		var setting string
		var seen uuid.UUID
		if err := one.Tx(t.Context(), func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), "select coalesce(current_setting('app.tenant_id', true), '')").Scan(&setting)
		}); err != nil || setting != "" {
			t.Fatalf("setting %q, %v", setting, err)
		}
		if err := one.WithTenant(t.Context(), b, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), "select tenant_id from customers").Scan(&seen)
		}); err != nil || seen != b {
			t.Fatalf("b sees %v, %v", seen, err)
		}
	}
}

func TestAChildCannotPointAtAnotherTenantsParent(t *testing.T) {
	db := postgrestest.New(t)
	a, b := id.New(), id.New()
	fill(t, db.App, a)
	fill(t, db.App, b)
	var foreign uuid.UUID
	if err := db.App.WithTenant(t.Context(), b, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), "select customer_id from customers").Scan(&foreign)
	}); err != nil {
		t.Fatal(err)
	}
	err := db.App.WithTenant(t.Context(), a, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `insert into api_keys (tenant_id, api_key_id, counter_id, kind, customer_id, name, secret_hash, first4, last4)
			values ($1, $2, $2, 'customer', $3, 'K', sha256(uuid_send($2)), 'a', 'b')`, a, id.New(), foreign)
		return err
	})
	if postgres.Code(err) != "23503" {
		t.Fatalf("got %v", err)
	}
}

func TestAuditEntriesCannotBeChangedByTheApp(t *testing.T) {
	db := postgrestest.New(t)
	a := id.New()
	fill(t, db.App, a)
	for _, sql := range []string{"update audit_entries set action = 'y'", "delete from audit_entries", "truncate audit_entries"} {
		err := db.App.WithTenant(t.Context(), a, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), sql)
			return err
		})
		if postgres.Code(err) != "42501" {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func TestTheSelfTestRefusesADatabaseWithoutIsolation(t *testing.T) {
	db := postgrestest.New(t)
	if err := db.App.SelfTest(t.Context()); err != nil {
		t.Fatalf("app: %v", err)
	}
	if err := db.Worker.SelfTest(t.Context()); err != nil {
		t.Fatalf("worker: %v", err)
	}
	for name, url := range map[string]string{"owner": db.OwnerURL, "superuser": db.SuperURL} {
		strong, err := postgres.Open(t.Context(), url, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := strong.SelfTest(t.Context()); err == nil {
			t.Errorf("%s passes", name)
		}
		strong.Close()
	}
	owner, err := postgres.Open(t.Context(), db.OwnerURL, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	for _, sql := range []string{
		"create table forgotten (tenant_id uuid primary key)",
		"drop table forgotten; alter table customers no force row level security",
	} {
		if err := owner.Tx(t.Context(), func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), sql); return err }); err != nil {
			t.Fatal(err)
		}
		if err := db.App.SelfTest(t.Context()); err == nil {
			t.Errorf("after %q it still passes", sql)
		}
	}
}

func TestMigratingTwiceAtOnceIsOnce(t *testing.T) {
	db := postgrestest.New(t)
	latest, err := postgres.Latest()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 4)
	for range cap(done) {
		go func() {
			v, err := postgres.Migrate(t.Context(), db.OwnerURL)
			if err == nil && v != latest {
				err = fmt.Errorf("version %d, not %d", v, latest)
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
