package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	migrations "weir/db/migrations"
)

// Migrate brings the database to the schema of this binary, as the role that
// owns the tables. Two at once wait for each other; running it again changes
// nothing. It returns the version reached.
func Migrate(ctx context.Context, ownerURL string) (int64, error) {
	p, db, err := provider(ownerURL)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	if _, err := p.Up(ctx); err != nil {
		return 0, fmt.Errorf("migrate: %w", err)
	}
	return p.GetDBVersion(ctx)
}

// Latest is the newest schema version that this binary knows.
func Latest() (int64, error) {
	p, err := goose.NewProvider(goose.DialectPostgres, new(sql.DB), migrations.FS, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return 0, err
	}
	all := p.ListSources()
	return all[len(all)-1].Version, nil
}

func provider(ownerURL string) (*goose.Provider, *sql.DB, error) {
	cfg, err := pgx.ParseConfig(ownerURL)
	if err != nil {
		return nil, nil, fmt.Errorf("database url: %w", redactURL(err))
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, nil, err
	}
	db := stdlib.OpenDB(*cfg)
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS, goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, nil, fmt.Errorf("migrations: %w", err)
	}
	return p, db, nil
}
