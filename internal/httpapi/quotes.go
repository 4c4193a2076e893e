package httpapi

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/money"
	"weir/internal/quotes"
	"weir/internal/tenants"
)

const exampleQuote = `{"plan": "{plan}", "to": {"name": "Adaeze Finch", "email": "adaeze@example.com", "company": "Marlow & Finch"}, ` +
	`"limits": [{"dimension": "requests", "window": "minute", "amount": 800}], "base_fee": {"amount": "59.00", "currency": "USD"}, ` +
	`"volumes": {"practice-small": {"input_tokens": 16800000, "output_tokens": 5320000}}}`

// quoteBody is a quote's draft. In a change, absent members stay as they are.
type quoteBody struct {
	Plan        string                 `json:"plan,omitempty" description:"Whose published version is offered" example:"pln_01kb0000000000000000000000"`
	PlanVersion string                 `json:"plan_version,omitempty" description:"In place of plan: its published version, so that one that was replaced meanwhile is not quoted by mistake"`
	Customer    *string                `json:"customer,omitempty" description:"One that there is; absent: accepting makes one"`
	To          *recipientBody         `json:"to,omitempty" nullable:"false" description:"Whom it is for; needed for a new quote"`
	Limits      *[]limitBody           `json:"limits,omitempty" nullable:"false" description:"Of this quote alone; absent: the plan's"`
	Prices      *[]priceBody           `json:"prices,omitempty" nullable:"false" description:"Of this quote alone; absent: the plan's"`
	BaseFee     *money.Amount          `json:"base_fee,omitempty" description:"Of this quote alone; absent: the plan's"`
	Volumes     *map[string]volumeBody `json:"volumes,omitempty" nullable:"false" description:"What a month is expected to take, by model; for the estimate, promises nothing"`
	Note        *string                `json:"note,omitempty" nullable:"false" description:"Shown to the customer"`
	ValidUntil  *time.Time             `json:"valid_until,omitempty" description:"Absent: the end of the day in two weeks, in the tenant's zone"`
}

type recipientBody struct {
	Name    string `json:"name" required:"true"`
	Email   string `json:"email" required:"true"`
	Company string `json:"company,omitempty"`
}

type volumeBody struct {
	Requests    int64 `json:"requests,omitempty" minimum:"0"`
	Input       int64 `json:"input_tokens,omitempty" minimum:"0" description:"Without what is read from a cache"`
	CachedInput int64 `json:"cached_input_tokens,omitempty" minimum:"0"`
	Output      int64 `json:"output_tokens,omitempty" minimum:"0"`
}

type quoteJSON struct {
	ID            string                `json:"id" example:"quo_01kb0000000000000000000000"`
	Number        string                `json:"number" example:"Q-2026-041"`
	Version       int                   `json:"version"`
	Status        string                `json:"status" enum:"draft,sent,viewed,accepted,declined,expired,withdrawn"`
	Customer      string                `json:"customer,omitempty"`
	To            recipientBody         `json:"to"`
	Plan          string                `json:"plan"`
	PlanName      string                `json:"plan_name"`
	OwnTerms      bool                  `json:"own_terms" description:"The terms are this quote's alone"`
	Sentence      string                `json:"sentence" example:"500 requests and 200,000 tokens a minute"`
	Terms         versionJSON           `json:"terms" description:"What becomes of it: the plan version that accepting subscribes to"`
	Volumes       map[string]volumeBody `json:"volumes"`
	Estimate      *estimateJSON         `json:"estimate" description:"A month at the stated volumes; null without volumes"`
	Note          string                `json:"note"`
	ValidUntil    time.Time             `json:"valid_until"`
	Reason        string                `json:"reason,omitempty" description:"Why it was sent over the tenant's capacity ceiling"`
	CreatedAt     time.Time             `json:"created_at"`
	SentAt        *time.Time            `json:"sent_at"`
	ViewedAt      *time.Time            `json:"viewed_at" description:"When it was first looked at"`
	Views         int64                 `json:"views"`
	DecidedAt     *time.Time            `json:"decided_at"`
	DecidedBy     *recipientBody        `json:"decided_by"`
	DeclineReason string                `json:"decline_reason,omitempty"`
	Result        *quoteResult          `json:"result" description:"What accepting made"`
	NextDraft     int                   `json:"next_draft,omitempty" description:"The version that is being revised beside the one that is out: ?version= reads it"`
	PublicURL     string                `json:"public_url,omitempty" description:"Of a quote that was sent, not in lists. Whoever has it can accept"`
}

type quoteResult struct {
	Customer     string `json:"customer"`
	Subscription string `json:"subscription"`
	APIKey       string `json:"api_key,omitempty" description:"Absent: the customer had a key"`
}

type estimateJSON struct {
	Lines    []estimateLine `json:"lines"`
	Total    money.Amount   `json:"total" description:"The sum of the rounded lines, before tax"`
	Unpriced []string       `json:"unpriced_models" description:"No price of the plan counts them"`
}

