package web

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// reconcilePage is what GET /reconcile shows: one day of the books, each summed
// on its own, and what is known of the other days of its month.
type reconcilePage struct {
	workspace
	Day, End time.Time // of the day, in the tenant's zone
	Open     bool      // it still runs
	Days     []bookDay
	Books    *usage.DayBooks // nil: they could not be read
	Rows     []bookRow
	Caps     []capRow
	Differ   []bookDiff
	Asked    bool
	Check    usage.DayCheck
	Earlier  string // addresses of the months around
	Later    string
}

// bookDay is a day of the strip.
type bookDay struct {
	Date, Number, Class, Said string
	Current                   bool
}

// bookRow is one figure in every book.
type bookRow struct {
	Name, Note             string
	Events, Quarters, Days string
	Gap                    string // "" where they agree
}

// capRow is a calendar window that began in the day.
type capRow struct {
	Name, Of                      string
	Live, Held                    string // of the limiter, while the window runs
	Charged, Booked, Gap, Began   string
	LiveDiffers, HeldNow, Running bool
}

// bookDiff is a row that its events do not confirm.
type bookDiff struct{ Table, Key, Booked, Events string }

// reconcilePage answers GET /reconcile. ?day= is a civil day of the tenant;
// without one it is the last that has ended.
func (p *Pages) reconcilePage(c echo.Context, _ auth.Person, w workspace) error {
	v, err := p.readReconcile(c, w)
	if err != nil {
		return err
	}
	return show(c, http.StatusOK, reconcileView(v))
}

func (p *Pages) readReconcile(c echo.Context, w workspace) (reconcilePage, error) {
	ctx, zone := c.Request().Context(), w.Now.Location()
	today, _, _ := w.Tenant.Zones.Day(w.Now)
	day, end, _ := w.Tenant.Zones.Day(today.Add(-time.Nanosecond))
	if asked, err := time.ParseInLocation(time.DateOnly, c.QueryParam("day"), time.UTC); err == nil && asked.Year() >= 2020 && !asked.After(w.Now.AddDate(0, 0, 2)) {
		day, end, _ = w.Tenant.Zones.Day(time.Date(asked.Year(), asked.Month(), asked.Day(), 12, 0, 0, 0, zone))
	}
	v := reconcilePage{workspace: w, Day: day.In(zone), End: end.In(zone)}
	v.Open = v.End.After(w.Now)
	if err := p.readBookDays(ctx, &v); err != nil {
		return v, err
	}
	looked := p.now()
	v.Books = tile(p, c, "books", func() (usage.DayBooks, error) { return p.reports.DayBooks(ctx, w.Tenant.ID, v.Day, v.End) })
	if v.Books == nil || v.Books.Gone {
		return v, nil
	}
	if err := p.reports.Saw(ctx, w.Tenant.ID, v.Day, v.End, v.Books.Differences, looked); err != nil {
		return v, err
	}
	v.Rows = v.rows()
	for _, d := range v.Books.Differences[:min(len(v.Books.Differences), 50)] {
		v.Differ = append(v.Differ, bookDiff{d.Table, d.Key, d.Booked, d.Events})
	}
	var err error
	v.Caps, err = p.capRows(ctx, v)
	return v, err
}

// readBookDays fills the strip: every day of the month that Day is in.
func (p *Pages) readBookDays(ctx context.Context, v *reconcilePage) error {
	zone := v.Now.Location()
	first, last := limits.MonthStart(v.Day, zone), limits.MonthEnd(v.Day, zone)
	checks, err := p.reports.DayChecks(ctx, v.Tenant.ID, first.AddDate(0, 0, -1), last)
	if err != nil {
		return err
	}
	known := map[int64]usage.DayCheck{}
	for _, d := range checks {
		known[d.Day.Unix()] = d
	}
	v.Check = known[v.Day.Unix()]
	v.Asked = v.Check.Asked
	for noon := noonAfter(first, zone); noon.Before(last); noon = noon.AddDate(0, 0, 1) {
		at, end, _ := v.Tenant.Zones.Day(noon)
		d, checked := known[at.Unix()]
		b := bookDay{Date: noon.Format(time.DateOnly), Number: strconv.Itoa(noon.Day()), Current: at.Equal(v.Day)}
		switch {
		case at.After(v.Now):
			b.Class, b.Said = "", "not yet"
		case end.After(v.Now):
			b.Class, b.Said = "d-open", "open, still filling"
		case d.Asked:
			b.Class, b.Said = "d-open", "being summed again"
		case d.Differs > 0:
			b.Class, b.Said = "d-bad", "a difference"
		case !checked || d.CheckedAt.IsZero():
			b.Class, b.Said = "", "no usage, or not compared yet"
		default:
			b.Class, b.Said = "d-eq", "equal"
		}
		v.Days = append(v.Days, b)
	}
	v.Earlier = "/reconcile?day=" + noonAfter(first, zone).AddDate(0, 0, -1).Format(time.DateOnly)
	if !last.After(v.Now) {
		v.Later = "/reconcile?day=" + noonAfter(last, zone).Format(time.DateOnly)
	}
	return nil
}

