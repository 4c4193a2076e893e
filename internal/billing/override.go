package billing

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/message"
	"weir/internal/tenants"
)

// Override is a limit that one customer has for a time, in the place of its
// plan's that counts the same, or beside them. It goes with the subscription
// from plan to plan, and ends with it.
type Override struct {
	ID           uuid.UUID
	Subscription uuid.UUID
	Customer     uuid.UUID
	Limit        limits.Limit
	Reason       string
	From         time.Time
	Until        *time.Time // nil: no end
	ActorKind    string
	ActorID      uuid.UUID // zero: nobody
	CreatedAt    time.Time
}

// Holds tells whether it is in effect.
func (o Override) Holds(at time.Time) bool {
	return !at.Before(o.From) && (o.Until == nil || at.Before(*o.Until))
}

// NewOverride is what an override starts from.
type NewOverride struct {
	Customer uuid.UUID
	Limit    limits.Limit
	Reason   string
	From     *time.Time // nil: now
	Until    *time.Time
}

// mostOverrides is how many a customer may have that are not over.
const mostOverrides = 20

// Overridden is a customer's placed limits with the overrides that hold at an
// instant.
func Overridden(placed []limits.Limit, by []Override, at time.Time) []limits.Limit {
	var holding []limits.Limit
	for _, o := range by {
		if o.Holds(at) {
			holding = append(holding, o.at(placed))
		}
	}
	return limits.Overridden(placed, holding)
}

// at is the limit as it stands at the customer.
func (o Override) at(placed []limits.Limit) limits.Limit {
	name := "override"
	if len(placed) > 0 {
		name = placed[0].Scope.Name
	}
	return tenants.Placed([]limits.Limit{o.Limit}, limits.Scope{Kind: limits.ScopeCustomer, ID: o.Customer, Name: name})[0]
}

// Spell numbers the spans between the instants at which overrides of a party
// begin or end: within one, its limits are the same.
func (p Party) Spell(now time.Time) (n int) {
	for _, o := range p.Overrides {
		if !now.Before(o.From) {
			n++
		}
		if o.Until != nil && !now.Before(*o.Until) {
			n++
		}
	}
	return n
}

// AddOverride gives a customer that has a subscription a limit of its own, in
// effect everywhere within a second of its start until its very end. Another one
// that counts the same at the same time is a Conflict (override_overlaps).
func (s *Service) AddOverride(ctx context.Context, tenant uuid.UUID, n NewOverride) (Override, error) {
	now := s.stamp()
	o, wrong := n.checked(now)
	if len(wrong) > 0 {
		return Override{}, fault.InvalidFields(wrong...)
	}
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		c, err := tenants.ReadCustomer(ctx, tx, tenant, n.Customer)
		if err != nil {
			return err
		}
		sub, err := s.lockOf(ctx, tx, tenant, n.Customer)
		if err != nil {
			return err
		}
		if sub.Status == Ended {
			return hasEnded()
		}
		o.Subscription = sub.ID
		if err := s.fits(ctx, tx, tenant, o, now); err != nil {
			return err
		}
		if err := insertOverride(ctx, tx, tenant, &o); err != nil {
			return err
		}
		difference := toldOverrideOf(o)
		difference.Name = c.Name
		return noteOverride(ctx, tx, tenant, o, message.OverrideCreated, difference)
	})
	return o, err
}

func (n NewOverride) checked(now time.Time) (Override, []fault.Field) {
	o := Override{ID: id.New(), Customer: n.Customer, Limit: limits.Default(n.Limit), Reason: strings.TrimSpace(n.Reason), From: now, CreatedAt: now}
	var wrong []fault.Field
	for _, f := range limits.Check([]limits.Limit{o.Limit}) {
		f.Pointer = "/limit" + strings.TrimPrefix(f.Pointer, "/limits/0")
		wrong = append(wrong, f)
	}
	switch {
	case o.Reason == "" || len([]rune(o.Reason)) > 500:
		wrong = append(wrong, fault.Field{Pointer: "/reason", Code: "required", Message: "Say why, in at most 500 characters: the customer reads it too."})
	default:
		wrong = append(wrong, tenants.CheckText("/reason", o.Reason)...)
	}
	if n.From != nil {
		if o.From = n.From.UTC().Truncate(time.Microsecond); o.From.Before(now) {
			o.From = now // what has passed is passed
		}
	}
	if n.Until != nil {
		until := n.Until.UTC().Truncate(time.Microsecond)
		if o.Until = &until; !until.After(o.From) {
			wrong = append(wrong, fault.Field{Pointer: "/until", Code: "out_of_range", Message: "This must be later than its start, and in the future."})
		}
	}
	return o, wrong
}

