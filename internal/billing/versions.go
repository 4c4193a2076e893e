package billing

import (
	"context"
	"reflect"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// Retire takes a plan's published version out of the offer: nobody is put on it
// any more, and whoever is on it stays. Where none is published it changes
// nothing. A later version is offered again by publishing it.
func (s *Service) Retire(ctx context.Context, tenant, plan uuid.UUID) (Plan, error) {
	var p Plan
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if _, err := tx.Exec(ctx, `
			select from plans where tenant_id = $1 and plan_id = $2 for update`, tenant, plan); err != nil {
			return err
		}
		if p, err = readPlan(ctx, tx, tenant, plan); err != nil || p.Version.Status != Published {
			return err
		}
		retired := p.Version
		if _, err := tx.Exec(ctx, `
			update plan_versions set status = 'retired'
			where tenant_id = $1 and plan_version_id = $2`, tenant, retired.ID); err != nil {
			return err
		}
		if p, err = readPlan(ctx, tx, tenant, plan); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "plan_version.retired", id.PlanVersion.Format(retired.ID), map[string]int{"number": retired.Number})
	})
	return p, conflict(err)
}

// Pair is one limit or price line of two versions; nil where a version has none
// that counts the same.
type Pair[T any] struct {
	Before, After *T
}

// Changed tells whether the two differ in more than their ids.
func (p Pair[T]) Changed(same func(a, b T) bool) bool {
	return p.Before == nil || p.After == nil || !same(*p.Before, *p.After)
}

// Comparison is two versions side by side.
type Comparison struct {
	From, To Version
	Limits   []Pair[limits.Limit]
	Prices   []Pair[Price]
}

// Compare puts two versions side by side: what only the newer has comes last.
func Compare(from, to Version) Comparison {
	return Comparison{
		From: from, To: to,
		Limits: pairs(from.Limits, to.Limits, limits.Limit.Same),
		Prices: pairs(from.Prices, to.Prices, func(a, b Price) bool { return a.Models == b.Models && a.Class == b.Class }),
	}
}

func pairs[T any](from, to []T, same func(a, b T) bool) (out []Pair[T]) {
	for i := range from {
		p := Pair[T]{Before: &from[i]}
		if j := slices.IndexFunc(to, func(x T) bool { return same(from[i], x) }); j >= 0 {
			p.After = &to[j]
		}
		out = append(out, p)
	}
	for j := range to {
		if !slices.ContainsFunc(from, func(x T) bool { return same(x, to[j]) }) {
			out = append(out, Pair[T]{After: &to[j]})
		}
	}
	return out
}

// SameLimit tells whether two limits say the same.
func SameLimit(a, b limits.Limit) bool {
	a.ID, b.ID = uuid.Nil, uuid.Nil
	return reflect.DeepEqual(a, b)
}

// SamePrice tells whether two price lines say the same.
func SamePrice(a, b Price) bool {
	a.ID, b.ID = uuid.Nil, uuid.Nil
	a.Scheme, b.Scheme = a.scheme(), b.scheme()
	return reflect.DeepEqual(a, b)
}

// Standee is a customer that is on a plan.
type Standee struct {
	Subscription uuid.UUID
	Customer     uuid.UUID
	Name         string
	Version      uuid.UUID
	Number       int // of the version
	Status       Status
	Pending      uuid.UUID
}

// OnPlan lists who is on any version of a plan, newest subscription first, after
// the id of one.
func (s *Service) OnPlan(ctx context.Context, tenant, plan, after uuid.UUID, limit int) (tenants.Page[Standee], error) {
	var list []Standee
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		list, err = standees(ctx, tx, tenant, plan, after, limit+1)
		return err
	})
	return tenants.PageOf(list, limit, func(x Standee) uuid.UUID { return x.Subscription }), err
}

func standees(ctx context.Context, tx pgx.Tx, tenant, plan, after uuid.UUID, limit int) ([]Standee, error) {
	rows, err := tx.Query(ctx, `
		select s.subscription_id, c.customer_id, c.name, v.plan_version_id, v.number, s.status, coalesce(s.pending_version_id, '00000000-0000-0000-0000-000000000000')
		from subscriptions s
		join plan_versions v on v.tenant_id = s.tenant_id and v.plan_version_id = s.plan_version_id
		join customers c on c.tenant_id = s.tenant_id and c.customer_id = s.customer_id
		where s.tenant_id = $1 and v.plan_id = $2 and s.status <> 'ended' and s.subscription_id < $3
		order by s.subscription_id desc limit $4`, tenant, plan, tenants.After(after), limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (x Standee, err error) {
		err = row.Scan(&x.Subscription, &x.Customer, &x.Name, &x.Version, &x.Number, &x.Status, &x.Pending)
		return x, err
	})
}
