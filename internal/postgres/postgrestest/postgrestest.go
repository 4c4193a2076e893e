// Package postgrestest gives every test a migrated Postgres database of its own.
//
// All test processes of a machine share one server in memory. The first one
// that asks starts it, and it ends with the last one, however that ends. Each
// test's database is a copy of a template that was migrated once for the
// present content of the migrations. WEIR_TEST_DATABASE_URL names another
// server to use instead, as a superuser; databases of killed tests stay there.
package postgrestest

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/devstack/localpg"
	"weir/internal/postgres"
)

// Database is a migrated database that one test has to itself. It is gone
// after the test.
type Database struct {
	AppURL    string // as the API connects
	WorkerURL string // as the worker connects
	OwnerURL  string // as migrations connect
	SuperURL  string // past row-level security: to look at what no role may see

	App, Worker *postgres.DB // pools that connect at first use; closed after the test
}

var made atomic.Int64

// New makes a database for t. It is safe to call from parallel tests, and
// several times in one.
func New(t testing.TB) Database {
	t.Helper()
	srv, err := shared()
	if err != nil {
		t.Fatalf("a database for tests: %v", err)
	}
	name := fmt.Sprintf("%s%d_%d_%d", testPrefix, os.Getpid(), time.Now().UnixNano(), made.Add(1))
	if err := srv.copyTemplate(name); err != nil {
		t.Fatalf("a database for tests: %v", err)
	}
	t.Cleanup(func() {
		if err := srv.drop(name); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	d := Database{
		AppURL:    srv.URL(localpg.App, name),
		WorkerURL: srv.URL(localpg.Worker, name),
		OwnerURL:  srv.URL(localpg.Owner, name),
		SuperURL:  srv.SuperURL(name),
	}
	d.App, d.Worker = open(t, d.AppURL), open(t, d.WorkerURL)
	return d
}

func open(t testing.TB, url string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(context.Background(), url, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}