// noonAfter is noon of the day that begins at start.
func noonAfter(start time.Time, zone *time.Location) time.Time {
	day := start.Add(8 * time.Hour).In(zone)
	return time.Date(day.Year(), day.Month(), day.Day(), 12, 0, 0, 0, zone)
}

// Agrees tells whether no book of the day differs from another.
func (v reconcilePage) Agrees() bool { return v.Books != nil && len(v.Books.Differences) == 0 }

// Apart is by how many tokens days and events differ.
func (v reconcilePage) Apart() int64 {
	return v.Books.Days.Tokens.Total() - v.Books.Events.Tokens.Total()
}

func (v reconcilePage) title() string {
	date := v.Day.Add(8 * time.Hour).Format("Monday 2 January 2006")
	switch {
	case v.Books == nil, v.Books.Gone:
		return date
	case v.Open && v.Agrees() && !v.Books.Events.Quiet():
		return date + ", so far: every book agrees, to the last token."
	case v.Agrees() && v.Books.Events.Quiet():
		return date + ": nothing was asked for."
	case v.Agrees():
		return date + ": every book agrees, to the last token."
	}
	return date + ": " + ui.Of(int64(len(v.Books.Differences)), "row differs", "rows differ") + " from the calls."
}

// vessels are the books by how their tokens stand to those of the calls.
func (v reconcilePage) vessels() []ui.Vessel {
	low := func(s usage.Sums) ui.Vessel {
		gap := s.Tokens.Total() - v.Books.Events.Tokens.Total()
		if gap == 0 {
			return ui.Vessel{}
		}
		return ui.Vessel{Low: true, Words: signed(gap)}
	}
	return []ui.Vessel{{}, low(v.Books.Quarters), low(v.Books.Days)}
}

// levelWords say what the vessels show.
func (v reconcilePage) levelWords() string {
	if q, d := v.Books.Quarters.Tokens.Total(), v.Books.Days.Tokens.Total(); q != v.Books.Events.Tokens.Total() || d != q {
		return "The books stand at different levels: " + ui.Count(v.Books.Events.Tokens.Total()) + " tokens by calls, " + ui.Count(q) + " by quarters of an hour, " + ui.Count(d) + " by day"
	}
	return "All three books stand at the same level: " + ui.Count(v.Books.Days.Tokens.Total()) + " tokens"
}

// rows are the figures of the day in each book.
func (v reconcilePage) rows() []bookRow {
	e, q, d := v.Books.Events, v.Books.Quarters, v.Books.Days
	count := func(name, note string, of func(usage.Sums) int64) bookRow {
		r := bookRow{Name: name, Note: note, Events: ui.Count(of(e)), Quarters: ui.Count(of(q)), Days: ui.Count(of(d))}
		for _, gap := range []int64{of(d) - of(e), of(q) - of(e)} {
			if gap != 0 {
				r.Gap = signed(gap)
				break
			}
		}
		return r
	}
	out := []bookRow{
		count("Tokens", "input, cached and output", func(s usage.Sums) int64 { return s.Tokens.Total() }),
		count("Calls that passed", "refusals are events without a charge", func(s usage.Sums) int64 { return s.Requests }),
		count("Refused", "by a limit", func(s usage.Sums) int64 { return s.Refused }),
	}
	if !v.May(seeMoney) {
		return out
	}
	for _, m := range []struct {
		name, note string
		of         func(usage.Sums) []usage.Money
	}{{"Billed", "before any rounding", func(s usage.Sums) []usage.Money { return s.Charges }}, {"Provider cost", "calls with a known price", func(s usage.Sums) []usage.Money { return s.Costs }}} {
		for _, currency := range currenciesOf(usage.Sums{Charges: append(m.of(e), m.of(d)...)}, v.Tenant.Currency) {
			r := bookRow{
				Name: m.name, Note: m.note + ", " + currency,
				Events: exactIn(m.of(e), currency, "0"), Quarters: exactIn(m.of(q), currency, "0"), Days: exactIn(m.of(d), currency, "0"),
			}
			if r.Events != r.Days || r.Events != r.Quarters {
				r.Gap = "differs"
			}
			out = append(out, r)
		}
	}
	return out
}

