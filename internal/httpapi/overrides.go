package httpapi

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

type overrideBody struct {
	Customer string     `json:"customer" required:"true" description:"It has a subscription, and the override ends with that" example:"cus_01kb0000000000000000000000"`
	Limit    *limitBody `json:"limit" required:"true" nullable:"false" description:"In the place of the plan's limit of the same dimension, window, models and scope, or beside the plan's"`
	Reason   string     `json:"reason" required:"true" description:"The customer reads it too" example:"a launch"`
	From     *time.Time `json:"from,omitempty" description:"Absent, or past: now"`
	Until    *time.Time `json:"until,omitempty" description:"Absent: without end"`
}

type overrideJSON struct {
	ID           string     `json:"id" example:"ovr_01kb0000000000000000000000"`
	Customer     string     `json:"customer"`
	Subscription string     `json:"subscription"`
	Limit        limitJSON  `json:"limit"`
	Reason       string     `json:"reason"`
	From         time.Time  `json:"from"`
	Until        *time.Time `json:"until"`
	CreatedAt    time.Time  `json:"created_at"`
}

func overrideOf(o billing.Override) overrideJSON {
	return overrideJSON{
		ID: id.Override.Format(o.ID), Customer: id.Customer.Format(o.Customer), Subscription: id.Subscription.Format(o.Subscription),
		Limit: limitsJSON([]limits.Limit{o.Limit})[0], Reason: o.Reason, From: o.From, Until: o.Until, CreatedAt: o.CreatedAt,
	}
}

func addOverride(s *Server, r *request, _ none, b overrideBody) (overrideJSON, error) {
	if err := required(map[string]string{"/customer": b.Customer, "/reason": b.Reason}); err != nil {
		return overrideJSON{}, err
	}
	if b.Limit == nil {
		return overrideJSON{}, required(map[string]string{"/limit": ""})
	}
	customer, err := id.Customer.Parse(b.Customer)
	if err != nil {
		return overrideJSON{}, tenants.NotFound("customer")
	}
	list, err := limitsFrom([]limitBody{*b.Limit})
	if err != nil {
		return overrideJSON{}, ofOneLimit(err)
	}
	o, err := s.billing.AddOverride(r.ctx, r.tenant(), billing.NewOverride{Customer: customer, Limit: list[0], Reason: b.Reason, From: b.From, Until: b.Until})
	if err != nil {
		return overrideJSON{}, err
	}
	return overrideOf(o), nil
}

// ofOneLimit names the fields of a list of one as those of the limit.
func ofOneLimit(err error) error {
	f := *fault.Of(err)
	f.Fields = nil
	for _, x := range fault.Of(err).Fields {
		x.Pointer = "/limit" + strings.TrimPrefix(x.Pointer, "/limits/0")
		f.Fields = append(f.Fields, x)
	}
	return &f
}

type overrideQuery struct {
	Limit    string `query:"limit" description:"How many at the most: 1 to 100, 25 if absent"`
	Cursor   string `query:"cursor" description:"next_cursor of the page before"`
	Customer string `query:"customer" description:"Only this customer's"`
}

func listOverrides(s *Server, r *request, q overrideQuery, _ none) (page[overrideJSON], error) {
	customer, err := optionalID(id.Customer, "customer", q.Customer)
	if err != nil {
		return page[overrideJSON]{}, err
	}
	return list(s, r, listQuery{q.Limit, q.Cursor}, "overrides?"+q.Customer, func(after uuid.UUID, limit int) (tenants.Page[billing.Override], error) {
		return s.billing.Overrides(r.ctx, r.tenant(), customer, after, limit)
	}, overrideOf)
}

func getOverride(s *Server, r *request, _ none, _ none) (overrideJSON, error) {
	override, err := r.path(id.Override, "override")
	if err != nil {
		return overrideJSON{}, err
	}
	o, err := s.billing.Override(r.ctx, r.tenant(), override)
	if err != nil {
		return overrideJSON{}, err
	}
	return overrideOf(o), nil
}

func endOverride(s *Server, r *request, _ none, _ none) (overrideJSON, error) {
	override, err := r.path(id.Override, "override")
	if err != nil {
		return overrideJSON{}, err
	}
	o, err := s.billing.EndOverride(r.ctx, r.tenant(), override)
	if err != nil {
		return overrideJSON{}, err
	}
	return overrideOf(o), nil
}
