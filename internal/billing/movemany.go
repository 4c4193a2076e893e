package billing

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

// MostMoved is how many subscriptions one move takes along.
const MostMoved = 500

// ManyMove asks for everybody who is on an older version of a plan to go to its
// published one.
type ManyMove struct {
	Plan      uuid.UUID
	From      uuid.UUID   // only who is on this version; zero: on any other
	Customers []uuid.UUID // only these; none: everybody
	When      When        // "" is AtOnce
}

// Moving is one customer of a move of many.
type Moving struct {
	Standee
	Change
}

// Left is a customer that a move of many leaves where it is.
type Left struct {
	Standee
	Why string
}

// Many is what a move of many does.
type Many struct {
	To         Terms
	When       When
	At         time.Time
	Moves      []Moving
	Left       []Left
	TotalMinor int64 // of all moves, for the running periods
	Currency   string
	Token      string
	Expires    time.Time
}

// pinnedMany is what the token of a preview of many holds.
type pinnedMany struct {
	Tenant  uuid.UUID `json:"t"`
	Batch   uuid.UUID `json:"b"`
	Move    ManyMove  `json:"m"`
	To      uuid.UUID `json:"v"`
	Digest  []byte    `json:"d"` // of who moves, and how each stood
	At      time.Time `json:"a"`
	Expires time.Time `json:"x"`
}

// PreviewMany says what a move of many would do. Who is cancelled, or goes to
// that version anyway, is left. More than MostMoved are Invalid (too_many).
func (s *Service) PreviewMany(ctx context.Context, tenant uuid.UUID, m ManyMove) (Many, error) {
	if m.When == "" {
		m.When = AtOnce
	}
	if m.When != AtOnce && m.When != AtPeriodEnd {
		return Many{}, fault.InvalidFields(fault.Field{Pointer: "/at", Code: "not_one_of", Message: "A change takes effect now or at period_end."})
	}
	var out Many
	now := s.stamp()
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		out, err = s.many(ctx, tx, tenant, m, now)
		return err
	})
	if err != nil {
		return out, err
	}
	out.Expires = now.Add(previewFor)
	out.Token = s.seal(pinnedMany{tenant, id.New(), m, out.To.Version.ID, out.digest(), now, out.Expires})
	return out, nil
}

// many works out a move of many at an instant. Every subscription that moves is
// locked.
func (s *Service) many(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, m ManyMove, at time.Time) (Many, error) {
	p, err := readPlan(ctx, tx, tenant, m.Plan)
	if err != nil {
		return Many{}, err
	}
	if m.From != uuid.Nil {
		if terms, err := readTerms(ctx, tx, tenant, m.From); fault.Is(err, fault.NotFound) || err == nil && terms.PlanID != m.Plan {
			return Many{}, tenants.Missing("/from", "version of the plan")
		} else if err != nil {
			return Many{}, err
		}
	}
	if p.Version.Status != Published {
		return Many{}, notPublished()
	}
	out := Many{To: Terms{PlanID: p.ID, Plan: p.Name, Version: p.Version}, When: m.When, At: at, Currency: p.Version.Currency}
	list, err := s.movable(ctx, tx, tenant, m, p.Version.ID)
	if err != nil {
		return out, err
	}
	if err := lockAll(ctx, tx, tenant, list); err != nil {
		return out, err
	}
	for _, x := range list {
		sub, err := s.lock(ctx, tx, tenant, x.Subscription)
		if err != nil {
			return out, err
		}
		x.Status, x.Pending = sub.Status, sub.Pending
		switch {
		case sub.Status == Ended || sub.Status == Cancelled:
			out.Left = append(out.Left, Left{x, "it is cancelled"})
			continue
		case m.When == AtPeriodEnd && sub.Pending == p.Version.ID:
			out.Left = append(out.Left, Left{x, "it goes there anyway"})
			continue
		}
		c, err := s.change(ctx, tx, tenant, sub, p.Version.ID, m.When, at)
		if err != nil {
			return out, err
		}
		out.Moves = append(out.Moves, Moving{x, c})
		out.TotalMinor += c.TotalMinor
	}
	return out, nil
}

