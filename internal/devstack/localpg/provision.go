package localpg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Roles and the database, as migrations and services expect to find them.
const (
	Superuser = "postgres"      // of the servers started here
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
func answers(ctx context.Context, a Address) error {
	return Do(ctx, a.SuperURL("postgres"), func(context.Context, *pgx.Conn) error { return nil })
}

// Provision makes a database and its owner, the role that runs migrations, if
// they are not there. A database of another owner is an error.
func (a Address) Provision(ctx context.Context, database string) error {
	return Do(ctx, a.SuperURL("postgres"), func(ctx context.Context, conn *pgx.Conn) error {
		if err := a.CreateOwner(ctx, conn); err != nil {
			return err
		}
		var owner string
		err := conn.QueryRow(ctx, "select pg_get_userbyid(datdba)::text from pg_database where datname = $1", database).Scan(&owner)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			_, err = conn.Exec(ctx, fmt.Sprintf("create database %s owner %s", pgx.Identifier{database}.Sanitize(), Owner))
		case err == nil && owner != Owner:
			err = fmt.Errorf("the database %s exists and belongs to %s, not to %s: name another", database, owner, Owner)
		}
		return err
	})
}

// CreateOwner makes the role that runs migrations, if it is not there. The
// connection must be a superuser's.
func (a Address) CreateOwner(ctx context.Context, conn *pgx.Conn) error {
	var there bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_roles where rolname = $1)", Owner).Scan(&there); err != nil {
		return err
	}
	if !there {
		if _, err := conn.Exec(ctx, "create role "+Owner+" createrole"); err != nil {
			return err
		}
	}
	return a.enableLogin(ctx, conn, Owner)
}

// EnableLogins lets the services' roles connect, once migrations have made
// them: without a login, since how a login is proved is the operator's choice.
// The connection must be a superuser's.
func (a Address) EnableLogins(ctx context.Context, conn *pgx.Conn) error {
	return errors.Join(a.enableLogin(ctx, conn, App), a.enableLogin(ctx, conn, Worker))
}

func (a Address) enableLogin(ctx context.Context, conn *pgx.Conn, role string) error {
	statement := "alter role " + role + " login"
	if a.password != "" {
		quoted, err := conn.PgConn().EscapeString(a.password)
		if err != nil {
			return err
		}
		statement += " password '" + quoted + "'"
	}
	_, err := conn.Exec(ctx, statement)
	return err
}
