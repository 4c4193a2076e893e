package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/capacity"
	"weir/internal/id"
	sums "weir/internal/money"
	"weir/internal/quotes"
	"weir/web/ui"
)

// quotesPage is the list of quotes, by how they stand.
type quotesPage struct {
	workspace
	Title         string
	Search        string
	State         ui.Input
	Groups        []quoteGroup
	Newest, Older string
	Any           bool // there is a quote at all
}

type quoteGroup struct {
	Title, Small string
	Rows         []quoteRow
}

// quoteRow is a quote in the list.
type quoteRow struct {
	ID, For, Number, Says, Plan, Fee string
	Tone                             ui.Tone
	State, Since                     string
	Do, DoPath                       string // what is done next
	Post                             bool   // by a form
}

// quoteGroups is where each state stands in the list.
var quoteGroups = []struct {
	Title, Small string
	Statuses     []quotes.Status
}{
	{"Out", "waiting for an answer", []quotes.Status{quotes.Sent, quotes.Viewed}},
	{"Drafts", "seen by nobody outside", []quotes.Status{quotes.Draft}},
	{"Accepted", "became customer, subscription and key", []quotes.Status{quotes.Accepted}},
	{"Closed", "said no, ran out, or taken back", []quotes.Status{quotes.Declined, quotes.Expired, quotes.Withdrawn}},
}

// mostOut is how many open quotes the title of the list counts.
const mostOut = 200

func (p *Pages) quoteList(c echo.Context, who auth.Person, w workspace) error {
	ctx, q := c.Request().Context(), c.QueryParams()
	view := quotesPage{workspace: w, Search: strings.TrimSpace(q.Get("q"))}
	f := quotes.Filter{Text: view.Search}
	view.State = ui.Input{Name: "state", Label2: "State", Options: []ui.Option{{Label: "Every state"}}}
	for _, g := range quoteGroups {
		chosen := q.Get("state") == strings.ToLower(g.Title)
		view.State.Options = append(view.State.Options, ui.Option{Value: strings.ToLower(g.Title), Label: g.Title, Chosen: chosen})
		if chosen {
			f.Statuses = g.Statuses
		}
	}
	out, err := p.quotes.Quotes(ctx, who.Tenant, quotes.Filter{Statuses: quoteGroups[0].Statuses}, uuid.Nil, mostOut)
	if err != nil {
		return err
	}
	view.Title = quotesTitle(out.Items, w)
	from, _ := id.Quote.Parse(q.Get("after"))
	page, err := p.quotes.Quotes(ctx, who.Tenant, f, from, pageRows)
	if err != nil {
		return err
	}
	view.Newest, view.Older = newest("/quotes", q, "after"), older("/quotes", q, "after", id.Quote.Format(page.Next))
	view.Any = len(page.Items) > 0 || view.Search != "" || len(f.Statuses) > 0 || view.Newest != ""
	for _, g := range quoteGroups {
		group := quoteGroup{Title: g.Title, Small: g.Small}
		for _, x := range page.Items {
			if slices.Contains(g.Statuses, x.Status) {
				group.Rows = append(group.Rows, quoteRowOf(x, w))
			}
		}
		if len(group.Rows) > 0 {
			view.Groups = append(view.Groups, group)
		}
	}
	return show(c, http.StatusOK, quotesView(view))
}

// quotesTitle says how the open quotes stand.
func quotesTitle(out []quotes.Quote, w workspace) string {
	if len(out) == 0 {
		return "Quotes"
	}
	fees, soonest := int64(0), out[0].Offer.ValidUntil
	for _, q := range out {
		fees += q.Offer.Terms.BaseFee
		if q.Offer.ValidUntil.Before(soonest) {
			soonest = q.Offer.ValidUntil
		}
	}
	words := ui.Of(int64(len(out)), "quote is out", "quotes are out")
	if len(out) == mostOut {
		words = "More than " + words
	}
	if fees > 0 {
		words += ", worth " + sums.FormatMinor(fees, w.Tenant.Currency) + " " + w.Tenant.Currency + " a month"
	}
	if left := soonest.Sub(w.Now); left < 48*time.Hour {
		return words + ". The next ends " + ui.Instant(soonest.In(w.Now.Location()), w.Now) + "."
	}
	return words + "."
}

func quoteRowOf(q quotes.Quote, w workspace) quoteRow {
	r := quoteRow{
		ID: id.Quote.Format(q.ID), For: q.To.Called(), Number: q.Number, Says: sentence(q.Offer.Terms.Limits), Plan: offerWords(q.Offer),
		Fee: sums.FormatMinor(q.Offer.Terms.BaseFee, q.Offer.Terms.Currency) + " " + q.Offer.Terms.Currency,
	}
	if q.Version.Number > 1 {
		r.Number += ", v" + strconv.Itoa(q.Version.Number)
	}
	r.Tone, r.State, r.Since = quoteState(q, w)
	path := "/quotes/" + r.ID
	switch q.Status {
	case quotes.Draft:
		r.Do, r.DoPath = "Finish", path+"/edit"
	case quotes.Sent, quotes.Viewed:
		if q.NextDraft > 0 {
			r.Do, r.DoPath = "Finish version "+strconv.Itoa(q.NextDraft), path+"/edit"
		} else {
			r.Do, r.DoPath, r.Post = "Resend", path+"/resend", true
		}
	case quotes.Accepted:
	default:
		r.Do, r.DoPath = "Again", path+"/edit"
	}
	return r
}

