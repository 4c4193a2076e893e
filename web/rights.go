package web

import "slices"

// right is something that not every member may see or do.
type right string

const (
	seeMoney          right = "money"
	seeCustomerKeys   right = "customer keys"
	seeManagementKeys right = "management keys"
	seeProviderKeys   right = "provider keys"
	seeModels         right = "models"
	seeWebhooks       right = "webhooks"
	seeAlerts         right = "alerts"
	seeCustomers      right = "customers"
	changeCustomers   right = "changing customers and their keys"
	changePlans       right = "changing plans and subscriptions"
	changeTenant      right = "the organisation's settings"
	seeAudit          right = "the audit"
	keepBooks         right = "erasing customers and summing days again"
)

// rights is what each role sees and does beside reading usage, limits and
// plans, which every member does. Who sees keys of a kind may make and revoke
// them; who sees provider keys, pools, aliases, webhooks and alerts may change them. Billing sees customers because it puts them on plans.
var rights = map[string][]right{
	"owner":     {seeMoney, seeCustomerKeys, seeManagementKeys, seeProviderKeys, seeModels, seeWebhooks, seeAlerts, seeCustomers, changeCustomers, changePlans, changeTenant, seeAudit, keepBooks},
	"admin":     {seeMoney, seeCustomerKeys, seeManagementKeys, seeProviderKeys, seeModels, seeWebhooks, seeAlerts, seeCustomers, changeCustomers, changePlans, seeAudit, keepBooks},
	"developer": {seeCustomerKeys, seeModels, seeCustomers, changeCustomers},
	"billing":   {seeMoney, seeAlerts, seeCustomers, changePlans},
	"viewer":    {},
}

func may(role string, r right) bool { return slices.Contains(rights[role], r) }
