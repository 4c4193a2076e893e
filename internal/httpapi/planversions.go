package httpapi

import (
	"strconv"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/tenants"
)

// versionsJSON is every version of a plan, newest first.
type versionsJSON struct {
	Data []countedVersion `json:"data" required:"true"`
}

type countedVersion struct {
	versionJSON
	Customers int64 `json:"customers" description:"How many are on it"`
}

func listPlanVersions(s *Server, r *request, _ none, _ none) (versionsJSON, error) {
	out := versionsJSON{Data: []countedVersion{}}
	plan, err := r.path(id.Plan, "plan")
	if err != nil {
		return out, err
	}
	versions, err := s.billing.Versions(r.ctx, r.tenant(), plan)
	if err != nil {
		return out, err
	}
	on, err := s.billing.Subscribed(r.ctx, r.tenant())
	for _, v := range versions {
		out.Data = append(out.Data, countedVersion{versionOf(v, r.caller.Tenant.Zone), on[v.ID]})
	}
	return out, err
}

func retirePlan(s *Server, r *request, _ none, _ none) (planJSON, error) {
	plan, err := r.path(id.Plan, "plan")
	if err != nil {
		return planJSON{}, err
	}
	p, err := s.billing.Retire(r.ctx, r.tenant(), plan)
	return planOf(r.caller.Tenant.Zone)(p), err
}

type compareQuery struct {
	From string `query:"from" description:"Number of a version; absent: the one before to"`
	To   string `query:"to" description:"Number of a version; absent: the newest"`
}

type comparisonJSON struct {
	From   versionJSON       `json:"from"`
	To     versionJSON       `json:"to"`
	Limits []comparedLimitJS `json:"limits"`
	Prices []comparedPriceJS `json:"prices"`
}

type comparedLimitJS struct {
	Before  *limitJSON `json:"before"`
	After   *limitJSON `json:"after"`
	Changed bool       `json:"changed"`
}

type comparedPriceJS struct {
	Before  *priceJSON `json:"before"`
	After   *priceJSON `json:"after"`
	Changed bool       `json:"changed"`
}

func compareVersions(s *Server, r *request, q compareQuery, _ none) (comparisonJSON, error) {
	plan, err := r.path(id.Plan, "plan")
	if err != nil {
		return comparisonJSON{}, err
	}
	versions, err := s.billing.Versions(r.ctx, r.tenant(), plan)
	if err != nil {
		return comparisonJSON{}, err
	}
	to, err := numbered(versions, "?to", q.To, versions[0].Number)
	if err != nil {
		return comparisonJSON{}, err
	}
	from, err := numbered(versions, "?from", q.From, max(1, to.Number-1))
	if err != nil {
		return comparisonJSON{}, err
	}
	return comparisonOf(billing.Compare(from, to), r.caller.Tenant.Zone), nil
}

// numbered is the version of a number that was given as text.
func numbered(versions []billing.Version, pointer, text string, absent int) (billing.Version, error) {
	n := absent
	if text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			return billing.Version{}, fault.InvalidFields(fault.Field{Pointer: pointer, Code: "out_of_range", Message: "This must be the number of a version."})
		}
	}
	for _, v := range versions {
		if v.Number == n {
			return v, nil
		}
	}
	return billing.Version{}, tenants.NotFound("plan version")
}

func comparisonOf(c billing.Comparison, zone string) comparisonJSON {
	out := comparisonJSON{From: versionOf(c.From, zone), To: versionOf(c.To, zone), Limits: []comparedLimitJS{}, Prices: []comparedPriceJS{}}
	limit := func(l *limits.Limit) *limitJSON {
		if l == nil {
			return nil
		}
		return &limitsJSON([]limits.Limit{*l})[0]
	}
	price := func(x *billing.Price) *priceJSON {
		if x == nil {
			return nil
		}
		p := priceOf(*x)
		return &p
	}
	for _, p := range c.Limits {
		out.Limits = append(out.Limits, comparedLimitJS{limit(p.Before), limit(p.After), p.Changed(billing.SameLimit)})
	}
	for _, p := range c.Prices {
		out.Prices = append(out.Prices, comparedPriceJS{price(p.Before), price(p.After), p.Changed(billing.SamePrice)})
	}
	return out
}

