package demo

import (
	"time"

	"weir/internal/billing"
	"weir/internal/branding"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// company is a tenant of the cast.
type company struct {
	name, email, owner, zone, currency string
	providers                          []provider
	account                            string // a pool of the key "Claude relay"; "": none
	aliases                            []tenants.NewAlias
	plans                              []plan
	offers                             []offer
	revised                            string // a plan with a second version; "": none
	customers                          []customer
	brand                              branding.Text // the zero value: Weir's own look
}

type provider struct {
	slug, name, baseURL, last4, status, reason string
	models                                     []string
	limits                                     []limits.Limit // what its account allows
	rests                                      []rest
	learned                                    []learned
}

// rest is a model that its provider does not serve for now.
type rest struct {
	model, source, reason, detail string
	status                        int
	since, until                  time.Duration // from now; until 0: until a check passes
	step                          int
}

// learned is what a provider stated of a model.
type learned struct {
	model, dimension, window string
	amount                   int64
	from, detail             string
}

type plan struct {
	name           string
	fee            string
	currency       string
	rpm, tpm       int64
	tokensDay      int64
	requestsDay    int64
	pricePerMille  int64 // of list price, what is charged
	simultaneously int64
	eachUser       int64 // requests a minute of each end user
}

// customer is one that calls: so many times on a working day, by this curve.
type customer struct {
	name, plan string
	keys       []key
	perDay     float64
	weekend    float64 // share of a working day
	curve      curve
	since      int // days ago of the first call; 0: as long as there is history
}

// key is an API key with its share of the customer's calls.
type key struct {
	name   string
	share  float64
	models []string // in falling order of use
	size   float64  // of a prompt, in tokens, in the middle
	burst  int      // calls a minute of a batch that runs some afternoons; 0: none
	test   bool
}

// list is what a model costs at its provider, in millionths of the currency for
// a million tokens.
type list struct {
	input, cached, output int64
	reasons               bool
}

var prices = map[string]list{
	"gpt-4.1-mini":      {input: 400_000, cached: 100_000, output: 1_600_000},
	"gpt-4.1":           {input: 2_000_000, cached: 500_000, output: 8_000_000},
	"o4-mini":           {input: 1_100_000, cached: 275_000, output: 4_400_000, reasons: true},
	"claude-sonnet-4-5": {input: 3_000_000, cached: 300_000, output: 15_000_000},
	"llama-3.3-70b":     {input: 590_000, cached: 590_000, output: 790_000},
}

// version prices every model at a share above its list price.
func (p plan) version() billing.NewVersion {
	v := billing.NewVersion{BaseFee: &money.Amount{Amount: p.fee, Currency: p.currency}}
	add := func(d limits.Dimension, w limits.Window, amount int64) {
		if amount > 0 {
			v.Limits = append(v.Limits, limits.Limit{Dimension: d, Window: w, Amount: amount})
		}
	}
	add(limits.DimensionRequests, limits.WindowMinute, p.rpm)
	add(limits.DimensionTokens, limits.WindowMinute, p.tpm)
	add(limits.DimensionRequests, limits.WindowDay, p.requestsDay)
	add(limits.DimensionTokens, limits.WindowDay, p.tokensDay)
	add(limits.DimensionConcurrency, limits.WindowNone, p.simultaneously)
	if p.eachUser > 0 {
		v.Limits = append(v.Limits, limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: p.eachUser, Scope: limits.Scope{Kind: limits.ScopeEndUser}})
	}
	for _, model := range sorted(prices) {
		l := prices[model]
		for _, line := range []struct {
			class  usage.Class
			micros int64
		}{{usage.Input, l.input}, {usage.CachedInput, l.cached}, {usage.Output, l.output}} {
			v.Prices = append(v.Prices, billing.Price{Models: model, Class: line.class, MicrosPerMillion: line.micros * p.pricePerMille / 1000})
		}
	}
	return v
}

var (
	openAI = provider{
		slug: "openai", name: "OpenAI main", baseURL: "https://api.openai.com/v1", last4: "mQ7c", status: "active", models: []string{"gpt-4.1", "gpt-4.1-mini", "o4-mini"},
		limits: []limits.Limit{
			{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 5_000, EachModel: true},
			{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 8_000_000},
		},
		rests: []rest{{model: "o4-mini", source: "authoritative", reason: "stated_wait", detail: "RPD", status: 429, since: -3 * time.Hour, until: 9 * time.Hour}},
		learned: []learned{
			{"gpt-4.1-mini", "requests", "minute", 5000, "header", "x-ratelimit-limit-requests"},
			{"gpt-4.1-mini", "tokens", "minute", 2_000_000, "header", "x-ratelimit-limit-tokens"},
			{"o4-mini", "requests", "day", 1000, "body", "RPD"},
		},
	}
	claude = provider{
		slug: "custom", name: "Claude relay", baseURL: "https://llm.invalid/v1", last4: "Zk0A", status: "active", models: []string{"claude-sonnet-4-5"},
		limits: []limits.Limit{{Dimension: limits.DimensionRequests, Window: limits.WindowDay, Amount: 1_500}},
		rests:  []rest{{model: "claude-sonnet-4-5", source: "heuristic", reason: "rate_limited_again", status: 429, since: -2 * time.Minute, until: 8 * time.Minute, step: 2}},
	}
	groq = provider{
		slug: "custom", name: "Groq batch", baseURL: "https://groq.invalid/openai/v1", last4: "pW4d", status: "unverified",
		reason: "The provider did not answer within 10 seconds.", models: []string{"llama-3.3-70b"},
	}
	second = provider{slug: "openai", name: "OpenAI second account", baseURL: "https://api.openai.com/v1", last4: "x1Lq", status: "invalid", reason: "The provider says that this key is not valid.", models: []string{}, rests: []rest{{source: "auth", reason: "credential_refused", status: 401, since: -26 * time.Hour}}}
)

