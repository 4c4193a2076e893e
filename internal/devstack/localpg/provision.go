package localpg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Roles and the database, as migrations and services expect to find them.
const (
	Superuser = "postgres"
	Owner     = "weir_migrator" // owns the database and all tables, no superuser
	App       = "weir_app"      // made by migrations, owns nothing
	Worker    = "weir_worker"   // made by migrations, owns nothing
	Database  = "weir"
)

// Do runs f on a connection that it opens and closes.
func Do(ctx context.Context, url string, f func(context.Context, *pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return f(ctx, conn)
}

// answers is nil once the server takes a connection.
func answers(ctx context.Context, url string) error {
	return Do(ctx, url, func(context.Context, *pgx.Conn) error { return nil })
}

func provision(ctx context.Context, conn *pgx.Conn) error {
	if err := CreateOwner(ctx, conn); err != nil {
		return err
	}
	var there bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", Database).Scan(&there); err != nil || there {
		return err
	}
	_, err := conn.Exec(ctx, fmt.Sprintf("create database %s owner %s", Database, Owner))
	return err
}

// CreateOwner makes the role that runs migrations, if it is not there. The
// connection must be a superuser's.
func CreateOwner(ctx context.Context, conn *pgx.Conn) error {
	var there bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_roles where rolname = $1)", Owner).Scan(&there); err != nil || there {
		return err
	}
	_, err := conn.Exec(ctx, fmt.Sprintf("create role %s login createrole", Owner))
	return err
}

// EnableLogins lets the services' roles connect, once migrations have made
// them: without a login, since how a login is proved is the operator's choice.
// Here the folder of the socket is the proof. The connection must be a
// superuser's.
func EnableLogins(ctx context.Context, conn *pgx.Conn) error {
	for _, role := range []string{App, Worker} {
		if _, err := conn.Exec(ctx, fmt.Sprintf("alter role %s login", role)); err != nil {
			return err
		}
	}
	return nil
}
