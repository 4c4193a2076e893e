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
	Minimum *money.Amount `json:"minimum,omitempty" description:"The least that a whole period costs, in the tenant's currency; absent: none"`
	Period  string        `json:"period,omitempty" enum:"month"`

	TrialDays int  `json:"trial_days,omitempty" minimum:"0" maximum:"365" description:"From the start of a subscription; its usage counts in the caps, and is never billed"`
	CapOutput bool `json:"cap_output,omitempty" description:"Give a call that states no output ceiling one, as large as what is reserved for its answer, so that it can never take more. For plans that are prepaid or whose spend is capped hard"`
}

type priceBody struct {
	Models           string `json:"models" required:"true" description:"Exact name or pattern; the most specific line counts" example:"gpt-4o*"`
	Class            string `json:"class" required:"true" enum:"input,cached_input,cache_write,output,reasoning,request,unit"`
	MicrosPerMillion *int64 `json:"micros_per_million" required:"true" nullable:"false" minimum:"0" maximum:"1000000000000" description:"Micro-units of the currency for a million tokens, requests or units ($2.50 = 2500000); with tiers, of which the highest counts in reports and spend limits, it may be 0"`
	Scheme           string `json:"scheme,omitempty" enum:"per_unit,graduated,volume,package" description:"graduated: each unit costs what its tier says; volume: all units what the tier says that is reached; package: each started package its price. Absent: per_unit"`
	Included         int64  `json:"included,omitempty" minimum:"0" maximum:"1000000000000000" description:"Units of each period that cost nothing"`
	PackageSize      int64  `json:"package_size,omitempty" minimum:"0" maximum:"1000000000000" description:"Units of a package"`
	Tiers            []tier `json:"tiers,omitempty" description:"Of graduated and volume, each ending above the one before, the last without end"`
}

type tier struct {
	UpTo             int64 `json:"up_to,omitempty" minimum:"0" maximum:"1000000000000000" description:"Units of the period, the last one included; absent: without end"`
	MicrosPerMillion int64 `json:"micros_per_million" minimum:"0" maximum:"1000000000000"`
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
	Minimum     money.Amount `json:"minimum"`
	Period      string       `json:"period"`
	TrialDays   int          `json:"trial_days"`
	CapOutput   bool         `json:"cap_output" description:"A call that states no output ceiling is given one"`
	CreatedAt   time.Time    `json:"created_at"`
	PublishedAt *time.Time   `json:"published_at"`
}

type priceJSON struct {
	ID               string `json:"id" example:"prc_01kb0000000000000000000000"`
	Models           string `json:"models"`
	Class            string `json:"class"`
	MicrosPerMillion int64  `json:"micros_per_million"`
	Scheme           string `json:"scheme" enum:"per_unit,graduated,volume,package"`
	Included         int64  `json:"included"`
	PackageSize      int64  `json:"package_size,omitempty"`
	Tiers            []tier `json:"tiers,omitempty"`
}

func (b versionBody) version() (billing.NewVersion, error) {
	list, err := limitsFrom(b.Limits)
	if err != nil {
		return billing.NewVersion{}, err
	}
	n := billing.NewVersion{Limits: list, BaseFee: b.BaseFee, Minimum: b.Minimum, Period: b.Period, TrialDays: b.TrialDays, CapOutput: b.CapOutput}
	var wrong []fault.Field
	for i, p := range b.Prices {
		at := "/prices/" + itoa(i)
		if p.MicrosPerMillion == nil {
			wrong = append(wrong, fault.Field{Pointer: at + "/micros_per_million", Code: "required", Message: "A price line needs its price."})
			continue
		}
		line := billing.Price{
			Models: p.Models, Class: usage.Class(p.Class), MicrosPerMillion: *p.MicrosPerMillion, Scheme: billing.Scheme(p.Scheme), Included: p.Included, Package: p.PackageSize,
		}
		for _, t := range p.Tiers {
			line.Tiers = append(line.Tiers, billing.Tier(t))
		}
		n.Prices = append(n.Prices, line)
	}
	if len(wrong) > 0 {
		return n, fault.InvalidFields(wrong...)
	}
	return n, nil
}

func planOf(zone string) func(billing.Plan) planJSON {
	return func(p billing.Plan) planJSON {
		return planJSON{ID: id.Plan.Format(p.ID), Name: p.Name, CreatedAt: p.CreatedAt, Version: versionOf(p.Version, zone)}
	}
}

func versionOf(v billing.Version, zone string) versionJSON {
	out := versionJSON{
		ID: id.PlanVersion.Format(v.ID), Number: v.Number, Status: string(v.Status), Sentence: billing.Sentence(v.Limits),
		FinePrint: billing.FinePrint(v.Limits, v.CapOutput, zone), Limits: limitsJSON(v.Limits), Prices: []priceJSON{}, Period: v.Period,
		TrialDays: v.TrialDays, CapOutput: v.CapOutput, BaseFee: minorOf(v.BaseFee, v.Currency), Minimum: minorOf(v.Minimum, v.Currency),
		CreatedAt: v.CreatedAt, PublishedAt: v.PublishedAt,
	}
	for _, l := range v.Prices {
		out.Prices = append(out.Prices, priceOf(l))
	}
	return out
}

func priceOf(l billing.Price) priceJSON {
	out := priceJSON{
		ID: id.Price.Format(l.ID), Models: l.Models, Class: string(l.Class), MicrosPerMillion: l.MicrosPerMillion,
		Scheme: string(l.Scheme), Included: l.Included, PackageSize: l.Package,
	}
	if out.Scheme == "" {
		out.Scheme = string(billing.PerUnit)
	}
	for _, t := range l.Tiers {
		out.Tiers = append(out.Tiers, tier(t))
	}
	return out
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
