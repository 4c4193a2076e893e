package billing

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

// AddPlan makes a plan with its first version, a draft.
func (s *Service) AddPlan(ctx context.Context, tenant uuid.UUID, name string, n NewVersion) (Plan, error) {
	var p Plan
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		p, err = s.addPlan(ctx, tx, tenant, name, n)
		return err
	})
	return p, conflict(err)
}

// AddPublished makes a plan whose first version is published, or nothing.
func (s *Service) AddPublished(ctx context.Context, tenant uuid.UUID, name string, n NewVersion) (Plan, error) {
	var p Plan
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		draft, err := s.addPlan(ctx, tx, tenant, name, n)
		if err != nil {
			return err
		}
		if err := s.publish(ctx, tx, tenant, draft.ID, draft.Version); err != nil {
			return err
		}
		p, err = readPlan(ctx, tx, tenant, draft.ID)
		return err
	})
	return p, conflict(err)
}

func (s *Service) addPlan(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, name string, n NewVersion) (Plan, error) {
	t, err := tenants.ReadTenant(ctx, tx, tenant, s.now())
	if err != nil {
		return Plan{}, err
	}
	n, sums, wrong := n.checked(t.Currency)
	if wrong = append(tenants.CheckName("/name", name), wrong...); len(wrong) > 0 {
		return Plan{}, fault.InvalidFields(wrong...)
	}
	p := Plan{ID: id.New(), Name: name, CreatedAt: s.stamp()}
	_, err = tx.Exec(ctx, `
		insert into plans (tenant_id, plan_id, name, created_at) values ($1, $2, $3, $4)`, tenant, p.ID, p.Name, p.CreatedAt)
	if err != nil {
		return Plan{}, err
	}
	p.Version = Version{Number: 1, BaseFee: sums.fee, Minimum: sums.minimum, Currency: sums.currency}
	if err := s.insertVersion(ctx, tx, tenant, p.ID, &p.Version, n); err != nil {
		return Plan{}, err
	}
	return p, tenants.Audit(ctx, tx, tenant, "plan.created", id.Plan.Format(p.ID), map[string]string{"name": name, "sentence": Sentence(p.Version.Limits)})
}

// AddVersion makes the next version of a plan, a draft. It changes nobody.
func (s *Service) AddVersion(ctx context.Context, tenant, plan uuid.UUID, n NewVersion) (Plan, error) {
	var p Plan
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		t, err := tenants.ReadTenant(ctx, tx, tenant, s.now())
		if err != nil {
			return err
		}
		n, sums, wrong := n.checked(t.Currency)
		if len(wrong) > 0 {
			return fault.InvalidFields(wrong...)
		}
		if p, err = readPlan(ctx, tx, tenant, plan); err != nil {
			return err
		}
		v := Version{BaseFee: sums.fee, Minimum: sums.minimum, Currency: sums.currency}
		err = tx.QueryRow(ctx, `
			select coalesce(max(number), 0) + 1 from plan_versions
			where tenant_id = $1 and plan_id = $2`, tenant, plan).Scan(&v.Number)
		if err != nil {
			return err
		}
		if err := s.insertVersion(ctx, tx, tenant, plan, &v, n); err != nil {
			return err
		}
		p.Version = v
		return tenants.Audit(ctx, tx, tenant, "plan_version.created", id.PlanVersion.Format(v.ID), map[string]string{"plan": p.Name, "sentence": Sentence(v.Limits)})
	})
	return p, conflict(err)
}

func (s *Service) insertVersion(ctx context.Context, tx pgx.Tx, tenant, plan uuid.UUID, v *Version, n NewVersion) error {
	v.ID, v.Status, v.Period, v.CapOutput, v.TrialDays, v.CreatedAt = id.New(), Draft, n.Period, n.CapOutput, n.TrialDays, s.stamp()
	_, err := tx.Exec(ctx, `
		insert into plan_versions (tenant_id, plan_version_id, plan_id, number, status, base_fee_minor, minimum_minor, currency, period, cap_output, trial_days, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		tenant, v.ID, plan, v.Number, string(v.Status), v.BaseFee, v.Minimum, v.Currency, v.Period, v.CapOutput, v.TrialDays, v.CreatedAt)
	if err != nil {
		return err
	}
	return s.insertParts(ctx, tx, tenant, v, n)
}

// insertParts stores the limits and prices of a version that has none.
func (s *Service) insertParts(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, v *Version, n NewVersion) (err error) {
	if v.Limits, err = tenants.AddLimits(ctx, tx, tenant, tenants.OwnedByPlanVersion, v.ID, n.Limits); err != nil {
		return err
	}
	for i, p := range n.Prices {
		p.ID = id.New()
		_, err := tx.Exec(ctx, `
			insert into plan_prices (tenant_id, price_id, plan_version_id, position, models, class, micros_per_million, scheme, included, package_size, tiers)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			tenant, p.ID, v.ID, i, p.Models, string(p.Class), p.MicrosPerMillion, string(p.scheme()), p.Included, p.Package, p.tiers())
		if err != nil {
			return err
		}
		v.Prices = append(v.Prices, p)
	}
	return nil
}

