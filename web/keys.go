package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// pageRows is how many rows a page of a list has.
const pageRows = 25

// keysPage is what the list of API keys shows. A list that could not be read is
// nil.
type keysPage struct {
	workspace
	Customers, Management *keySection
	Customer              string // whose keys alone are listed; "" everybody's
}

type keySection struct {
	Rows          []apiKeyRow
	Newest, Older string
}

// apiKeyRow is a key in a list.
type apiKeyRow struct {
	keyRow
	ID, CustomerID string
	Test, Works    bool
	Replaced       bool // another key took over
	Narrower       string
	Scopes         string
	CreatedAt      time.Time
}

// keys answers GET /keys: customers' keys, and those for management.
func (p *Pages) keys(c echo.Context, who auth.Person, w workspace) error {
	ctx := c.Request().Context()
	view := keysPage{workspace: w}
	filter := tenants.KeyFilter{Kind: tenants.ForCustomer}
	if customer, err := id.Customer.Parse(c.QueryParam("customer")); err == nil {
		known, err := p.tenants.Customer(ctx, who.Tenant, customer)
		if err != nil {
			return err
		}
		filter.Customer, view.Customer = customer, known.Name
	}
	view.Customers = tile(p, c, "customer keys", func() (keySection, error) {
		return p.keySection(ctx, who.Tenant, filter, c.QueryParams(), "after", w.Now)
	})
	if w.May(seeManagementKeys) && view.Customer == "" {
		view.Management = tile(p, c, "management keys", func() (keySection, error) {
			return p.keySection(ctx, who.Tenant, tenants.KeyFilter{Kind: tenants.Management}, c.QueryParams(), "management", w.Now)
		})
	}
	return show(c, http.StatusOK, keysView(view))
}

func (p *Pages) keySection(ctx context.Context, tenant uuid.UUID, f tenants.KeyFilter, q url.Values, from string, now time.Time) (keySection, error) {
	after, _ := id.APIKey.Parse(q.Get(from))
	page, err := p.tenants.APIKeys(ctx, tenant, f, after, pageRows)
	if err != nil {
		return keySection{}, err
	}
	customers := make([]uuid.UUID, len(page.Items))
	for i, k := range page.Items {
		customers[i] = k.Customer
	}
	names, err := p.tenants.Names(ctx, tenant, customers)
	list := keySection{Newest: newest("/keys", q, from), Older: older("/keys", q, from, id.APIKey.Format(page.Next))}
	for _, k := range page.Items {
		list.Rows = append(list.Rows, apiKeyRowOf(k, names[k.Customer].Name, now))
	}
	return list, err
}

func apiKeyRowOf(k tenants.APIKey, customer string, now time.Time) apiKeyRow {
	return apiKeyRow{
		keyRow: keyRowOf(k, customer, now), ID: id.APIKey.Format(k.ID), CustomerID: id.Customer.Format(k.Customer),
		Test: k.Test, Works: k.Status(now) == "active", Replaced: k.ReplacedBy != uuid.Nil, Narrower: narrower(k), Scopes: strings.Join(k.Scopes, ", "), CreatedAt: k.CreatedAt.In(now.Location()),
	}
}

// narrower says what a key may use beside its customer's plan; "" nothing.
func narrower(k tenants.APIKey) string {
	var parts []string
	if len(k.Limits) > 0 {
		parts = append(parts, sentence(k.Limits))
	}
	if len(k.Models) > 0 {
		parts = append(parts, strings.Join(k.Models, ", ")+" only")
	}
	if len(k.IPAllow) > 0 {
		parts = append(parts, ui.Of(int64(len(k.IPAllow)), "address range", "address ranges"))
	}
	return strings.Join(parts, "; ")
}

func sentence(list []limits.Limit) string { return billing.Sentence(list) }

// mayKey tells whether a person may see and end keys of a kind.
func mayKey(role string, kind tenants.KeyKind) bool {
	if kind == tenants.Management {
		return may(role, seeManagementKeys)
	}
	return may(role, seeCustomerKeys)
}

// revokePage asks before a key is revoked, and POST revokes it.
func (p *Pages) revokePage(c echo.Context, who auth.Person, w workspace) error {
	k, err := p.keyOf(c, who)
	if err != nil {
		return err
	}
	ask, err := p.revocation(c.Request().Context(), w, k)
	if err != nil {
		return err
	}
	if c.Request().Method != http.MethodPost {
		return p.ask(c, w, ask)
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	if f.Get("word") != k.Name {
		return p.askAgain(c, w, ask, f)
	}
	if _, err := p.tenants.RevokeAPIKey(asPerson(c, who), who.Tenant, k.ID); err != nil {
		return err
	}
	return done(c, "/keys", "key-revoked")
}

// revocation says what the end of a key means, in numbers of today.
func (p *Pages) revocation(ctx context.Context, w workspace, k tenants.APIKey) (ui.Confirm, error) {
	at := "/keys/" + id.APIKey.Format(k.ID) + "/revoke"
	ask := ui.Confirm{
		Title: "Revoke " + k.Name + "?", Text: "The key stops working within a second, everywhere. It cannot be made to work again.",
		Action: at, Back: "/keys", Keep: "Keep it working", Do: "Revoke " + k.Name, Word: k.Name, Typed: ui.Input{Name: "word"},
	}
	if k.Kind == tenants.Management {
		ask.Consequences = []ui.Consequence{
			ui.Consequence{Tone: ui.Bad}.Of(int64(len(k.Scopes)), "scope ends with it: "+scopeWords(strings.Join(k.Scopes, ", ")), "scopes end with it: "+strings.Join(k.Scopes, ", ")),
			{Tone: ui.OK, Number: "0", Text: "customers are touched: their own keys go on"},
		}
		return ask, nil
	}
	day, err := p.usedToday(ctx, w, usage.ByNothing, usage.Filter{Counter: k.Counter})
	if err != nil {
		return ask, err
	}
	pair, rest, err := p.tenants.WorkingBeside(ctx, w.Tenant.ID, k, w.Now)
	if err != nil {
		return ask, err
	}
	calls := ui.Consequence{}.Of(day[uuid.Nil].Requests+day[uuid.Nil].Refused, "call was made with it today; such calls are refused from now on", "calls were made with it today; such calls are refused from now on")
	if calls.Number != "0" {
		calls.Tone = ui.Bad
	}
	ask.Consequences = []ui.Consequence{
		calls,
		ui.Consequence{}.Of(rest, "other key of this customer goes on working", "other keys of this customer go on working"),
		{Tone: ui.OK, Number: "0", Text: "calls under way are cut: they end as they are, and are billed"},
	}
	if pair > 0 {
		ask.Consequences = append(ask.Consequences, ui.Consequence{Tone: ui.Bad}.Of(pair, "other secret of this key, from a rotation, ends with it", "other secrets of this key, from rotations, end with it"))
	}
	return ask, nil
}
