package web

import (
	"encoding/json"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/branding"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/jsonbody"
	"weir/internal/limits"
	sums "weir/internal/money"
	"weir/internal/quotes"
	"weir/internal/tenants"
	"weir/web/ui"
)

// offerSheet is a quote as whoever has its link sees it.
type offerSheet struct {
	form
	Token, Path string
	Quote       quotes.Quote
	Tenant      tenants.Tenant
	Brand       branding.Brand
	Until       string    // when it ends, in words
	Now         time.Time // in the tenant's zone
	Says        string
	Terms       offerTerms
	Busy        *busyHalfHour
	Accept      string // the button's words
}

// busyHalfHour is an example of traffic that meets the limit of a minute.
type busyHalfHour struct {
	Band  ui.Band
	Words string // of the limit
}

// offer answers GET /q/:token. That somebody looked is noted, unless it is
// somebody who is signed in here, or a browser that looks ahead.
func (p *Pages) offerPage(c echo.Context) error {
	r := c.Request()
	seen := r.Method == http.MethodGet && p.cookie.token(r) == "" && r.Header.Get("Sec-Purpose") == "" && r.Header.Get("Purpose") == ""
	return p.showOffer(c, seen, form{}, http.StatusOK)
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
	v := offerSheet{Token: token, Path: "/q/" + token, Quote: x.Quote, Tenant: x.Tenant, Now: p.now().In(zone), Says: sentence(x.Offer.Terms.Limits), Accept: "Accept"}
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
func busy(list []limits.Limit) *busyHalfHour {
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
	b := ui.Band{Label: "An example: three busy minutes reach the limit, and what is above it is refused", Crest: float64(of.Amount), CrestWords: words, CrestShort: ui.Short(of.Amount), Height: 180, CrestAt: 0.45}
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
		b.Marks = append(b.Marks, ui.Tick{At: float64(m) / 30, Word: "09:" + twoDigits(m)})
	}
	return &busyHalfHour{b, words}
}

func twoDigits(n int) string {
	if n < 10 {
		return "0" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

// takenJSON is the answer to a program that accepts.
type takenJSON struct {
	Customer     string     `json:"customer"`
	Subscription string     `json:"subscription"`
	APIKey       *takenKey  `json:"api_key"`
	AcceptedAt   *time.Time `json:"accepted_at"`
}

type takenKey struct {
	ID     string  `json:"id"`
	Secret *string `json:"secret"` // null: it was shown, once
}

type declinedJSON struct {
	Status string `json:"status"`
}

// offerPost is what the forms of an offer send, or a program as JSON.
type offerPost struct {
	Version int    `json:"version,omitempty"`
	Name    string `json:"name,omitempty"`
	Email   string `json:"email,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func inJSON(c echo.Context) bool {
	t, _, _ := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType))
	return t == echo.MIMEApplicationJSON
}

// offered reads an answer to an offer, from a form or as JSON.
func offeredAnswer(c echo.Context) (offerPost, form, error) {
	if !inJSON(c) {
		f, err := typed(c)
		version, _ := strconv.Atoi(f.Get("version"))
		return offerPost{version, f.Get("name"), f.Get("email"), f.Get("reason")}, f, err
	}
	var b offerPost
	body, err := jsonbody.Read(c.Request().Body, maxAnswer)
	if err == nil {
		err = jsonbody.Decode(body, &b)
	}
	return b, form{}, err
}

// maxAnswer is the largest answer of a program.
const maxAnswer = 16 << 10

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

func (p *Pages) acceptedJSON(c echo.Context, x quotes.Taken, err error) error {
	if err != nil {
		return p.offerProblem(c, err)
	}
	out := takenJSON{Customer: id.Customer.Format(x.Result.Customer), Subscription: id.Subscription.Format(x.Result.Subscription), AcceptedAt: x.DecidedAt}
	if key := id.APIKey.Format(x.Result.APIKey); key != "" {
		out.APIKey = &takenKey{ID: key}
		if x.Secret != "" {
			out.APIKey.Secret = &x.Secret
		}
	}
	return c.JSON(http.StatusOK, out)
}

// problem is an error as programs read it (RFC 9457), in the form of the REST API.
type problem struct {
	Type      string        `json:"type"`
	Title     string        `json:"title"`
	Status    int           `json:"status"`
	Detail    string        `json:"detail"`
	Code      string        `json:"code"`
	RequestID string        `json:"request_id"`
	Errors    []fault.Field `json:"errors,omitempty"`
}

// offerProblem answers a program. What is nobody's fault here is left to the
// failure page's handler, which logs it.
func (p *Pages) offerProblem(c echo.Context, err error) error {
	e := fault.Of(err)
	status := statuses[e.Kind]
	if status == 0 || status >= http.StatusInternalServerError {
		return err
	}
	b, err := json.Marshal(problem{p.publicURL + "/docs/errors#" + e.Code, http.StatusText(status), status, e.Message, e.Code, requestID(c), e.Fields})
	if err != nil {
		return err
	}
	return c.Blob(status, "application/problem+json", b)
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
