package web

import "slices"

// right is something that not every member may see.
type right string

const (
	seeMoney          right = "money"
	seeCustomerKeys   right = "customer keys"
	seeManagementKeys right = "management keys"
	seeProviderKeys   right = "provider keys"
)

// rights is what each role sees beside usage, limits and plans, which every
// member does.
var rights = map[string][]right{
	"owner":     {seeMoney, seeCustomerKeys, seeManagementKeys, seeProviderKeys},
	"admin":     {seeMoney, seeCustomerKeys, seeManagementKeys, seeProviderKeys},
	"developer": {seeCustomerKeys},
	"billing":   {seeMoney},
	"viewer":    {},
}

func may(role string, r right) bool { return slices.Contains(rights[role], r) }
