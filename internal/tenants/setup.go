package tenants

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
)

// SetupSteps are the steps of a new tenant's first path, in their order, and
// "path", the whole of it.
var SetupSteps = []string{"provider", "plan", "key", "call", "refusal", "alert", "path"}

// SetupState is the set of steps that a tenant chose to skip, with "path" once
// the whole was done. What was done of the others is read from what is there: a
// key, a plan, a call.
func (s *Service) SetupState(ctx context.Context, tenant uuid.UUID) (map[string]bool, error) {
	skipped := map[string]bool{}
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select step from setup_steps
			where tenant_id = $1 and (skipped_at is not null or step = 'path' and done_at is not null)`, tenant)
		if err != nil {
			return err
		}
		var step string
		_, err = pgx.ForEachRow(rows, []any{&step}, func() error {
			skipped[step] = true
			return nil
		})
		return err
	})
	return skipped, err
}

// TakeSetupTx takes a step in the caller's transaction, for a form that was
// opened at an instant. Where a form has been taken since, the same one or one
// in another tab, it is a Conflict already_made.
func (s *Service) TakeSetupTx(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, step string, opened time.Time) error {
	tag, err := tx.Exec(ctx, `
		insert into setup_steps (tenant_id, step, done_at)
		values ($1, $2, $3)
		on conflict (tenant_id, step) do update set done_at = excluded.done_at
		where setup_steps.done_at is null or setup_steps.done_at < $4`, tenant, step, s.now(), opened)
	if err == nil && tag.RowsAffected() == 0 {
		return fault.New(fault.Conflict, "already_made", "This was made already, by the same form or in another tab.")
	}
	return err
}

// FinishSetup notes that a tenant has walked the whole path, so that it stays
// walked when its keys end or its calls are long ago. Again changes nothing.
func (s *Service) FinishSetup(ctx context.Context, tenant uuid.UUID) error {
	return s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			insert into setup_steps (tenant_id, step, done_at)
			values ($1, 'path', $2)
			on conflict (tenant_id, step) do nothing`, tenant, s.now())
		return err
	})
}

// SkipSetup leaves a step out, or with "path" the rest of them all. Skipping
// again changes nothing. NotFound for a step that is none.
func (s *Service) SkipSetup(ctx context.Context, tenant uuid.UUID, step string) error {
	if !slices.Contains(SetupSteps, step) {
		return NotFound("step")
	}
	return s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			insert into setup_steps (tenant_id, step, skipped_at)
			values ($1, $2, $3)
			on conflict (tenant_id, step) do update set skipped_at = excluded.skipped_at
			where setup_steps.skipped_at is null`, tenant, step, s.now())
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return Audit(ctx, tx, tenant, "setup.skipped", step, map[string]string{"step": step})
	})
}
