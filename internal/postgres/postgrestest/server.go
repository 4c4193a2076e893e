package postgrestest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/db/migrations"
	"weir/internal/devstack/localpg"
)

const (
	testPrefix     = "weir_test_"
	templatePrefix = "weir_template_"
)

// server is where databases are made.
type server struct {
	localpg.Address
	template string
}

var shared = sync.OnceValues(func() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	hash, err := migrationsHash()
	if err != nil {
		return nil, err
	}
	if given := os.Getenv("WEIR_TEST_DATABASE_URL"); given != "" {
		return givenServer(given, hash)
	}
	return ownServer(ctx, hash)
})

// migrationsHash names the schema: the same files, the same template.
func migrationsHash() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(migrations.FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := migrations.FS.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(raw), raw)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil))[:12], err
}

// ownServer has a folder for each state of the migrations: roles belong to the
// whole server, and those of another state must not be seen.
func ownServer(ctx context.Context, hash string) (*server, error) {
	base, err := baseFolder()
	if err != nil {
		return nil, err
	}
	at, err := localpg.Share(ctx, localpg.Options{Dir: filepath.Join(base, hash), Bin: os.Getenv("PG_BIN"), Fast: true},
		func(ctx context.Context, at localpg.Address) error {
			return errors.Join(sweep(base, hash), localpg.Do(ctx, at.SuperURL("postgres"), dropAbandoned))
		})
	if err != nil {
		return nil, err
	}
	s := &server{Address: at, template: templatePrefix + hash}
	return s, s.do(s.makeTemplate)
}

// sweep removes the servers of earlier states of the migrations that nobody
// uses.
func sweep(base, hash string) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != hash {
			err = errors.Join(err, localpg.RemoveUnused(filepath.Join(base, e.Name())))
		}
	}
	return err
}

// baseFolder is in memory where there is room: containers often have 64 MB.
func baseFolder() (string, error) {
	parent := os.TempDir()
	var shm syscall.Statfs_t
	if err := syscall.Statfs("/dev/shm", &shm); err == nil && shm.Bavail*uint64(shm.Bsize) > 1<<30 {
		parent = "/dev/shm"
	}
	base := filepath.Join(parent, fmt.Sprintf("weir-test-%d", os.Geteuid()))
	if err := os.Mkdir(base, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(base)
	if err != nil {
		return "", err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || !ok || int(owner.Uid) != os.Geteuid() {
		return "", fmt.Errorf("%s is not our folder", base)
	}
	return base, nil
}

// dropAbandoned drops the databases of tests that were killed. It runs when
// nobody uses the server yet.
func dropAbandoned(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, "select datname from pg_database where datname like $1 || '%'", testPrefix)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := conn.Exec(ctx, "drop database "+pgx.Identifier{name}.Sanitize()); err != nil {
			return err
		}
	}
	return nil
}

func givenServer(given, hash string) (*server, error) {
	at, err := localpg.Elsewhere(given, "weir-test")
	if err != nil {
		return nil, fmt.Errorf("WEIR_TEST_DATABASE_URL: %w", err)
	}
	s := &server{Address: at, template: templatePrefix + hash}
	return s, s.do(s.makeTemplate)
}
