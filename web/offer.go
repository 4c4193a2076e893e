package web

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/branding"
	"weir/internal/id"
	"weir/internal/limits"
	sums "weir/internal/money"
	"weir/internal/quotes"
	"weir/internal/tenants"
	"weir/web/ui"
)

// offerSheet is a quote as whoever has its link sees it.
type offerSheet struct {
	form
	Path   string
	Quote  quotes.Quote
	Brand  branding.Brand
	Until  string    // when it ends, in words
	Now    time.Time // in the tenant's zone
	Says   string
	Terms  offerTerms
	Busy   *ui.Band // an example of traffic that meets the limit of a minute; nil: it has none
	Accept string   // the button's words
}

// offerPage answers GET /q/:token. That somebody looked is noted, unless it is
// somebody who is signed in here, or a browser that looks ahead.
func (p *Pages) offerPage(c echo.Context) error {
	r := c.Request()
	seen := r.Method == http.MethodGet && p.cookie.token(r) == "" && !looksAhead(r)
	return p.showOffer(c, seen, form{}, http.StatusOK)
}

// looksAhead tells whether a browser fetches what nobody has asked to see yet.
func looksAhead(r *http.Request) bool {
	return r.Header.Get("Sec-Purpose") != "" || r.Header.Get("Purpose") != "" || r.Header.Get("X-Moz") != "" // as browsers have called it, the newest first
}

func (p *Pages) showOffer(c echo.Context, seen bool, f form, status int) error {
	token := c.Param("token")
	x, err := p.quotes.Open(c.Request().Context(), token, seen)
	if err != nil {
		return err
	}
	v, err := p.offerOf(c, x, token)
	if err != nil {
		return err
	}
	if v.form = f; f.Values == nil {
		v.form = form{Values: map[string][]string{"name": {x.To.Name}, "email": {x.To.Email}}}
	}
	c.Response().Header().Set("X-Robots-Tag", "noindex, nofollow")
	return show(c, status, offerView(v))
}

func (p *Pages) offerOf(c echo.Context, x quotes.Public, token string) (offerSheet, error) {
	zone, err := time.LoadLocation(x.Tenant.Zone)
	if err != nil {
		return offerSheet{}, err
	}
	v := offerSheet{Path: "/q/" + token, Quote: x.Quote, Now: p.now().In(zone), Says: sentence(x.Offer.Terms.Limits), Accept: "Accept"}
	if fee := x.Offer.Terms.BaseFee; fee > 0 {
		v.Accept = "Accept for " + sums.FormatMinor(fee, x.Offer.Terms.Currency) + " " + x.Offer.Terms.Currency + " a month"
	}
	v.Busy, v.Until = busy(x.Offer.Terms.Limits), throughWords(x.Offer.ValidUntil, zone)
	if v.Brand, err = p.brands.Brand(c.Request().Context(), x.Tenant.ID); err != nil {
		return v, err
	}
	v.Terms, err = termsOf(x.Offer, x.Tenant.Zone)
	v.Terms.Lines = slices.DeleteFunc(v.Terms.Lines, func(l estimateRow) bool { return l.Unpriced })
	return v, err
}

// throughWords says until when something is valid: to the end of a day, where
// that is what it is.
func throughWords(end time.Time, zone *time.Location) string {
	if limits.DayStart(end, zone).Equal(end) {
		return end.Add(-time.Microsecond).In(zone).Format("Mon 2 January 2006") + ", to the end of the day"
	}
	return end.In(zone).Format("Mon 2 January 2006, 15:04 MST")
}

