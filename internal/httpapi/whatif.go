package httpapi

import (
	"time"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/internal/verdict"
)

type whatIfBody struct {
	Customer    string `json:"customer,omitempty" description:"Or api_key" example:"cus_01kb0000000000000000000000"`
	APIKey      string `json:"api_key,omitempty" description:"Only calls of this key, and of those it was rotated with"`
	PlanVersion string `json:"plan_version,omitempty" description:"Or plan" example:"plv_01kb0000000000000000000000"`
	Plan        string `json:"plan,omitempty" description:"Its published version, or where none is, its draft" example:"pln_01kb0000000000000000000000"`
	From        string `json:"from,omitempty" description:"RFC 3339, or a date in tz; absent: the start of today"`
	To          string `json:"to,omitempty" description:"RFC 3339, or a date in tz; absent: now"`
	Bucket      string `json:"bucket,omitempty" enum:"1m,15m,1h,1d" description:"Absent: 1h"`
	TZ          string `json:"tz,omitempty" example:"Europe/Berlin"`
}

type whatIfJSON struct {
	PlanVersion string         `json:"plan_version"`
	Calls       int64          `json:"calls" description:"That passed, and were tried again"`
	Refused     int64          `json:"refused" description:"Of them, by this plan"`
	RefusedThen int64          `json:"refused_then" description:"Calls that were refused when they were made; they are not tried"`
	ByLimit     []whatIfLimit  `json:"by_limit"`
	Buckets     []whatIfBucket `json:"buckets"`
	Cost        money.Amount   `json:"cost" description:"What the calls that pass would be charged, without base fees"`
	CostThen    []money.Amount `json:"cost_then" description:"What all the calls were charged, by currency"`
	TZ          string         `json:"tz"`
}

type whatIfLimit struct {
	Limit   verdict.Limit `json:"limit"`
	Refused int64         `json:"refused"`
	First   time.Time     `json:"first"`
	Last    time.Time     `json:"last"`
}

type whatIfBucket struct {
	Bucket  time.Time `json:"bucket"`
	Calls   int64     `json:"calls"`
	Refused int64     `json:"refused"`
}

func whatIf(s *Server, r *request, _ none, b whatIfBody) (whatIfJSON, error) {
	if b.Bucket == "" {
		b.Bucket = string(usage.Hour)
	}
	q, err := s.usageQuery(r, usageQuery{From: b.From, To: b.To, Bucket: b.Bucket, TZ: b.TZ, Customer: b.Customer, APIKey: b.APIKey})
	if err != nil {
		return whatIfJSON{}, inBody(err)
	}
	of := billing.Supposal{Customer: q.Filter.Customer, Counter: q.Filter.Counter, From: q.From, To: q.To, Bucket: q.Bucket, Zone: q.Zone}
	if err := s.supposed(r, b, &of); err != nil {
		return whatIfJSON{}, err
	}
	got, err := s.billing.Suppose(r.ctx, r.tenant(), of)
	if err != nil {
		return whatIfJSON{}, inBody(err)
	}
	out := whatIfJSON{
		PlanVersion: id.PlanVersion.Format(got.Version.ID), Calls: got.Calls, Refused: got.Refused, RefusedThen: got.RefusedThen,
		ByLimit: []whatIfLimit{}, Buckets: []whatIfBucket{}, Cost: got.Charge.Amount.Amount(got.Charge.Currency), CostThen: []money.Amount{}, TZ: q.Zone.String(),
	}
	for _, l := range got.ByLimit {
		out.ByLimit = append(out.ByLimit, whatIfLimit{Limit: verdict.Of(limits.State{Limit: l.Limit}), Refused: l.Refused, First: l.First, Last: l.Last})
	}
	for _, x := range got.Buckets {
		out.Buckets = append(out.Buckets, whatIfBucket{x.Start.In(q.Zone), x.Calls, x.Refused})
	}
	for _, m := range got.Then {
		out.CostThen = append(out.CostThen, m.Amount.Amount(m.Currency))
	}
	return out, nil
}

// supposed finds whose calls are meant, and the version.
func (s *Server) supposed(r *request, b whatIfBody, of *billing.Supposal) (err error) {
	switch {
	case b.Customer == "" && b.APIKey == "":
		return required(map[string]string{"/customer": ""})
	case b.PlanVersion == "" && b.Plan == "":
		return required(map[string]string{"/plan_version": ""})
	}
	if b.APIKey != "" {
		key, err := optionalID(id.APIKey, "API key", b.APIKey)
		if err != nil {
			return err
		}
		k, err := s.tenants.APIKey(r.ctx, r.tenant(), key)
		if err != nil {
			return err
		}
		if k.Kind != tenants.ForCustomer || b.Customer != "" && of.Customer != k.Customer {
			return fault.InvalidFields(fault.Field{Pointer: "/api_key", Code: "other_customer", Message: "This is not a key of this customer."})
		}
		of.Customer = k.Customer
	}
	if b.PlanVersion != "" {
		of.Version, err = optionalID(id.PlanVersion, "plan version", b.PlanVersion)
		return err
	}
	plan, err := optionalID(id.Plan, "plan", b.Plan)
	if err != nil {
		return err
	}
	p, err := s.billing.Plan(r.ctx, r.tenant(), plan)
	of.Version = p.Version.ID
	return err
}
