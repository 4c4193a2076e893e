package auth_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/auth"
	"weir/internal/postgres"
)

func rowsOf[T any](t *testing.T, conn *pgx.Conn, query string, args ...any) []T {
	t.Helper()
	rows, err := conn.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	return try(pgx.CollectRows(rows, pgx.RowTo[T]))(t)
}

func (f fixture) super() *pgx.Conn {
	f.t.Helper()
	conn := try(pgx.Connect(f.t.Context(), f.db.SuperURL))(f.t)
	f.t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(f.t.Context())) })
	return conn
}

// TestNoWriterCanForgetToNoteAChange sets every column of every table that
// configuration is made of, as anybody might. A column that comes later is
// tried too: whoever adds one decides whether it is configuration.
func TestNoWriterCanForgetToNoteAChange(t *testing.T) {
	r := newReplicas(t)
	conn := r.super()
	r.sql(`insert into provider_keys (tenant_id, provider_key_id, provider, name, status) values ($1, gen_random_uuid(), 'practice', 'P', 'active')`, r.tenant)(t)
	provider := rowsOf[uuid.UUID](t, conn, "select provider_key_id from provider_keys")[0]
	for _, q := range []string{
		fmt.Sprintf("insert into provider_health (tenant_id, provider_key_id, model) values ('%s', '%s', 'm')", r.tenant, provider),
		fmt.Sprintf("insert into model_streaks (tenant_id, model) values ('%s', 'm')", r.tenant),
		fmt.Sprintf(`insert into learned_limits (tenant_id, provider_key_id, model, dimension, win, amount, stated_in, learned_at, seen_at)
			values ('%s', '%s', 'm', 'tokens', 'day', 1, 'body', now(), now())`, r.tenant, provider),
		fmt.Sprintf("insert into pools (tenant_id, pool_id, provider, name, created_at) values ('%s', gen_random_uuid(), 'practice', 'P', now())", r.tenant),
		fmt.Sprintf("insert into model_aliases (tenant_id, alias_id, name, created_at) values ('%[1]s', '%[1]s', 'fast', now())", r.tenant),
		fmt.Sprintf("insert into alias_candidates (tenant_id, alias_id, position, model, priority, weight) values ('%[1]s', '%[1]s', 0, 'm', 1, 1)", r.tenant),
		fmt.Sprintf(`insert into catalogue_models (tenant_id, provider, model, context, max_output, default_output, input, tools, valid_from, source)
			values ('%s', 'custom', 'm', 0, 0, 0, '{}', false, now(), 's')`, r.tenant),
		fmt.Sprintf(`insert into catalogue_limits (tenant_id, provider, model, tier, dimension, win, amount, cached_input, valid_from, source)
			values ('%s', 'custom', '*', 't', 'requests', 'minute', 1, 'counted', now(), 's')`, r.tenant),
		fmt.Sprintf(`insert into catalogue_prices (tenant_id, provider, model, class, above, micros_per_million, currency, valid_from, source)
			values ('%s', 'custom', 'm', 'input', 0, 1, 'USD', now(), 's')`, r.tenant),
		"alter table limits disable trigger frozen",
		"alter table plan_prices disable trigger frozen",
		fmt.Sprintf(`insert into plan_prices (tenant_id, price_id, plan_version_id, position, models, class, micros_per_million)
			values ('%s', gen_random_uuid(), '%s', 0, '*', 'input', 1)`, r.tenant, r.plans[0].Version.ID),
		fmt.Sprintf(`insert into limits (tenant_id, limit_id, owner_kind, owner_id, position, dimension, win, policy, amount, mode, outage)
			values ('%[1]s', gen_random_uuid(), 'tenant', '%[1]s', 0, 'requests', 'minute', 'bucket', 1, 'enforce', 'share')`, r.tenant),
	} {
		if _, err := conn.Exec(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	changes := func() int {
		return rowsOf[int](t, conn, "select count(*)::int from config_changes where tenant_id = $1", r.tenant)[0]
	}
	for _, table := range []string{"tenants", "customers", "api_keys", "limits", "subscriptions", "plans", "plan_versions", "plan_prices", "provider_keys", "data_keys", "provider_health", "learned_limits", "model_streaks", "pools", "model_aliases", "alias_candidates", "catalogue_models", "catalogue_limits", "catalogue_prices"} {
		for _, column := range rowsOf[string](t, conn, "select column_name::text from information_schema.columns where table_name = $1", table) {
			before := changes()
			tag, err := conn.Exec(t.Context(), fmt.Sprintf("update %[1]s set %[2]s = %[2]s where tenant_id = $1", table, column), r.tenant)
			if err != nil || tag.RowsAffected() == 0 {
				t.Fatalf("%s.%s: %d rows, %v", table, column, tag.RowsAffected(), err)
			}
			noted := changes() > before
			if want := table+"."+column != "api_keys.last_used_at"; noted != want {
				t.Errorf("%s.%s is set: noted %t", table, column, noted)
			}
		}
	}
	for _, table := range []string{"plan_prices", "limits", "alias_candidates", "model_aliases"} {
		before := changes()
		if _, err := conn.Exec(t.Context(), "delete from "+table); err != nil || changes() == before {
			t.Errorf("rows of %s are deleted: not noted, %v", table, err)
		}
	}
}

func TestASecretsKeyNeverChanges(t *testing.T) {
	f := newFixture(t)
	_, err := f.super().Exec(t.Context(), `update api_keys set secret_hash = sha256('other')`)
	if postgres.Constraint(err) != "secret_is_frozen" {
		t.Errorf("got %v", err)
	}
}

func TestNobodyReadsOrWritesChangesButThroughTheirFunction(t *testing.T) {
	f := newFixture(t)
	for _, q := range []string{
		"select count(*) from config_changes",
		"insert into config_changes (tenant_id, kind, object_id) values (gen_random_uuid(), 'tenant', gen_random_uuid())",
		"delete from config_changes",
		"select note_config_change()",
	} {
		for name, run := range map[string]func(func(pgx.Tx) error) error{
			"a tenant": func(do func(pgx.Tx) error) error { return f.db.App.WithTenant(t.Context(), f.tenant, do) },
			"nobody":   func(do func(pgx.Tx) error) error { return f.db.App.Tx(t.Context(), do) },
		} {
			err := run(func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), q); return err })
			if postgres.Code(err) != "42501" {
				t.Errorf("%s as %s: %v", q, name, err)
			}
		}
	}
}

