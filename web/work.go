package web

import "github.com/labstack/echo/v4"

// mountWork puts the pages on e by which a tenant is run: what they show and
// change, and the right that each needs.
func (p *Pages) mountWork(e *echo.Echo) {
	p.get(e, "/plans", p.page("", p.plans))
	p.get(e, "/plans/new", p.page(changePlans, p.newPlan))
	p.post(e, "/plans", p.page(changePlans, p.addPlan))
	p.post(e, "/plans/preview", p.page(changePlans, p.previewPlan))
	p.get(e, "/plans/:id", p.page("", p.plan))
	p.get(e, "/plans/:id/edit", p.page(changePlans, p.editPlan))
	p.post(e, "/plans/:id", p.page(changePlans, p.saveDraft))
	p.post(e, "/plans/:id/publish", p.page(changePlans, p.publish))
	p.get(e, "/customers", p.page(seeCustomers, p.customers))
	p.get(e, "/customers/new", p.page(changeCustomers, p.newCustomer))
	p.post(e, "/customers", p.page(changeCustomers, p.addCustomer))
	p.get(e, "/customers/:id", p.page(seeCustomers, p.customer))
	p.get(e, "/customers/:id/edit", p.page(changeCustomers, p.editCustomer))
	p.post(e, "/customers/:id", p.page(changeCustomers, p.saveCustomer))
	p.post(e, "/customers/:id/move", p.page(changePlans, p.moveCustomer))
	p.get(e, "/customers/:id/suspend", p.page(changeCustomers, p.suspendPage))
	p.post(e, "/customers/:id/suspend", p.page(changeCustomers, p.suspendPage))
	p.post(e, "/customers/:id/resume", p.page(changeCustomers, p.resumeCustomer))
	p.post(e, "/customers/:id/plan", p.page(changePlans, p.subscribe))
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
	p.get(e, "/keys/:id", p.page(seeCustomerKeys, p.key))
	p.post(e, "/keys/:id/name", p.page(seeCustomerKeys, p.renameKey))
	p.post(e, "/keys/:id/rotate", p.page(seeCustomerKeys, p.rotateKey))
	p.get(e, "/keys/:id/revoke", p.page(seeCustomerKeys, p.revokePage))
	p.post(e, "/keys/:id/revoke", p.page(seeCustomerKeys, p.revokePage))
}
