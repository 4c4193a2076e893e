package httpapi

import (
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/money"
	"weir/internal/tenants"
	"weir/internal/usage"
)

const (
	exampleTerms = `"limits": [{"dimension": "requests", "window": "minute", "amount": 500}, {"dimension": "tokens", "window": "minute", "amount": 200000}, {"dimension": "tokens", "window": "day", "amount": 5000000}], ` +
		`"prices": [{"models": "*", "class": "input", "micros_per_million": 2500000}, {"models": "*", "class": "output", "micros_per_million": 10000000}], ` +
		`"base_fee": {"amount": "49.00", "currency": "USD"}`
	exampleVersion = `{` + exampleTerms + `}`
	examplePlan    = `{"name": "Starter", ` + exampleTerms + `}`
)

type planBody struct {
	Name string `json:"name" required:"true"`
	versionBody
}

type versionBody struct {
	Limits  []limitBody   `json:"limits,omitempty" description:"Any mix; an absent limit is no limit"`
	Prices  []priceBody   `json:"prices,omitempty"`
	BaseFee *money.Amount `json:"base_fee,omitempty" description:"For each period, in the tenant's currency; absent: none"`
	Period  string        `json:"period,omitempty" enum:"month"`

	CapOutput bool `json:"cap_output,omitempty" description:"Give a call that states no output ceiling one, as large as what is reserved for its answer, so that it can never take more. For plans that are prepaid or whose spend is capped hard"`
}

type priceBody struct {
	Models           string `json:"models" required:"true" description:"Exact name or pattern; the most specific line counts" example:"gpt-4o*"`
	Class            string `json:"class" required:"true" enum:"input,cached_input,cache_write,output,reasoning,request,unit"`
	MicrosPerMillion *int64 `json:"micros_per_million" required:"true" nullable:"false" minimum:"0" maximum:"1000000000000" description:"Micro-units of the currency for a million tokens, requests or units ($2.50 = 2500000)"`
	Scheme           string `json:"scheme,omitempty" enum:"per_unit"`
}

type planJSON struct {
	ID        string      `json:"id" example:"pln_01kb0000000000000000000000"`
	Name      string      `json:"name"`
	CreatedAt time.Time   `json:"created_at"`
	Version   versionJSON `json:"version" description:"The published version; the newest where none is published; after POST …/versions, the new draft"`
}

type versionJSON struct {
	ID          string       `json:"id" example:"plv_01kb0000000000000000000000"`
	Number      int          `json:"number"`
	Status      string       `json:"status" enum:"draft,published,retired"`
	Sentence    string       `json:"sentence" description:"The limits in words, generated" example:"500 requests and 200,000 tokens a minute"`
	FinePrint   []string     `json:"fine_print" description:"What each number means, generated"`
	Limits      []limitJSON  `json:"limits"`
	Prices      []priceJSON  `json:"prices"`
	BaseFee     money.Amount `json:"base_fee"`
	Period      string       `json:"period"`
	CapOutput   bool         `json:"cap_output" description:"A call that states no output ceiling is given one"`
	CreatedAt   time.Time    `json:"created_at"`
	PublishedAt *time.Time   `json:"published_at"`
}

type priceJSON struct {
	ID               string `json:"id" example:"prc_01kb0000000000000000000000"`
	Models           string `json:"models"`
	Class            string `json:"class"`
	MicrosPerMillion int64  `json:"micros_per_million"`
	Scheme           string `json:"scheme"`
}

func (b versionBody) version() (billing.NewVersion, error) {
	list, err := limitsFrom(b.Limits)
	if err != nil {
		return billing.NewVersion{}, err
	}
	n := billing.NewVersion{Limits: list, BaseFee: b.BaseFee, Period: b.Period, CapOutput: b.CapOutput}
	var wrong []fault.Field
	for i, p := range b.Prices {
		at := "/prices/" + itoa(i)
		if p.MicrosPerMillion == nil {
			wrong = append(wrong, fault.Field{Pointer: at + "/micros_per_million", Code: "required", Message: "A price line needs its price."})
			continue
		}
		if p.Scheme != "" && p.Scheme != "per_unit" {
			wrong = append(wrong, fault.Field{Pointer: at + "/scheme", Code: "not_one_of", Message: "The scheme is per_unit; tiers are not offered yet."})
		}
		n.Prices = append(n.Prices, billing.Price{Models: p.Models, Class: usage.Class(p.Class), MicrosPerMillion: *p.MicrosPerMillion})
	}
	if len(wrong) > 0 {
		return n, fault.InvalidFields(wrong...)
	}
	return n, nil
}

func planOf(zone string) func(billing.Plan) planJSON {
	return func(p billing.Plan) planJSON {
		v := p.Version
		out := planJSON{ID: id.Plan.Format(p.ID), Name: p.Name, CreatedAt: p.CreatedAt, Version: versionJSON{
			ID: id.PlanVersion.Format(v.ID), Number: v.Number, Status: string(v.Status), Sentence: billing.Sentence(v.Limits),
			FinePrint: billing.FinePrint(v.Limits, v.CapOutput, zone), Limits: limitsJSON(v.Limits), Prices: []priceJSON{}, Period: v.Period, CapOutput: v.CapOutput,
			BaseFee:   money.Amount{Amount: money.FormatMinor(v.BaseFee, v.Currency), Currency: v.Currency},
			CreatedAt: v.CreatedAt, PublishedAt: v.PublishedAt,
		}}
		for _, l := range v.Prices {
			out.Version.Prices = append(out.Version.Prices, priceJSON{ID: id.Price.Format(l.ID), Models: l.Models, Class: string(l.Class), MicrosPerMillion: l.MicrosPerMillion, Scheme: "per_unit"})
		}
		return out
	}
}

func addPlan(s *Server, r *request, _ none, b planBody) (planJSON, error) {
	n, err := b.version()
	if err != nil {
		return planJSON{}, err
	}
	p, err := s.billing.AddPlan(r.ctx, r.tenant(), b.Name, n)
	return planOf(r.caller.Tenant.Zone)(p), err
}

func addPlanVersion(s *Server, r *request, _ none, b versionBody) (planJSON, error) {
	plan, err := r.path(id.Plan, "plan")
	if err != nil {
		return planJSON{}, err
	}
	n, err := b.version()
	if err != nil {
		return planJSON{}, err
	}
	p, err := s.billing.AddVersion(r.ctx, r.tenant(), plan, n)
	return planOf(r.caller.Tenant.Zone)(p), err
}

func publishPlan(s *Server, r *request, _ none, _ none) (planJSON, error) {
	plan, err := r.path(id.Plan, "plan")
	if err != nil {
		return planJSON{}, err
	}
	p, err := s.billing.Publish(r.ctx, r.tenant(), plan)
	return planOf(r.caller.Tenant.Zone)(p), err
}

func getPlan(s *Server, r *request, _ none, _ none) (planJSON, error) {
	plan, err := r.path(id.Plan, "plan")
	if err != nil {
		return planJSON{}, err
	}
	p, err := s.billing.Plan(r.ctx, r.tenant(), plan)
	return planOf(r.caller.Tenant.Zone)(p), err
}

func listPlans(s *Server, r *request, q listQuery, _ none) (page[planJSON], error) {
	return list(s, r, q, "plans", func(after uuid.UUID, limit int) (tenants.Page[billing.Plan], error) {
		return s.billing.Plans(r.ctx, r.tenant(), after, limit)
	}, planOf(r.caller.Tenant.Zone))
}