// TestChangesAreKeptUntilEveryoneHadTimeToSeeThem has one that began long
// before it committed.
func TestChangesAreKeptUntilEveryoneHadTimeToSeeThem(t *testing.T) {
	r := newReplicas(t)
	pruner, look := auth.NewPruner(r.db.Worker, r.clock.now), r.super()
	left := func() int { return rowsOf[int](t, look, "select count(*)::int from config_changes")[0] }
	conn := try(pgx.Connect(t.Context(), r.db.AppURL))(t)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	long := try(conn.Begin(t.Context()))(t)
	_, err := long.Exec(t.Context(), "select set_config('app.tenant_id', '"+r.tenant.String()+"', true)")
	if _, err2 := long.Exec(t.Context(), "update customers set name = 'late'"); errors.Join(err, err2) != nil {
		t.Fatal(err, err2)
	}
	try(r.rename("early"))(t)
	early := left()
	prune := func(want int) {
		t.Helper()
		if _, err := pruner.Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := left(); n != want {
			t.Fatalf("%d changes are left, not %d", n, want)
		}
	}
	prune(early)
	r.clock.advance(auth.ChangesKept - time.Second)
	prune(early)
	r.clock.advance(time.Second)
	prune(0)
	if err := long.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	prune(1)
	r.clock.advance(auth.ChangesKept - time.Second)
	prune(1)
	r.clock.advance(time.Second)
	prune(0)
}

func TestAnImportOfKeysIsNoChange(t *testing.T) {
	r := newReplicas(t)
	look := r.super()
	seen := rowsOf[uuid.UUID](t, look, "select object_id from config_changes")
	r.sql(`insert into api_keys (tenant_id, api_key_id, counter_id, kind, customer_id, name, secret_hash, first4, last4)
		select $1, i, i, 'customer', $2, 'K', sha256(uuid_send(i)), 'aaaa', 'bbbb' from (select gen_random_uuid() i from generate_series(1, 1000)) s`, r.tenant, r.customer.ID)(t)
	if now := rowsOf[uuid.UUID](t, look, "select object_id from config_changes"); !slices.Equal(seen, now) {
		t.Errorf("%d changes, %d before", len(now), len(seen))
	}
}