// offerWords names what is offered.
func offerWords(o quotes.Offer) string {
	if o.OwnTerms {
		return o.Plan + ", terms of its own"
	}
	return o.Plan + ", version " + strconv.Itoa(o.Terms.Number)
}

// quoteState is where a quote stands, in words, and since when.
func quoteState(q quotes.Quote, w workspace) (tone ui.Tone, state, since string) {
	at := func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return ui.Instant(t.In(w.Now.Location()), w.Now)
	}
	until := ui.Instant(q.Offer.ValidUntil.In(w.Now.Location()), w.Now)
	switch q.Status {
	case quotes.Draft:
		return ui.Idle, "not sent", "made " + ui.Instant(q.CreatedAt.In(w.Now.Location()), w.Now)
	case quotes.Sent, quotes.Viewed:
		tone, state = ui.Idle, "not opened yet"
		if q.Status == quotes.Viewed {
			tone, state = ui.OK, "opened "+timesWords(q.Views)
		}
		if q.Offer.ValidUntil.Sub(w.Now) < 48*time.Hour {
			tone, state = ui.Warn, "ends "+until
			return tone, state, "sent " + at(q.SentAt) + ", opened " + timesWords(q.Views)
		}
		return tone, state, "sent " + at(q.SentAt) + ", ends " + until
	case quotes.Accepted:
		return ui.OK, "accepted", at(q.DecidedAt) + " by " + q.DecidedBy.Name
	case quotes.Declined:
		if q.DeclinedBy != "" {
			return ui.Idle, "declined", at(q.DecidedAt) + ": “" + q.DeclinedBy + "”"
		}
		return ui.Idle, "declined", at(q.DecidedAt)
	case quotes.Expired:
		return ui.Idle, "expired", until + ", opened " + timesWords(q.Views)
	}
	return ui.Idle, "withdrawn", ""
}

func timesWords(n int64) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return ui.Count(n) + " times"
}

// quotePage is one quote, as who makes it sees it.
type quotePage struct {
	workspace
	form
	ID       string
	Quote    quotes.Quote
	Draft    *quotes.Quote // the next version, beside the one that is out
	Says     string
	Tone     ui.Tone
	State    string
	Since    string
	Terms    offerTerms
	Link     string
	Versions []quotes.VersionRef
	Customer string // the one it became, or is for; "" none yet
	Until    string
	Capacity capacityView
}

// offerTerms is what a version offers, as people read it.
type offerTerms struct {
	Fee      string
	Means    []billing.Meaning
	Common   []string
	Prices   priceList
	Lines    []estimateRow
	Total    string
	Currency string
}

// estimateRow is a line of an estimate.
type estimateRow struct {
	Name, Units, Amount string
	Unpriced            bool
}

func termsOf(o quotes.Offer, zone string) (offerTerms, error) {
	v := o.Terms
	t := offerTerms{
		Fee: sums.FormatMinor(v.BaseFee, v.Currency) + " " + v.Currency, Means: billing.Meanings(v.Limits, zone), Common: billing.Common(v.Limits, v.CapOutput, zone),
		Prices: pricesOf(v.Prices), Currency: v.Currency,
	}
	e, err := quotes.Estimate(v, o.Volumes)
	if err != nil || len(o.Volumes) == 0 {
		return t, err
	}
	for _, l := range e.Lines {
		r := estimateRow{Name: "Plan " + o.Plan, Amount: sums.FormatMinor(l.AmountMinor, v.Currency)}
		if !l.Fee {
			r.Name, r.Units = classWords(l.Price.Class)+", "+modelsWords(l.Price.Models), ui.Count(l.Units)
		}
		t.Lines = append(t.Lines, r)
	}
	if e.Minimum > 0 {
		t.Lines = append(t.Lines, estimateRow{Name: "To the minimum of a month", Amount: sums.FormatMinor(e.Minimum, v.Currency)})
	}
	for _, m := range e.Unpriced {
		t.Lines = append(t.Lines, estimateRow{Name: m, Amount: "no price", Unpriced: true})
	}
	t.Total = sums.FormatMinor(e.TotalMinor, v.Currency) + " " + v.Currency
	return t, nil
}

func (p *Pages) quote(c echo.Context, who auth.Person, w workspace) error {
	quote, err := param(c, id.Quote, "quote")
	if err != nil {
		return err
	}
	return p.showQuote(c, who, w, quote, form{}, http.StatusOK)
}

