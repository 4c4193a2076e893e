package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/capacity"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/quotes"
	"weir/web/ui"
)

// quoteEditPage is the form of a quote's draft, with what it says beside it.
type quoteEditPage struct {
	workspace
	form
	ID, Number string // "" a new quote
	Revises    int    // the version that is out and stays until this is sent; 0: none
	Action     string
	Plans      []ui.Option
	Customers  []ui.Option
	Said       offerSaid
}

// offerSaid is what a draft says. Where it cannot be said yet, Wrong tells why.
type offerSaid struct {
	Sentence string
	Terms    offerTerms
	Capacity capacityView
	Wrong    string
}

// mostChoices is how many plans and customers a form offers, the newest.
const mostChoices = 100

func (v quoteEditPage) own() bool { return v.Get("own") == "true" }

func (p *Pages) newQuote(c echo.Context, who auth.Person, w workspace) error {
	q := c.QueryParams()
	f := form{Values: url.Values{"plan": {q.Get("plan")}, "customer": {q.Get("customer")}}}
	if customer, err := id.Customer.Parse(q.Get("customer")); err == nil {
		if x, err := p.tenants.Customer(c.Request().Context(), who.Tenant, customer); err == nil {
			f.Set("to.company", x.Name)
			f.Set("to.email", x.Email)
		}
	}
	return p.showQuoteEdit(c, who, quoteEditPage{workspace: w, form: f, Action: "/quotes"}, http.StatusOK)
}

// editQuote is the form of a quote's draft, or of its next version.
func (p *Pages) editQuote(c echo.Context, who auth.Person, w workspace) error {
	v, err := p.quoteEditor(c, who, w)
	if err != nil {
		return err
	}
	q, err := p.latestQuote(c, who)
	if err != nil {
		return err
	}
	v.form = form{Values: url.Values{}}
	v.putQuote(q, w)
	return p.showQuoteEdit(c, who, v, http.StatusOK)
}

func (p *Pages) latestQuote(c echo.Context, who auth.Person) (quotes.Quote, error) {
	quote, err := param(c, id.Quote, "quote")
	if err != nil {
		return quotes.Quote{}, err
	}
	return p.quotes.Latest(c.Request().Context(), who.Tenant, quote)
}

// quoteEditor is the page of a quote that there is, without its form.
func (p *Pages) quoteEditor(c echo.Context, who auth.Person, w workspace) (quoteEditPage, error) {
	v := quoteEditPage{workspace: w, ID: c.Param("id"), Action: "/quotes/" + c.Param("id")}
	quote, err := param(c, id.Quote, "quote")
	if err != nil {
		return v, err
	}
	q, err := p.quotes.Quote(c.Request().Context(), who.Tenant, quote, 0)
	if v.Number = q.Number; q.Status.Open() {
		v.Revises = q.Version.Number
	}
	return v, err
}

func (v *quoteEditPage) putQuote(q quotes.Quote, w workspace) {
	o := q.Wanted(w.Now)
	v.Set("based", q.Tag())
	v.Set("to.name", o.To.Name)
	v.Set("to.email", o.To.Email)
	v.Set("to.company", o.To.Company)
	v.Set("customer", id.Customer.Format(o.Customer))
	v.Set("plan", id.Plan.Format(o.Plan))
	v.Set("note", o.Note)
	if !o.ValidUntil.IsZero() {
		v.Set("valid_until", lastDay(o.ValidUntil, w))
	}
	for i, x := range o.Volumes {
		v.putVolume(i, x)
	}
	if q.Offer.OwnTerms {
		v.Set("own", "true")
		v.putVersion(q.Offer.Terms)
	}
}

// lastDay is the last day on which something is valid that ends at an instant.
func lastDay(end time.Time, w workspace) string {
	return end.Add(-time.Microsecond).In(w.Now.Location()).Format(time.DateOnly)
}

func (p *Pages) showQuoteEdit(c echo.Context, who auth.Person, v quoteEditPage, status int) error {
	ctx := c.Request().Context()
	if err := p.quoteChoices(ctx, who, &v); err != nil {
		return err
	}
	if v.Get("valid_until") == "" && v.ID == "" && !v.Has("valid_until") {
		v.Set("valid_until", v.Now.AddDate(0, 0, 14).Format(time.DateOnly))
	}
	v.Said = p.sayOffer(c, who, v)
	return show(c, status, quoteEditView(v))
}

