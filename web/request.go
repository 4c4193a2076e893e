package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
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

// step is one moment of a call.
type step struct {
	When  string
	Tone  ui.Tone
	Title string
	Text  string
}

// way is one thing that would have let a refused call pass.
type way struct{ What, Figure string }

// class is one class of tokens: what was reserved and what was used.
type class struct {
	Name             string
	Estimate, Actual int64
}

// touched is a limit that the call was decided by, or charged to.
type touched struct {
	Name, Of string
	Gauge    *ui.Gauge
	Used     int64 // before the call; -1: not kept
	Asked    int64
	Limit    int64 // -1: not kept
	Tone     ui.Tone
	Verdict  string
}

// fact is something to be copied.
type fact struct{ Name, Value, Href string }

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

func (r requestPage) lastError() string {
	if n := len(r.Call.Attempts); n > 0 {
		return attemptWords(r.Call.Attempts[n-1])
	}
	return "no answer is kept"
}

func attemptWords(a usage.Attempt) string {
	words := "no answer"
	if a.Status > 0 {
		words = "status " + ui.Count(int64(a.Status))
	}
	if a.Error != "" {
		words += ", " + strings.ReplaceAll(a.Error, "_", " ")
	}
	return words
}

// limitOwner is whose limit it is.
func (r requestPage) limitOwner(l limits.Limit) string {
	switch l.Scope.Kind {
	case limits.ScopeCustomer:
		return r.who()
	case limits.ScopeAPIKey:
		if r.Call.Key != "" {
			return "the key " + r.Call.Key
		}
		return "the key"
	case limits.ScopeTenant:
		return r.Tenant.Name
	case limits.ScopeProviderKey, limits.ScopePool:
		return "the provider key"
	case limits.ScopeClientToken, limits.ScopeEndUser:
	}
	return strings.ReplaceAll(string(l.Scope.Kind), "_", " ")
}

func dimensionWords(d limits.Dimension) string {
	if d == limits.DimensionConcurrency {
		return "calls at once"
	}
	return strings.ReplaceAll(string(d), "_", " ")
}

func windowNow(w limits.Window) string {
	return map[limits.Window]string{
		limits.WindowMinute: "this minute", limits.WindowDay: "today", limits.WindowMonth: "this month", limits.WindowRollingDay: "in these 24 hours", limits.WindowNone: "now",
	}[w]
}

// steps are the call's story: reserved, tried, settled.
func (r requestPage) steps() []step {
	e := r.Call.Event
	after := func(t time.Time) string {
		if !t.After(e.StartedAt) {
			return "at once"
		}
		return "+" + ui.Wait(t.Sub(e.StartedAt).Round(10*time.Microsecond))
	}
	out := []step{{When: r.Call.At.Format("15:04:05.000"), Title: "Arrived", Text: r.arrived()}}
	if e.Outcome.Refused() {
		text := "Nothing was charged on any limit. No provider was asked."
		if e.Refusal == nil {
			return append(out, step{When: "at once", Tone: ui.Bad, Title: "Refused by " + limitWords(e.Outcome), Text: text})
		}
		out = append(out, step{When: "at once", Tone: ui.Bad, Title: "Refused by " + ui.Of(int64(len(e.Refusal.Limits)), "limit", "limits"), Text: text})
		status := "429"
		if e.Refusal.Code == "request_too_large" {
			status = "413"
		}
		if e.Refusal.Code == "provider_capacity" {
			status = "503"
		}
		answered := step{When: after(e.EndedAt), Title: "Answered " + status, Text: e.Refusal.Code}
		if e.Refusal.RetryAfter > 0 {
			answered.Text += ", retry after " + ui.Wait(e.Refusal.RetryAfter)
		}
		return append(out, answered)
	}
	est := e.Estimate.Tokens
	out = append(out, step{
		When: "at once", Title: "Reserved " + ui.Of(est.Total(), "token", "tokens"),
		Text: ui.Count(est.Input+est.CachedInput+est.CacheWrite) + " input, " + ui.Count(est.Output+est.Reasoning) + " output at most, on every limit in one step",
	})
	for i, a := range e.Attempts {
		out = append(out, r.attempt(i, a, after))
	}
	return append(out, r.ends(after)...)
}