// busy draws half an hour that meets the plan's limit of a minute; nil where it
// has none for all models.
func busy(list []limits.Limit) *ui.Band {
	var of *limits.Limit
	for i, l := range list {
		general := l.Window == limits.WindowMinute && len(l.Models) == 0 && !l.EachModel && !l.EachEndUser() && l.Mode != limits.ModeShadow && l.Amount >= 10
		if general && (of == nil || l.Dimension == limits.DimensionTokens) && (l.Dimension == limits.DimensionTokens || l.Dimension == limits.DimensionRequests) {
			of = &list[i]
		}
	}
	if of == nil {
		return nil
	}
	words := ui.Count(of.Amount) + " " + string(of.Dimension) + " a minute"
	b := &ui.Band{Label: "An example: three busy minutes reach the limit, and what is above it is refused", Crest: float64(of.Amount), CrestWords: words, CrestShort: ui.Short(of.Amount), Height: 180, CrestAt: 0.45}
	for i := range 30 {
		x := float64(i)
		share := 0.55 + 0.13*math.Sin(x*0.9) + 0.1*math.Sin(x*2.3+1) + 0.6*math.Exp(-(x-10)*(x-10)/5)
		passed := min(share, 1)
		col := ui.BandColumn{Passed: int64(passed * float64(of.Amount)), Refused: int64((share - passed) * float64(of.Amount))}
		if i >= 28 {
			col.Held = of.Amount / 12
		}
		b.Columns = append(b.Columns, col)
	}
	for _, m := range []int{0, 10, 20} {
		b.Marks = append(b.Marks, ui.Tick{At: float64(m) / 30, Word: fmt.Sprintf("09:%02d", m)})
	}
	return b
}

// acceptOffer answers POST /q/:token/accept.
func (p *Pages) acceptOffer(c echo.Context) error {
	b, f, err := offeredAnswer(c)
	if err != nil {
		if inJSON(c) {
			return p.offerProblem(c, err)
		}
		return err
	}
	if !inJSON(c) && f.Get("agreed") != "true" {
		f.wrong("agreed", "Tick this to accept.")
		return p.showOffer(c, false, f, http.StatusBadRequest)
	}
	ctx := tenants.WithActor(c.Request().Context(), outsider(c))
	x, err := p.quotes.Accept(ctx, c.Param("token"), quotes.Acceptance{Version: b.Version, Name: b.Name, Email: b.Email})
	if inJSON(c) {
		return p.acceptedJSON(c, x, err)
	}
	if err != nil {
		status, err := f.refuse(err)
		if err != nil {
			return err
		}
		return p.showOffer(c, false, f, status)
	}
	v, err := p.offerOf(c, x.Public, c.Param("token"))
	if err != nil {
		return err
	}
	return show(c, http.StatusOK, takenView(takenPage{offerSheet: v, Secret: x.Secret, Calls: p.firstCalls(c, x)}))
}

// takenPage is what accepting gave.
type takenPage struct {
	offerSheet
	Secret string
	Calls  []ui.Tab
}

func (p *Pages) firstCalls(c echo.Context, x quotes.Taken) []ui.Tab {
	if x.Secret == "" {
		return nil
	}
	return callTabs(p.publicURL, x.Secret, p.modelFor(c.Request().Context(), x.Tenant.ID, tenants.APIKey{}))
}

// declineOffer answers POST /q/:token/decline.
func (p *Pages) declineOffer(c echo.Context) error {
	b, f, err := offeredAnswer(c)
	if err != nil {
		if inJSON(c) {
			return p.offerProblem(c, err)
		}
		return err
	}
	ctx := tenants.WithActor(c.Request().Context(), outsider(c))
	x, err := p.quotes.Decline(ctx, c.Param("token"), b.Version, b.Reason)
	if inJSON(c) {
		if err != nil {
			return p.offerProblem(c, err)
		}
		return c.JSON(http.StatusOK, declinedJSON{string(x.Status)})
	}
	if err != nil {
		status, err := f.refuse(err)
		if err != nil {
			return err
		}
		return p.showOffer(c, false, f, status)
	}
	return c.Redirect(http.StatusSeeOther, "/q/"+c.Param("token"))
}

// outsider is whoever answers an offer, for the audit.
func outsider(c echo.Context) tenants.Actor {
	request, _ := id.Request.Parse(requestID(c))
	return tenants.Actor{Kind: "customer", Credential: "quote link", IP: c.RealIP(), RequestID: request}
}

func customerRef(q quotes.Quote) string { return id.Customer.Format(q.Customer) }
