package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"weir/test/stack"
)

var weir *stack.Stack

// TestMain runs tests and examples against one installation. The examples find
// it as a program of one's own would: WEIR_URL and WEIR_KEY.
func TestMain(m *testing.M) {
	os.Exit(stack.Run(m, func(s *stack.Stack) {
		weir = s
		if err := prepare(context.Background(), s); err != nil {
			panic(err)
		}
	}))
}

// prepare makes the customer whose key the examples have.
func prepare(ctx context.Context, s *stack.Stack) error {
	tenant, err := s.Admin(ctx, "create-tenant", "--name", "Examples", "--owner-email", "owner@example.com")
	if err != nil {
		return err
	}
	made := func(path, body string) string {
		a, failed := s.Do(ctx, "POST", path, tenant.Text("management_key"), body)
		if failed == nil && a.Status/100 != 2 {
			failed = fmt.Errorf("%s: %s", path, a)
		}
		err = errors.Join(err, failed)
		if secret := a.Text("secret"); secret != "" {
			return secret
		}
		return a.Text("id")
	}
	plan := made("/api/v1/plans", `{"name": "Starter", "limits": [{"dimension": "tokens", "window": "day", "amount": 200000}]}`)
	made("/api/v1/plans/"+plan+"/publish", "")
	customer := made("/api/v1/customers", `{"name": "Ada's Apps"}`)
	made("/api/v1/subscriptions", fmt.Sprintf(`{"customer": %q, "plan": %q}`, customer, plan))
	key := made("/api/v1/api-keys", fmt.Sprintf(`{"kind": "customer", "customer": %q, "name": "Examples", "may_settle": true}`, customer))
	return errors.Join(err, os.Setenv("WEIR_URL", s.BaseURL()), os.Setenv("WEIR_KEY", key))
}
