package httpapi

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/usage"
	"weir/internal/verdict"
)

type requestQuery struct {
	Limit       string `query:"limit" description:"How many at the most: 1 to 100, 25 if absent"`
	Cursor      string `query:"cursor" description:"next_cursor of the page before"`
	Request     string `query:"request" description:"Only this request, with its corrections" example:"req_01kb0000000000000000000000"`
	Customer    string `query:"customer" description:"Only this customer's calls"`
	APIKey      string `query:"api_key" description:"Only calls of this key, and of those it was rotated with"`
	ProviderKey string `query:"provider_key" description:"Only calls that this provider key served"`
	Model       string `query:"model" description:"Only calls that asked for this model"`
	Outcome     string `query:"outcome" description:"ok, client_error, provider_error, provider_limited, aborted, expired, correction, refused for every refusal, or refused_ with a dimension and a window"`
	EndUser     string `query:"end_user" description:"Only calls that state this end user"`
	Tag         tags   `query:"tag:" description:"tag:team=red: only calls that carry this tag; one at a time"`
	From        string `query:"from" description:"RFC 3339, or a date in the tenant's zone; absent: 30 days ago"`
	To          string `query:"to" description:"RFC 3339, or a date in the tenant's zone; absent: now"`
}

// binding ties a cursor to what the list was narrowed to.
func (q requestQuery) binding() string {
	q.Limit, q.Cursor = "", ""
	return fmt.Sprintf("/requests?%q", q)
}

