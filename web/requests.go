package web

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/usage"
	"weir/web/ui"
)

// logRows is how many calls a page of the log has.
const logRows = 30

// logReach is how far back the log is searched.
const logReach = 30 * 24 * time.Hour

// requestsPage is what GET /requests shows: the log, newest first.
type requestsPage struct {
	workspace
	Query   url.Values
	Search  string
	Missing string // what was searched for and is not there
	Filters filters
	Strip   *ui.Band // nil: it could not be read
	Totals  usage.Sums
	AsOf    time.Time
	Rows    []callRow
	Older   string
	First   bool // this is the newest page
}

// callRow is one call of the log, or many refusals of one second.
type callRow struct {
	usage.Event
	Request, Short, Href string
	Customer, Key        string
	Tone                 ui.Tone
	State                string
	At                   time.Time // in the tenant's zone
}

// requestsPage answers GET /requests. A search for a request's id leads to it.
func (p *Pages) requestsPage(c echo.Context, _ auth.Person, w workspace) error {
	ctx, q := c.Request().Context(), c.QueryParams()
	r := requestsPage{workspace: w, Query: q, Search: strings.TrimSpace(q.Get("q")), First: q.Get("after") == ""}
	if strings.HasPrefix(r.Search, string(id.Request)+"_") {
		found, err := p.requestOf(ctx, w, r.Search)
		if err == nil {
			return c.Redirect(http.StatusSeeOther, "/requests/"+id.Request.Format(found.RequestID))
		}
		if !fault.Is(err, fault.NotFound) {
			return err
		}
		r.Missing = r.Search
	}
	var err error
	if r.Filters, err = p.readFilters(ctx, w, q, span{From: w.Now.Add(-logReach), To: w.Now}); err != nil {
		return err
	}
	if r.Missing == "" && r.Search != "" {
		r.Filters.EndUser = r.Search
	}
	if err := p.readLog(ctx, &r); err != nil {
		return err
	}
	r.Strip = tile(p, c, "requests by time", func() (ui.Band, error) { return p.logStrip(ctx, &r) })
	return show(c, http.StatusOK, requestsView(r))
}

// requestOf is the call of a request id, as it is typed or in an address.
func (p *Pages) requestOf(ctx context.Context, w workspace, typed string) (usage.Event, error) {
	request, err := id.Request.Parse(typed)
	if err != nil {
		return usage.Event{}, fault.New(fault.NotFound, "request_not_found", "There is no such request.")
	}
	e, _, err := p.reports.RequestByID(ctx, w.Tenant.ID, request)
	return e, err
}

func (p *Pages) readLog(ctx context.Context, r *requestsPage) error {
	if r.Missing != "" {
		return nil
	}
	f := usage.RequestFilter{Filter: r.Filters.Filter, After: cursorOf(r.Query.Get("after")), Limit: logRows + 1}
	events, err := p.reports.Requests(ctx, r.Tenant.ID, f)
	if err != nil {
		return err
	}
	if len(events) > logRows {
		events = events[:logRows]
		r.Older = link("/requests", r.Query, "after", cursorText(usage.CursorOf(events[logRows-1])))
	}
	var ids []uuid.UUID
	for _, e := range events {
		ids = append(ids, e.Customer, e.Counter)
	}
	names, err := p.labels(ctx, r.Tenant.ID, ids)
	if err != nil {
		return err
	}
	for _, e := range events {
		r.Rows = append(r.Rows, rowOf(e, names, r.workspace))
	}
	return nil
}

func rowOf(e usage.Event, names labels, w workspace) callRow {
	row := callRow{Event: e, At: e.StartedAt.In(w.Now.Location()), Request: id.Request.Format(e.RequestID)}
	row.Short, row.Href = row.Request, "/requests/"+row.Request
	if len(row.Short) > 16 {
		row.Short = row.Short[:8] + "…" + row.Short[len(row.Short)-6:]
	}
	if w.May(seeCustomers) {
		row.Customer = names.name(id.Customer, e.Customer)
	}
	if w.May(seeCustomerKeys) {
		row.Key = names.name(id.APIKey, e.Counter)
	}
	row.Tone, row.State = outcomeTone(e)
	return row
}

// logStrip is the last day of what the filters match, by quarter of an hour.
func (p *Pages) logStrip(ctx context.Context, r *requestsPage) (ui.Band, error) {
	from := r.Now.Add(-24 * time.Hour).Truncate(15 * time.Minute)
	rep, err := p.reports.Report(ctx, r.Tenant.ID, usage.Query{From: from, To: r.Now, Bucket: usage.Quarter, Filter: r.Filters.Filter, Zone: r.Now.Location()})
	if err != nil {
		return ui.Band{}, err
	}
	r.Totals, r.AsOf = rep.Totals, rep.AsOf.In(r.Now.Location())
	b := requestBand(rep.Rows, usage.Quarter, r.Now)
	b.Height = 120
	b.Label = "Requests of the last 24 hours, each 15 minutes: " + passedWords(rep.Totals)
	return b, nil
}

// cursorText writes a place in the log for an address.
func cursorText(c usage.Cursor) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(c.StartedAt.UnixMicro(), 36) + "." + c.ID.String()))
}

// cursorOf reads one; a wrong one is the beginning.
func cursorOf(s string) usage.Cursor {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return usage.Cursor{}
	}
	at, event, _ := strings.Cut(string(raw), ".")
	micros, err1 := strconv.ParseInt(at, 36, 64)
	u, err2 := uuid.Parse(event)
	t := time.UnixMicro(micros).UTC()
	if err1 != nil || err2 != nil || t.Year() < 2020 || t.Year() > 2199 {
		return usage.Cursor{}
	}
	return usage.Cursor{StartedAt: t, ID: u}
}

// tokens are what a row of the log counts, and what the figure is.
func (r callRow) tokens() (n int64, of string) {
	if r.Outcome.Refused() {
		return r.Estimate.Tokens.Total(), "asked"
	}
	return r.Tokens.Total(), ""
}

func (r callRow) took() string {
	d := r.EndedAt.Sub(r.StartedAt)
	if r.Outcome.Refused() || d <= 0 {
		return "–"
	}
	if d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
}

// narrowed tells whether something is searched for or filtered.
func (r requestsPage) narrowed() bool { return len(r.Filters.Chips) > 0 || r.Search != "" }

func (r requestsPage) matching() string {
	if len(r.Filters.Chips) > 0 {
		return " match"
	}
	return ""
}