// lockAll locks every subscription before the first is turned: turning writes to
// the audit, for which whoever holds one of the others may wait.
func lockAll(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, list []Standee) error {
	var all []uuid.UUID
	for _, x := range list {
		all = append(all, x.Subscription)
	}
	_, err := tx.Exec(ctx, `
		select from subscriptions where tenant_id = $1 and subscription_id = any($2) order by subscription_id for update`, tenant, all)
	return err
}

// movable are those who can be meant.
func (s *Service) movable(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, m ManyMove, to uuid.UUID) ([]Standee, error) {
	list, err := standees(ctx, tx, tenant, m.Plan, uuid.Nil, 1_000_000)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(x Standee) bool {
		return x.Version == to || m.From != uuid.Nil && x.Version != m.From || len(m.Customers) > 0 && !slices.Contains(m.Customers, x.Customer)
	})
	if len(list) > MostMoved {
		return nil, fault.InvalidFields(fault.Field{Pointer: "/customers", Code: "too_many", Message: fmt.Sprintf("At most %d customers move at once, and these are %d. Name some of them, and then the rest.", MostMoved, len(list))})
	}
	slices.SortFunc(list, func(a, b Standee) int { return slices.Compare(a.Subscription[:], b.Subscription[:]) })
	return list, nil
}

// digest is who moves, and how each stood.
func (m Many) digest() []byte {
	sum := sha256.New()
	for _, x := range m.Moves {
		fmt.Fprintln(sum, x.Standee.Subscription, x.Change.From.Version.ID, x.Change.Subscription.Current.End, x.Change.Subscription.Revision)
	}
	return sum.Sum(nil)
}

// MoveMany carries out the move of a preview, all of it or nothing, once however
// often it is asked, and says how many were moved. Where anybody has come, gone
// or changed since, it is a Conflict (preview_stale).
func (s *Service) MoveMany(ctx context.Context, tenant, plan uuid.UUID, token string) (moved int, err error) {
	if _, err := s.Plan(ctx, tenant, plan); err != nil {
		return 0, err
	}
	var t pinnedMany
	if !s.open(token, &t) || t.Tenant != tenant || t.Move.Plan != plan || t.Batch == uuid.Nil {
		return 0, badToken()
	}
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if _, err := tx.Exec(ctx, `
			select from plans where tenant_id = $1 and plan_id = $2 for update`, tenant, plan); err != nil {
			return err
		}
		if moved, err = movedBy(ctx, tx, tenant, t.Batch); err != nil || moved > 0 {
			return err
		}
		moved, err = s.moveAll(ctx, tx, tenant, t)
		return err
	})
	return moved, conflict(err)
}

// movedBy is how many a batch moved or put down to be moved.
func movedBy(ctx context.Context, tx pgx.Tx, tenant, batch uuid.UUID) (n int, err error) {
	err = tx.QueryRow(ctx, `
		select coalesce(max((difference ->> 'customers')::int), 0) from audit_entries
		where tenant_id = $1 and object = $2 and action = 'plan.customers_moved'`, tenant, batchObject(batch)).Scan(&n)
	return n, err
}

func batchObject(batch uuid.UUID) string { return "batch " + batch.String() }

func (s *Service) moveAll(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, t pinnedMany) (int, error) {
	if !s.now().Before(t.Expires) {
		return 0, stale("It is more than 15 minutes old.")
	}
	m, err := s.many(ctx, tx, tenant, t.Move, t.At)
	switch {
	case err != nil:
		return 0, err
	case m.To.Version.ID != t.To:
		return 0, stale("Another version of the plan was published meanwhile.")
	case !slices.Equal(m.digest(), t.Digest):
		return 0, stale("Customers came, went or changed meanwhile.")
	case len(m.Moves) == 0:
		return 0, nil
	}
	for i := range m.Moves {
		if err := s.apply(ctx, tx, tenant, &m.Moves[i].Change, t.Batch); err != nil {
			return 0, err
		}
	}
	return len(m.Moves), tenants.Audit(ctx, tx, tenant, "plan.customers_moved", batchObject(t.Batch), movedMany{
		id.Plan.Format(t.Move.Plan), id.PlanVersion.Format(t.To), len(m.Moves), m.When,
	})
}

// movedMany is what the audit keeps of a batch, and by which it is known again.
type movedMany struct {
	Plan        string `json:"plan"`
	PlanVersion string `json:"plan_version"`
	Customers   int    `json:"customers"`
	When        When   `json:"when"`
}
