// Package capacity compares what a tenant has sold with what its provider keys
// can carry.
//
// For each model that a usable key serves, what is carried is what the healthy
// keys allow together: the tighter one of configured and learned limits counts,
// and keys of a pool count once. What is sold is the sum over customers of the
// most that each may use of that model by its own limits. The ratio is the second
// in percent of the first: selling more than is carried is a business decision,
// and the tenant's ceiling says how far it goes.
package capacity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// Service checks capacity. It is safe for concurrent use.
type Service struct {
	tenants *tenants.Service
	billing *billing.Service
	now     func() time.Time
}

// New makes the service.
func New(t *tenants.Service, b *billing.Service, now func() time.Time) *Service {
	return &Service{tenants: t, billing: b, now: now}
}

// Change is what would be sold on top. The zero Change is nothing.
type Change struct {
	Limits   []limits.Limit
	Customer uuid.UUID // whose limits these take the place of; zero: a new one's
	Plan     uuid.UUID // everybody on any version of it moves to these limits; zero: nobody
	New      bool      // one customer more has them
}

// Report is how what is sold stands to what is carried.
type Report struct {
	CeilingPercent int64    // the tenant's; 0: none chosen
	Rows           []Row    // the fullest first
	Tipping        []string // names of published plans of which one customer more goes over the ceiling
}

// Row is one model, or several that stand exactly alike.
type Row struct {
	Models   []string
	Measures []Measure // those that the healthy keys limit at all
	Resting  []string  // names of keys that serve it and count as nothing now
}

// Measure is one thing that is counted of a row's models.
type Measure struct {
	Counted
	Carried int64 // by healthy keys
	Well    int64 // if every key were well; Unlimited: one of them then has no limit
	Sold    int64 // now; Unlimited: somebody has no such limit
	After   int64 // with the change
}

// Percent is what is sold in percent of what is carried, now and with the
// change, rounded up; Unlimited where nothing is carried or somebody has no
// limit.
func (m Measure) Percent() (now, after int64) {
	return percentOf(m.Sold, m.Carried), percentOf(m.After, m.Carried)
}

// Tightest is the measure that is the fullest with the change; false where no
// key limits anything.
func (r Row) Tightest() (m Measure, ok bool) {
	for i, x := range r.Measures {
		_, worst := m.Percent()
		if _, after := x.Percent(); i == 0 || after > worst {
			m, ok = x, true
		}
	}
	return m, ok
}

// Percent is the highest ratio of the report, with the change.
func (r Report) Percent() (worst int64) {
	for _, row := range r.Rows {
		if m, ok := row.Tightest(); ok {
			_, after := m.Percent()
			worst = max(worst, after)
		}
	}
	return worst
}

// Over tells whether the change sells more of some model, and of that more than
// the ceiling.
func (r Report) Over() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Over(r.CeilingPercent) })
}

// Over tells whether a measure grows with the change and is over a ceiling then.
func (r Row) Over(ceiling int64) bool {
	return ceiling > 0 && slices.ContainsFunc(r.Measures, func(m Measure) bool {
		_, after := m.Percent()
		return m.After > m.Sold && after > ceiling
	})
}

// mostContracts is how many customers are looked at.
const mostContracts = 10_000

// Check reports what is sold now, and with the change. A plan or customer that is
// not the tenant's is NotFound.
func (s *Service) Check(ctx context.Context, tenant uuid.UUID, c Change) (Report, error) {
	t, err := s.tenants.Get(ctx, tenant)
	if err != nil {
		return Report{}, err
	}
	if c.Customer != uuid.Nil {
		if _, err := s.tenants.Customer(ctx, tenant, c.Customer); err != nil {
			return Report{}, err
		}
	}
	if c.Plan != uuid.Nil {
		if _, err := s.billing.Plan(ctx, tenant, c.Plan); err != nil {
			return Report{}, err
		}
	}
	routes, err := s.tenants.Routes(ctx, tenant)
	if err != nil {
		return Report{}, err
	}
	contracts, err := s.billing.Contracts(ctx, tenant, mostContracts)
	if err != nil {
		return Report{}, err
	}
	r := Report{CeilingPercent: t.CeilingPercent, Rows: rows(routes, sales(contracts, c, s.now()), s.now())}
	if r.CeilingPercent > 0 {
		plans, err := s.billing.Plans(ctx, tenant, uuid.Nil, mostPlans)
		if err != nil {
			return r, err
		}
		for _, p := range plans.Items {
			if p.Version.Status == billing.Published && r.tips(p.Version.Limits) {
				r.Tipping = append(r.Tipping, p.Name)
			}
		}
	}
	return r, nil
}

// mostPlans is how many plans are asked whether they tip.
const mostPlans = 100

