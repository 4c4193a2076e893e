package web

import (
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/exports"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/usage"
	"weir/web/ui"
)

// exportsPage is what GET /exports shows: files that were asked for.
type exportsPage struct {
	workspace
	Rows          []exportRow
	Newest, Older string
	Open          bool // one is still being made
	Ask           exportAsk
}

// exportAsk is what a page led here with: everything that it shows a part of.
type exportAsk struct {
	Kind        exports.Kind // "" nothing
	Of, Back    string
	Title, Says string
}

// exportHref leads from a page to a file of everything that it shows a part of.
func exportHref(kind string, q url.Values) string {
	return "/exports?" + url.Values{"kind": {kind}, "of": {q.Encode()}}.Encode() + "#new"
}

// askOf reads what a page led here with.
func (p *Pages) askOf(c echo.Context, w workspace) (a exportAsk, err error) {
	a = exportAsk{Kind: exports.Kind(c.QueryParam("kind")), Of: c.QueryParam("of")}
	q, err := url.ParseQuery(a.Of)
	if err != nil || a.Kind != exports.Usage && a.Kind != exports.Requests {
		return exportAsk{}, nil //nolint:nilerr // an address that no page of ours has
	}
	s := spanOf(q, w.Now)
	a.Title, a.Back, a.Says = "The requests, as a file", link("/requests", q), "every call of the last 30 days"
	if a.Kind == exports.Usage {
		a.Title, a.Back, a.Says = "Usage "+bucketName(s.Bucket)+groupWords(grouping(q.Get("by"), w))+", as a file", link("/usage", q), s.words(w.Now)
	}
	f, err := p.readFilters(c.Request().Context(), w, q, s)
	for _, x := range f.Chips {
		a.Says += ", " + x.What + " " + x.Value
	}
	return a, err
}

type exportRow struct {
	exports.Export
	Ref, Name, Span, State string
	Tone                   ui.Tone
	Href                   string // "" where there is no file, or not for this role
	Withheld               bool
	Sum                    string
	Made                   time.Time
	Until                  time.Time
}

const exportRows = 25

// exportsPage answers GET /exports, and GET /tiles/exports with its list alone.
func (p *Pages) exportsPage(c echo.Context, who auth.Person, w workspace) error {
	v, err := p.readExports(c, who, w)
	if err != nil {
		return err
	}
	if v.Ask, err = p.askOf(c, w); err != nil {
		return err
	}
	return show(c, http.StatusOK, exportsView(v))
}

func (p *Pages) exportsTile(c echo.Context, who auth.Person, w workspace) error {
	v, err := p.readExports(c, who, w)
	if err != nil {
		return err
	}
	return show(c, http.StatusOK, exportList(v))
}

func (p *Pages) readExports(c echo.Context, who auth.Person, w workspace) (exportsPage, error) {
	v := exportsPage{workspace: w}
	after, err := id.Export.Parse(c.QueryParam("after"))
	if err != nil {
		after = uuid.Nil
	}
	page, err := p.exports.List(c.Request().Context(), who.Tenant, after, exportRows)
	if err != nil {
		return v, err
	}
	for _, e := range page.Items {
		row := exportRowOf(e, w)
		v.Open = v.Open || e.State == exports.Queued || e.State == exports.Running
		v.Rows = append(v.Rows, row)
	}
	v.Newest, v.Older = newest("/exports", c.QueryParams(), "after"), older("/exports", c.QueryParams(), "after", id.Export.Format(page.Next))
	return v, nil
}