type previewMoveBody struct {
	From      string   `json:"from,omitempty" description:"A version: only who is on it; absent: on any but the published one"`
	Customers []string `json:"customers,omitempty" description:"Only these; absent: everybody"`
	At        string   `json:"at,omitempty" enum:"now,period_end" description:"Absent: now"`
}

type previewMoveJSON struct {
	PreviewToken string       `json:"preview_token" description:"Carries out exactly this, for 15 minutes, unless anybody comes, goes or changes meanwhile"`
	ExpiresAt    time.Time    `json:"expires_at"`
	PlanVersion  string       `json:"plan_version"`
	At           string       `json:"at" enum:"now,period_end"`
	Moves        []movingJSON `json:"moves"`
	Left         []leftJSON   `json:"left" description:"Who stays, and why"`
	Total        money.Amount `json:"total" description:"What it adds to the running periods, together"`
}

type movingJSON struct {
	Customer     string       `json:"customer"`
	Name         string       `json:"name"`
	Subscription string       `json:"subscription"`
	FromNumber   int          `json:"from_number"`
	Direction    string       `json:"direction" enum:"upgrade,downgrade"`
	Total        money.Amount `json:"total"`
	Over         []carried    `json:"over" description:"Limits of the new version that are used up already"`
}

type leftJSON struct {
	Customer string `json:"customer"`
	Name     string `json:"name"`
	Why      string `json:"why"`
}

func previewMove(s *Server, r *request, _ none, b previewMoveBody) (previewMoveJSON, error) {
	m, err := b.move(r)
	if err != nil {
		return previewMoveJSON{}, err
	}
	many, err := s.billing.PreviewMany(r.ctx, r.tenant(), m)
	if err != nil {
		return previewMoveJSON{}, err
	}
	out := previewMoveJSON{
		PreviewToken: many.Token, ExpiresAt: many.Expires, PlanVersion: id.PlanVersion.Format(many.To.Version.ID), At: string(many.When),
		Moves: []movingJSON{}, Left: []leftJSON{}, Total: minorOf(many.TotalMinor, many.Currency),
	}
	for _, x := range many.Left {
		out.Left = append(out.Left, leftJSON{id.Customer.Format(x.Customer), x.Name, x.Why})
	}
	for _, x := range many.Moves {
		used, err := s.carriedOver(r, x.After)
		if err != nil {
			return out, err
		}
		over := []carried{}
		for _, u := range used {
			if u.Used > u.Limit {
				over = append(over, u)
			}
		}
		out.Moves = append(out.Moves, movingJSON{
			id.Customer.Format(x.Customer), x.Name, id.Subscription.Format(x.Standee.Subscription), x.Number, string(x.Direction), minorOf(x.TotalMinor, x.Currency), over,
		})
	}
	return out, nil
}

func (b previewMoveBody) move(r *request) (m billing.ManyMove, err error) {
	m.When = billing.When(b.At)
	if m.Plan, err = r.path(id.Plan, "plan"); err != nil {
		return m, err
	}
	if m.From, err = optionalID(id.PlanVersion, "plan version", b.From); err != nil {
		return m, tenants.Missing("/from", "version of the plan")
	}
	for i, text := range b.Customers {
		customer, err := id.Customer.Parse(text)
		if err != nil {
			return m, notOneOf("/customers/"+strconv.Itoa(i), "the id of a customer")
		}
		m.Customers = append(m.Customers, customer)
	}
	if b.Customers != nil && len(b.Customers) == 0 {
		m.Customers = []uuid.UUID{uuid.Nil} // an empty list is nobody
	}
	return m, nil
}

type movedJSON struct {
	Moved int `json:"moved" description:"How many were moved, or are put down for the end of their periods"`
}

func moveMany(s *Server, r *request, _ none, b previewedBody) (movedJSON, error) {
	plan, err := r.path(id.Plan, "plan")
	if err != nil {
		return movedJSON{}, err
	}
	n, err := s.billing.MoveMany(r.ctx, r.tenant(), plan, b.PreviewToken)
	return movedJSON{n}, err
}
