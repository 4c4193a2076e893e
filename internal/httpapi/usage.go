package httpapi

import (
	"context"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/usage"
)

type usageQuery struct {
	From        string `query:"from" description:"RFC 3339, or a date in tz; inclusive; absent: the start of today" example:"2026-12-01"`
	To          string `query:"to" description:"RFC 3339, or a date in tz; exclusive; absent: now"`
	Bucket      string `query:"bucket" enum:"1m,15m,1h,1d" description:"Absent: 1d"`
	GroupBy     string `query:"group_by" description:"customer, api_key, model, provider_key, outcome, end_user, or tag: and a tag's name. By end user and tag the 100 largest are told apart" example:"model"`
	TZ          string `query:"tz" description:"IANA time zone of buckets; absent: the tenant's" example:"Europe/Berlin"`
	Customer    string `query:"customer" description:"Only this customer's calls"`
	APIKey      string `query:"api_key" description:"Only calls of this key, and of those it was rotated with"`
	ProviderKey string `query:"provider_key" description:"Only calls that this provider key served"`
	Model       string `query:"model" description:"Only calls that asked for this model"`
	Outcome     string `query:"outcome" description:"Only calls that ended so: ok, client_error, provider_error, provider_limited, aborted, expired, correction, refused for every refusal, or refused_ with a dimension and a window"`
	EndUser     string `query:"end_user" description:"Only calls that state this end user"`
	Tag         tags   `query:"tag:" description:"tag:team=red: only calls that carry this tag; one at a time"`
	Test        string `query:"test" enum:"include,exclude,only" description:"Calls of test keys and of the practice provider, which are never billed; absent: include"`
}

type usageJSON struct {
	Data          []usageRow `json:"data" description:"Half-open buckets in order, zero-filled"`
	Totals        usageSums  `json:"totals"`
	From          time.Time  `json:"from"`
	To            time.Time  `json:"to"`
	AsOf          time.Time  `json:"as_of" description:"Every call that ended before this instant is counted"`
	CompleteUntil time.Time  `json:"complete_until" description:"Every call that began before this instant has ended and is counted"`
	TZ            string     `json:"tz"`
}

type usageRow struct {
	Bucket time.Time         `json:"bucket" description:"Start of the bucket, with the offset of tz" example:"2026-12-01T00:00:00+01:00"`
	Group  map[string]string `json:"group" description:"What it is grouped by; empty without group_by"`
	Others bool              `json:"others,omitempty" description:"Of end users and tags: what is beyond the largest 100, in one row"`
	usageSums
}

type usageSums struct {
	Requests          int64        `json:"requests" description:"Admitted calls"`
	Refused           int64        `json:"refused" description:"Calls that a limit refused"`
	Errors            int64        `json:"errors" description:"Admitted calls that ended in an error"`
	InputTokens       int64        `json:"input_tokens" description:"Without cached input and cache writes"`
	CachedInputTokens int64        `json:"cached_input_tokens"`
	CacheWriteTokens  int64        `json:"cache_write_tokens"`
	OutputTokens      int64        `json:"output_tokens" description:"Without reasoning"`
	ReasoningTokens   int64        `json:"reasoning_tokens"`
	Units             int64        `json:"units,omitempty"`
	Cost              money.Amount `json:"cost" description:"What the customers pay, exact"`

	Latency *latencyJSON `json:"latency,omitempty" description:"How long calls took, from their admission to their end; absent where none was measured"`

	ProviderCost     *[]money.Amount `json:"provider_cost,omitempty" description:"What the providers charge, exact, by currency; with the scope money:read"`
	UnpricedRequests *int64          `json:"unpriced_requests,omitempty" description:"Requests whose price at the provider is not known, and which are not in provider_cost; with the scope money:read"`
}

// latencyJSON is estimated from a histogram; usage.Latency states how well.
type latencyJSON struct {
	Measured int64 `json:"measured" description:"Of how many calls: those that reached a provider, whatever became of them, but not expired ones, nor imports that state no duration"`
	P50      int64 `json:"p50_ms" description:"Half of them took at most about so long: from 10 ms to 630 s at most an eighth off, else the end that it lies beyond"`
	P95      int64 `json:"p95_ms"`
	P99      int64 `json:"p99_ms"`
}

