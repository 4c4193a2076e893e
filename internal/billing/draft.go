package billing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

// SaveDraft makes n the draft of a plan: the newest version is changed while it
// is a draft, else the next version is made. It changes nobody. based is the Tag
// of the version that n began as; where the newest is another by now, nothing is
// saved and the error is a Conflict (version_changed). Without one, n wins.
func (s *Service) SaveDraft(ctx context.Context, tenant, plan uuid.UUID, based string, n NewVersion) (Version, error) {
	var v Version
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		t, err := tenants.ReadTenant(ctx, tx, tenant, s.now())
		if err != nil {
			return err
		}
		n, sums, wrong := n.checked(t.Currency)
		if len(wrong) > 0 {
			return fault.InvalidFields(wrong...)
		}
		if _, err := tx.Exec(ctx, `
			select from plans where tenant_id = $1 and plan_id = $2 for update`, tenant, plan); err != nil {
			return err
		}
		p, err := readPlan(ctx, tx, tenant, plan)
		if err != nil {
			return err
		}
		if v, err = newestVersion(ctx, tx, tenant, plan); err != nil {
			return err
		}
		if based != "" && based != v.Tag() {
			return fault.New(fault.Conflict, "version_changed", "Somebody changed this plan since you opened it. Nothing of yours is saved yet: open the plan in another tab, compare, and save again to put yours in its place.")
		}
		if v.Status != Draft {
			v = Version{Number: v.Number + 1}
		}
		v.BaseFee, v.Minimum, v.Currency, v.Prices = sums.fee, sums.minimum, sums.currency, nil
		if err := s.writeDraft(ctx, tx, tenant, plan, &v, n); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "plan_version.saved", id.PlanVersion.Format(v.ID), map[string]string{"plan": p.Name, "sentence": Sentence(v.Limits)})
	})
	return v, conflict(err)
}

// Tag is the state of a version as text: it differs after every change.
func (v Version) Tag() string {
	parts := sha256.New()
	fmt.Fprintln(parts, v.ID, v.Status, v.BaseFee, v.Minimum, v.TrialDays, v.CapOutput)
	for _, l := range v.Limits {
		fmt.Fprintln(parts, l.ID)
	}
	for _, p := range v.Prices {
		fmt.Fprintln(parts, p.ID)
	}
	return hex.EncodeToString(parts.Sum(nil)[:12])
}

// writeDraft inserts a version without an id, and writes over one that has one.
func (s *Service) writeDraft(ctx context.Context, tx pgx.Tx, tenant, plan uuid.UUID, v *Version, n NewVersion) error {
	if v.ID == uuid.Nil {
		return s.insertVersion(ctx, tx, tenant, plan, v, n)
	}
	v.Period, v.CapOutput, v.TrialDays = n.Period, n.CapOutput, n.TrialDays
	_, err := tx.Exec(ctx, `
		update plan_versions set base_fee_minor = $3, minimum_minor = $4, currency = $5, period = $6, cap_output = $7, trial_days = $8
		where tenant_id = $1 and plan_version_id = $2`, tenant, v.ID, v.BaseFee, v.Minimum, v.Currency, v.Period, v.CapOutput, v.TrialDays)
	if err != nil {
		return err
	}
	if _, err := tenants.ReplaceLimits(ctx, tx, tenant, tenants.OwnedByPlanVersion, v.ID, nil); err != nil {
		return err
	}
	if _, err = tx.Exec(ctx, `delete from plan_prices where tenant_id = $1 and plan_version_id = $2`, tenant, v.ID); err != nil {
		return err
	}
	return s.insertParts(ctx, tx, tenant, v, n)
}

// Versions are all versions of a plan, newest first.
func (s *Service) Versions(ctx context.Context, tenant, plan uuid.UUID) ([]Version, error) {
	var list []Version
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		list = nil // a transaction may run again
		rows, err := tx.Query(ctx, `
			select plan_version_id from plan_versions
			where tenant_id = $1 and plan_id = $2 order by number desc`, tenant, plan)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil {
			return err
		}
		for _, version := range ids {
			v, err := oneVersion(ctx, tx, tenant, `plan_version_id = $2`, version)
			if err != nil {
				return err
			}
			list = append(list, v)
		}
		return nil
	})
	if err == nil && len(list) == 0 {
		err = tenants.NotFound("plan")
	}
	return list, err
}