// fits refuses an override beside one that counts the same at the same time.
func (s *Service) fits(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, o Override, now time.Time) error {
	others, err := overridesOf(ctx, tx, tenant, now, o.Subscription)
	if err != nil {
		return err
	}
	for _, x := range others[o.Subscription] {
		if x.Limit.Same(o.Limit) && (o.Until == nil || x.From.Before(*o.Until)) && (x.Until == nil || o.From.Before(*x.Until)) {
			return fault.Newf(fault.Conflict, "override_overlaps", "There is an override of the same limit at the same time, %s. End it first.", id.Override.Format(x.ID))
		}
	}
	if len(others[o.Subscription]) >= mostOverrides {
		return fault.Newf(fault.Conflict, "too_many_overrides", "A customer has at most %d overrides at a time. A plan of its own says more.", mostOverrides)
	}
	return nil
}

func insertOverride(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, o *Override) error {
	a := tenants.ActorOf(ctx)
	o.ActorKind, o.ActorID = a.Kind, a.ID
	_, err := tx.Exec(ctx, `
		insert into overrides (tenant_id, override_id, subscription_id, customer_id, reason, starts_at, ends_at, actor_kind, actor_id, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, nullif($9, '00000000-0000-0000-0000-000000000000'::uuid), $10)`,
		tenant, o.ID, o.Subscription, o.Customer, o.Reason, o.From, o.Until, o.ActorKind, o.ActorID, o.CreatedAt)
	if err != nil {
		return err
	}
	stored, err := tenants.AddLimits(ctx, tx, tenant, tenants.OwnedByOverride, o.ID, []limits.Limit{o.Limit})
	if err == nil {
		o.Limit = stored[0]
	}
	return err
}

// EndOverride ends an override now, or before it has begun. One that is over is
// left as it is.
func (s *Service) EndOverride(ctx context.Context, tenant, override uuid.UUID) (Override, error) {
	var o Override
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if _, err := tx.Exec(ctx, `
			select from subscriptions s
			join overrides o on o.tenant_id = s.tenant_id and o.subscription_id = s.subscription_id
			where o.tenant_id = $1 and o.override_id = $2 for update of s`, tenant, override); err != nil {
			return err
		}
		if o, err = readOverride(ctx, tx, tenant, override); err != nil {
			return err
		}
		now := s.stamp()
		if now.Before(o.From) {
			now = o.From
		}
		if o.Until != nil && !now.Before(*o.Until) {
			return nil
		}
		o.Until = &now
		if _, err := tx.Exec(ctx, `
			update overrides set ends_at = $3 where tenant_id = $1 and override_id = $2`, tenant, override, now); err != nil {
			return err
		}
		return noteOverride(ctx, tx, tenant, o, message.OverrideEnded, toldOverrideOf(o))
	})
	return o, err
}

const overrideColumns = `override_id, subscription_id, customer_id, reason, starts_at, ends_at, actor_kind, coalesce(actor_id, '00000000-0000-0000-0000-000000000000'), created_at`

func scanOverride(row pgx.CollectableRow) (o Override, err error) {
	err = row.Scan(&o.ID, &o.Subscription, &o.Customer, &o.Reason, &o.From, &o.Until, &o.ActorKind, &o.ActorID, &o.CreatedAt)
	return o, err
}

// Override reads one.
func (s *Service) Override(ctx context.Context, tenant, override uuid.UUID) (Override, error) {
	var o Override
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		o, err = readOverride(ctx, tx, tenant, override)
		return err
	})
	return o, err
}

