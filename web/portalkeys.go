package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// portalKeysPage is a customer's keys.
type portalKeysPage struct {
	visit
	form
	Rows []apiKeyRow
}

// portalMadePage shows a new secret, once.
type portalMadePage struct {
	visit
	Name, Secret, Old string
	OldEnds           time.Time
}

func (p *Pages) portalKeys(c echo.Context, v visit) error {
	return p.showPortalKeys(c, v, form{}, http.StatusOK)
}

func (p *Pages) showPortalKeys(c echo.Context, v visit, f form, status int) error {
	page, err := p.tenants.APIKeys(c.Request().Context(), v.Visitor.Tenant, tenants.KeyFilter{Kind: tenants.ForCustomer, Customer: v.Customer}, uuid.Nil, 100)
	if err != nil {
		return err
	}
	out := portalKeysPage{visit: v, form: f}
	for _, k := range page.Items {
		out.Rows = append(out.Rows, apiKeyRowOf(k, "", v.Now))
	}
	return show(c, status, portalKeysView(out))
}

// portalKey is the key in the path, if it is the visitor's: another's is answered
// as one that does not exist.
func (p *Pages) portalKey(c echo.Context, v visit) (tenants.APIKey, error) {
	key, err := param(c, id.APIKey, "API key")
	if err != nil {
		return tenants.APIKey{}, err
	}
	k, err := p.tenants.APIKey(c.Request().Context(), v.Visitor.Tenant, key)
	if err == nil && (k.Kind != tenants.ForCustomer || k.Customer != v.Customer) {
		return tenants.APIKey{}, tenants.NotFound("API key")
	}
	return k, err
}

// portalOverlaps are for how long an old secret may go on working.
var portalOverlaps = []ui.Option{{Value: "0", Label: "not at all"}, {Value: "3600", Label: "an hour"}, {Value: "86400", Label: "a day"}, {Value: "604800", Label: "a week"}}

// rotatePortalKey gives a key a new secret and shows it. A form that is sent
// again finds the key rotated, and makes nothing.
func (p *Pages) rotatePortalKey(c echo.Context, v visit) error {
	k, err := p.portalKey(c, v)
	if err != nil {
		return err
	}
	ctx, err := v.asCustomer(c)
	if err != nil {
		return err
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(f.Get("overlap_seconds"), 10, 32)
	if err != nil {
		f.wrong("", "Choose for how long the old secret of "+k.Name+" goes on working.")
		return p.showPortalKeys(c, v, f, http.StatusBadRequest)
	}
	old, made, err := p.tenants.RotateAPIKey(ctx, v.Visitor.Tenant, k.ID, time.Duration(seconds)*time.Second)
	if err != nil {
		status, err := f.refuse(err)
		if err != nil {
			return err
		}
		return p.showPortalKeys(c, v, f, status)
	}
	return show(c, http.StatusOK, portalMadeView(portalMadePage{
		visit: v, Name: made.Name, Secret: made.Secret, Old: keyRowOf(old, "", v.Now).Shown, OldEnds: old.ExpiresAt.In(v.Now.Location()),
	}))
}

// revokePortalKey asks before a key is revoked, and POST revokes it.
func (p *Pages) revokePortalKey(c echo.Context, v visit) error {
	k, err := p.portalKey(c, v)
	if err != nil {
		return err
	}
	ask, err := p.portalRevocation(c.Request().Context(), v, k)
	if err != nil {
		return err
	}
	if c.Request().Method != http.MethodPost {
		if partial(c) {
			return show(c, http.StatusOK, ui.ConfirmDialog(ask))
		}
		return show(c, http.StatusOK, portalConfirmView(v, ask))
	}
	ctx, err := v.asCustomer(c)
	if err != nil {
		return err
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	if f.Get("word") != k.Name {
		ask.Typed.Value, ask.Typed.Error = f.Get("word"), "This is not the name. Type it as it stands, or go back."
		return show(c, http.StatusBadRequest, portalConfirmView(v, ask))
	}
	if _, err := p.tenants.RevokeAPIKey(ctx, v.Visitor.Tenant, k.ID); err != nil {
		return err
	}
	return done(c, "/portal/keys", "revoked")
}

// portalRevocation says what the end of a key means, in numbers of today.
func (p *Pages) portalRevocation(ctx context.Context, v visit, k tenants.APIKey) (ui.Confirm, error) {
	ask := ui.Confirm{
		Title: "Revoke " + k.Name + "?", Text: "The key stops working within a second, everywhere. It cannot be made to work again, and only " + v.Brand.Name() + " can make another.",
		Action: "/portal/keys/" + id.APIKey.Format(k.ID) + "/revoke", Back: "/portal/keys", Keep: "Keep it working", Do: "Revoke " + k.Name, Word: k.Name, Typed: ui.Input{Name: "word"},
	}
	day, err := p.reports.Report(ctx, v.Visitor.Tenant, dayQuery(workspace{Tenant: v.Tenant, Now: v.Now}, usage.ByNothing, usage.Filter{Customer: v.Customer, Counter: k.Counter, Tests: usage.WithTests}))
	if err != nil && !fault.Is(err, fault.Unavailable) {
		return ask, err
	}
	pair, rest, err := p.tenants.WorkingBeside(ctx, v.Visitor.Tenant, k, v.Now)
	if err != nil {
		return ask, err
	}
	ask.Consequences = []ui.Consequence{
		ui.Consequence{Tone: ui.Warn}.Of(day.Totals.Requests+day.Totals.Refused, "call was made with it today; such calls are refused from now on", "calls were made with it today; such calls are refused from now on"),
		ui.Consequence{}.Of(rest, "other key of yours goes on working", "other keys of yours go on working"),
	}
	if pair > 0 {
		ask.Consequences = append(ask.Consequences, ui.Consequence{Tone: ui.Bad}.Of(pair, "other secret of this key, from a rotation, ends with it", "other secrets of this key, from rotations, end with it"))
	}
	return ask, nil
}
