package web

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// playResult is what came of a call, explained.
type playResult struct {
	workspace
	played
	Model  string
	Test   bool
	Lines  []headerLine
	Href   string       // the call's page; "" it reached no book
	Event  *usage.Event // nil: not in the books yet
	Served string       // by what, in words
	Moved  []movedLimit
	Lost   bool // the levels could not be read
	Tabs   []ui.Tab
	Counts []playCount // of several calls at once
	Sent   int
}

// playCount is how many of several calls ended alike.
type playCount struct {
	Tone  ui.Tone
	Words string
	N     int64
}

// movedLimit is a limit as it stood before a call, while it ran, and after.
type movedLimit struct {
	ui.Level
	Says string
}

// eventWithin is how long a result waits for the books, which have a call a
// moment after it ended.
const eventWithin = 2 * time.Second

// playOne makes one call, and tells what it did.
func (p *Pages) playOne(c echo.Context, who auth.Person, w workspace, call playCall, body playBody, piece func(string)) (*playResult, error) {
	list, err := p.playLimits(c.Request().Context(), w, call.Key)
	if err != nil {
		return nil, err
	}
	levels := levelsOf{p, c, w, list, call.Model}
	before := levels.read()
	var during *[]limits.State
	out, err := p.playThrough(c, who, call, func() { during = levels.read() }, piece)
	if err != nil {
		return nil, err
	}
	r := &playResult{workspace: w, played: out, Model: call.Model, Test: call.Key.Test, Sent: 1, Tabs: sameCallTabs(p.publicURL, call, body)}
	r.Lines = headerLines(out.Header, out.Code)
	r.tellMoved(before, during, levels.read())
	return r, p.tellEvent(c.Request().Context(), who, r)
}

// playLimits are the limits of the caller's own that count its calls.
func (p *Pages) playLimits(ctx context.Context, w workspace, k tenants.APIKey) ([]limits.Limit, error) {
	contract, err := p.billing.ContractOf(ctx, w.Tenant.ID, k.Customer)
	if err != nil {
		return nil, err
	}
	list := slices.Concat(contract.Limits, k.Limits)
	if k.Test {
		list = limits.TestPlan(list)
	}
	return list, nil
}

// levelsOf reads how limits stand for a model.
type levelsOf struct {
	p     *Pages
	c     echo.Context
	w     workspace
	list  []limits.Limit
	model string
}

func (l levelsOf) read() *[]limits.State {
	return tile(l.p, l.c, "levels", func() ([]limits.State, error) {
		if len(l.list) == 0 {
			return nil, nil
		}
		return l.p.limits.Live(l.c.Request().Context(), l.w.Tenant.ID, l.list, l.model, "")
	})
}

// tellMoved says of each limit that counts the call how it stood.
func (r *playResult) tellMoved(before, during, after *[]limits.State) {
	if before == nil || after == nil {
		r.Lost = true
		return
	}
	taken := func(list *[]limits.State, ledger string) int64 {
		if list == nil {
			return -1
		}
		i := slices.IndexFunc(*list, func(s limits.State) bool { return s.Ledger == ledger })
		if i < 0 {
			return 0
		}
		return (*list)[i].Used + (*list)[i].Held
	}
	for _, s := range *after {
		count := func(n int64) string { return amountOf(s.Limit.Dimension, n) }
		m := movedLimit{Level: levelOf(s, r.Now), Says: count(taken(before, s.Ledger)) + " before"}
		if n := taken(during, s.Ledger); n >= 0 {
			m.Says += ", " + count(n) + " as it began"
		}
		m.Detail = m.Says + ", " + count(s.Used+s.Held) + " now, of " + count(max(s.Limit.Amount, s.Limit.Burst))
		r.Moved = append(r.Moved, m)
	}
}