func readOverride(ctx context.Context, tx pgx.Tx, tenant, override uuid.UUID) (Override, error) {
	rows, err := tx.Query(ctx, `
		select `+overrideColumns+` from overrides where tenant_id = $1 and override_id = $2`, tenant, override)
	if err != nil {
		return Override{}, err
	}
	o, err := pgx.CollectExactlyOneRow(rows, scanOverride)
	if errors.Is(err, pgx.ErrNoRows) {
		return o, tenants.NotFound("override")
	}
	if err != nil {
		return o, err
	}
	list := []Override{o}
	err = withLimits(ctx, tx, tenant, list)
	return list[0], err
}

// Overrides lists overrides, newest first, after an id; of one customer, or (the
// zero id) of all.
func (s *Service) Overrides(ctx context.Context, tenant, customer, after uuid.UUID, limit int) (tenants.Page[Override], error) {
	var list []Override
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select `+overrideColumns+` from overrides
			where tenant_id = $1 and override_id < $2 and ($3 = '00000000-0000-0000-0000-000000000000'::uuid or customer_id = $3)
			order by override_id desc limit $4`, tenant, tenants.After(after), customer, limit+1)
		if err != nil {
			return err
		}
		if list, err = pgx.CollectRows(rows, scanOverride); err != nil {
			return err
		}
		return withLimits(ctx, tx, tenant, list)
	})
	return tenants.PageOf(list, limit, func(o Override) uuid.UUID { return o.ID }), err
}

// overridesOf are the overrides of subscriptions that are not over at an instant,
// in the order of their starts, without those that ended before they began.
func overridesOf(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, at time.Time, subscriptions ...uuid.UUID) (map[uuid.UUID][]Override, error) {
	rows, err := tx.Query(ctx, `
		select `+overrideColumns+` from overrides
		where tenant_id = $1 and subscription_id = any($2) and (ends_at is null or ends_at > greatest($3, starts_at))
		order by subscription_id, starts_at, override_id`, tenant, subscriptions, at)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scanOverride)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if err := withLimits(ctx, tx, tenant, list); err != nil {
		return nil, err
	}
	out := map[uuid.UUID][]Override{}
	for _, o := range list {
		out[o.Subscription] = append(out[o.Subscription], o)
	}
	return out, nil
}

func withLimits(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, list []Override) error {
	var ids []uuid.UUID
	for _, o := range list {
		ids = append(ids, o.ID)
	}
	byOwner, err := tenants.LimitsOf(ctx, tx, tenant, tenants.OwnedByOverride, ids)
	for i, o := range list {
		if one := byOwner[o.ID]; len(one) == 1 {
			list[i].Limit = one[0]
		}
	}
	return err
}

// Replaces is the limit of a version that an override stands in the place of;
// false: it is beside them.
func (o Override) Replaces(v Version) (limits.Limit, bool) {
	i := slices.IndexFunc(v.Limits, o.Limit.Same)
	if i < 0 {
		return limits.Limit{}, false
	}
	return v.Limits[i], true
}

// toldOverride is the data of messages about an override, and of its audit entry.
type toldOverride struct {
	ID           string     `json:"id"`
	Customer     string     `json:"customer"`
	Name         string     `json:"name,omitempty"`
	Subscription string     `json:"subscription"`
	Limit        string     `json:"limit"`
	Reason       string     `json:"reason"`
	From         time.Time  `json:"from"`
	Until        *time.Time `json:"until"`
}

func toldOverrideOf(o Override) toldOverride {
	return toldOverride{
		ID: id.Override.Format(o.ID), Customer: id.Customer.Format(o.Customer), Subscription: id.Subscription.Format(o.Subscription),
		Limit: Sentence([]limits.Limit{o.Limit}), Reason: o.Reason, From: o.From, Until: o.Until,
	}
}

func noteOverride(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, o Override, told message.Type, says toldOverride) error {
	if err := message.Emit(ctx, tx, tenant, told, says); err != nil {
		return err
	}
	return tenants.Audit(ctx, tx, tenant, string(told), id.Subscription.Format(o.Subscription), says)
}
