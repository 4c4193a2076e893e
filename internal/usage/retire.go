package usage

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
)

// Retire says that nothing is to come of an instance that is gone: reports and
// caps wait for it no longer, until it comes back. What it still has is counted all the
// same, should it be found. It is written into the audit of the operator's tenant, as object. An
// instance that says that it runs is a Conflict (instance_runs), one that is not
// known NotFound; one that is over stays as it is.
func (p *Pipeline) Retire(ctx context.Context, operator, instance uuid.UUID, audit Audit) error {
	return p.db.WithTenant(ctx, operator, func(tx pgx.Tx) error {
		var host string
		var silent time.Duration
		var over bool
		err := tx.QueryRow(ctx, `
			select host, now() - seen_at, stopped_at is not null or retired_at is not null
			from instances where instance_id = $1 for update`, instance).Scan(&host, &silent, &over)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return fault.New(fault.NotFound, "instance_not_found", "There is no such instance.")
		case err != nil || over:
			return err
		case silent < SilentAfter:
			return fault.New(fault.Conflict, "instance_runs", "This instance still runs. Stop it; then nothing is left to retire.")
		}
		if _, err := tx.Exec(ctx, `update instances set retired_at = now() where instance_id = $1`, instance); err != nil {
			return err
		}
		return audit(ctx, tx, operator, "instance.retired", instance.String(), map[string]string{"host": host})
	})
}
