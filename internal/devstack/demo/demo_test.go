package demo

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/keyring"
	"weir/internal/postgres"
	"weir/internal/postgres/postgrestest"
	"weir/internal/usage"
)

// books are what a test compares: events, dead letters, and the sum of a rollup.
func books(t *testing.T, db postgrestest.Database) [3]int64 {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var b [3]int64
	err = conn.QueryRow(t.Context(), `
		select (select count(*) from usage_events), (select count(*) from dead_letters), (select coalesce(sum(requests + refused), 0)::bigint from usage_quarter)`).
		Scan(&b[0], &b[1], &b[2])
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// brandedHues are the colours that the tenants of the cast have said.
func brandedHues(t *testing.T, db postgrestest.Database) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), `select hue from brands where hue <> ''`)
	if err != nil {
		t.Fatal(err)
	}
	hues, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return hues
}

func TestFillingAgainMakesNothingTwiceAndTheBooksBalance(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	o := Options{
		AppURL: db.AppURL, WorkerURL: db.WorkerURL, KeyRing: keyring.NewKey("k1"), Seed: 7, Days: 2,
		Now: time.Now().UTC().Truncate(24 * time.Hour).Add(9 * time.Hour), Log: slog.New(slog.DiscardHandler),
	}
	first, err := Fill(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	once := books(t, db)
	if len(first) != 3 || once[0] < 3000 || once[0] != once[2] || once[1] != 0 {
		t.Fatalf("%v %v", first, once)
	}
	if hue := brandedHues(t, db); len(hue) != 1 || hue[0] != "fir" {
		t.Errorf("the tenants with a colour of their own: %v", hue)
	}
	if _, err := Fill(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(once, books(t, db)); diff != "" {
		t.Error(diff)
	}
	o.Now = o.Now.Add(2 * time.Hour)
	if _, err := Fill(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if later := books(t, db); later[0] <= once[0] || later[0] != later[2] || later[1] != 0 {
		t.Errorf("%v after %v", later, once)
	}
	worker, err := postgres.Open(t.Context(), db.WorkerURL, postgres.Options{MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	differ, err := usage.Reconcile(t.Context(), worker, uuid.Nil, o.Now.AddDate(0, 0, -5), o.Now.AddDate(0, 0, 2), o.Now.AddDate(0, 0, -5))
	if err != nil || len(differ) > 0 {
		t.Errorf("%v %v", err, differ)
	}
}
