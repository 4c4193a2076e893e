package httpapi

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/tenants"
	"weir/internal/usage"
)

type eventBody struct {
	ID        string            `json:"id" required:"true" description:"Your own id of the call, at most 200 characters: with started_at it makes the event one, however often it is sent" example:"call-1"`
	Customer  string            `json:"customer,omitempty" description:"Or api_key" example:"cus_01kb0000000000000000000000"`
	APIKey    string            `json:"api_key,omitempty" description:"A customer's key" example:"key_01kb0000000000000000000000"`
	Model     string            `json:"model,omitempty" description:"May be absent where only units were metered" example:"gpt-4o"`
	StartedAt string            `json:"started_at" required:"true" description:"RFC 3339; it decides the day and the price. At most 35 days ago" example:"2026-11-30T12:00:00Z"`
	EndedAt   string            `json:"ended_at,omitempty" description:"Absent: as started_at"`
	Outcome   string            `json:"outcome" required:"true" enum:"ok,client_error,provider_error,provider_limited,aborted"`
	Usage     usageBody         `json:"usage,omitempty" description:"Disjoint classes: input without cached and cache writes, output without reasoning"`
	Units     int64             `json:"units,omitempty" minimum:"0"`
	Paid      *money.Amount     `json:"provider_cost,omitempty" nullable:"false" description:"What the provider charged for it, for the margin; at most 12 decimals. Absent: not known"`
	EndUser   string            `json:"end_user,omitempty"`
	Tags      map[string]string `json:"tags,omitempty" description:"At most 8"`
}

type eventsBody struct {
	Events []item[eventBody] `json:"events" required:"true" nullable:"false" minItems:"1" maxItems:"500" description:"Each for itself"`
}

type importedItem struct {
	ID     string        `json:"id"`
	Status string        `json:"status" enum:"stored,duplicate,conflict,invalid" description:"stored: it is counted within seconds. duplicate: it was counted before. conflict: it was counted before, with other figures, which stay. invalid: see error"`
	Event  string        `json:"event,omitempty" example:"evt_01kb0000000000000000000000"`
	Cost   *money.Amount `json:"cost,omitempty" description:"Of a stored event: what the customer pays, by the plan that it was on when the call began; nothing where it was on none"`
	Error  *problem      `json:"error,omitempty" description:"What is wrong with it; pointers begin at the batch"`
}

type importedJSON struct {
	Results []importedItem `json:"results" required:"true" description:"One for each, in order"`
}

// importReach is how old an event may be, and importAhead how far its clock may
// be ahead of ours.
const (
	importReach = 35 * 24 * time.Hour
	importAhead = time.Minute
)

func importEvents(s *Server, r *request, _ none, b eventsBody) (importedJSON, error) {
	if err := checkBatch("/events", len(b.Events)); err != nil {
		return importedJSON{}, err
	}
	out := importedJSON{Results: make([]importedItem, len(b.Events))}
	desk := importDesk{Server: s, request: r, histories: map[uuid.UUID][]billing.Era{}, keys: map[string]tenants.APIKey{}}
	var events []usage.Event
	var places []int
	for i, it := range b.Events {
		out.Results[i].ID = it.body.ID
		err := it.err
		if err == nil {
			var e usage.Event
			if e, err = desk.event(it.body); err == nil {
				events, places = append(events, e), append(places, i)
				continue
			}
		}
		if k := fault.Of(err).Kind; k == fault.Unavailable || k == fault.Internal {
			return importedJSON{}, err
		}
		out.Results[i].Status, out.Results[i].Error = "invalid", s.itemProblem(r, err, requestID(r.echo), fmt.Sprintf("/events/%d", i))
	}
	results, err := s.importer.Import(r.ctx, r.tenant(), events)
	if err != nil {
		return importedJSON{}, err
	}
	for n, status := range results {
		res := &out.Results[places[n]]
		if status == usage.ImportTooOld {
			gone := fault.InvalidFields(fault.Field{Pointer: "/started_at", Code: "too_old", Message: "Calls of that day are no longer kept, so nobody knows whether this one is counted already."})
			res.Status, res.Error = "invalid", s.itemProblem(r, gone, requestID(r.echo), fmt.Sprintf("/events/%d", places[n]))
			continue
		}
		res.Status, res.Event = string(status), id.Event.Format(events[n].ID)
		if status == usage.ImportStored {
			cost := events[n].Charge.Amount(events[n].Currency)
			res.Cost = &cost
		}
	}
	return out, nil
}

// importDesk makes events of what is sent; it asks for each customer and key
// once.
type importDesk struct {
	*Server
	*request
	histories map[uuid.UUID][]billing.Era
	keys      map[string]tenants.APIKey
}

func (d importDesk) event(b eventBody) (usage.Event, error) {
	started, ended, wrong := d.times(b)
	wrong = append(wrong, b.check()...)
	cost, currency, bad := b.paid()
	wrong = append(wrong, bad...)
	if len(wrong) > 0 {
		return usage.Event{}, fault.InvalidFields(wrong...)
	}
	e := usage.Event{
		Version: 1, ID: usage.ImportID(d.tenant(), b.ID, started), RequestID: usage.ImportRequestID(d.tenant(), b.ID, started), Tenant: d.tenant(),
		Kind: usage.KindImported, ModelAsked: b.Model, ModelServed: b.Model, EndUser: b.EndUser, Tags: b.Tags, StartedAt: started, EndedAt: ended,
		Outcome: usage.Outcome(b.Outcome), Requests: 1, Tokens: b.Usage.tokens(), Units: b.Units, Currency: d.caller.Tenant.Currency,
		Cost: cost, CostCurrency: currency,
	}
	e.LocalDay, _, _ = d.caller.Tenant.Zones.Day(started)
	if err := d.whose(b, &e); err != nil {
		return e, err
	}
	eras, known := d.histories[e.Customer]
	if !known {
		var err error
		if eras, err = d.billing.History(d.ctx, d.tenant(), e.Customer); err != nil {
			return e, at("/customer", err)
		}
		d.histories[e.Customer] = eras
	}
	if era, was := billing.At(eras, started); was {
		e.Subscription, e.PlanVersion, e.Currency = era.Subscription, era.Version.ID, era.Version.Currency
		e = e.Priced(billing.RatesFor(era.Version.Prices, b.Model))
	}
	return e, nil
}