func (p *Pages) showQuote(c echo.Context, who auth.Person, w workspace, quote uuid.UUID, f form, status int) error {
	ctx := c.Request().Context()
	q, err := p.quotes.Quote(ctx, who.Tenant, quote, 0)
	if err != nil {
		return err
	}
	view := quotePage{workspace: w, form: f, ID: id.Quote.Format(q.ID), Quote: q, Says: sentence(q.Offer.Terms.Limits)}
	view.Tone, view.State, view.Since = quoteState(q, w)
	view.Until = throughWords(q.Offer.ValidUntil, w.Now.Location())
	if view.Terms, err = termsOf(q.Offer, w.Tenant.Zone); err != nil {
		return err
	}
	if view.Link, err = p.quotes.Link(ctx, who.Tenant, quote); err != nil {
		return err
	}
	if view.Versions, err = p.quotes.Versions(ctx, who.Tenant, quote); err != nil {
		return err
	}
	if q.NextDraft > 0 {
		next, err := p.quotes.Quote(ctx, who.Tenant, quote, q.NextDraft)
		if err != nil {
			return err
		}
		view.Draft = &next
	}
	if view.Draft != nil || q.Status == quotes.Draft {
		draft := q
		if view.Draft != nil {
			draft = *view.Draft
		}
		view.Capacity = p.capacityOf(c, func() (capacity.Report, error) { return p.quotes.Capacity(ctx, who.Tenant, draft) })
	}
	if q.Customer != uuid.Nil {
		x, err := p.tenants.Customer(ctx, who.Tenant, q.Customer)
		if err != nil {
			return err
		}
		view.Customer = x.Name
	}
	return show(c, status, quoteView(view))
}

// quoteStep does one thing to a quote, and leads back to it. What it refuses is
// said on the quote's page.
func (p *Pages) quoteStep(what string, do func(c echo.Context, who auth.Person, quote uuid.UUID, f form) error) func(echo.Context, auth.Person, workspace) error {
	return func(c echo.Context, who auth.Person, w workspace) error {
		quote, err := param(c, id.Quote, "quote")
		if err != nil {
			return err
		}
		f, err := typed(c)
		if err != nil {
			return err
		}
		if err := do(c, who, quote, f); err != nil {
			status, err := f.refuse(err)
			if err != nil {
				return err
			}
			return p.showQuote(c, who, w, quote, f, status)
		}
		return done(c, "/quotes/"+c.Param("id"), what)
	}
}

func (p *Pages) sendQuote(c echo.Context, who auth.Person, quote uuid.UUID, f form) error {
	_, err := p.quotes.Send(asPerson(c, who), who.Tenant, quote, strings.TrimSpace(f.Get("reason")))
	return err
}

func (p *Pages) resendQuote(c echo.Context, who auth.Person, quote uuid.UUID, _ form) error {
	_, err := p.quotes.Resend(asPerson(c, who), who.Tenant, quote)
	return err
}

func (p *Pages) withdrawQuote(c echo.Context, who auth.Person, quote uuid.UUID, _ form) error {
	_, err := p.quotes.Withdraw(asPerson(c, who), who.Tenant, quote)
	return err
}

func (p *Pages) discardQuote(c echo.Context, who auth.Person, quote uuid.UUID, _ form) error {
	_, err := p.quotes.Discard(asPerson(c, who), who.Tenant, quote)
	return err
}

// mountQuotes puts the pages of quotes on e, and the one that customers see.
func (p *Pages) mountQuotes(e *echo.Echo) {
	p.get(e, "/quotes", p.page(changePlans, p.quoteList))
	p.get(e, "/quotes/new", p.page(changePlans, p.newQuote))
	p.post(e, "/quotes", p.page(changePlans, p.addQuote))
	p.post(e, "/quotes/preview", p.page(changePlans, p.previewQuote))
	p.get(e, "/quotes/:id", p.page(changePlans, p.quote))
	p.get(e, "/quotes/:id/edit", p.page(changePlans, p.editQuote))
	p.post(e, "/quotes/:id", p.page(changePlans, p.saveQuote))
	p.post(e, "/quotes/:id/send", p.page(changePlans, p.quoteStep("quote-sent", p.sendQuote)))
	p.post(e, "/quotes/:id/resend", p.page(changePlans, p.quoteStep("quote-resent", p.resendQuote)))
	p.post(e, "/quotes/:id/withdraw", p.page(changePlans, p.quoteStep("quote-withdrawn", p.withdrawQuote)))
	p.post(e, "/quotes/:id/discard", p.page(changePlans, p.quoteStep("quote-discarded", p.discardQuote)))
	p.get(e, "/q/:token", p.offerPage)
	p.post(e, "/q/:token/accept", p.acceptOffer)
	p.post(e, "/q/:token/decline", p.declineOffer)
}