func (r requestPage) arrived() string {
	e := r.Call.Event
	words := []string{e.Kind + " for " + e.ModelAsked}
	if e.Stream {
		words = append(words, "streamed")
	}
	if r.Call.Customer != "" {
		words = append(words, r.Call.Customer)
	}
	if r.Call.Key != "" {
		words = append(words, "key "+r.Call.Key)
	}
	if e.EndUser != "" {
		words = append(words, "end user "+e.EndUser)
	}
	return strings.Join(words, ", ")
}

func (r requestPage) attempt(i int, a usage.Attempt, after func(time.Time) string) step {
	s := step{When: after(a.StartedAt), Tone: ui.OK, Title: ordinal(i+1) + " attempt: " + attemptWords(a)}
	if len(r.Call.Attempts) == 1 {
		s.Title = "Attempt: " + attemptWords(a)
	}
	if a.Status < 200 || a.Status > 299 {
		s.Tone = ui.Bad
	}
	by := a.Provider
	if r.May(seeProviderKeys) && a.ProviderKey != uuid.Nil {
		by += " with " + r.Names.name(id.ProviderKey, a.ProviderKey)
	}
	s.Text = a.Model + " at " + by + ", " + ui.Wait(max(0, a.EndedAt.Sub(a.StartedAt)).Round(time.Millisecond))
	return s
}

// ends are how the call was closed in the books.
func (r requestPage) ends(after func(time.Time) string) []step {
	e := r.Call.Event
	last := step{When: after(e.EndedAt), Tone: ui.OK, Title: "Settled at " + ui.Of(e.Tokens.Total(), "token", "tokens")}
	switch {
	case e.Outcome == usage.Expired:
		last.Tone, last.Title, last.Text = ui.Warn, "Ran out", "Nobody said how it ended, so what was reserved stays charged."
	case e.Outcome != usage.OK:
		last.Tone = r.Call.Tone
		last.Text = outcomeWords(e.Outcome)
	}
	if given := e.Estimate.Tokens.Total() - e.Tokens.Total(); given > 0 && e.Outcome != usage.Expired {
		last.Text = strings.TrimPrefix(last.Text+", ", ", ") + ui.Of(given, "token", "tokens") + " given back"
	} else if given < 0 {
		last.Text = strings.TrimPrefix(last.Text+", ", ", ") + ui.Of(-given, "token", "tokens") + " above the estimate, carried as debt"
	}
	if e.Estimated != "" && e.Outcome != usage.Expired {
		last.Text = strings.TrimPrefix(last.Text+"; ", "; ") + "the tokens are estimated: " + strings.ReplaceAll(e.Estimated, "_", " ")
	}
	out := []step{last}
	for _, c := range r.Corrections {
		out = append(out, step{
			When: after(c.EndedAt), Tone: ui.Idle, Title: "Corrected by " + signed(c.Tokens.Total()) + " tokens",
			Text: "The outcome came after the reservation had run out. Sums are over both.",
		})
	}
	return out
}

func signed(n int64) string {
	if n > 0 {
		return "+" + ui.Count(n)
	}
	return ui.Count(n)
}

// ways are what would have let the call pass, as the refusal's figures say.
func (r requestPage) ways(f usage.Refusal) (out []way) {
	if f.RetryAfter > 0 {
		out = append(out, way{"Waiting", ui.Wait(f.RetryAfter)})
	} else {
		out = append(out, way{"Waiting", "does not help"})
	}
	for _, l := range f.Limits {
		if l.Limit.Dimension == limits.DimensionTokens || l.Limit.Dimension == limits.DimensionOutputTokens || l.Limit.Dimension == limits.DimensionInputTokens {
			if l.Remaining > 0 {
				out = append(out, way{"A smaller call, of at most", ui.Count(l.Remaining) + " " + dimensionWords(l.Limit.Dimension)})
			}
		}
		out = append(out, way{"A higher limit, " + strings.ToLower(limitName(l.Limit)) + ", of at least", ui.Count(l.Used + l.Requested)})
	}
	return out
}

func (r requestPage) classes() (out []class) {
	e := r.Call.Event
	est, act := e.Estimate.Tokens, e.Tokens
	for _, c := range r.Corrections {
		act.Input, act.CachedInput, act.CacheWrite = act.Input+c.Tokens.Input, act.CachedInput+c.Tokens.CachedInput, act.CacheWrite+c.Tokens.CacheWrite
		act.Output, act.Reasoning = act.Output+c.Tokens.Output, act.Reasoning+c.Tokens.Reasoning
	}
	for _, c := range []class{
		{"Input", est.Input, act.Input},
		{"Cached input", est.CachedInput, act.CachedInput},
		{"Cache write", est.CacheWrite, act.CacheWrite},
		{"Output", est.Output, act.Output},
		{"Reasoning", est.Reasoning, act.Reasoning},
		{"Units", e.Estimate.Units, e.Units},
	} {
		if c.Estimate != 0 || c.Actual != 0 {
			out = append(out, c)
		}
	}
	return out
}

