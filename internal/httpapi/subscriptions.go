package httpapi

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

type subscriptionBody struct {
	Customer string `json:"customer" required:"true" example:"cus_01kb0000000000000000000000"`
	Plan     string `json:"plan" required:"true" example:"pln_01kb0000000000000000000000"`
}

type subscriptionJSON struct {
	ID            string     `json:"id" example:"sub_01kb0000000000000000000000"`
	Customer      string     `json:"customer"`
	Plan          string     `json:"plan"`
	PlanVersion   string     `json:"plan_version"`
	Status        string     `json:"status" enum:"trialing,active,past_due,cancelled,ended"`
	StartedAt     time.Time  `json:"started_at"`
	TrialEndsAt   *time.Time `json:"trial_ends_at"`
	PastDueAt     *time.Time `json:"past_due_at"`
	CancelledAt   *time.Time `json:"cancelled_at" description:"It runs until its period ends"`
	SuspendedAt   *time.Time `json:"suspended_at" description:"Its calls are refused, whatever the status"`
	EndedAt       *time.Time `json:"ended_at"`
	CurrentPeriod periodJSON `json:"current_period" description:"Both ends are fixed when it opens"`
	Pending       *string    `json:"pending_plan_version" description:"What it goes to when its period ends"`
}

type periodJSON struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

func subscriptionOf(sub billing.Subscription) subscriptionJSON {
	out := subscriptionJSON{
		ID: id.Subscription.Format(sub.ID), Customer: id.Customer.Format(sub.Customer), Plan: id.Plan.Format(sub.Plan),
		PlanVersion: id.PlanVersion.Format(sub.PlanVersion), Status: string(sub.Status), StartedAt: sub.StartedAt, TrialEndsAt: sub.TrialEndsAt,
		PastDueAt: sub.PastDueAt, CancelledAt: sub.CancelledAt, SuspendedAt: sub.SuspendedAt, EndedAt: sub.EndedAt,
		CurrentPeriod: periodJSON{Start: sub.Current.Start, End: sub.Current.End},
	}
	if sub.Pending != uuid.Nil {
		pending := id.PlanVersion.Format(sub.Pending)
		out.Pending = &pending
	}
	return out
}

func subscribe(s *Server, r *request, _ none, b subscriptionBody) (subscriptionJSON, error) {
	if err := required(map[string]string{"/customer": b.Customer, "/plan": b.Plan}); err != nil {
		return subscriptionJSON{}, err
	}
	customer, err := id.Customer.Parse(b.Customer)
	if err != nil {
		return subscriptionJSON{}, tenants.NotFound("customer")
	}
	plan, err := id.Plan.Parse(b.Plan)
	if err != nil {
		return subscriptionJSON{}, tenants.NotFound("plan")
	}
	sub, err := s.billing.Subscribe(r.ctx, r.tenant(), customer, plan)
	return subscriptionOf(sub), err
}

func getSubscription(s *Server, r *request, _ none, _ none) (subscriptionJSON, error) {
	subscription, err := r.path(id.Subscription, "subscription")
	if err != nil {
		return subscriptionJSON{}, err
	}
	sub, err := s.billing.Subscription(r.ctx, r.tenant(), subscription)
	return subscriptionOf(sub), err
}

type subscriptionQuery struct {
	Limit    string `query:"limit" description:"How many at the most: 1 to 100, 25 if absent"`
	Cursor   string `query:"cursor" description:"next_cursor of the page before"`
	Customer string `query:"customer" description:"Only this customer's"`
	Version  string `query:"plan_version" description:"Only who is on it"`
	Status   string `query:"status" enum:"trialing,active,past_due,cancelled,ended"`
}

func listSubscriptions(s *Server, r *request, q subscriptionQuery, _ none) (page[subscriptionJSON], error) {
	customer, err := optionalID(id.Customer, "customer", q.Customer)
	if err != nil {
		return page[subscriptionJSON]{}, err
	}
	version, err := optionalID(id.PlanVersion, "plan version", q.Version)
	if err != nil {
		return page[subscriptionJSON]{}, err
	}
	if q.Status != "" && !slices.Contains(billing.Statuses, billing.Status(q.Status)) {
		return page[subscriptionJSON]{}, notOneOf("?status", "trialing, active, past_due, cancelled or ended")
	}
	f := billing.SubscriptionFilter{Customer: customer, Version: version, Status: billing.Status(q.Status)}
	return list(s, r, listQuery{q.Limit, q.Cursor}, "subscriptions?"+q.Customer+"&"+q.Version+"&"+q.Status, func(after uuid.UUID, limit int) (tenants.Page[billing.Subscription], error) {
		return s.billing.Subscriptions(r.ctx, r.tenant(), f, after, limit)
	}, subscriptionOf)
}

func notOneOf(pointer, these string) error {
	return fault.InvalidFields(fault.Field{Pointer: pointer, Code: "not_one_of", Message: "This must be " + these + "."})
}

// required collects the empty ones among members that must be there.
func required(members map[string]string) error {
	var wrong []fault.Field
	for pointer, v := range members {
		if v == "" {
			wrong = append(wrong, fault.Field{Pointer: pointer, Code: "required", Message: "This is needed."})
		}
	}
	if len(wrong) > 0 {
		return fault.InvalidFields(sorted(wrong)...)
	}
	return nil
}

// optionalID reads an id that may be absent; the zero id means it is.
func optionalID(k id.Kind, what, s string) (uuid.UUID, error) {
	if s == "" {
		return uuid.Nil, nil
	}
	u, err := k.Parse(s)
	if err != nil {
		return uuid.Nil, tenants.NotFound(what)
	}
	return u, nil
}
