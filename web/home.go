package web

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
	"weir/web/ui"
)

// lastRows is how many keys the home page lists of each kind.
const lastRows = 10

// home is what the first page shows. A tile that could not be read is nil.
type home struct {
	Frame     frame
	Now       time.Time // in the tenant's zone
	RequestID string
	Today     *today
	Keys      *keyList[keyRow]
	Providers *keyList[providerRow]
	Sees      struct{ Keys, Providers bool }
	Begin     []beginStep // while something is missing before a first call
}

type keyList[T any] struct {
	Rows []T
	More bool
}

type keyRow struct {
	Name, Kind, Customer, Shown string
	Tone                        ui.Tone
	State                       string
	LastUsed                    time.Time // zero: never
}

type providerRow struct {
	Name, Provider, Last4 string
	Practice              bool
	Tone                  ui.Tone
	State, Reason         string
	Models                int
}

// home answers GET /: the tenant's day and the keys that it works with.
func (p *Pages) home(c echo.Context, who auth.Person) error {
	ctx := c.Request().Context()
	t, err := p.tenants.Get(ctx, who.Tenant)
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(t.Zone)
	if err != nil {
		return err
	}
	h := home{
		Frame: frame{Tenant: t.Name, Zone: t.Zone, Currency: t.Currency, Person: cmp.Or(who.User.Name, who.User.Email), Role: who.Role},
		Now:   p.now().In(zone), RequestID: requestID(c),
	}
	h.Sees.Keys, h.Sees.Providers = may(who.Role, seeCustomerKeys), may(who.Role, seeProviderKeys)
	h.Today = tile(p, c, "usage", func() (today, error) { return p.today(ctx, t, h.Now, may(who.Role, seeMoney)) })
	if h.Sees.Keys {
		h.Keys = tile(p, c, "api keys", func() (keyList[keyRow], error) { return p.lastKeys(ctx, who, h.Now) })
	}
	if h.Sees.Providers {
		h.Providers = tile(p, c, "provider keys", func() (keyList[providerRow], error) { return p.lastProviders(ctx, t.ID) })
	}
	if h.Keys != nil && h.Providers != nil {
		h.Begin = begin(p.publicURL, len(h.Providers.Rows) > 0, h.Keys.More || h.hasCustomerKey())
	}
	return show(c, http.StatusOK, homeView(h))
}

// tile reads one part of a page. An error is logged and costs that part only.
func tile[T any](p *Pages, c echo.Context, what string, read func() (T, error)) *T {
	v, err := read()
	if err != nil {
		p.log.Error("tile failed", "request_id", requestID(c), "tile", what, "error", err.Error())
		return nil
	}
	return &v
}

func (h home) hasCustomerKey() bool {
	for _, k := range h.Keys.Rows {
		if k.Kind == string(tenants.ForCustomer) {
			return true
		}
	}
	return false
}

// lastKeys are the newest keys that a person may see.
func (p *Pages) lastKeys(ctx context.Context, who auth.Person, now time.Time) (keyList[keyRow], error) {
	var filter tenants.KeyFilter
	if !may(who.Role, seeManagementKeys) {
		filter.Kind = tenants.ForCustomer
	}
	page, err := p.tenants.APIKeys(ctx, who.Tenant, filter, uuid.Nil, lastRows)
	if err != nil {
		return keyList[keyRow]{}, err
	}
	list := keyList[keyRow]{More: page.Next != uuid.Nil}
	names := map[uuid.UUID]string{uuid.Nil: ""}
	for _, k := range page.Items {
		if _, known := names[k.Customer]; !known {
			if names[k.Customer], err = p.customerName(ctx, who.Tenant, k.Customer); err != nil {
				return list, err
			}
		}
		list.Rows = append(list.Rows, keyRowOf(k, names[k.Customer], now))
	}
	return list, nil
}

// customerName is a customer's name, or the id of one that is gone.
func (p *Pages) customerName(ctx context.Context, tenant, customer uuid.UUID) (string, error) {
	c, err := p.tenants.Customer(ctx, tenant, customer)
	if fault.Is(err, fault.NotFound) {
		return id.Customer.Format(customer), nil
	}
	return c.Name, err
}

func keyRowOf(k tenants.APIKey, customer string, now time.Time) keyRow {
	row := keyRow{Name: k.Name, Kind: string(k.Kind), Customer: customer, Shown: "weir_live_" + k.First4 + "…" + k.Last4, Tone: ui.OK, State: "works"}
	if k.Test {
		row.Shown = "weir_test_" + k.First4 + "…" + k.Last4
	}
	if k.LastUsedAt != nil {
		row.LastUsed = k.LastUsedAt.In(now.Location())
	}
	switch k.Status(now) {
	case "revoked":
		row.Tone, row.State = ui.Idle, "revoked "+ui.Instant(k.RevokedAt.In(now.Location()), now)
	case "expired":
		row.Tone, row.State = ui.Idle, "expired "+ui.Instant(k.ExpiresAt.In(now.Location()), now)
	}
	return row
}

func (p *Pages) lastProviders(ctx context.Context, tenant uuid.UUID) (keyList[providerRow], error) {
	page, err := p.tenants.ProviderKeys(ctx, tenant, uuid.Nil, lastRows)
	list := keyList[providerRow]{More: page.Next != uuid.Nil}
	for _, k := range page.Items {
		list.Rows = append(list.Rows, providerRowOf(k))
	}
	return list, err
}

func providerRowOf(k tenants.ProviderKey) providerRow {
	row := providerRow{Name: k.Name, Provider: k.Provider, Last4: k.Last4, Models: len(k.Models), Reason: k.StatusReason}
	if known, ok := catalogue.Lookup(k.Provider); ok {
		row.Provider, row.Practice = known.Name, known.Practice
	}
	switch k.Status {
	case tenants.Active:
		row.Tone, row.State = ui.OK, "works"
	case tenants.Unverified:
		row.Tone, row.State = ui.Warn, "could not be checked"
	case tenants.Invalid:
		row.Tone, row.State = ui.Bad, "refused by the provider"
	case tenants.Disabled:
		row.Tone, row.State = ui.Idle, "switched off"
	default:
		row.Tone, row.State = ui.Idle, string(k.Status)
	}
	return row
}
