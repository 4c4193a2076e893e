package httpapi

import (
	"context"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/tenants"
)

type previewChangeBody struct {
	Plan string `json:"plan" required:"true" description:"Its published version" example:"pln_01kb0000000000000000000000"`
	At   string `json:"at,omitempty" enum:"now,period_end" description:"Absent: an upgrade takes effect now, a downgrade when the period ends. A higher base fee is an upgrade; where fees are the same, any limit that is tighter makes it a downgrade"`
}

type previewChangeJSON struct {
	PreviewToken   string       `json:"preview_token" description:"Carries out exactly this, for 15 minutes, unless the subscription changes meanwhile"`
	ExpiresAt      time.Time    `json:"expires_at"`
	Direction      string       `json:"direction" enum:"upgrade,downgrade"`
	At             string       `json:"at" enum:"now,period_end"`
	EffectiveAt    time.Time    `json:"effective_at"`
	PlanVersion    string       `json:"plan_version"`
	Lines          []changeLine `json:"lines" description:"What it adds to the running period"`
	Total          money.Amount `json:"total"`
	NextPeriodFee  money.Amount `json:"next_period_fee"`
	SentenceBefore string       `json:"sentence_before"`
	SentenceAfter  string       `json:"sentence_after"`
	CarriedOver    []carried    `json:"carried_over" description:"What is used now, against the limits afterwards: it stays used"`
}

type changeLine struct {
	Kind        string       `json:"kind" enum:"proration"`
	Description string       `json:"description"`
	Amount      money.Amount `json:"amount"`
}

type carried struct {
	Dimension string `json:"dimension"`
	Window    string `json:"window"`
	Used      int64  `json:"used"`
	Limit     int64  `json:"limit"`
}

type previewedBody struct {
	PreviewToken string `json:"preview_token" required:"true" description:"Of a preview of the same"`
}

type cancelBody struct {
	At string `json:"at,omitempty" enum:"now,period_end" description:"Absent: period_end"`
}

type pastDueBody struct {
	PastDue *bool `json:"past_due" required:"true" nullable:"false" description:"Whether something is owed. Calls go on; suspend stops them"`
}

func minorOf(n int64, currency string) money.Amount {
	return money.Amount{Amount: money.FormatMinor(n, currency), Currency: currency}
}

func previewChange(s *Server, r *request, _ none, b previewChangeBody) (previewChangeJSON, error) {
	subscription, err := r.path(id.Subscription, "subscription")
	if err != nil {
		return previewChangeJSON{}, err
	}
	if err := required(map[string]string{"/plan": b.Plan}); err != nil {
		return previewChangeJSON{}, err
	}
	plan, err := id.Plan.Parse(b.Plan)
	if err != nil {
		return previewChangeJSON{}, tenants.NotFound("plan")
	}
	c, err := s.billing.PreviewChange(r.ctx, r.tenant(), subscription, plan, billing.When(b.At))
	if err != nil {
		return previewChangeJSON{}, err
	}
	used, err := s.carriedOver(r, c.After)
	return previewChangeOf(c, used), err
}

func previewChangeOf(c billing.Change, used []carried) previewChangeJSON {
	out := previewChangeJSON{
		PreviewToken: c.Token, ExpiresAt: c.Expires, Direction: string(c.Direction), At: string(c.When), EffectiveAt: c.At,
		PlanVersion: id.PlanVersion.Format(c.To.Version.ID), Lines: []changeLine{}, Total: minorOf(c.TotalMinor, c.Currency),
		NextPeriodFee: minorOf(c.NextFeeMinor, c.Currency), SentenceBefore: billing.Sentence(c.Before), SentenceAfter: billing.Sentence(c.After), CarriedOver: used,
	}
	for _, l := range c.Lines {
		out.Lines = append(out.Lines, changeLine{l.Kind, l.Description, minorOf(l.AmountMinor, c.Currency)})
	}
	return out
}

// carriedOver is what is used now of limits that will hold. Those that each model
// or end user has for itself are left out.
func (s *Server) carriedOver(r *request, list []limits.Limit) ([]carried, error) {
	states, err := s.limits.Live(r.ctx, r.tenant(), list, "", "")
	out := []carried{}
	for _, st := range states {
		if !st.Limit.EachModel && !st.Limit.EachEndUser() {
			out = append(out, carried{string(st.Limit.Dimension), string(st.Limit.Window), st.Used + st.Held, st.Limit.Amount})
		}
	}
	return out, err
}

func change(s *Server, r *request, _ none, b previewedBody) (subscriptionJSON, error) {
	return s.altered(r, func(ctx context.Context, tenant, subscription uuid.UUID) (billing.Subscription, error) {
		return s.billing.ChangeBy(ctx, tenant, subscription, b.PreviewToken)
	})
}

// altered answers with the subscription of the path after f.
func (s *Server) altered(r *request, f func(ctx context.Context, tenant, subscription uuid.UUID) (billing.Subscription, error)) (subscriptionJSON, error) {
	subscription, err := r.path(id.Subscription, "subscription")
	if err != nil {
		return subscriptionJSON{}, err
	}
	sub, err := f(r.ctx, r.tenant(), subscription)
	return subscriptionOf(sub), err
}

func cancelSubscription(s *Server, r *request, _ none, b cancelBody) (subscriptionJSON, error) {
	switch billing.When(b.At) {
	case billing.AtOnce:
		return s.altered(r, s.billing.End)
	case "", billing.AtPeriodEnd:
		return s.altered(r, s.billing.Cancel)
	}
	return subscriptionJSON{}, notOneOf("/at", "now or period_end")
}

func keepSubscription(s *Server, r *request, _ none, _ none) (subscriptionJSON, error) {
	return s.altered(r, s.billing.Keep)
}

func dropChange(s *Server, r *request, _ none, _ none) (subscriptionJSON, error) {
	return s.altered(r, s.billing.StayOnPlan)
}

func suspendSubscription(s *Server, r *request, _ none, _ none) (subscriptionJSON, error) {
	return s.altered(r, s.billing.Suspend)
}

func resumeSubscription(s *Server, r *request, _ none, _ none) (subscriptionJSON, error) {
	return s.altered(r, s.billing.Resume)
}

func setPastDue(s *Server, r *request, _ none, b pastDueBody) (subscriptionJSON, error) {
	if b.PastDue == nil {
		return subscriptionJSON{}, required(map[string]string{"/past_due": ""})
	}
	return s.altered(r, func(ctx context.Context, tenant, subscription uuid.UUID) (billing.Subscription, error) {
		return s.billing.SetPastDue(ctx, tenant, subscription, *b.PastDue)
	})
}

// periodsJSON is every period that was kept, at most so many.
type periodsJSON struct {
	Data []wholePeriodJSON `json:"data" required:"true"`
}

type wholePeriodJSON struct {
	periodJSON
	Trial bool `json:"trial" description:"Nothing in it is billed"`
}

const mostPeriods = 120

func listPeriods(s *Server, r *request, _ none, _ none) (periodsJSON, error) {
	out := periodsJSON{Data: []wholePeriodJSON{}}
	subscription, err := r.path(id.Subscription, "subscription")
	if err != nil {
		return out, err
	}
	list, err := s.billing.Periods(r.ctx, r.tenant(), subscription, mostPeriods)
	for _, p := range list {
		out.Data = append(out.Data, wholePeriodJSON{periodJSON{p.Start, p.End}, p.Trial})
	}
	return out, err
}
