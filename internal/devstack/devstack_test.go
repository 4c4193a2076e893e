package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/internal/devstack/localpg"
	"weir/internal/devstack/locate"
)

func migrate(ctx context.Context, ownerURL string) error {
	conn, err := pgx.Connect(ctx, ownerURL)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `
		do $$ begin
			if to_regclass('facts') is null then
				create role weir_app;
				create role weir_worker;
				create table facts (n int);
				grant select, insert on facts to weir_app, weir_worker;
			end if;
		end $$`)
	return err
}

func start(t *testing.T, dir string) *Stack {
	t.Helper()
	s, err := Start(t.Context(), Options{Dir: dir, Fast: true, Migrate: migrate})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func stop(t *testing.T, s *Stack) {
	t.Helper()
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "devstack-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func withStream(t *testing.T, url string, f func(context.Context, jetstream.Stream) error) {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "facts", Subjects: []string{"facts"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f(t.Context(), stream); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "facts", []byte("kept")); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, url, statement string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), "select count(*) from facts").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func messages(want uint64) func(context.Context, jetstream.Stream) error {
	return func(ctx context.Context, s jetstream.Stream) error {
		info, err := s.Info(ctx)
		if err == nil && info.State.Msgs != want {
			return fmt.Errorf("%d messages, want %d", info.State.Msgs, want)
		}
		return err
	}
}

func TestAStackKeepsRowsAndMessagesAcrossRestarts(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	for life := range 2 {
		s := start(t, dir)
		if n := count(t, s.AppURL, "insert into facts values (1)"); n != 2*life+1 {
			t.Errorf("life %d: %d rows after the app's", life, n)
		}
		if n := count(t, s.WorkerURL, "insert into facts values (2)"); n != 2*life+2 {
			t.Errorf("life %d: %d rows after the worker's", life, n)
		}
		withStream(t, s.NATSURL, messages(uint64(life)))
		stop(t, s)
	}
}

func TestARunningStackIsFoundByItsFolder(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	s := start(t, dir)
	if found, err := locate.Describe(dir); err != nil || found != s.Description {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err := Start(t.Context(), Options{Dir: dir, Migrate: migrate}); !errors.Is(err, locate.ErrRunning) {
		t.Errorf("a second stack: %v", err)
	}
	stop(t, s)
	if _, err := locate.Describe(dir); !errors.Is(err, locate.ErrNotRunning) {
		t.Errorf("after the stop: %v", err)
	}
}

func TestAGivenServerIsUsedInsteadOfOurOwn(t *testing.T) {
	t.Parallel()
	given, err := localpg.Start(t.Context(), localpg.Options{Dir: openDir(t), Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = given.Stop(context.Background()) }()
	dir := openDir(t)
	for life := range 2 {
		s, err := Start(t.Context(), Options{Dir: dir, DatabaseURL: given.SuperURL("own"), Migrate: migrate})
		if err != nil {
			t.Fatal(err)
		}
		if n := count(t, s.AppURL, "insert into facts values (1)"); n != life+1 {
			t.Errorf("%d rows in life %d", n, life)
		}
		if _, err := os.Stat(filepath.Join(dir, "postgres")); err == nil {
			t.Error("a server of our own was made")
		}
		stop(t, s)
	}
	_, err = Start(t.Context(), Options{Dir: dir, DatabaseURL: given.SuperURL("postgres"), Migrate: migrate})
	if err == nil || !strings.Contains(err.Error(), "name another") {
		t.Errorf("somebody else's database was taken: %v", err)
	}
}

func TestAFailedMigrationLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	broken := errors.New("broken")
	_, err := Start(t.Context(), Options{Dir: dir, Fast: true, Migrate: func(context.Context, string) error { return broken }})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	stop(t, start(t, dir))
}

func TestNATSRefusesStrangers(t *testing.T) {
	t.Parallel()
	s, err := StartNATS(NATSOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if conn, err := nats.Connect("nats://" + s.server.Addr().String()); err == nil {
		conn.Close()
		t.Error("connected without the password")
	}
}
