package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// cooling is what rests of a provider key, and its ladder.
type cooling struct {
	Rows   []coolRow
	Ladder []rung
	Stands string // where on the ladder the key is, in words
}

// coolRow is one bench.
type coolRow struct {
	Model, Reason, Named, Note, Source string
	Since                              time.Time
	Until, In                          string
	Clear                              string // the address that asks
}

// rung is one step of the ladder.
type rung struct {
	Length, Words string
	On            bool
}

// reasons are why a key rests, in words.
var reasons = map[limits.BenchReason]string{
	limits.BenchRateLimited: "It is at its limit, and did not say for how long.",
	limits.BenchDayCapSpent: "It is at its limit, and a daily cap of it is spent.",
	limits.BenchAgain:       "It is at its limit again within the hour.",
	limits.BenchStated:      "It is at its limit, and said how long to wait.",
	limits.BenchDaySpent:    "It says that its day’s quota is spent.",
	limits.BenchNoCredit:    "No credit is left, or a spend limit is reached.",
	limits.BenchNotAllowed:  "This account may not use the model.",
	limits.BenchRefused:     "It refuses the key.",
	limits.BenchFailing:     "The model failed three times within 15 minutes.",
}

func coolingOf(k tenants.ProviderKey, now time.Time) cooling {
	at := "/providers/" + id.ProviderKey.Format(k.ID)
	c := cooling{}
	highest := -1
	for _, h := range k.Cooldowns(now) {
		b := h.Bench
		r := coolRow{
			Model: h.Model, Reason: reasons[b.Reason], Named: b.Detail, Source: string(b.Source), Since: b.Since.In(now.Location()),
			Until: "a check passes", Note: coolNote(h, now), Clear: at + "/clear?model=" + url.QueryEscape(h.Model),
		}
		if b.Status != 0 {
			r.Reason = ui.Count(int64(b.Status)) + ". " + r.Reason
		}
		if !b.Until.IsZero() {
			r.Until, r.In = ui.Instant(b.Until.In(now.Location()), now), "in "+ui.Span(b.Until.Sub(now))
			if b.Reason == limits.BenchDaySpent {
				r.In = "midnight in " + place(k.Zone) + ", " + r.In
			}
		}
		if b.Source == limits.BenchHeuristic && b.Reason != limits.BenchFailing {
			highest = max(highest, h.Step)
		}
		c.Rows = append(c.Rows, r)
	}
	c.Ladder, c.Stands = ladderOf(highest), stands(k, highest)
	return c
}

// coolNote says what may end a bench before its time.
func coolNote(h tenants.KeyHealth, now time.Time) string {
	if h.CheckAt != nil {
		at := h.CheckAt.In(now.Location())
		if !at.After(now) {
			return "It is being checked by a call of our own, never by a customer’s."
		}
		return "Checked by a call of our own at " + ui.Instant(at, now) + ", never by a customer’s."
	}
	if h.Bench.Until.IsZero() {
		return "It ends when a check passes."
	}
	if at, ok := h.Bench.ProbeAt(); ok && at.After(now) {
		return "A guess: from " + ui.Instant(at.In(now.Location()), now) + " one call may find out whether it is over."
	} else if ok {
		return "A guess: one call may find out whether it is over."
	}
	return "Stated, so it is never tried early."
}

// place is where a zone is: "Los Angeles".
func place(zone string) string {
	return strings.ReplaceAll(zone[strings.LastIndex(zone, "/")+1:], "_", " ")
}

// ladderOf draws the ladder with the step that counts now; -1 is none.
func ladderOf(step int) []rung {
	words := []string{"a 429 with healthy counters", "daily cap spent, or again within 1 h", "second step", "third step", "fourth"}
	out := []rung{{Length: "90 s", Words: words[0]}}
	for i, d := range limits.Ladder() {
		out = append(out, rung{Length: shortSpan(d), Words: words[i+1]})
	}
	if step >= 0 {
		out[step].On = true
	}
	return out
}

func shortSpan(d time.Duration) string {
	if d >= time.Hour {
		return ui.Count(int64(d/time.Hour)) + " h"
	}
	return ui.Count(int64(d/time.Minute)) + " min"
}

func stands(k tenants.ProviderKey, running int) string {
	text := "The ladder serves only where the provider states no wait. "
	highest := 0
	for _, h := range k.Health {
		highest = max(highest, h.Step)
	}
	switch {
	case running >= 0:
		return text + "A success ends the bench and clears the ladder."
	case highest > 0:
		return text + "The last incident was on step " + ui.Count(int64(highest)) + "; the next within a day is one higher, and a success clears it."
	}
	return text + "This key stands below its first step."
}

// coolWords say in a list how much of a key cools; "" where nothing does.
func coolWords(k tenants.ProviderKey, now time.Time) string {
	if until, all := k.Resting(now); all {
		if until.IsZero() {
			return "cooling until a check passes"
		}
		return "cooling until " + ui.Instant(until.In(now.Location()), now)
	}
	var n int64
	var until time.Time
	for _, m := range k.Models {
		if b, cools := k.Cools(m, now); cools {
			n++
			until = b.Until
		}
	}
	of := " of " + ui.Of(int64(len(k.Models)), "model", "models")
	switch n {
	case 0:
		return ""
	case 1:
		return "1" + of + " cools until " + ui.Instant(until.In(now.Location()), now)
	}
	return ui.Count(n) + of + " cool"
}

// modelRow is one model of a provider key today.
type modelRow struct {
	Model            string
	Requests, Errors int64
	Half             time.Duration // about how long the faster half of what was served took; 0: nothing was
	Tone             ui.Tone
	State            string
}