func latencyFrom(l usage.Latency) *latencyJSON {
	n := l.Measured()
	if n == 0 {
		return nil
	}
	ms := func(p int) int64 {
		took, _ := l.Percentile(p)
		return took.Milliseconds()
	}
	return &latencyJSON{Measured: n, P50: ms(50), P95: ms(95), P99: ms(99)}
}

func reportUsage(s *Server, r *request, q usageQuery, _ none) (usageJSON, error) {
	query, err := s.usageQuery(r, q)
	if err != nil {
		return usageJSON{}, err
	}
	rep, err := s.reports.Report(r.ctx, r.tenant(), query)
	if err != nil {
		return usageJSON{}, err
	}
	currency, costs := r.caller.Tenant.Currency, r.caller.May(moneyScope)
	out := usageJSON{
		Data: make([]usageRow, len(rep.Rows)), Totals: sumsOf(rep.Totals, currency, costs),
		From: rep.From.In(query.Zone), To: rep.To.In(query.Zone), AsOf: rep.AsOf.UTC(), CompleteUntil: rep.CompleteUntil.UTC(), TZ: query.Zone.String(),
	}
	for i, row := range rep.Rows {
		out.Data[i] = usageRow{Bucket: row.Start.In(query.Zone), Group: groupOf(query.GroupBy, row.Group), Others: row.Group.Rest, usageSums: sumsOf(row.Sums, currency, costs)}
	}
	return out, nil
}

// usageQuery reads the parameters; every wrong one is named.
func (s *Server) usageQuery(r *request, q usageQuery) (usage.Query, error) {
	var wrong []fault.Field
	name := q.TZ
	if name == "" {
		name = r.caller.Tenant.Zone
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		wrong = append(wrong, fault.Field{Pointer: "?tz", Code: "bad_zone", Message: "tz must be an IANA time zone such as Europe/Berlin."})
		zone = time.UTC
	}
	now := s.now()
	today := limits.DayStart(now, zone)
	if q.TZ == "" {
		today, _, _ = r.caller.Tenant.Zones.Day(now)
	}
	from := moment(q.From, "?from", today, zone, &wrong)
	to := moment(q.To, "?to", now, zone, &wrong)
	out := usage.Query{From: from, To: to, Bucket: usage.Bucket(q.Bucket), GroupBy: usage.GroupBy(q.GroupBy), Zone: zone, Days: r.caller.Tenant.Zones}
	if q.Bucket == "" {
		out.Bucket = usage.Day
	}
	out.Filter.Model = q.Model
	tests, known := map[string]usage.TestCalls{"": usage.WithTests, "include": usage.WithTests, "exclude": usage.WithoutTests, "only": usage.OnlyTests}[q.Test]
	if !known {
		wrong = append(wrong, fault.Field{Pointer: "?test", Code: "not_one_of", Message: "test must be include, exclude or only."})
	}
	out.Filter.Tests = tests
	out.Filter.Outcome = outcomeFrom(q.Outcome, &wrong)
	out.Filter.EndUser = q.EndUser
	out.Filter.Tag = q.Tag.filter(&wrong)
	if len(wrong) > 0 {
		return out, fault.InvalidFields(wrong...)
	}
	return out, s.usageFilter(r.ctx, r.tenant(), q, &out.Filter)
}

// usageFilter reads the ids; one that is not the tenant's does not exist.
func (s *Server) usageFilter(ctx context.Context, tenant uuid.UUID, q usageQuery, f *usage.Filter) (err error) {
	if f.Customer, err = optionalID(id.Customer, "customer", q.Customer); err != nil {
		return err
	}
	if f.Customer != uuid.Nil {
		if _, err := s.tenants.Customer(ctx, tenant, f.Customer); err != nil {
			return err
		}
	}
	if f.ProviderKey, err = optionalID(id.ProviderKey, "provider key", q.ProviderKey); err != nil {
		return err
	}
	if f.ProviderKey != uuid.Nil {
		if _, err := s.tenants.ProviderKey(ctx, tenant, f.ProviderKey); err != nil {
			return err
		}
	}
	key, err := optionalID(id.APIKey, "API key", q.APIKey)
	if err != nil || key == uuid.Nil {
		return err
	}
	k, err := s.tenants.APIKey(ctx, tenant, key)
	f.Counter = k.Counter
	return err
}

