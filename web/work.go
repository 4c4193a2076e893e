package web

import "github.com/labstack/echo/v4"

// mountWork puts the pages on e by which a tenant is run: what they show and
// change, and the right that each needs.
func (p *Pages) mountWork(e *echo.Echo) {
	p.get(e, "/keys", p.page(seeCustomerKeys, p.keys))
	p.get(e, "/keys/new", p.page(seeCustomerKeys, p.newKeyPage))
	p.post(e, "/keys", p.page(seeCustomerKeys, p.makeKey))
	p.get(e, "/keys/new/management", p.page(seeManagementKeys, p.newManagementKeyPage))
	p.post(e, "/keys/management", p.page(seeManagementKeys, p.makeManagementKey))
	p.get(e, "/keys/:id/revoke", p.page(seeCustomerKeys, p.revokePage))
	p.post(e, "/keys/:id/revoke", p.page(seeCustomerKeys, p.revokePage))
}