type callJSON struct {
	ID          string            `json:"id" description:"The request id that the answer carried" example:"req_01kb0000000000000000000000"`
	Event       string            `json:"event" example:"evt_01kb0000000000000000000000"`
	Kind        string            `json:"kind" example:"chat"`
	Customer    string            `json:"customer,omitempty"`
	APIKey      string            `json:"api_key,omitempty"`
	ProviderKey string            `json:"provider_key,omitempty"`
	Model       string            `json:"model" description:"As asked for"`
	ModelServed string            `json:"model_served,omitempty"`
	Stream      bool              `json:"stream,omitempty"`
	EndUser     string            `json:"end_user,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
	StartedAt   time.Time         `json:"started_at" description:"Of the admission; it decides the day"`
	EndedAt     time.Time         `json:"ended_at"`
	Outcome     string            `json:"outcome" example:"ok"`
	Requests    int64             `json:"requests"`
	Refused     int64             `json:"refused,omitempty"`
	Usage       usageBody         `json:"usage"`
	Units       int64             `json:"units,omitempty"`
	Estimated   string            `json:"estimated,omitempty" description:"Why the figures are not the provider's own"`
	Cost        money.Amount      `json:"cost" description:"What the customer pays, exact"`
	Test        bool              `json:"test,omitempty" description:"Practice provider or test key: never billed"`
	Corrects    string            `json:"corrects,omitempty" description:"The event whose figures this one corrects"`
}

type callDetailJSON struct {
	callJSON
	Estimate    usageBody     `json:"estimate" description:"What was reserved"`
	Attempts    []attemptJSON `json:"attempts"`
	Limits      []chargeJSON  `json:"limits" description:"Day and month limits that it counted in"`
	Refusal     *refusalJSON  `json:"refusal,omitempty"`
	Corrections []callJSON    `json:"corrections,omitempty"`
}

type attemptJSON struct {
	Provider    string    `json:"provider,omitempty" description:"Absent: the call was the caller's own, and this is what it says of it"`
	ProviderKey string    `json:"provider_key,omitempty"`
	Model       string    `json:"model"`
	Status      int       `json:"status" description:"The provider's; 0: it did not answer"`
	Error       string    `json:"error,omitempty"`
	StartedAt   time.Time `json:"started_at"`
	EndedAt     time.Time `json:"ended_at"`
	Usage       usageBody `json:"usage"`
}

type chargeJSON struct {
	Ledger      string    `json:"ledger"`
	WindowStart time.Time `json:"window_start"`
	Amount      int64     `json:"amount"`
}

type refusalJSON struct {
	Code         string          `json:"code"`
	RetryAfterMS int64           `json:"retry_after_ms,omitempty"`
	Limits       []verdict.Limit `json:"limits" description:"The limits that refused, with the figures of that instant"`
}

func tokensJSON(t limits.Tokens) usageBody {
	return usageBody{InputTokens: t.Input, CachedInputTokens: t.CachedInput, CacheWriteTokens: t.CacheWrite, OutputTokens: t.Output, ReasoningTokens: t.Reasoning}
}

func callOf(e usage.Event) callJSON {
	return callJSON{
		ID: id.Request.Format(e.RequestID), Event: id.Event.Format(e.ID), Kind: e.Kind, Customer: id.Customer.Format(e.Customer),
		APIKey: id.APIKey.Format(e.Key), ProviderKey: id.ProviderKey.Format(e.ProviderKey), Model: e.ModelAsked, ModelServed: e.ModelServed,
		Stream: e.Stream, EndUser: e.EndUser, Tags: e.Tags, StartedAt: e.StartedAt, EndedAt: e.EndedAt, Outcome: string(e.Outcome),
		Requests: e.Requests, Refused: e.Refused, Usage: tokensJSON(e.Tokens), Units: e.Units, Estimated: e.Estimated,
		Cost: e.Charge.Amount(e.Currency), Test: e.Test, Corrects: id.Event.Format(e.Corrects),
	}
}

func getRequest(s *Server, r *request, _ none, _ none) (callDetailJSON, error) {
	u, err := r.path(id.Request, "request")
	if err != nil {
		return callDetailJSON{}, fault.New(fault.NotFound, "request_not_found", "There is no such request.")
	}
	e, corrections, err := s.reports.RequestByID(r.ctx, r.tenant(), u)
	if err != nil {
		return callDetailJSON{}, err
	}
	out := callDetailJSON{callJSON: callOf(e), Estimate: tokensJSON(e.Estimate.Tokens), Attempts: []attemptJSON{}, Limits: []chargeJSON{}}
	for _, a := range e.Attempts {
		out.Attempts = append(out.Attempts, attemptJSON{
			Provider: a.Provider, ProviderKey: id.ProviderKey.Format(a.ProviderKey), Model: a.Model, Status: a.Status, Error: a.Error,
			StartedAt: a.StartedAt, EndedAt: a.EndedAt, Usage: tokensJSON(a.Tokens),
		})
	}
	for _, c := range e.Charges {
		out.Limits = append(out.Limits, chargeJSON{Ledger: c.Ledger, WindowStart: c.WindowStart, Amount: c.Amount})
	}
	for _, c := range corrections {
		out.Corrections = append(out.Corrections, callOf(c))
	}
	if e.Refusal != nil {
		out.Refusal = refusalOf(*e.Refusal)
	}
	return out, nil
}

func refusalOf(f usage.Refusal) *refusalJSON {
	out := &refusalJSON{Code: f.Code, RetryAfterMS: int64((f.RetryAfter + time.Millisecond - 1) / time.Millisecond)}
	for _, l := range f.Limits {
		out.Limits = append(out.Limits, verdict.Of(limits.State{Limit: l.Limit, Used: l.Used, Remaining: l.Remaining, Requested: l.Requested, ResetAt: l.ResetAt}))
	}
	return out
}

func listRequests(s *Server, r *request, q requestQuery, _ none) (page[callJSON], error) {
	limit, err := pageLimit(q.Limit)
	if err != nil {
		return page[callJSON]{}, err
	}
	f, err := s.requestFilter(r, q)
	if err != nil {
		return page[callJSON]{}, err
	}
	binding := r.tenant().String() + q.binding()
	position, err := s.cursors.open(binding, q.Cursor)
	if err != nil {
		return page[callJSON]{}, err
	}
	if position != nil {
		if f.After, err = placeFrom(position); err != nil {
			return page[callJSON]{}, err
		}
	}
	f.Limit = limit + 1
	events, err := s.reports.Requests(r.ctx, r.tenant(), f)
	if err != nil {
		return page[callJSON]{}, err
	}
	out := page[callJSON]{Data: []callJSON{}}
	if len(events) > limit {
		events = events[:limit]
		next := s.cursors.sign(binding, placeOf(usage.CursorOf(events[limit-1])))
		out.NextCursor, out.HasMore = &next, true
	}
	for _, e := range events {
		out.Data = append(out.Data, callOf(e))
	}
	return out, nil
}

// placeOf keeps the full precision of the instant: microseconds.
func placeOf(c usage.Cursor) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(c.StartedAt.UnixMicro())), c.ID[:]...)
}

func placeFrom(b []byte) (usage.Cursor, error) {
	if len(b) != 24 {
		return usage.Cursor{}, invalidCursor()
	}
	return usage.Cursor{StartedAt: time.UnixMicro(int64(binary.BigEndian.Uint64(b))).UTC(), ID: uuid.UUID(b[8:])}, nil
}

func (s *Server) requestFilter(r *request, q requestQuery) (usage.RequestFilter, error) {
	zone, err := time.LoadLocation(r.caller.Tenant.Zone)
	if err != nil {
		return usage.RequestFilter{}, err
	}
	var wrong []fault.Field
	f := usage.RequestFilter{From: moment(q.From, "?from", time.Time{}, zone, &wrong), To: moment(q.To, "?to", time.Time{}, zone, &wrong)}
	f.Filter = usage.Filter{Model: q.Model, Outcome: outcomeFrom(q.Outcome, &wrong), EndUser: q.EndUser, Tag: q.Tag.filter(&wrong), Tests: usage.WithTests}
	if f.Request, err = id.Request.Parse(q.Request); err != nil && q.Request != "" {
		wrong = append(wrong, fault.Field{Pointer: "?request", Code: "bad_id", Message: "request must be a request id, as an answer's x-request-id names it."})
	}
	if len(wrong) > 0 {
		return f, fault.InvalidFields(wrong...)
	}
	return f, s.usageFilter(r.ctx, r.tenant(), usageQuery{Customer: q.Customer, APIKey: q.APIKey, ProviderKey: q.ProviderKey}, &f.Filter)
}
