package postgrestest

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Outage takes the test's database away: connections are cut and none is let
// in until restore.
func (d Database) Outage(t testing.TB) (restore func()) {
	t.Helper()
	cfg, err := pgx.ParseConfig(d.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	name := cfg.Database
	cfg.Database = "postgres"
	do := func(sql string, args ...any) {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Exec(ctx, sql, args...)
		if err := errors.Join(err, conn.Close(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	quoted := pgx.Identifier{name}.Sanitize()
	do("alter database " + quoted + " with allow_connections false")
	do("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", name)
	return func() { do("alter database " + quoted + " with allow_connections true") }
}