// whose fills in the customer, and the key if one is named.
func (d importDesk) whose(b eventBody, e *usage.Event) (err error) {
	if b.Customer == "" && b.APIKey == "" {
		return required(map[string]string{"/customer": ""})
	}
	if e.Customer, err = optionalID(id.Customer, "customer", b.Customer); err != nil {
		return at("/customer", err)
	}
	if b.APIKey == "" {
		return nil
	}
	k, known := d.keys[b.APIKey]
	if !known {
		key, err := optionalID(id.APIKey, "API key", b.APIKey)
		if err != nil {
			return at("/api_key", err)
		}
		if k, err = d.tenants.APIKey(d.ctx, d.tenant(), key); err != nil {
			return at("/api_key", err)
		}
		d.keys[b.APIKey] = k
	}
	if k.Kind != tenants.ForCustomer || e.Customer != uuid.Nil && e.Customer != k.Customer {
		return fault.InvalidFields(fault.Field{Pointer: "/api_key", Code: "other_customer", Message: "This is not a key of this customer."})
	}
	e.Customer, e.Key, e.Counter, e.Test = k.Customer, k.ID, k.Counter, k.Test
	return nil
}

// at says of which member something is not there.
func at(pointer string, err error) error {
	if f := fault.Of(err); f.Kind == fault.NotFound {
		return fault.New(fault.NotFound, f.Code, f.Message).With(fault.Field{Pointer: pointer, Code: f.Code, Message: f.Message})
	}
	return err
}

// times reads when the call ran, at the precision of the books.
func (d importDesk) times(b eventBody) (started, ended time.Time, wrong []fault.Field) {
	now := d.now()
	read := func(pointer, s string) time.Time {
		t, err := time.Parse(time.RFC3339, s)
		switch {
		case err != nil:
			wrong = append(wrong, fault.Field{Pointer: pointer, Code: "bad_time", Message: "This must be a time such as 2026-12-01T00:00:00Z."})
		case t.After(now.Add(importAhead)):
			wrong = append(wrong, fault.Field{Pointer: pointer, Code: "in_the_future", Message: "This lies in the future: only what has happened is imported."})
		}
		return t.UTC().Truncate(time.Microsecond)
	}
	started = read("/started_at", b.StartedAt)
	if len(wrong) == 0 && now.Sub(started) > importReach {
		wrong = append(wrong, fault.Field{Pointer: "/started_at", Code: "too_old", Message: "This is more than 35 days ago: its invoice may be closed."})
	}
	if b.EndedAt == "" {
		return started, started, wrong
	}
	ended = read("/ended_at", b.EndedAt)
	if len(wrong) == 0 && ended.Before(started) {
		wrong = append(wrong, fault.Field{Pointer: "/ended_at", Code: "out_of_range", Message: "A call ends after it began."})
	}
	return started, ended, wrong
}

func (b eventBody) check() (wrong []fault.Field) {
	if b.ID == "" || len(b.ID) > usage.MaxLabel || len(tenants.CheckText("", b.ID)) > 0 {
		wrong = append(wrong, fault.Field{Pointer: "/id", Code: "bad_label", Message: "An id of your own is 1 to 200 printable characters."})
	}
	switch {
	case b.Model == "" && b.Units == 0:
		wrong = append(wrong, fault.Field{Pointer: "/model", Code: "required", Message: "A model is needed, unless only units were metered."})
	case b.Model != "" && !catalogue.ValidModel(b.Model):
		wrong = append(wrong, fault.Field{Pointer: "/model", Code: "bad_model", Message: "This is not a model name."})
	}
	if !outcomes[usage.Outcome(b.Outcome)] {
		wrong = append(wrong, fault.Field{Pointer: "/outcome", Code: "not_one_of", Message: "This must be ok, client_error, provider_error, provider_limited or aborted."})
	}
	for _, f := range (limits.Cost{Units: b.Units, Tokens: b.Usage.tokens()}).Check() {
		if f.Pointer != "/units" {
			f.Pointer = "/usage" + f.Pointer
		}
		wrong = append(wrong, f)
	}
	return append(wrong, usage.CheckLabels(b.EndUser, b.Tags)...)
}

// paid reads what the provider charged; nil where it is not said.
func (b eventBody) paid() (cost *money.Pico, currency string, wrong []fault.Field) {
	if b.Paid == nil {
		return nil, "", nil
	}
	p, err := money.ParsePico(b.Paid.Amount)
	if err != nil {
		wrong = append(wrong, fault.Field{Pointer: "/provider_cost/amount", Code: "bad_amount", Message: "This is not an amount such as \"0.004125\": digits, and at most 12 decimals."})
	}
	if !money.ValidCurrency(b.Paid.Currency) {
		wrong = append(wrong, fault.Field{Pointer: "/provider_cost/currency", Code: "bad_currency", Message: "This is not a currency code such as USD."})
	}
	return &p, b.Paid.Currency, wrong
}

func (u usageBody) tokens() limits.Tokens {
	return limits.Tokens{Input: u.InputTokens, CachedInput: u.CachedInputTokens, CacheWrite: u.CacheWriteTokens, Output: u.OutputTokens, Reasoning: u.ReasoningTokens}
}
