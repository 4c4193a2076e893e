package web

import (
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/usage"
	"weir/web/ui"
)

// requestPage is one call: its story, what it used, the limits it touched.
type requestPage struct {
	workspace
	Call        callRow
	Corrections []usage.Event
	Names       labels
	Steps       []step
	Ways        []way   // what would have let a refused call pass
	Classes     []class // estimate against actual
	Touched     []touched
	Facts       []fact
}

// requestPage answers GET /requests/{id}. An id that is another tenant's is
// answered as one that does not exist.
func (p *Pages) requestPage(c echo.Context, _ auth.Person, w workspace) error {
	ctx := c.Request().Context()
	request, err := id.Request.Parse(c.Param("id"))
	if err != nil {
		return fault.New(fault.NotFound, "request_not_found", "There is no such request.").Because(err)
	}
	e, corrections, err := p.reports.RequestByID(ctx, w.Tenant.ID, request)
	if err != nil {
		return err
	}
	ids := []uuid.UUID{e.Customer, e.Counter, e.ProviderKey}
	for _, a := range e.Attempts {
		ids = append(ids, a.ProviderKey)
	}
	names, err := p.labels(ctx, w.Tenant.ID, ids)
	if err != nil {
		return err
	}
	r := requestPage{workspace: w, Call: rowOf(e, names, w), Corrections: corrections, Names: names}
	r.Steps, r.Classes, r.Touched, r.Facts = r.steps(), r.classes(), r.touched(), r.facts()
	if e.Refusal != nil {
		r.Ways = r.ways(*e.Refusal)
	}
	return show(c, http.StatusOK, requestView(r))
}

// who is the caller in words.
func (r requestPage) who() string {
	if r.Call.Customer == "" {
		return "The caller"
	}
	return r.Call.Customer
}

// title says what became of the call, so that one may stop reading there.
func (r requestPage) title() string {
	e := r.Call.Event
	switch {
	case e.Refusal != nil && len(e.Refusal.Limits) > 0:
		l := e.Refusal.Limits[0]
		return "Refused: " + r.limitOwner(l.Limit) + " had " + ui.Count(l.Remaining) + " " + dimensionWords(l.Limit.Dimension) + " left " + windowNow(l.Limit.Window) + ", and the call asked for " + ui.Count(l.Requested) + "."
	case e.Outcome.Refused():
		return "Refused by the limit of " + limitWords(e.Outcome) + "."
	case e.Outcome == usage.OK:
		return "Passed: " + ui.Of(e.Tokens.Total(), "token", "tokens") + " from " + e.ModelServed + " in " + r.Call.took() + "."
	case e.Outcome == usage.ProviderError:
		return "The provider failed: " + r.lastError() + "."
	case e.Outcome == usage.ProviderLimited:
		return "The provider’s own limit refused it. No limit of the plan did."
	case e.Outcome == usage.ClientError:
		return "The provider found the request wrong: " + r.lastError() + "."
	case e.Outcome == usage.Aborted:
		return "The client left after " + r.Call.took() + "; " + ui.Of(e.Tokens.Total(), "token was", "tokens were") + " used by then."
	case e.Outcome == usage.Expired && len(r.Corrections) > 0:
		return "It was settled after its reservation had run out, and corrected."
	case e.Outcome == usage.Expired:
		return "Nobody settled it in time: the estimate of " + ui.Of(e.Tokens.Total(), "token", "tokens") + " stays charged."
	}
	return strings.ToUpper(outcomeWords(e.Outcome)[:1]) + outcomeWords(e.Outcome)[1:] + "."
}