// cast is who there is: one large tenant, one small, and one of yesterday.
var cast = []company{
	{
		name: "Brook & Tarn", email: "ines@brook.example", owner: "Ines Okafor", zone: "Europe/Berlin", currency: "EUR",
		providers: []provider{openAI, claude, groq, second},
		account:   "Relay account",
		brand:     branding.Text{LegalLine: "Brook & Tarn GmbH, Uferweg 12, 10115 Berlin", Hue: "fir", SupportEmail: "help@brook.example"},
		aliases: []tenants.NewAlias{
			{Name: "brook-fast", Description: "Chat and triage", Candidates: []tenants.AliasCandidate{
				{Model: "gpt-4.1-mini", Provider: "openai", Priority: 1, Weight: 3}, {Model: "llama-3.3-70b", Priority: 1}, {Model: "claude-sonnet-4-5"},
			}},
			{Name: "brook-smart", Sticky: true, Candidates: []tenants.AliasCandidate{{Model: "claude-sonnet-4-5"}, {Model: "gpt-4.1"}}},
		},
		plans: []plan{
			{name: "Trial", fee: "0.00", currency: "EUR", rpm: 3, tpm: 20_000, tokensDay: 150_000, pricePerMille: 1000},
			{name: "Team", fee: "49.00", currency: "EUR", rpm: 60, tpm: 60_000, tokensDay: 2_500_000, pricePerMille: 1300, simultaneously: 20},
			{name: "Scale", fee: "290.00", currency: "EUR", rpm: 500, tpm: 200_000, tokensDay: 9_000_000, pricePerMille: 1200, simultaneously: 80, eachUser: 40},
		},
		revised: "Scale",
		offers: []offer{
			{person: "Ida Vale", email: "ida@vale-transit.example", company: "Vale Transit", plan: "Team", daysAgo: 26, sent: true},
			{person: "Sam Orrin", email: "sam@orrin.example", company: "Orrin Labs", plan: "Team", daysAgo: 20, sent: true, looks: 3, declined: "too little a minute"},
			{person: "Adaeze Finch", email: "adaeze@marlow-finch.example", company: "Marlow & Finch", plan: "Scale", daysAgo: 13, sent: true, looks: 2},
			{person: "Ruth Bramble", email: "ruth@bramble.example", company: "Bramble Radiology", plan: "Scale", daysAgo: 3, requests: 800, sent: true},
			{person: "Tom Pine", email: "tom@pinecrest.example", company: "Pinecrest Tutors", plan: "Team"},
		},
		customers: []customer{
			{name: "Alder Support", plan: "Scale", perDay: 2300, weekend: 0.45, curve: office, keys: []key{
				{name: "production", share: 0.82, models: []string{"gpt-4.1-mini", "claude-sonnet-4-5", "gpt-4.1"}, size: 900},
				{name: "evening batch", share: 0.18, models: []string{"llama-3.3-70b", "gpt-4.1-mini"}, size: 2400, burst: 85},
			}},
			{name: "Nordlys Health", plan: "Team", perDay: 640, weekend: 0.15, curve: office, keys: []key{
				{name: "ward notes", share: 0.7, models: []string{"claude-sonnet-4-5", "gpt-4.1"}, size: 2100},
				{name: "triage", share: 0.3, models: []string{"gpt-4.1-mini", "o4-mini"}, size: 700, burst: 75},
			}},
			{name: "Little Owl Tutors", plan: "Trial", perDay: 130, weekend: 1.3, curve: evening, keys: []key{
				{name: "tutor app", share: 1, models: []string{"gpt-4.1-mini"}, size: 600, burst: 7},
			}},
		},
	},
	{
		name: "Millrace Studio", email: "theo@millrace.example", owner: "Theo Lindqvist", zone: "America/New_York", currency: "USD",
		providers: []provider{openAI},
		plans: []plan{
			{name: "Hobby", fee: "0.00", currency: "USD", rpm: 5, tpm: 15_000, requestsDay: 60, pricePerMille: 1500},
			{name: "Studio", fee: "19.00", currency: "USD", rpm: 30, tpm: 40_000, tokensDay: 400_000, pricePerMille: 1400},
		},
		customers: []customer{
			{name: "Harbor Notes", plan: "Studio", perDay: 150, weekend: 0.5, curve: office, keys: []key{{name: "web", share: 1, models: []string{"gpt-4.1-mini", "gpt-4.1"}, size: 800}}},
			{name: "Quay Legal", plan: "Studio", perDay: 60, weekend: 0.05, curve: office, keys: []key{{name: "contracts", share: 1, models: []string{"gpt-4.1"}, size: 4200}}},
			{name: "Tideline", plan: "Hobby", perDay: 40, weekend: 1.2, curve: evening, keys: []key{{name: "bot", share: 1, models: []string{"gpt-4.1-mini"}, size: 300, burst: 9}}},
		},
	},
	{
		name: "Fennel Labs", email: "asha@fennel.example", owner: "Asha Raman", zone: "Asia/Kolkata", currency: "INR",
		plans: []plan{
			{name: "Starter", fee: "0.00", currency: "INR", rpm: 20, tpm: 20_000, requestsDay: 500, pricePerMille: 1000},
		},
		customers: []customer{
			{name: "First customer", plan: "Starter", perDay: 14, weekend: 1, curve: office, since: 2, keys: []key{{name: "trying out", share: 1, models: []string{"practice-small"}, size: 120, test: true}}},
		},
	},
}