// moment reads an instant, or a date as the first instant of that day in zone.
func moment(s, pointer string, absent time.Time, zone *time.Location, wrong *[]fault.Field) time.Time {
	if s == "" {
		return absent
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		// Noon of the date is in that day in every zone; its day's start is meant.
		return limits.DayStart(time.Date(t.Year(), t.Month(), t.Day(), 12, 0, 0, 0, zone), zone)
	}
	*wrong = append(*wrong, fault.Field{Pointer: pointer, Code: "bad_time", Message: pointer[1:] + " must be a time such as 2026-12-01T00:00:00Z, or a date such as 2026-12-01."})
	return absent
}

func groupOf(by usage.GroupBy, g usage.Group) map[string]string {
	switch by {
	case usage.ByNothing:
		return map[string]string{}
	case usage.ByCustomer:
		return map[string]string{string(by): id.Customer.Format(g.ID)}
	case usage.ByKey:
		return map[string]string{string(by): id.APIKey.Format(g.ID)}
	case usage.ByProviderKey:
		return map[string]string{string(by): id.ProviderKey.Format(g.ID)}
	case usage.ByModel, usage.ByOutcome, usage.ByEndUser:
	}
	return map[string]string{string(by): g.Name}
}

// moneyScope is what a key needs to see beside what customers pay what the
// providers charge.
const moneyScope = "money:read"

// sumsOf writes sums; the cost is that of the tenant's currency.
func sumsOf(s usage.Sums, currency string, costs bool) usageSums {
	out := usageSums{
		Requests: s.Requests, Refused: s.Refused, Errors: s.Errors, Units: s.Units, InputTokens: s.Tokens.Input, CachedInputTokens: s.Tokens.CachedInput,
		CacheWriteTokens: s.Tokens.CacheWrite, OutputTokens: s.Tokens.Output, ReasoningTokens: s.Tokens.Reasoning, Cost: money.Pico{}.Amount(currency), Latency: latencyFrom(s.Latency),
	}
	for _, m := range s.Charges {
		if m.Currency == currency {
			out.Cost = m.Amount.Amount(currency)
		}
	}
	if costs {
		list := make([]money.Amount, len(s.Costs))
		for i, m := range s.Costs {
			list[i] = m.Amount.Amount(m.Currency)
		}
		out.ProviderCost, out.UnpricedRequests = &list, &s.Unpriced
	}
	return out
}

// tags are the parameters tag:<name>=<value> of a query, of which there may be
// one.
type tags map[string]string

func (t tags) filter(wrong *[]fault.Field) (f usage.Tag) {
	if len(t) > 1 {
		*wrong = append(*wrong, fault.Field{Pointer: "?tag:", Code: "too_many", Message: "Calls are filtered by one tag at a time."})
		return f
	}
	for name, value := range t {
		if len(usage.CheckLabels("", t)) > 0 || value == "" {
			*wrong = append(*wrong, fault.Field{Pointer: "?tag:" + name, Code: "bad_label", Message: "A tag is filtered by as tag:team=red; its name is 1 to 64 of A–Z a–z 0–9 _ . -."})
		}
		f = usage.Tag{Name: name, Value: value}
	}
	return f
}

// outcomeFrom reads an outcome to filter by.
func outcomeFrom(s string, wrong *[]fault.Field) usage.Outcome {
	o := usage.Outcome(s)
	if s != "" && !o.Known() && s != "refused" {
		*wrong = append(*wrong, fault.Field{Pointer: "?outcome", Code: "not_one_of", Message: "outcome must be ok, client_error, provider_error, provider_limited, aborted, expired, correction, refused, or refused_ with a dimension and a window."})
	}
	return o
}