func (p *Pages) quoteChoices(ctx context.Context, who auth.Person, v *quoteEditPage) error {
	plans, err := p.billing.Plans(ctx, who.Tenant, uuid.Nil, mostChoices)
	if err != nil {
		return err
	}
	for _, x := range plans.Items {
		if x.Version.Status == billing.Published {
			v.Plans = append(v.Plans, ui.Option{Value: id.Plan.Format(x.ID), Label: x.Name + ": " + sentence(x.Version.Limits)})
		}
	}
	if plan, err := id.Plan.Parse(v.Get("plan")); err == nil && !listed(v.Plans, v.Get("plan")) {
		if x, err := p.billing.Plan(ctx, who.Tenant, plan); err == nil {
			v.Plans = append(v.Plans, ui.Option{Value: v.Get("plan"), Label: x.Name + ", as this quote has it"})
		}
	}
	v.Plans = ui.Choose(v.Get("plan"), v.Plans...)
	customers, err := p.tenants.Customers(ctx, who.Tenant, uuid.Nil, mostChoices)
	if err != nil {
		return err
	}
	v.Customers = []ui.Option{{Label: "A new customer, made by accepting"}}
	for _, x := range customers.Items {
		v.Customers = append(v.Customers, ui.Option{Value: id.Customer.Format(x.ID), Label: x.Name})
	}
	if customer, err := id.Customer.Parse(v.Get("customer")); err == nil && !listed(v.Customers, v.Get("customer")) {
		if x, err := p.tenants.Customer(ctx, who.Tenant, customer); err == nil {
			v.Customers = append(v.Customers, ui.Option{Value: v.Get("customer"), Label: x.Name})
		}
	}
	v.Customers = ui.Choose(v.Get("customer"), v.Customers...)
	return nil
}

// listed tells whether a value is among the options: what was chosen before may
// be older than the newest that are listed.
func listed(list []ui.Option, value string) bool {
	return slices.ContainsFunc(list, func(o ui.Option) bool { return o.Value == value })
}

// wantedOf reads what the form says, and which rows its parts came from.
func (v *quoteEditPage) wantedOf() (w quotes.Wanted, limitRows, priceRows, volumeRows []int) {
	w.To = quotes.Recipient{Name: strings.TrimSpace(v.Get("to.name")), Email: strings.TrimSpace(v.Get("to.email")), Company: strings.TrimSpace(v.Get("to.company"))}
	w.Plan, _ = id.Plan.Parse(v.Get("plan"))
	w.Customer, _ = id.Customer.Parse(v.Get("customer"))
	w.Note = strings.ReplaceAll(strings.TrimSpace(v.Get("note")), "\r\n", "\n")
	if day := strings.TrimSpace(v.Get("valid_until")); day != "" {
		last, err := time.ParseInLocation(time.DateOnly, day, v.Now.Location())
		if err != nil {
			v.wrong("valid_until", "This is not a day such as 2026-12-31.")
		}
		w.ValidUntil = limits.DayEnd(last.Add(12*time.Hour), v.Now.Location())
	}
	w.Volumes, volumeRows = v.volumes()
	if v.own() {
		n, l, pr := v.version(v.Tenant.Currency)
		w.Own = &quotes.Own{Limits: &n.Limits, Prices: &n.Prices, BaseFee: n.BaseFee}
		limitRows, priceRows = l, pr
	}
	return w, limitRows, priceRows, volumeRows
}

// sayOffer is what the form offers now. What is not right yet is left to its
// field.
func (p *Pages) sayOffer(c echo.Context, who auth.Person, v quoteEditPage) offerSaid {
	ctx := c.Request().Context()
	plan, err := id.Plan.Parse(v.Get("plan"))
	if err != nil {
		return offerSaid{Wrong: "Choose a plan first."}
	}
	x, err := p.billing.Plan(ctx, who.Tenant, plan)
	if err != nil {
		return offerSaid{Wrong: "There is no such plan."}
	}
	o := quotes.Offer{Plan: x.Name, Terms: x.Version}
	quiet := v
	quiet.Wrong = nil
	o.Volumes, _ = quiet.volumes()
	if v.own() {
		n, _, _ := quiet.version(v.Tenant.Currency)
		if len(quiet.Wrong) > 0 {
			return offerSaid{Wrong: quiet.Wrong[0].Message}
		}
		if o.Terms, err = p.billing.Supposed(ctx, who.Tenant, n); err != nil {
			return offerSaid{Wrong: firstOf(err)}
		}
	}
	terms, err := termsOf(o, v.Tenant.Zone)
	if err != nil {
		return offerSaid{Wrong: "The volumes are too large to add up."}
	}
	customer, _ := id.Customer.Parse(v.Get("customer"))
	check := p.capacityOf(c, func() (capacity.Report, error) {
		return p.capacity.Check(ctx, who.Tenant, capacity.Change{Limits: o.Terms.Limits, Customer: customer, New: customer == uuid.Nil})
	})
	return offerSaid{Sentence: sentence(o.Terms.Limits), Terms: terms, Capacity: check}
}

