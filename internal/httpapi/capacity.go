package httpapi

import (
	"weir/internal/billing"
	"weir/internal/capacity"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

// capacityBody is what would be sold on top. Without members it is nothing.
type capacityBody struct {
	Limits   *[]limitBody `json:"limits,omitempty" nullable:"false" description:"What is to be sold; absent: nothing more"`
	Plan     string       `json:"plan,omitempty" description:"Everybody on any version of this plan moves to these limits" example:"pln_01kb0000000000000000000000"`
	Customer string       `json:"customer,omitempty" description:"These limits take the place of this customer's; without plan and customer they are a new customer's" example:"cus_01kb0000000000000000000000"`
}

type capacityJSON struct {
	CeilingPercent int64             `json:"ceiling_percent" description:"The tenant's; 0: none chosen"`
	Over           bool              `json:"over" description:"This sells more of some model, and of that more than the ceiling"`
	Tipping        []string          `json:"tipping" description:"Names of published plans of which one customer more, on top of this, goes over the ceiling"`
	Models         []capacityRowJSON `json:"models" description:"The fullest first; models that stand exactly alike are one row"`
}

type capacityRowJSON struct {
	Models   []string       `json:"models"`
	Over     bool           `json:"over"`
	Resting  []string       `json:"resting" description:"Names of provider keys that serve them, rest, and count as nothing"`
	Measures []capacityPart `json:"measures" description:"What the healthy keys limit; none: no limit of theirs is known"`
}

type capacityPart struct {
	Dimension    string `json:"dimension" enum:"tokens,requests"`
	Window       string `json:"window" enum:"minute,day"`
	Carried      int64  `json:"carried" description:"By the healthy keys together; pools count once"`
	Sold         *int64 `json:"sold" description:"Now; null: somebody has no such limit"`
	After        *int64 `json:"after" description:"With this; null: somebody has no such limit"`
	Percent      *int64 `json:"percent" description:"Sold in percent of carried, rounded up; null: without end"`
	AfterPercent *int64 `json:"after_percent" description:"The same with this"`
}

func finite(n int64) *int64 {
	if n == capacity.Unlimited {
		return nil
	}
	return &n
}

func capacityOf(r capacity.Report) capacityJSON {
	out := capacityJSON{CeilingPercent: r.CeilingPercent, Over: r.Over(), Tipping: append([]string{}, r.Tipping...), Models: []capacityRowJSON{}}
	for _, row := range r.Rows {
		x := capacityRowJSON{Models: row.Models, Over: row.Over(r.CeilingPercent), Resting: append([]string{}, row.Resting...), Measures: []capacityPart{}}
		for _, m := range row.Measures {
			now, after := m.Percent()
			x.Measures = append(x.Measures, capacityPart{string(m.Dimension), string(m.Window), m.Carried, finite(m.Sold), finite(m.After), finite(now), finite(after)})
		}
		out.Models = append(out.Models, x)
	}
	return out
}

func checkCapacity(s *Server, r *request, _ none, b capacityBody) (capacityJSON, error) {
	c := capacity.Change{}
	var err error
	if c.Customer, err = optionalID(id.Customer, "customer", b.Customer); err != nil {
		return capacityJSON{}, tenants.Missing("/customer", "customer")
	}
	if c.Plan, err = optionalID(id.Plan, "plan", b.Plan); err != nil {
		return capacityJSON{}, tenants.Missing("/plan", "plan")
	}
	switch {
	case b.Limits == nil && (b.Plan != "" || b.Customer != ""):
		return capacityJSON{}, fault.InvalidFields(fault.Field{Pointer: "/limits", Code: "required", Message: "Say which limits they are to have; [] is none."})
	case b.Limits != nil:
		list, err := limitsFrom(*b.Limits)
		if err != nil {
			return capacityJSON{}, err
		}
		n, err := billing.NewVersion{Limits: list}.Checked(r.caller.Tenant.Currency)
		if err != nil {
			return capacityJSON{}, err
		}
		c.Limits = n.Limits
		c.New = b.Plan == "" && b.Customer == ""
	}
	report, err := s.capacity.Check(r.ctx, r.tenant(), c)
	return capacityOf(report), err
}