// Well is the share of calls that did not fail: "99.7%".
func (r modelRow) Well() string { return cmp.Or(share100(r.Requests-r.Errors, r.Requests), "–") }

// HalfWithin writes Half: "540 ms", "1.4 s", "28 s".
func (r modelRow) HalfWithin() string {
	switch {
	case r.Half == 0:
		return "–"
	case r.Half < time.Second:
		return strconv.FormatInt(r.Half.Milliseconds(), 10) + " ms"
	case r.Half < 10*time.Second:
		return strconv.FormatFloat(r.Half.Seconds(), 'f', 1, 64) + " s"
	}
	return strconv.FormatFloat(r.Half.Seconds(), 'f', 0, 64) + " s"
}

// modelsShown is for how many models a row is shown; the others are named.
const modelsShown = 12

// modelRows are the models that cool or were called today, then others, and the
// names of those for which there is no room.
func (p *Pages) modelRows(ctx context.Context, w workspace, k tenants.ProviderKey) (rows []modelRow, rest []string, err error) {
	used, err := p.usedByName(ctx, w, usage.Filter{ProviderKey: k.ID})
	if err != nil {
		return nil, nil, err
	}
	served, err := p.usedByName(ctx, w, usage.Filter{ProviderKey: k.ID, Outcome: usage.OK})
	if err != nil {
		return nil, nil, err
	}
	for _, m := range k.Models {
		row := modelRowOf(k, m, used[m], w.Now)
		row.Half, _ = served[m].Latency.Percentile(50)
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b modelRow) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(b.Requests, a.Requests))
	})
	for _, r := range rows[min(len(rows), modelsShown):] {
		rest = append(rest, r.Model)
	}
	return rows[:min(len(rows), modelsShown)], rest, nil
}

// rank puts what cools first.
func (r modelRow) rank() int {
	if r.Tone == ui.Cool {
		return 0
	}
	return 1
}

func modelRowOf(k tenants.ProviderKey, model string, s usage.Sums, now time.Time) modelRow {
	r := modelRow{Model: model, Tone: ui.Idle, State: "not used today"}
	if s.Requests > 0 {
		r.Requests, r.Errors, r.Tone, r.State = s.Requests, s.Errors, ui.OK, "healthy"
		if s.Errors*10 >= s.Requests {
			r.Tone, r.State = ui.Warn, "fails at times"
		}
	}
	if b, cools := k.Cools(model, now); cools {
		r.Tone, r.State = ui.Cool, "cooling until a check passes"
		if !b.Until.IsZero() {
			r.State = "cooling until " + ui.Instant(b.Until.In(now.Location()), now)
		}
	}
	return r
}

func (p *Pages) providerCoolingTile(c echo.Context, who auth.Person, w workspace) error {
	k, err := p.providerKey(c, who)
	if err != nil {
		return err
	}
	v := providerPage{workspace: w, providerRow: providerRowOf(k, w.Now), ID: id.ProviderKey.Format(k.ID), Cooling: coolingOf(k, w.Now)}
	return show(c, http.StatusOK, providerCoolingAgain(v))
}

// clearCooling asks before a cooldown ends by hand, and POST ends it.
func (p *Pages) clearCooling(c echo.Context, who auth.Person, w workspace) error {
	k, err := p.providerKey(c, who)
	if err != nil {
		return err
	}
	cleared := tenants.Cleared{Key: k.ID}
	if q := c.QueryParams(); q.Has("model") {
		model := q.Get("model")
		cleared.Model = &model
	}
	if c.Request().Method != http.MethodPost {
		return p.ask(c, w, clearing(k, cleared, c.Request().URL.RequestURI(), w.Now))
	}
	if _, err := p.tenants.ClearCooldowns(asPerson(c, who), who.Tenant, cleared); err != nil {
		return err
	}
	return done(c, "/providers/"+id.ProviderKey.Format(k.ID), "cooling-cleared")
}

// clearing says what a clear means.
func clearing(k tenants.ProviderKey, c tenants.Cleared, action string, now time.Time) ui.Confirm {
	what, hits := "all of "+k.Name, int64(0)
	var end time.Time
	for _, h := range k.Cooldowns(now) {
		if c.Model == nil || *c.Model == h.Model {
			hits++
			end = h.Bench.Until
		}
	}
	if c.Model != nil && *c.Model != tenants.EveryModel {
		what = *c.Model
	}
	ask := ui.Confirm{
		Title: "Clear the cooldown of " + what + "?", Text: "Calls of customers go out through this key again within a second, on every replica.",
		Action: action, Back: "/providers/" + id.ProviderKey.Format(k.ID), Keep: "Leave it", Do: "Clear",
		Consequences: []ui.Consequence{ui.Consequence{Tone: ui.Cool}.Of(hits, "cooldown ends now", "cooldowns end now")},
	}
	if !end.IsZero() {
		ask.Consequences = append(ask.Consequences, ui.Consequence{Number: ui.Span(end.Sub(now)), Text: "are left of it. A provider that still refuses has it rest again, and the call that found out is refused."})
	}
	return ask
}

func (p *Pages) forgetLearned(c echo.Context, who auth.Person, _ workspace) error {
	key, err := param(c, id.ProviderKey, "provider key")
	if err != nil {
		return err
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	what := tenants.Forgotten{Model: f.Get("model"), Dimension: limits.Dimension(f.Get("dimension")), Window: limits.Window(f.Get("window"))}
	if _, err := p.tenants.ForgetLearned(asPerson(c, who), who.Tenant, key, what); err != nil {
		return err
	}
	return done(c, "/providers/"+c.Param("id"), "learned-forgotten")
}