// capRows are the day's calendar windows: what calls charged to them, what the
// books hold, and for those that run what the limiter holds now.
func (p *Pages) capRows(ctx context.Context, v reconcilePage) ([]capRow, error) {
	var ids []uuid.UUID
	for _, c := range v.Books.Caps {
		ids = append(ids, scopeOf(c.Ledger))
	}
	names, err := p.labels(ctx, v.Tenant.ID, ids)
	if err != nil {
		return nil, err
	}
	live, err := p.liveLedgers(ctx, v)
	if err != nil {
		return nil, err
	}
	var out []capRow
	for _, c := range v.Books.Caps {
		name, of, spend := ledgerWords(c.Ledger, names)
		if spend && !v.May(seeMoney) {
			continue
		}
		amount := ui.Count
		if spend {
			amount = microsWords
		}
		r := capRow{Name: name, Of: of, Charged: amount(c.Charged), Booked: amount(c.Booked), Began: ui.Instant(c.Window.In(v.Now.Location()), v.Now)}
		if c.Charged != c.Booked {
			r.Gap = signed(c.Booked - c.Charged)
		}
		if s, running := live[c.Ledger]; running && s.WindowStart.Equal(c.Window) {
			r.Running, r.Live, r.Held = true, amount(s.Used), amount(s.Held)
			r.HeldNow, r.LiveDiffers = s.Held > 0, s.Used != c.Booked
		}
		out = append(out, r)
	}
	return out, nil
}

// liveLedgers are the ledgers that the limiter holds now, where the day is the
// one that runs.
func (p *Pages) liveLedgers(ctx context.Context, v reconcilePage) (map[string]limits.State, error) {
	out := map[string]limits.State{}
	if !v.Open {
		return out, nil
	}
	groups, err := p.readLimits(ctx, &limitsPage{workspace: v.workspace})
	for _, g := range groups {
		for _, l := range g.Lines {
			out[l.State.Ledger] = l.State
		}
	}
	return out, err
}

// scopeOf is whose ledger it is.
func scopeOf(ledger string) uuid.UUID {
	_, rest, _ := strings.Cut(ledger, ":")
	whose, _, _ := strings.Cut(rest, "/")
	u, _ := uuid.Parse(whose)
	return u
}

// ledgerWords say what a ledger counts, and for whom.
func ledgerWords(ledger string, names labels) (name, of string, spend bool) {
	scope, rest, _ := strings.Cut(ledger, ":")
	parts := strings.SplitN(rest, "/", 4)
	kinds := map[string]id.Kind{string(limits.ScopeCustomer): id.Customer, string(limits.ScopeAPIKey): id.APIKey, string(limits.ScopeProviderKey): id.ProviderKey, string(limits.ScopePool): id.Pool}
	whose := scopeOf(ledger)
	name = strings.ReplaceAll(scope, "_", " ")
	if kind, known := kinds[scope]; known {
		name = names.name(kind, whose)
	}
	if len(parts) < 3 {
		return name, ledger, false
	}
	of = dimensionWords(limits.Dimension(parts[1])) + " a " + strings.ReplaceAll(parts[2], "_", " ")
	if _, model, each := strings.Cut(ledger, "#"); each {
		of += ", " + model
	}
	return name, of, parts[1] == string(limits.DimensionSpend)
}

// microsWords is an amount of micro-units of money.
func microsWords(n int64) string {
	sign := ""
	if n < 0 {
		sign, n = "−", -n
	}
	return sign + strconv.FormatInt(n/1_000_000, 10) + "." + strings.TrimRight(strconv.FormatInt(1_000_000+n%1_000_000, 10)[1:], "0") + "0"
}

// rebuildDay has a day summed again from its calls.
func (p *Pages) rebuildDay(c echo.Context, who auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	at, err := time.ParseInLocation(time.DateOnly, f.Get("day"), time.UTC)
	if err != nil || at.Year() < 2020 || at.After(w.Now.AddDate(0, 0, 2)) {
		return c.Redirect(http.StatusSeeOther, "/reconcile")
	}
	day, end, _ := w.Tenant.Zones.Day(time.Date(at.Year(), at.Month(), at.Day(), 12, 0, 0, 0, w.Now.Location()))
	if err := p.reports.AskRebuild(asPerson(c, who), who.Tenant, day, end, tenants.Audit); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/reconcile?day="+f.Get("day")+"&done=day-asked")
}