func exportRowOf(e exports.Export, w workspace) exportRow {
	zone := w.Now.Location()
	row := exportRow{Export: e, Ref: id.Export.Format(e.ID), Sum: hex.EncodeToString(e.SHA256), Made: e.CreatedAt.In(zone), Until: e.ExpiresAt.In(zone)}
	row.Name = "Requests"
	if e.Kind == exports.Audit {
		row.Name = "Audit"
	}
	if e.Kind == exports.Usage {
		row.Name = "Usage " + bucketName(e.Bucket) + groupWords(e.GroupBy)
	}
	row.Span = e.From.In(zone).Format("2 Jan 2006, 15:04") + " to " + e.To.In(zone).Format("2 Jan 2006, 15:04 MST")
	switch e.State {
	case exports.Queued:
		row.Tone, row.State = ui.Idle, "waits to be made"
	case exports.Running:
		row.Tone, row.State = ui.Idle, "being made, "+strconv.Itoa(int(e.Progress*100))+"%"
	case exports.Failed:
		row.Tone, row.State = ui.Bad, "failed"
	case exports.Ready:
		row.Tone, row.State = ui.OK, "ready"
		row.Withheld = !e.Sight.Within(sightOf(w))
		if !row.Withheld {
			row.Href = "/exports/" + row.Ref + "/content"
		}
	}
	return row
}

func groupWords(by usage.GroupBy) string {
	if tag, ok := by.Tag(); ok {
		return ", by tag " + tag
	}
	for _, g := range groupings {
		if g.By == by {
			return ", " + g.Words
		}
	}
	return ""
}

// sightOf is what a role sees of the books.
func sightOf(w workspace) exports.Sight {
	return exports.Sight{Charges: w.May(seeMoney), Costs: w.May(seeMoney), Customers: w.May(seeCustomers), Keys: w.May(seeCustomerKeys), ProviderKeys: w.May(seeProviderKeys), Audit: w.May(seeAudit)}
}

// makeExport answers POST /exports: a file of what the page of usage or requests
// with the query ?of= shows.
func (p *Pages) makeExport(c echo.Context, who auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	q, err := url.ParseQuery(f.Get("of"))
	if err != nil {
		q = url.Values{}
	}
	a := exports.Asked{Kind: exports.Kind(f.Get("kind")), Format: exports.Format(f.Get("format")), Zone: w.Now.Location().String(), Sight: sightOf(w)}
	s := spanOf(q, w.Now)
	if a.Kind == exports.Requests {
		s.From, s.To = w.Now.Add(-logReach), w.Now
	}
	if a.Kind == exports.Audit {
		return p.makeAudit(c, who, a, w.Now, f.Get("days"))
	}
	a.From, a.To, a.Bucket, a.GroupBy = s.From, s.To, s.Bucket, grouping(q.Get("by"), w)
	narrowed, err := p.readFilters(c.Request().Context(), w, q, s)
	if err != nil {
		return err
	}
	a.Filter = narrowed.Filter
	if search := q.Get("q"); a.Kind == exports.Requests && search != "" {
		a.Filter.EndUser = search
	}
	if _, err := p.exports.Create(asPerson(c, who), who.Tenant, a); err != nil {
		return err
	}
	return done(c, "/exports", "export-asked")
}

// auditDays are how far back a file of the audit may reach.
var auditDays = []string{"7", "30", "90", "365"}

func (p *Pages) makeAudit(c echo.Context, who auth.Person, a exports.Asked, now time.Time, days string) error {
	n, err := strconv.Atoi(days)
	if err != nil || !slices.Contains(auditDays, days) {
		return fault.New(fault.Invalid, "form_unreadable", "Choose how far back the file goes.")
	}
	a.From, a.To = now.AddDate(0, 0, -n), now
	_, err = p.exports.Create(asPerson(c, who), who.Tenant, a)
	return orDone(c, err, "/exports", "export-asked")
}

// exportContent answers GET /exports/{id}/content with the file.
func (p *Pages) exportContent(c echo.Context, who auth.Person, w workspace) error {
	u, err := param(c, id.Export, "export")
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	e, err := p.exports.Open(ctx, who.Tenant, u, sightOf(w))
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, e.MediaType())
	h.Set(echo.HeaderContentDisposition, `attachment; filename="`+e.FileName()+`"`)
	h.Set(echo.HeaderContentLength, strconv.FormatInt(e.Bytes, 10))
	c.Response().WriteHeader(http.StatusOK)
	if err := p.exports.Copy(ctx, who.Tenant, u, c.Response()); err != nil {
		p.log.WarnContext(ctx, "export not sent to its end", "export", id.Export.Format(u), "error", err)
		panic(http.ErrAbortHandler) // what was sent is not whole, and must not look so
	}
	return nil
}
