package postgrestest

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/internal/devstack/localpg"
	"weir/internal/postgres"
)

const templateLock = 7_310_514 // any number that nobody else locks

// makeTemplate migrates the template unless it is there. Processes wait for
// each other; it is marked as a template only when it is whole.
func (s *server) makeTemplate(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", templateLock); err != nil {
		return err
	}
	var whole bool
	err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1 and datistemplate)", s.template).Scan(&whole)
	if err != nil || whole {
		return err
	}
	if err := s.CreateOwner(ctx, conn); err != nil {
		return err
	}
	if err := s.migrate(ctx, conn); err != nil {
		return err
	}
	if err := s.EnableLogins(ctx, conn); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, fmt.Sprintf("alter database %s is_template true", s.template))
	return err
}

func (s *server) migrate(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, fmt.Sprintf("drop database if exists %s with (force)", s.template)); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, fmt.Sprintf("create database %s owner %s", s.template, localpg.Owner)); err != nil {
		return err
	}
	_, err := postgres.Migrate(ctx, s.URL(localpg.Owner, s.template))
	return err
}

// copyTemplate copies files instead of logging every page: this server neither
// syncs nor has to recover.
func (s *server) copyTemplate(name string) error {
	return s.do(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, fmt.Sprintf("create database %s owner %s template %s strategy file_copy", name, localpg.Owner, s.template))
		return err
	})
}

func (s *server) drop(name string) error {
	return s.do(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, fmt.Sprintf("drop database if exists %s with (force)", name))
		return err
	})
}

// do runs f on a superuser's connection that is in no test's database. It
// leaves no connection behind: leak checks of tests see none of ours.
func (s *server) do(f func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return localpg.Do(ctx, s.SuperURL("postgres"), f)
}