// touched are the limits that refused, with their figures then; of a call that
// passed, the calendar limits that it is charged to.
func (r requestPage) touched() (out []touched) {
	e := r.Call.Event
	if e.Refusal != nil {
		for _, l := range e.Refusal.Limits {
			ceiling := max(l.Used+l.Remaining, l.Limit.Amount)
			t := touched{
				Name: limitName(l.Limit), Of: r.limitOf(l.Limit), Used: l.Used, Asked: l.Requested, Limit: ceiling,
				Tone: ui.Bad, Verdict: "refused, over by " + ui.Count(max(1, l.Requested-l.Remaining)),
			}
			t.Gauge = &ui.Gauge{Limit: ceiling, Used: l.Used, Debt: max(0, l.Requested-l.Remaining), Shadow: l.Limit.Mode == limits.ModeShadow}
			t.Gauge.Label = ui.Count(l.Used) + " used and held of " + ui.Count(ceiling) + ", the call asked for " + ui.Count(l.Requested)
			out = append(out, t)
		}
		return out
	}
	for _, c := range e.Charges {
		name, of := r.ledgerWords(c.Ledger)
		out = append(out, touched{Name: name, Of: of, Used: -1, Asked: c.Amount, Limit: -1, Tone: ui.OK, Verdict: "charged to the day that began " + c.WindowStart.In(r.Now.Location()).Format("2 Jan, 15:04 MST")})
	}
	return out
}

func (r requestPage) limitOf(l limits.Limit) string {
	of := r.limitOwner(l)
	if l.Scope.Kind == limits.ScopeCustomer && l.Scope.Name != "" {
		of += ", plan " + l.Scope.Name
	}
	if l.Mode == limits.ModeShadow {
		of += ", shadow"
	}
	return of
}

// ledgerWords read the name of a ledger, "customer:<uuid>/tokens/day".
func (r requestPage) ledgerWords(ledger string) (name, of string) {
	parts := strings.Split(ledger, "/")
	if len(parts) < 3 {
		return ledger, ""
	}
	kind, ref, _ := strings.Cut(parts[0], ":")
	l := limits.Limit{Scope: limits.Scope{Kind: limits.ScopeKind(kind)}, Dimension: limits.Dimension(parts[1]), Window: limits.Window(parts[2])}
	of = r.limitOwner(l)
	if u, err := uuid.Parse(ref); err == nil && r.May(seeProviderKeys) && l.Scope.Kind == limits.ScopeProviderKey {
		of = r.Names.name(id.ProviderKey, u)
	}
	if len(parts) > 3 {
		of += ", models " + strings.Join(parts[3:], "/")
	}
	return limitName(l), of
}

// facts are what one may need elsewhere.
func (r requestPage) facts() []fact {
	e := r.Call.Event
	out := []fact{{"Request", r.Call.Request, ""}, {"Event", id.Event.Format(e.ID), ""}}
	if !e.Outcome.Refused() {
		out = append(out, fact{"Reservation", id.Reservation.Format(e.ID), ""})
	}
	if r.May(seeCustomers) && e.Customer != uuid.Nil {
		out = append(out, fact{"Customer", id.Customer.Format(e.Customer), "/customers/" + id.Customer.Format(e.Customer)})
	}
	if r.May(seeCustomerKeys) && e.Key != uuid.Nil {
		out = append(out, fact{"API key", id.APIKey.Format(e.Key), ""})
	}
	if r.May(seeProviderKeys) && e.ProviderKey != uuid.Nil {
		out = append(out, fact{"Provider key", id.ProviderKey.Format(e.ProviderKey), "/providers/" + id.ProviderKey.Format(e.ProviderKey)})
	}
	for _, c := range r.Corrections {
		out = append(out, fact{"Correction", id.Event.Format(c.ID), ""})
	}
	return out
}

// allClasses adds up the tokens; units are of another kind.
func (r requestPage) allClasses() (sum class) {
	for _, c := range r.Classes {
		if c.Name != "Units" {
			sum.Estimate += c.Estimate
			sum.Actual += c.Actual
		}
	}
	return sum
}