// tellEvent waits a moment for what the books say of the call. A call that was
// turned away at the door is in no book.
func (p *Pages) tellEvent(ctx context.Context, who auth.Person, r *playResult) error {
	request, err := id.Request.Parse(r.Header.Get(echo.HeaderXRequestID))
	if err != nil || r.Status == http.StatusUnauthorized || r.Status == http.StatusNotFound || r.Status == http.StatusForbidden {
		return nil //nolint:nilerr // as said
	}
	r.Href = "/requests/" + id.Request.Format(request)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(p.playWait); ; {
		e, _, err := p.reports.RequestByID(ctx, who.Tenant, request)
		if err == nil {
			r.Event = &e
			return p.tellServed(ctx, r)
		}
		if !fault.Is(err, fault.NotFound) || !time.Now().Before(end) {
			return nil // the answer is there; the books tell later
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// tellServed says by which model and key the call was served.
func (p *Pages) tellServed(ctx context.Context, r *playResult) error {
	e := r.Event
	if e.ModelServed == "" {
		return nil
	}
	r.Served = e.ModelServed
	if len(e.Attempts) > 0 {
		r.Served += ", " + providerName(e.Attempts[len(e.Attempts)-1].Provider)
	}
	if r.May(seeProviderKeys) && e.ProviderKey != uuid.Nil {
		names, err := p.tenants.Names(ctx, r.Tenant.ID, []uuid.UUID{e.ProviderKey})
		if err != nil {
			return err
		}
		r.Served += ", key " + names[e.ProviderKey].Name
	}
	switch n := len(e.Attempts); {
	case n == 1:
		r.Served += ", first try"
	case n > 1:
		r.Served += ", " + ordinal(n) + " try"
	}
	return nil
}

// burstCalls is how many calls "send at once" makes.
const burstCalls = 25

// burst makes many calls at once with a test key, and counts how they ended. It
// shows the first refusal, else the last answer.
func (p *Pages) burst(c echo.Context, who auth.Person, w workspace, call playCall, body playBody) (*playResult, error) {
	if !call.Key.Test {
		return nil, fault.New(fault.Refused, "not_allowed", "Many calls at once are for test keys.")
	}
	list, err := p.playLimits(c.Request().Context(), w, call.Key)
	if err != nil {
		return nil, err
	}
	levels := levelsOf{p, c, w, list, call.Model}
	before := levels.read()
	outs, errs := make([]played, burstCalls), make([]error, burstCalls)
	var group sync.WaitGroup
	for i := range outs {
		group.Go(func() { outs[i], errs[i] = p.playThrough(c, who, call, func() {}, nil) })
	}
	group.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return nil, errs[i]
	}
	shown := slices.IndexFunc(outs, func(o played) bool { return o.Status != http.StatusOK })
	r := &playResult{workspace: w, played: outs[max(shown, 0)], Model: call.Model, Test: true, Sent: burstCalls, Counts: countPlayed(outs), Tabs: sameCallTabs(p.publicURL, call, body)}
	r.Lines = headerLines(r.Header, r.Code)
	r.tellMoved(before, nil, levels.read())
	return r, p.tellEvent(c.Request().Context(), who, r)
}

func countPlayed(outs []played) (list []playCount) {
	for _, o := range outs {
		one := playCount{ui.OK, "passed", 1}
		if o.Status != http.StatusOK {
			one = playCount{ui.Bad, "refused: " + strings.ReplaceAll(o.Code, "_", " "), 1}
		}
		if i := slices.IndexFunc(list, func(x playCount) bool { return x.Words == one.Words }); i >= 0 {
			list[i].N++
		} else {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b playCount) int { return strings.Compare(a.Words, b.Words) })
	return list
}

// Tone is how the call ended.
func (r playResult) Tone() ui.Tone {
	switch {
	case len(r.Counts) > 1:
		return ui.Warn
	case r.Status == http.StatusOK && r.Code == "" && r.Message == "":
		return ui.OK
	}
	return ui.Bad
}

// Verdict says how it ended in words.
func (r playResult) Verdict() string {
	status := ui.Count(int64(r.Status))
	switch {
	case r.Sent > 1:
		return ui.Count(int64(r.Sent)) + " calls at once"
	case r.Status == http.StatusTooManyRequests:
		return status + ", refused"
	case r.Tone() == ui.OK:
		return status + ", passed"
	}
	return status + ", failed"
}

// Timing says how long the call took.
func (r playResult) Timing() string {
	text := ui.Wait(r.Took.Round(time.Millisecond))
	if r.First > 0 && r.Text != "" {
		text += ", first word after " + ui.Wait(r.First.Round(time.Millisecond))
	}
	return text
}

// Charged says what the status means for the books.
func (r playResult) Charged() string {
	switch {
	case r.Status == http.StatusOK:
		return "Sent before the first byte, so what is held counts already."
	case r.Href == "":
		return "Turned away at the door: it stands in no book."
	case r.Status == http.StatusTooManyRequests:
		return "Nothing was charged, no provider was asked."
	}
	return "What of it was charged stands on the call’s page."
}

// Levels are the limits as gauges.
func (r playResult) Levels() (out []ui.Level) {
	for _, m := range r.Moved {
		out = append(out, m.Level)
	}
	return out
}
