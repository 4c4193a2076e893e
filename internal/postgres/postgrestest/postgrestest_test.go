package postgrestest

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"weir/internal/devstack/localpg"
)

// The test binary also plays the test process that is killed while it has a
// database.
func TestMain(m *testing.M) {
	if os.Getenv("POSTGRESTEST_KILLED") == "" {
		os.Exit(m.Run())
	}
	srv, err := shared()
	if err == nil {
		err = srv.copyTemplate(testPrefix + "of_the_killed")
	}
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("ready\n")
	select {}
}

func query[T any](t *testing.T, url, sql string, args ...any) (v T) {
	t.Helper()
	err := localpg.Do(t.Context(), url, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, sql, args...).Scan(&v)
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func exec1(t *testing.T, url, sql string) {
	t.Helper()
	err := localpg.Do(t.Context(), url, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestADatabaseIsMigratedAndServesBothRoles(t *testing.T) {
	t.Parallel()
	d := New(t)
	for role, url := range map[string]string{localpg.App: d.AppURL, localpg.Worker: d.WorkerURL, localpg.Owner: d.OwnerURL, localpg.Superuser: d.SuperURL} {
		if got := query[string](t, url, "select current_user::text"); got != role {
			t.Errorf("connected as %s, want %s", got, role)
		}
	}
	if !query[bool](t, d.AppURL, "select to_regclass('tenants') is not null") {
		t.Error("the schema is missing")
	}
	if err := d.App.SelfTest(t.Context()); err != nil {
		t.Errorf("the api's self-test: %v", err)
	}
	if err := d.Worker.SelfTest(t.Context()); err != nil {
		t.Errorf("the worker's self-test: %v", err)
	}
}

func TestTestsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	a, b := New(t), New(t)
	exec1(t, a.OwnerURL, "create table mine (n int)")
	if query[bool](t, b.SuperURL, "select to_regclass('mine') is not null") {
		t.Error("one test's table is in another's database")
	}
}

func TestADatabaseIsGoneAfterItsTest(t *testing.T) {
	t.Parallel()
	name := ""
	t.Run("user", func(t *testing.T) {
		d := New(t)
		name = query[string](t, d.AppURL, "select current_database()::text")
		if err := d.App.Ping(t.Context()); err != nil {
			t.Error(err)
		}
	})
	srv, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	if query[bool](t, srv.SuperURL("postgres"), "select exists (select from pg_database where datname = $1)", name) {
		t.Error("it is still there")
	}
}

func TestManyAtOnceGetTheirOwn(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 8)
	t.Run("all", func(t *testing.T) {
		for range cap(seen) {
			t.Run("one", func(t *testing.T) {
				t.Parallel()
				seen <- query[string](t, New(t).AppURL, "select current_database()::text")
			})
		}
	})
	close(seen)
	names := map[string]bool{}
	for name := range seen {
		names[name] = true
	}
	if len(names) != cap(seen) {
		t.Errorf("%d databases for %d tests", len(names), cap(seen))
	}
}

func TestAKilledTestDoesNotHurtOthers(t *testing.T) {
	t.Parallel()
	d := New(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "POSTGRESTEST_KILLED=yes")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 16)
	n, _ := out.Read(line)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !strings.HasPrefix(string(line[:n]), "ready") {
		t.Fatalf("the other process said %q", line[:n])
	}
	if err := d.App.Ping(t.Context()); err != nil {
		t.Errorf("the server went with it: %v", err)
	}
	srv, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.do(dropKilled); err != nil {
		t.Error(err)
	}
}

func dropKilled(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "drop database "+testPrefix+"of_the_killed")
	return err
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New(b)
	}
}
