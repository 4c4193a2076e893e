package tenants

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/limits"
)

// Scopes of management keys: a resource and read or write; "*" is all of them.
var Scopes = []string{
	"*", "tenant:read", "tenant:write", "provider-keys:read", "provider-keys:write",
	"pools:read", "pools:write", "model-aliases:read", "model-aliases:write", "models:read", "plans:read", "plans:write",
	"customers:read", "customers:write", "subscriptions:read", "subscriptions:write", "overrides:read", "overrides:write",
	"api-keys:read", "api-keys:write", "webhook-endpoints:read", "webhook-endpoints:write", "webhook-messages:read", "webhook-messages:write",
	"alerts:read", "alerts:write", "catalogue:read", "catalogue:write", "usage:read", "requests:read", "money:read", "audit:read", "events:write", "decisions:write",
}

const (
	latestExpiry = 50 // years
	maxKeyModels = 200
)

// checked returns n with defaults, or every field that is wrong.
func (n NewAPIKey) checked(now time.Time) (NewAPIKey, error) {
	wrong := CheckName("/name", n.Name)
	wrong = append(wrong, n.checkKind()...)
	for i, m := range n.Models {
		if !catalogue.ValidModel(m) {
			wrong = append(wrong, fault.Field{Pointer: fmt.Sprintf("/models/%d", i), Code: "bad_model", Message: "This is not a model name."})
		}
	}
	if len(n.Models) > maxKeyModels {
		wrong = append(wrong, fault.Field{Pointer: "/models", Code: "too_many", Message: "A key names at most 200 models."})
	}
	if n.Models != nil && len(n.Models) == 0 {
		wrong = append(wrong, fault.Field{Pointer: "/models", Code: "empty", Message: "An empty list would allow no model; leave it out to allow all."})
	}
	if n.ExpiresAt != nil && n.ExpiresAt.After(now.AddDate(latestExpiry, 0, 0)) {
		wrong = append(wrong, fault.Field{Pointer: "/expires_at", Code: "too_late", Message: "The expiry may lie at most 50 years ahead; leave it out for none."})
	}
	if n.ExpiresAt != nil && !n.ExpiresAt.After(now) {
		wrong = append(wrong, fault.Field{Pointer: "/expires_at", Code: "in_the_past", Message: "The expiry must lie in the future."})
	}
	for i := range n.Limits {
		n.Limits[i] = limits.Default(n.Limits[i])
	}
	wrong = append(wrong, limits.Check(n.Limits)...)
	if len(wrong) > 0 {
		return n, fault.InvalidFields(wrong...)
	}
	return n, nil
}

func (n NewAPIKey) checkKind() (wrong []fault.Field) {
	switch n.Kind {
	case ForCustomer:
		if n.Customer == uuid.Nil {
			wrong = append(wrong, fault.Field{Pointer: "/customer", Code: "required", Message: "A customer key needs its customer."})
		}
		if len(n.Scopes) > 0 {
			wrong = append(wrong, fault.Field{Pointer: "/scopes", Code: "not_for_this_kind", Message: "Scopes are for management keys; a customer key serves its customer."})
		}
	case Management:
		if len(n.Scopes) == 0 {
			wrong = append(wrong, fault.Field{Pointer: "/scopes", Code: "required", Message: "A management key needs at least one scope, such as usage:read."})
		}
		for i, s := range n.Scopes {
			if !slices.Contains(Scopes, s) {
				wrong = append(wrong, fault.Field{Pointer: fmt.Sprintf("/scopes/%d", i), Code: "unknown_scope", Message: "There is no such scope; known ones are " + strings.Join(Scopes, ", ") + "."})
			}
		}
		for pointer, set := range map[string]bool{"/customer": n.Customer != uuid.Nil, "/limits": len(n.Limits) > 0, "/models": n.Models != nil, "/test": n.Test, "/may_settle": n.MaySettle} {
			if set {
				wrong = append(wrong, fault.Field{Pointer: pointer, Code: "not_for_this_kind", Message: "This is for customer keys."})
			}
		}
	default:
		wrong = append(wrong, fault.Field{Pointer: "/kind", Code: "not_one_of", Message: "This must be customer or management."})
	}
	slices.SortFunc(wrong, func(a, b fault.Field) int { return strings.Compare(a.Pointer, b.Pointer) })
	return wrong
}