// tips tells whether one customer more with these limits, on top of the change,
// goes over the ceiling.
func (r Report) tips(list []limits.Limit) bool {
	for _, row := range r.Rows {
		for _, m := range row.Measures {
			for _, model := range row.Models {
				more := allowed(list, model, m.Counted)
				if more > 0 && percentOf(sum(m.After, more), m.Carried) > r.CeilingPercent {
					return true
				}
			}
		}
	}
	return false
}

// sale is one customer's limits, before and after a change; nil: it is none.
type sale struct{ before, after []limits.Limit }

// sales are what customers have. An override stays through any change of plan.
func sales(contracts []billing.Contract, c Change, now time.Time) (out []sale) {
	for _, x := range contracts {
		s := sale{limitsOf(x.Own), limitsOf(x.Own)}
		if x.PlanID == c.Plan && c.Plan != uuid.Nil || x.Customer.ID == c.Customer && c.Customer != uuid.Nil {
			s.after = limitsOf(billing.Overridden(billing.Version{Limits: c.Limits}.Placed(x.Customer.ID, x.Plan), x.Overrides, now))
		}
		out = append(out, s)
	}
	if c.New {
		out = append(out, sale{after: limitsOf(c.Limits)})
	}
	return out
}

// limitsOf is never nil: no limits is everything.
func limitsOf(list []limits.Limit) []limits.Limit { return append([]limits.Limit{}, list...) }

func rows(routes []tenants.Route, sold []sale, now time.Time) (out []Row) {
	paid := slices.ContainsFunc(routes, func(r tenants.Route) bool { return usable(r) && !r.Endpoint.Provider.Practice })
	var models []string
	for _, r := range routes {
		if usable(r) && (!paid || !r.Endpoint.Provider.Practice) {
			models = append(models, r.Key.Models...)
		}
	}
	slices.Sort(models)
	for _, model := range slices.Compact(models) {
		row := rowOf(model, routes, sold, paid, now)
		same := slices.IndexFunc(out, func(o Row) bool {
			return slices.Equal(o.Measures, row.Measures) && slices.Equal(o.Resting, row.Resting)
		})
		if same >= 0 {
			out[same].Models = append(out[same].Models, model)
			continue
		}
		out = append(out, row)
	}
	slices.SortStableFunc(out, func(a, b Row) int {
		return compareFullness(b, a)
	})
	return out
}

func compareFullness(a, b Row) int {
	ma, _ := a.Tightest()
	mb, _ := b.Tightest()
	_, pa := ma.Percent()
	_, pb := mb.Percent()
	switch {
	case pa < pb:
		return -1
	case pa > pb:
		return 1
	}
	return strings.Compare(b.Models[0], a.Models[0])
}

func usable(r tenants.Route) bool { return r.Broken == nil && r.Key.Usable() }

func rowOf(model string, routes []tenants.Route, sold []sale, paid bool, now time.Time) Row {
	row := Row{Models: []string{model}}
	var well, healthy []tenants.Route
	for _, r := range routes {
		if !r.Key.Serves(model) || !usable(r) || paid && r.Endpoint.Provider.Practice {
			continue
		}
		well = append(well, r)
		if _, cools := r.Key.Cools(model, now); cools {
			row.Resting = append(row.Resting, r.Key.Name)
			continue
		}
		healthy = append(healthy, r)
	}
	for _, c := range Measures {
		m := Measure{Counted: c, Carried: carry(sources(healthy, model, c)), Well: carry(sources(well, model, c))}
		if m.Carried == Unlimited {
			continue // no key limits it
		}
		for _, x := range sold {
			if x.before != nil {
				m.Sold = sum(m.Sold, allowed(x.before, model, c))
			}
			if x.after != nil {
				m.After = sum(m.After, allowed(x.after, model, c))
			}
		}
		row.Measures = append(row.Measures, m)
	}
	return row
}

func sources(routes []tenants.Route, model string, c Counted) (out []source) {
	for _, r := range routes {
		var own, shared []limits.Limit
		for _, l := range r.Key.LimitsFor(model) {
			if l.Scope.Kind == limits.ScopePool {
				shared = append(shared, l)
			} else {
				own = append(own, l)
			}
		}
		out = append(out, source{r.Key.Pool.ID, allowed(own, model, c), allowed(shared, model, c)})
	}
	return out
}

// Words are what is counted: "tokens a minute".
func (c Counted) Words() string { return string(c.Dimension) + " a " + string(c.Window) }

// Times writes a percentage as a factor: 450 is "4.5 times". What has no end is
// "without end more than".
func Times(percent int64) string {
	if percent == Unlimited {
		return "without end more than"
	}
	return strings.TrimSuffix(strings.TrimSuffix(fmt.Sprintf("%d.%02d", percent/100, percent%100), "0"), ".0") + " times"
}