// previewQuote says what the form says, while one types.
func (p *Pages) previewQuote(c echo.Context, who auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	return show(c, http.StatusOK, offerSaidPart(p.sayOffer(c, who, quoteEditPage{workspace: w, form: f})))
}

// addQuote makes a quote, a draft.
func (p *Pages) addQuote(c echo.Context, who auth.Person, w workspace) error {
	return p.keepQuote(c, who, quoteEditPage{workspace: w, Action: "/quotes"}, func(_ form, want quotes.Wanted) (quotes.Quote, error) {
		return p.quotes.Add(asPerson(c, who), who.Tenant, want)
	})
}

// saveQuote keeps the draft of a quote.
func (p *Pages) saveQuote(c echo.Context, who auth.Person, w workspace) error {
	v, err := p.quoteEditor(c, who, w)
	if err != nil {
		return err
	}
	return p.keepQuote(c, who, v, func(f form, want quotes.Wanted) (quotes.Quote, error) {
		quote, err := param(c, id.Quote, "quote")
		if err != nil {
			return quotes.Quote{}, err
		}
		q, err := p.quotes.Revise(asPerson(c, who), who.Tenant, quote, f.Get("based"), want)
		if err != nil && fault.Of(err).Code == "quote_changed" {
			if latest, again := p.latestQuote(c, who); again == nil {
				f.Set("based", latest.Tag()) // sent once more, it takes that one's place
			}
		}
		return q, err
	})
}

func (p *Pages) keepQuote(c echo.Context, who auth.Person, v quoteEditPage, keep func(form, quotes.Wanted) (quotes.Quote, error)) error {
	var err error
	if v.form, err = typed(c); err != nil {
		return err
	}
	if again, err := p.anotherRow(c.Request().Context(), who, &v); again || err != nil {
		if err != nil {
			return err
		}
		return p.showQuoteEdit(c, who, v, http.StatusOK)
	}
	want, limitRows, priceRows, volumeRows := v.wantedOf()
	if len(v.Wrong) > 0 {
		return p.showQuoteEdit(c, who, v, http.StatusBadRequest)
	}
	q, err := keep(v.form, want)
	if err != nil {
		status, err := v.refuse(rowed(rowed(rowed(err, "limits", limitRows), "prices", priceRows), "volumes", volumeRows))
		if err != nil {
			return err
		}
		return p.showQuoteEdit(c, who, v, status)
	}
	return done(c, "/quotes/"+id.Quote.Format(q.ID), "quote-saved")
}

// anotherRow answers the buttons of the form that keep nothing.
func (p *Pages) anotherRow(ctx context.Context, who auth.Person, v *quoteEditPage) (bool, error) {
	switch v.Get("do") {
	case "row":
		v.form = v.another()
	case "price":
		v.Set(row("prices", v.rows("prices", "price"), "price"), "")
	case "volume":
		v.putVolume(v.rows("volumes", "model"), quotes.Volume{})
	case "preview":
	case "plan":
		v.Del("own")
	case "own":
		plan, _ := id.Plan.Parse(v.Get("plan"))
		if plan == uuid.Nil {
			v.wrong("plan", "Choose the plan first that the terms begin as.")
			return true, nil
		}
		x, err := p.billing.Plan(ctx, who.Tenant, plan)
		if err != nil {
			return true, err
		}
		v.Set("own", "true")
		v.putVersion(x.Version)
	default:
		return false, nil
	}
	return true, nil
}

// back is where the form was come to from.
func (v quoteEditPage) back() string {
	if v.ID == "" {
		return "/quotes"
	}
	return "/quotes/" + v.ID
}

func (v quoteEditPage) title() string {
	if v.ID == "" {
		return "New quote"
	}
	return v.Number + ", draft"
}
