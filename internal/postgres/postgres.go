// Package postgres is the way to the database.
//
// The pool stays inside: a caller gets a transaction with its tenant set, or
// one with no tenant at all, to which every tenant's table is empty. So a
// forgotten "where tenant_id" shows nothing instead of everything.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"weir/internal/fault"
)

// DB is a pool of connections of one role. It is safe for concurrent use.
type DB struct {
	pool *pgxpool.Pool
}

// Options bound what a process may ask of the database.
type Options struct {
	MaxConns         int32         // 0: pgx's default
	StatementTimeout time.Duration // 0: 5 s
	LockTimeout      time.Duration // 0: 1 s
	Name             string        // in pg_stat_activity, unless the URL says one; "": weir
}

// Open makes a pool; it does not connect yet, so that a process may start
// before its database. An unreadable URL is an error.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", redactURL(err))
	}
	if o.MaxConns > 0 {
		cfg.MaxConns = o.MaxConns
	}
	p := cfg.ConnConfig.RuntimeParams
	p["statement_timeout"] = millis(o.StatementTimeout, 5*time.Second)
	p["lock_timeout"] = millis(o.LockTimeout, time.Second)
	p["idle_in_transaction_session_timeout"] = "30000"
	p["timezone"] = "UTC"
	if p["application_name"] == "" {
		p["application_name"] = cmp.Or(o.Name, "weir")
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("database pool: %w", redactURL(err))
	}
	return &DB{pool: pool}, nil
}

// redactURL drops what a parse error repeats of the url, passwords included.
func redactURL(err error) error {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		return errors.New("it cannot be read as postgres://user:password@host:port/database")
	}
	return err
}

func millis(d, absent time.Duration) string {
	if d == 0 {
		d = absent
	}
	return fmt.Sprint(d.Milliseconds())
}

// Close ends every connection.
func (db *DB) Close() { db.pool.Close() }

// Ping tells whether the database answers.
func (db *DB) Ping(ctx context.Context) error { return outage(db.pool.Ping(ctx)) }

// WithTenant runs f in a transaction that sees and writes this tenant's rows
// only, and commits when f returns nil. It returns f's error as it is; an
// outage of the database is Unavailable.
func (db *DB) WithTenant(ctx context.Context, tenant uuid.UUID, f func(tx pgx.Tx) error) error {
	if tenant == uuid.Nil {
		return errors.New("postgres: a transaction of no tenant")
	}
	return db.run(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select set_config('app.tenant_id', $1, true)", tenant.String()); err != nil {
			return err
		}
		return f(tx)
	})
}

// Snapshot is WithTenant for reading several things as of one instant.
func (db *DB) Snapshot(ctx context.Context, tenant uuid.UUID, f func(tx pgx.Tx) error) error {
	return db.run(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select set_config('app.tenant_id', $1, true)", tenant.String()); err != nil {
			return err
		}
		return f(tx)
	})
}

// Tx runs f in a transaction without a tenant: tables that belong to tenants
// are empty to it (to the worker role all but the usage tables are).
func (db *DB) Tx(ctx context.Context, f func(tx pgx.Tx) error) error {
	return db.run(ctx, pgx.TxOptions{}, f)
}

// run retries what the server asks to have retried: a serialisation failure or
// a deadlock, at most three times. So f may run again, from the beginning.
func (db *DB) run(ctx context.Context, o pgx.TxOptions, f func(tx pgx.Tx) error) error {
	for try := 1; ; try++ {
		err := pgx.BeginTxFunc(ctx, db.pool, o, f)
		if try < 3 && (Code(err) == "40001" || Code(err) == "40P01") {
			continue
		}
		return outage(err)
	}
}

// Code is the SQLSTATE in err's chain, or "".
func Code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// Constraint is the name of the constraint that err says was violated, or "".
func Constraint(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.ConstraintName
	}
	return ""
}

// outage turns "the database cannot be reached, or gave up in time" into
// Unavailable, and leaves every other error alone.
func outage(err error) error {
	if err == nil {
		return nil
	}
	var f *fault.Error
	if errors.As(err, &f) || errors.Is(err, pgx.ErrNoRows) || errors.Is(err, context.Canceled) {
		return err
	}
	var connect *pgconn.ConnectError
	code := Code(err)
	switch {
	case errors.As(err, &connect), code == "" && (pgconn.Timeout(err) || isConnectionLoss(err)):
	case code == "57014", code == "55P03", len(code) == 5 && (code[:2] == "08" || code[:2] == "53" || code[:3] == "57P"):
	default:
		return err
	}
	return fault.New(fault.Unavailable, "database_unavailable", "The database cannot answer right now. Nothing was changed; try again in a few seconds.").
		After(5 * time.Second).Because(err)
}

func isConnectionLoss(err error) bool {
	var pg *pgconn.PgError
	return !errors.As(err, &pg) && (pgconn.SafeToRetry(err) || errors.Is(err, errClosed) || isNet(err))
}
