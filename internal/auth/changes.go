package auth

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/postgres"
)

// How changes are followed.
const (
	lookEvery   = 250 * time.Millisecond
	mostChanges = 20_000 // at once; more, and everything is read again as it is used
)

// ChangesKept is for how long at least a change is to be found in the database
// after it was committed. Who slept for half of that relies on nothing.
const ChangesKept = 10 * time.Minute

// position is how far the changes were followed.
type position struct {
	snapshot *string   // of the database: what had committed by then; nil: none yet
	at       time.Time // of the database
	server   time.Time // when it started: another life may have lost commits
}

// follows tells whether nothing can have been missed between two positions.
func (p position) follows(last position) bool {
	return last.snapshot != nil && p.server.Equal(last.server) && p.at.Sub(last.at) < ChangesKept/2
}

// change is what no longer is as it was.
type change struct {
	tenant, object uuid.UUID
	kind           string
}

// Follow keeps the directory up to date until ctx ends. It looks for changes
// several times a second, on a pool of its own, so that nothing else holds it
// up. While it cannot, the directory reads again what it is asked for.
func (d *Directory) Follow(ctx context.Context, db *postgres.DB, log *slog.Logger) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	failing := false
	for {
		look, cancel := context.WithTimeout(ctx, freshFor)
		err := d.CatchUp(look, db)
		cancel()
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			failing = failed
			if failed {
				log.WarnContext(ctx, "changes of the configuration not followed", "error", err)
			} else {
				log.InfoContext(ctx, "changes of the configuration followed again")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// CatchUp forgets what has changed since it was last called. From then on the
// directory relies on the rest for a second. An error changes nothing.
func (d *Directory) CatchUp(ctx context.Context, db *postgres.DB) error {
	d.following.Lock()
	defer d.following.Unlock()
	began := d.now()
	next, list, err := readChanges(ctx, db, d.seen)
	if err != nil {
		return err
	}
	whole := next.follows(d.seen) && len(list) <= mostChanges
	for _, c := range list {
		whole = d.forget(c) && whole
	}
	d.seen = next
	if whole {
		d.horizon.Confirm(began)
	} else {
		d.horizon.Restart(began, d.now())
	}
	return nil
}

// forget drops what a change concerns. It is false for a kind of change that
// only a later version knows.
func (d *Directory) forget(c change) bool {
	r := ref{c.tenant, c.object}
	switch c.kind {
	case "tenant":
		d.grounds.Drop(c.tenant)
	case "api_key":
		d.keys.Drop(r)
	case "customer":
		d.parties.Drop(r)
	case "plan_version":
		d.terms.Drop(r)
	case "plan":
		d.terms.DropIf(func(_ ref, t *terms) bool { return t.PlanID == c.object })
	case "provider_key", "data_key", "streak", "pool":
		d.routes.Drop(c.tenant)
	case "alias":
		d.aliases.Drop(c.tenant)
	case "override": // is a change of its customer too
	case "catalogue":
		d.books.Drop(c.tenant)
	default:
		return false
	}
	return true
}

// readChanges asks for what has committed since a position, and for the next
// one: both as one snapshot of the database shows them.
func readChanges(ctx context.Context, db *postgres.DB, last position) (next position, list []change, err error) {
	err = db.Tx(ctx, func(tx pgx.Tx) error {
		list = nil // a transaction may run again
		rows, err := tx.Query(ctx, `
			select pg_current_snapshot()::text, now(), pg_postmaster_start_time(), c.tenant_id, c.kind, c.object_id
			from (values (0)) once
			left join lookup_config_changes($1::text::pg_snapshot, $2) c on true`, last.snapshot, mostChanges+1)
		if err != nil {
			return err
		}
		var tenant, object *uuid.UUID
		var kind *string
		_, err = pgx.ForEachRow(rows, []any{&next.snapshot, &next.at, &next.server, &tenant, &kind, &object}, func() error {
			if kind != nil {
				list = append(list, change{*tenant, *object, *kind})
			}
			return nil
		})
		return err
	})
	return next, list, err
}
