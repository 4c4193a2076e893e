package web

import (
	"context"
	"net/http"
	"net/url"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// whatIfPage is what GET /usage/what-if shows: another plan against what a
// customer did.
type whatIfPage struct {
	workspace
	Query    url.Values
	Span     span
	Filters  filters
	Plans    []ui.Option
	Customer string            // its name; "" while none is chosen
	Got      *billing.Supposed // nil until both are chosen
	Limits   []supposedLimit
	Band     ui.Band
	Failed   string
}

type supposedLimit struct{ Name, Refused, First, Last string }

// whatIfPage answers GET /usage/what-if.
func (p *Pages) whatIfPage(c echo.Context, who auth.Person, w workspace) error {
	ctx, q := c.Request().Context(), c.QueryParams()
	v := whatIfPage{workspace: w, Query: q, Span: spanOf(q, w.Now)}
	var err error
	if v.Filters, err = p.readFilters(ctx, w, q, v.Span); err != nil {
		return err
	}
	plan, err := p.planChoice(c, who, &v)
	if err != nil {
		return err
	}
	for _, o := range v.Filters.Customers {
		if o.Chosen && o.Value != "" {
			v.Customer = o.Label
		}
	}
	if v.Filters.Customer == uuid.Nil || plan == uuid.Nil {
		return show(c, http.StatusOK, whatIfView(v))
	}
	got, err := p.billing.Suppose(ctx, who.Tenant, billing.Supposal{
		Customer: v.Filters.Customer, Counter: v.Filters.Counter, Version: plan, From: v.Span.From, To: v.Span.To, Bucket: v.Span.Bucket, Zone: w.Now.Location(),
	})
	switch {
	case fault.Is(err, fault.Invalid):
		v.Failed = firstOf(err)
	case err != nil:
		return err
	default:
		v.show(got)
	}
	return show(c, http.StatusOK, whatIfView(v))
}

// planOptions are the plans to try, after an empty first one; nothing where there
// is none.
func (p *Pages) planOptions(ctx context.Context, tenant uuid.UUID) ([]ui.Option, error) {
	page, err := p.billing.Plans(ctx, tenant, uuid.Nil, 100)
	if err != nil || len(page.Items) == 0 {
		return nil, err
	}
	out := []ui.Option{{}}
	for _, plan := range page.Items {
		out = append(out, ui.Option{Value: id.Plan.Format(plan.ID), Label: plan.Name})
	}
	return out, nil
}

// planChoice offers the plans, and returns the version of the one that is chosen
// in ?plan=.
func (p *Pages) planChoice(c echo.Context, who auth.Person, v *whatIfPage) (uuid.UUID, error) {
	page, err := p.billing.Plans(c.Request().Context(), who.Tenant, uuid.Nil, 100)
	if err != nil {
		return uuid.Nil, err
	}
	asked, chosen := v.Query.Get("plan"), uuid.Nil
	v.Plans = []ui.Option{{Label: "Choose a plan"}}
	for _, plan := range page.Items {
		ref := id.Plan.Format(plan.ID)
		v.Plans = append(v.Plans, ui.Option{Value: ref, Label: plan.Name, Chosen: ref == asked})
		if ref == asked {
			chosen = plan.Version.ID
		}
	}
	if asked != "" && chosen == uuid.Nil {
		return uuid.Nil, tenants.NotFound("plan")
	}
	return chosen, nil
}

func (v *whatIfPage) show(got billing.Supposed) {
	v.Got = &got
	rows := make([]usage.Row, len(got.Buckets))
	for i, b := range got.Buckets {
		rows[i] = usage.Row{Start: b.Start, End: b.End, Sums: usage.Sums{Requests: b.Calls - b.Refused, Refused: b.Refused}}
	}
	v.Band = requestBand(rows, v.Span.Bucket, v.Now)
	v.Band.Label = "Calls that would have passed and been refused, " + bucketName(v.Span.Bucket) + ". " + v.title()
	for _, l := range got.ByLimit {
		v.Limits = append(v.Limits, supposedLimit{limitName(l.Limit), ui.Count(l.Refused), ui.Instant(l.First.In(v.Now.Location()), v.Now), ui.Instant(l.Last.In(v.Now.Location()), v.Now)})
	}
}

// title is the answer in one line.
func (v whatIfPage) title() string {
	switch {
	case v.Got == nil && v.Customer != "":
		return "Another plan against what " + v.Customer + " did."
	case v.Got == nil:
		return "Another plan against what happened."
	case v.Got.Calls == 0:
		return "No call of " + v.Customer + " passed in this time."
	}
	return "With " + v.Got.Plan + ", " + ui.Count(v.Got.Refused) + " of " + ui.Of(v.Got.Calls, "call", "calls") + " of " + v.Customer + " would have been refused."
}

// ranges are the spans as links that keep everything else.
func (v whatIfPage) ranges() (out []ui.Link) {
	for _, s := range spans {
		if s.Key != "dates" {
			out = append(out, ui.Link{Words: s.Words, Current: s.Key == v.Span.Key, Href: link("/usage/what-if", v.Query, "range", s.Key, "bucket", "")})
		}
	}
	return out
}
