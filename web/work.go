package web

import "github.com/labstack/echo/v4"

// mountWork puts the pages on e by which a tenant is run: what they show and
// change, and the right that each needs.
func (p *Pages) mountWork(e *echo.Echo) {
	p.get(e, "/providers", p.page(seeProviderKeys, p.providers))
	p.get(e, "/providers/new", p.page(seeProviderKeys, p.newProvider))
	p.post(e, "/providers", p.page(seeProviderKeys, p.addProvider))
	p.get(e, "/providers/:id", p.page(seeProviderKeys, p.provider))
	p.post(e, "/providers/:id/verify", p.page(seeProviderKeys, p.verifyProvider))
	p.get(e, "/providers/:id/remove", p.page(seeProviderKeys, p.removeProvider))
	p.post(e, "/providers/:id/remove", p.page(seeProviderKeys, p.removeProvider))
	p.get(e, "/keys", p.page(seeCustomerKeys, p.keys))
	p.get(e, "/keys/new", p.page(seeCustomerKeys, p.newKeyPage))
	p.post(e, "/keys", p.page(seeCustomerKeys, p.makeKey))
	p.get(e, "/keys/new/management", p.page(seeManagementKeys, p.newManagementKeyPage))
	p.post(e, "/keys/management", p.page(seeManagementKeys, p.makeManagementKey))
	p.get(e, "/keys/:id/revoke", p.page(seeCustomerKeys, p.revokePage))
	p.post(e, "/keys/:id/revoke", p.page(seeCustomerKeys, p.revokePage))
}
