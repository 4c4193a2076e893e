package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Shared lists the tables that belong to no tenant and so have no row-level
// security. A table that is neither here nor protected stops the start.
var Shared = []string{
	"users", "sessions", "sign_in_links", // people, found before a tenant is known
	"passwords", "sign_ups", "reset_links",
	"usage_marks", "instances", "dead_letters", // the pipeline's own
	"goose_db_version",
}

// SelfTest refuses a database in which isolation does not hold: a role that can
// bypass row-level security or owns tables, a tenant's table without forced
// policies, or a schema that this binary does not know. It changes nothing.
func (db *DB) SelfTest(ctx context.Context) error {
	return db.Tx(ctx, func(tx pgx.Tx) error {
		return errors.Join(checkSchema(ctx, tx), checkRole(ctx, tx), checkTables(ctx, tx))
	})
}

func checkSchema(ctx context.Context, tx pgx.Tx) error {
	var there bool
	if err := tx.QueryRow(ctx, "select to_regclass('public.tenants') is not null").Scan(&there); err != nil {
		return err
	}
	if !there {
		return errors.New("the schema is missing: run `bin/api migrate` first")
	}
	return nil
}

func checkRole(ctx context.Context, tx pgx.Tx) error {
	var name string
	var super, bypass, owns bool
	err := tx.QueryRow(ctx, `
		select current_user::text, r.rolsuper, r.rolbypassrls,
		       exists (select from pg_class c where c.relnamespace = 'public'::regnamespace
		               and c.relkind in ('r', 'p') and pg_has_role(current_user, c.relowner, 'usage'))
		from pg_roles r where r.rolname = current_user`).Scan(&name, &super, &bypass, &owns)
	if err != nil {
		return err
	}
	if super || bypass || owns {
		return fmt.Errorf("role %q is a superuser, can bypass row-level security or owns tables: connect as weir_app or weir_worker", name)
	}
	return nil
}

func checkTables(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		select c.relname::text
		from pg_class c
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
		  and not (c.relrowsecurity and c.relforcerowsecurity
		           and exists (select from pg_policy p where p.polrelid = c.oid))
		order by 1`)
	if err != nil {
		return err
	}
	open, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	open = slices.DeleteFunc(open, func(t string) bool { return slices.Contains(Shared, t) })
	if len(open) > 0 {
		return fmt.Errorf("tables without forced row-level security: %s", strings.Join(open, ", "))
	}
	return nil
}