// Publish makes the plan's newest draft its current version and retires the one
// before. A plan without a draft is a Conflict, unless its newest version is
// the published one: then nothing changes.
func (s *Service) Publish(ctx context.Context, tenant, plan uuid.UUID) (Plan, error) {
	var p Plan
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `
			select from plans where tenant_id = $1 and plan_id = $2 for update`, tenant, plan); err != nil {
			return err
		}
		v, err := newestVersion(ctx, tx, tenant, plan)
		if err != nil {
			return err
		}
		if v.Status == Draft {
			if err := s.publish(ctx, tx, tenant, plan, v); err != nil {
				return err
			}
		}
		p, err = readPlan(ctx, tx, tenant, plan)
		return err
	})
	return p, conflict(err)
}

func (s *Service) publish(ctx context.Context, tx pgx.Tx, tenant, plan uuid.UUID, v Version) error {
	if err := s.release(ctx, tx, tenant, plan, v.ID); err != nil {
		return err
	}
	if err := tellPublished(ctx, tx, tenant, plan, v); err != nil {
		return err
	}
	return tenants.Audit(ctx, tx, tenant, "plan_version.published", id.PlanVersion.Format(v.ID), map[string]int{"number": v.Number})
}

// release makes a draft the plan's published version, and retires the one before.
func (s *Service) release(ctx context.Context, tx pgx.Tx, tenant, plan, version uuid.UUID) error {
	_, err := tx.Exec(ctx, `
		update plan_versions set status = 'retired'
		where tenant_id = $1 and plan_id = $2 and status = 'published'`, tenant, plan)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		update plan_versions set status = 'published', published_at = $3
		where tenant_id = $1 and plan_version_id = $2`, tenant, version, s.stamp())
	return err
}

// Plan reads one plan with its current version.
func (s *Service) Plan(ctx context.Context, tenant, plan uuid.UUID) (Plan, error) {
	var p Plan
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		p, err = readPlan(ctx, tx, tenant, plan)
		return err
	})
	return p, err
}

// PlanTx is Plan for a caller who owns the transaction.
func (s *Service) PlanTx(ctx context.Context, tx pgx.Tx, tenant, plan uuid.UUID) (Plan, error) {
	return readPlan(ctx, tx, tenant, plan)
}

// Plans lists plans with their current versions, newest first, after an id.
func (s *Service) Plans(ctx context.Context, tenant, after uuid.UUID, limit int) (tenants.Page[Plan], error) {
	var list []Plan
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		list = nil // a transaction may run again
		rows, err := tx.Query(ctx, `
			select plan_id from plans
			where tenant_id = $1 and removed_at is null and quote_id is null and plan_id < $2
			order by plan_id desc limit $3`, tenant, tenants.After(after), limit+1)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil {
			return err
		}
		for _, plan := range ids {
			p, err := readPlan(ctx, tx, tenant, plan)
			if err != nil {
				return err
			}
			list = append(list, p)
		}
		return nil
	})
	return tenants.PageOf(list, limit, func(p Plan) uuid.UUID { return p.ID }), err
}

func readPlan(ctx context.Context, tx pgx.Tx, tenant, plan uuid.UUID) (Plan, error) {
	p := Plan{ID: plan}
	err := tx.QueryRow(ctx, `
		select name, created_at, coalesce(quote_id, '00000000-0000-0000-0000-000000000000') from plans
		where tenant_id = $1 and plan_id = $2 and removed_at is null`, tenant, plan).Scan(&p.Name, &p.CreatedAt, &p.Quote)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, tenants.NotFound("plan")
	}
	if err != nil {
		return p, err
	}
	p.Version, err = oneVersion(ctx, tx, tenant, `plan_id = $2 order by status = 'published' desc, number desc limit 1`, plan)
	return p, err
}

func newestVersion(ctx context.Context, tx pgx.Tx, tenant, plan uuid.UUID) (Version, error) {
	v, err := oneVersion(ctx, tx, tenant, `plan_id = $2 order by number desc limit 1`, plan)
	if errors.Is(err, pgx.ErrNoRows) {
		return v, tenants.NotFound("plan")
	}
	return v, err
}

// oneVersion reads the version that the condition finds, with limits and
// prices.
func oneVersion(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, condition string, arg uuid.UUID) (Version, error) {
	var v Version
	err := tx.QueryRow(ctx, `
		select plan_version_id, number, status, base_fee_minor, minimum_minor, currency, period, cap_output, trial_days, created_at, published_at
		from plan_versions where tenant_id = $1 and `+condition, tenant, arg).
		Scan(&v.ID, &v.Number, &v.Status, &v.BaseFee, &v.Minimum, &v.Currency, &v.Period, &v.CapOutput, &v.TrialDays, &v.CreatedAt, &v.PublishedAt)
	if err != nil {
		return v, err
	}
	byOwner, err := tenants.LimitsOf(ctx, tx, tenant, tenants.OwnedByPlanVersion, []uuid.UUID{v.ID})
	if err != nil {
		return v, err
	}
	v.Limits = byOwner[v.ID]
	rows, err := tx.Query(ctx, `
		select price_id, models, class, micros_per_million, scheme, included, package_size, tiers from plan_prices
		where tenant_id = $1 and plan_version_id = $2 order by position`, tenant, v.ID)
	if err != nil {
		return v, err
	}
	v.Prices, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Price, err error) {
		err = row.Scan(&p.ID, &p.Models, &p.Class, &p.MicrosPerMillion, &p.Scheme, &p.Included, &p.Package, &p.Tiers)
		return p, err
	})
	return v, err
}
