package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/usage"
	"weir/web/ui"
)

// portalRequestsPage is a customer's own calls, the newest first.
type portalRequestsPage struct {
	visit
	Rows  []portalCall
	Older string
	First bool
	Only  string // "refused": only those
}

// portalCall is a call as its customer sees it: nothing of who served it, of its
// tries, or of what it cost the tenant.
type portalCall struct {
	ID, Href, Model, Key string
	At                   time.Time
	Tone                 ui.Tone
	State                string
	Test                 bool
	Refused              int64 // of a row that counts many
	usage.Event
}

func (p *Pages) portalRequests(c echo.Context, v visit) error {
	ctx, q := c.Request().Context(), c.QueryParams()
	r := portalRequestsPage{visit: v, First: q.Get("after") == ""}
	f := usage.RequestFilter{Filter: usage.Filter{Customer: v.Customer, Tests: usage.WithTests}, After: cursorOf(q.Get("after")), Limit: logRows + 1}
	if q.Get("only") == "refused" {
		r.Only, f.Filter.Outcome = "refused", "refused"
	}
	events, err := p.reports.Requests(ctx, v.Visitor.Tenant, f)
	if err != nil {
		return err
	}
	if len(events) > logRows {
		events = events[:logRows]
		r.Older = link("/portal/requests", q, "after", cursorText(usage.CursorOf(events[logRows-1])))
	}
	var counters []uuid.UUID
	for _, e := range events {
		counters = append(counters, e.Counter)
	}
	names, err := p.labels(ctx, v.Visitor.Tenant, counters)
	if err != nil {
		return err
	}
	for _, e := range events {
		r.Rows = append(r.Rows, v.callOf(e, names))
	}
	return show(c, http.StatusOK, portalRequestsView(r))
}

func (v visit) callOf(e usage.Event, names labels) portalCall {
	x := portalCall{Event: e, ID: id.Request.Format(e.RequestID), Model: e.ModelAsked, Key: names.name(id.APIKey, e.Counter), At: e.StartedAt.In(v.Now.Location()), Test: e.Test, Refused: e.Refused}
	x.Href = "/portal/requests/" + x.ID
	x.Tone, x.State = ui.Idle, outcomeWords(e.Outcome)
	switch {
	case e.Outcome == usage.OK:
		x.Tone, x.State = ui.OK, "passed"
	case e.Outcome.Refused():
		x.Tone, x.State = ui.Bad, "refused"
	case e.Outcome == usage.ProviderError || e.Outcome == usage.ProviderLimited:
		x.Tone, x.State = ui.Bad, "failed on our side"
	case e.Outcome == usage.ClientError || e.Outcome == usage.Expired:
		x.Tone = ui.Warn
	}
	return x
}

// portalRequestPage is one call.
type portalRequestPage struct {
	visit
	Call    portalCall
	Title   string
	Helps   string
	Classes []class
	Limits  []touched
}

// portalRequest answers GET /portal/requests/:id. Another customer's call is
// answered as one that does not exist.
func (p *Pages) portalRequest(c echo.Context, v visit) error {
	ctx := c.Request().Context()
	missing := fault.New(fault.NotFound, "request_not_found", "There is no such request.")
	request, err := id.Request.Parse(c.Param("id"))
	if err != nil {
		return missing.Because(err)
	}
	e, corrections, err := p.reports.RequestByID(ctx, v.Visitor.Tenant, request)
	if fault.Is(err, fault.NotFound) || err == nil && e.Customer != v.Customer {
		return missing
	}
	if err != nil {
		return err
	}
	names, err := p.labels(ctx, v.Visitor.Tenant, []uuid.UUID{e.Counter})
	if err != nil {
		return err
	}
	r := portalRequestPage{visit: v, Call: v.callOf(e, names)}
	r.Classes = requestPage{Call: callRow{Event: e}, Corrections: corrections}.classes()
	r.explain()
	return show(c, http.StatusOK, portalRequestView(r))
}

// ours tells whether a limit is the customer's to know of: not the tenant's own,
// nor those of provider keys.
func ours(l limits.Limit) bool {
	switch l.Scope.Kind {
	case limits.ScopeCustomer, limits.ScopeAPIKey, limits.ScopeEndUser, limits.ScopeClientToken:
		return l.Mode != limits.ModeShadow
	}
	return false
}

// explain says what became of the call, and of a refusal by which of the
// customer's limits, and whether waiting helps.
func (r *portalRequestPage) explain() {
	e := r.Call.Event
	switch {
	case e.Outcome == usage.OK:
		r.Title = "Passed: " + ui.Of(e.Tokens.Total(), "token", "tokens") + " of " + e.ModelAsked + "."
	case e.Outcome == usage.ProviderError || e.Outcome == usage.ProviderLimited:
		r.Title = "It failed on our side; no limit of yours refused it."
	case e.Outcome == usage.ClientError:
		r.Title = "The request was found wrong; it used nothing."
	case e.Outcome == usage.Aborted:
		r.Title = "Your program left before the end; " + ui.Of(e.Tokens.Total(), "token was", "tokens were") + " used by then."
	case e.Outcome.Refused():
		r.refused()
	default:
		r.Title = strings.ToUpper(r.Call.State[:1]) + r.Call.State[1:] + "."
	}
}

func (r *portalRequestPage) refused() {
	r.Title = "Refused: " + r.Brand.Name() + " could take no more at that moment. None of your limits was reached."
	if r.Call.Event.Refusal == nil {
		r.Title = "Refused by the limit of " + limitWords(r.Call.Outcome) + "."
		return
	}
	for _, l := range r.Call.Event.Refusal.Limits {
		if !ours(l.Limit) {
			continue
		}
		whose := "your limit"
		if l.Limit.Scope.Kind == limits.ScopeAPIKey {
			whose = "the limit of this key"
		}
		if len(r.Limits) == 0 {
			r.Title = "Refused: " + whose + " had " + ui.Count(l.Remaining) + " " + dimensionWords(l.Limit.Dimension) + " left " + windowNow(l.Limit.Window) + ", and the call asked for " + ui.Count(l.Requested) + "."
		}
		r.Limits = append(r.Limits, touched{
			Name: limitName(l.Limit), Of: whose, Used: l.Used, Asked: l.Requested, Limit: max(l.Used+l.Remaining, l.Limit.Amount), Tone: ui.Bad,
			Verdict: "refused, over by " + ui.Count(max(1, l.Requested-l.Remaining)),
		})
	}
	if r.Helps = "Waiting does not help: the call is too large for the limit."; r.Call.Event.Refusal.RetryAfter > 0 {
		r.Helps = "Waiting helped after " + ui.Wait(r.Call.Event.Refusal.RetryAfter) + "."
	}
}
