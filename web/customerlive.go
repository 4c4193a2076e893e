package web

import (
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/id"
	"weir/internal/tenants"
	"weir/web/ui"
)

// The tiles of a customer's page by themselves, as it asks for them again.

func (p *Pages) customerLevelsTile(c echo.Context, who auth.Person, w workspace) error {
	customer, err := param(c, id.Customer, "customer")
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	contract, err := p.billing.ContractOf(ctx, who.Tenant, customer)
	if err != nil {
		return err
	}
	placed := contract.Own
	v := customerPage{
		workspace: w, ID: id.Customer.Format(customer), Name: contract.Customer.Name, Suspended: contract.Customer.SuspendedAt != nil,
		Plan: contractWords(contract),
	}
	v.setEach(placed)
	keys := tile(p, c, "keys", func() (tenants.Page[tenants.APIKey], error) {
		return p.tenants.APIKeys(ctx, who.Tenant, tenants.KeyFilter{Customer: customer}, uuid.Nil, lastRows)
	})
	v.Levels = tile(p, c, "levels", func() ([]ui.Level, error) { return p.customerLevels(ctx, w, placed, keys) })
	return show(c, http.StatusOK, customerLevelsAgain(v))
}

func (p *Pages) customerDayTile(c echo.Context, who auth.Person, w workspace) error {
	v, customer, err := p.customerPart(c, who, w)
	if err != nil {
		return err
	}
	v.Today = tile(p, c, "usage", func() (customerDay, error) { return p.customerDay(c.Request().Context(), w, customer) })
	v.Usage = p.linkTo("/usage", v.ID)
	return show(c, http.StatusOK, customerDayView(v))
}

func (p *Pages) customerHeatTile(c echo.Context, who auth.Person, w workspace) error {
	v, customer, err := p.customerPart(c, who, w)
	if err != nil {
		return err
	}
	v.Heat = tile(p, c, "heat", func() (heat, error) { return p.readHeat(c.Request().Context(), w, customer) })
	return show(c, http.StatusOK, customerHeat(v))
}

// customerPart is where a tile about a customer of the tenant starts from.
func (p *Pages) customerPart(c echo.Context, who auth.Person, w workspace) (customerPage, uuid.UUID, error) {
	customer, err := param(c, id.Customer, "customer")
	if err != nil {
		return customerPage{}, uuid.Nil, err
	}
	_, err = p.tenants.Customer(c.Request().Context(), who.Tenant, customer)
	return customerPage{workspace: w, ID: id.Customer.Format(customer)}, customer, err
}