type estimateLine struct {
	Kind   string       `json:"kind" enum:"subscription,usage,minimum"`
	Models string       `json:"models,omitempty" description:"Of the price"`
	Class  string       `json:"class,omitempty"`
	Units  int64        `json:"units,omitempty"`
	Amount money.Amount `json:"amount"`
}

func quoteOf(r *request, q quotes.Quote) (quoteJSON, error) {
	o := q.Offer
	out := quoteJSON{
		ID: id.Quote.Format(q.ID), Number: q.Number, Version: q.Version.Number, Status: string(q.Status), Customer: id.Customer.Format(q.Customer),
		To: recipientBody(q.To), Plan: id.Plan.Format(o.PlanID), PlanName: o.Plan, OwnTerms: o.OwnTerms, Sentence: billing.Sentence(o.Terms.Limits),
		Terms: planOf(r.caller.Tenant.Zone)(billing.Plan{Version: o.Terms}).Version, Volumes: map[string]volumeBody{}, Note: o.Note, ValidUntil: o.ValidUntil.UTC(),
		Reason: o.Reason, CreatedAt: q.CreatedAt.UTC(), SentAt: q.SentAt, ViewedAt: q.ViewedAt, Views: q.Views, DecidedAt: q.DecidedAt, DeclineReason: q.DeclinedBy, NextDraft: q.NextDraft,
	}
	for _, v := range o.Volumes {
		out.Volumes[v.Model] = volumeBody{v.Requests, v.Input, v.CachedInput, v.Output}
	}
	if q.Status == quotes.Accepted {
		by := recipientBody(q.DecidedBy)
		out.DecidedBy = &by
		out.Result = &quoteResult{id.Customer.Format(q.Result.Customer), id.Subscription.Format(q.Result.Subscription), id.APIKey.Format(q.Result.APIKey)}
	}
	var err error
	if out.Estimate, err = estimateOf(o); err != nil {
		return out, err
	}
	return out, err
}

// linked is a quote with its page. Lists have no pages: a link is a key.
func (s *Server) linked(r *request, q quotes.Quote) (quoteJSON, error) {
	out, err := quoteOf(r, q)
	if err == nil && q.SentAt != nil {
		out.PublicURL, err = s.quotes.Link(r.ctx, r.tenant(), q.ID)
	}
	return out, err
}

func estimateOf(o quotes.Offer) (*estimateJSON, error) {
	if len(o.Volumes) == 0 {
		return nil, nil //nolint:nilnil // no volumes, no estimate
	}
	e, err := quotes.Estimate(o.Terms, o.Volumes)
	if err != nil {
		return nil, err
	}
	amount := func(minor int64) money.Amount {
		return money.Amount{Amount: money.FormatMinor(minor, o.Terms.Currency), Currency: o.Terms.Currency}
	}
	out := &estimateJSON{Lines: []estimateLine{}, Total: amount(e.TotalMinor), Unpriced: append([]string{}, e.Unpriced...)}
	for _, l := range e.Lines {
		kind := "usage"
		if l.Fee {
			kind = "subscription"
		}
		out.Lines = append(out.Lines, estimateLine{kind, l.Price.Models, string(l.Price.Class), l.Units, amount(l.AmountMinor)})
	}
	if e.Minimum > 0 {
		out.Lines = append(out.Lines, estimateLine{Kind: "minimum", Amount: amount(e.Minimum)})
	}
	return out, nil
}

func addQuote(s *Server, r *request, _ none, b quoteBody) (quoteJSON, error) {
	w, err := b.onto(quotes.Wanted{})
	if err == nil {
		err = s.pinned(r, b.PlanVersion, &w)
	}
	if err != nil {
		return quoteJSON{}, err
	}
	q, err := s.quotes.Add(r.ctx, r.tenant(), w)
	if err != nil {
		return quoteJSON{}, named(err, w.Volumes)
	}
	return s.linked(r, q)
}

// pinned is the plan whose published version the caller names.
func (s *Server) pinned(r *request, version string, w *quotes.Wanted) error {
	if version == "" {
		return nil
	}
	wrong := func(code, message string) error {
		return fault.InvalidFields(fault.Field{Pointer: "/plan_version", Code: code, Message: message})
	}
	v, err := id.PlanVersion.Parse(version)
	if err != nil {
		return tenants.Missing("/plan_version", "plan version")
	}
	terms, err := s.billing.TermsOf(r.ctx, r.tenant(), v)
	if fault.Is(err, fault.NotFound) {
		return tenants.Missing("/plan_version", "plan version")
	}
	if err != nil {
		return err
	}
	if terms.Version.Status != billing.Published {
		return wrong("plan_version_not_published", "This version is "+string(terms.Version.Status)+"; only a published one is quoted.")
	}
	w.Plan = terms.PlanID
	return nil
}

func changeQuote(s *Server, r *request, _ none, b quoteBody) (quoteJSON, error) {
	quote, err := r.path(id.Quote, "quote")
	if err != nil {
		return quoteJSON{}, err
	}
	q, err := s.quotes.Latest(r.ctx, r.tenant(), quote)
	if err != nil {
		return quoteJSON{}, err
	}
	w, err := b.onto(q.Wanted(s.now()))
	if err == nil {
		err = s.pinned(r, b.PlanVersion, &w)
	}
	if err != nil {
		return quoteJSON{}, err
	}
	if q, err = s.quotes.Revise(r.ctx, r.tenant(), quote, q.Tag(), w); err != nil {
		return quoteJSON{}, named(err, w.Volumes)
	}
	return s.linked(r, q)
}

type quoteQuery struct {
	Version string `query:"version" description:"Another version than the one that counts"`
}

func getQuote(s *Server, r *request, query quoteQuery, _ none) (quoteJSON, error) {
	quote, err := r.path(id.Quote, "quote")
	if err != nil {
		return quoteJSON{}, err
	}
	version := 0
	if query.Version != "" {
		if version, err = strconv.Atoi(query.Version); err != nil || version < 1 {
			return quoteJSON{}, fault.InvalidFields(fault.Field{Pointer: "?version", Code: "out_of_range", Message: "version must be a whole number from 1."})
		}
	}
	q, err := s.quotes.Quote(r.ctx, r.tenant(), quote, version)
	if err != nil {
		return quoteJSON{}, err
	}
	return s.linked(r, q)
}

type quotesQuery struct {
	Limit    string `query:"limit" description:"How many at the most: 1 to 100, 25 if absent"`
	Cursor   string `query:"cursor" description:"next_cursor of the page before"`
	Status   string `query:"status" description:"One or several, comma separated" example:"sent,viewed"`
	Customer string `query:"customer" description:"For this one, or accepted as this one"`
	Text     string `query:"q" description:"In the number, or in a name or address of whom it is for"`
}

func listQuotes(s *Server, r *request, query quotesQuery, _ none) (page[quoteJSON], error) {
	f := quotes.Filter{Text: query.Text}
	var err error
	if f.Customer, err = optionalID(id.Customer, "customer", query.Customer); err != nil {
		return page[quoteJSON]{}, err
	}
	if query.Status != "" {
		for _, x := range strings.Split(query.Status, ",") {
			if !slices.Contains(quotes.Statuses, quotes.Status(x)) {
				return page[quoteJSON]{}, fault.InvalidFields(fault.Field{Pointer: "?status", Code: "not_one_of", Message: "status is any of draft, sent, viewed, accepted, declined, expired, withdrawn."})
			}
			f.Statuses = append(f.Statuses, quotes.Status(x))
		}
	}
	var failed error
	binding := "quotes?" + query.Status + "&" + query.Customer + "&" + query.Text
	out, err := list(s, r, listQuery{query.Limit, query.Cursor}, binding, func(after uuid.UUID, limit int) (tenants.Page[quotes.Quote], error) {
		return s.quotes.Quotes(r.ctx, r.tenant(), f, after, limit)
	}, func(q quotes.Quote) quoteJSON {
		out, err := quoteOf(r, q)
		if err != nil {
			failed = err
		}
		return out
	})
	if err == nil {
		err = failed
	}
	return out, err
}

type sendBody struct {
	Reason string `json:"reason,omitempty" maxLength:"500" description:"Why it is sent although it sells more than the tenant's capacity ceiling; needed then"`
}

func sendQuote(s *Server, r *request, _ none, b sendBody) (quoteJSON, error) {
	return s.quoteStep(r, func(quote uuid.UUID) (quotes.Quote, error) { return s.quotes.Send(r.ctx, r.tenant(), quote, b.Reason) })
}

func resendQuote(s *Server, r *request, _ none, _ none) (quoteJSON, error) {
	return s.quoteStep(r, func(quote uuid.UUID) (quotes.Quote, error) { return s.quotes.Resend(r.ctx, r.tenant(), quote) })
}

func withdrawQuote(s *Server, r *request, _ none, _ none) (quoteJSON, error) {
	return s.quoteStep(r, func(quote uuid.UUID) (quotes.Quote, error) { return s.quotes.Withdraw(r.ctx, r.tenant(), quote) })
}

func discardQuoteDraft(s *Server, r *request, _ none, _ none) (quoteJSON, error) {
	return s.quoteStep(r, func(quote uuid.UUID) (quotes.Quote, error) { return s.quotes.Discard(r.ctx, r.tenant(), quote) })
}

func (s *Server) quoteStep(r *request, do func(quote uuid.UUID) (quotes.Quote, error)) (quoteJSON, error) {
	quote, err := r.path(id.Quote, "quote")
	if err != nil {
		return quoteJSON{}, err
	}
	q, err := do(quote)
	if err != nil {
		return quoteJSON{}, err
	}
	return s.linked(r, q)
}
