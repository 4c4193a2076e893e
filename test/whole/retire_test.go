package whole

import (
	"strings"
	"testing"

	"weir/internal/id"
	"weir/test/stack"
)

// TestTheOperatorRetiresAnInstanceFromATerminal: one that is gone, in the audit of
// the operator's own tenant, and no other tenant's word does.
func TestTheOperatorRetiresAnInstanceFromATerminal(t *testing.T) {
	other := weir.Tenant(t, "")
	a, err := weir.Admin(t.Context(), "create-tenant", "--name", "Operator", "--owner-email", "op@weir.example", "--operator")
	if err != nil {
		t.Fatal(err)
	}
	operator, err := id.Tenant.Parse(a.Text("tenant"))
	if err != nil {
		t.Fatal(err)
	}
	gone := id.New().String()
	stack.Rows[string](t, weir, `insert into instances (instance_id, host, started_at, seen_at) values ($1, 'gone', now() - interval '1 day', now() - interval '1 hour') returning host`, gone)
	if _, err := weir.Admin(t.Context(), "retire-instance", "--instance", gone, "--tenant", other.Tenant); err == nil || !strings.Contains(err.Error(), "not the operator's") {
		t.Errorf("another tenant's word: %v", err)
	}
	if _, err := weir.Admin(t.Context(), "retire-instance", "--instance", gone, "--tenant", a.Text("tenant")); err != nil {
		t.Fatal(err)
	}
	if retired := stack.Value[bool](t, weir, `select retired_at is not null from instances where instance_id = $1`, gone); !retired {
		t.Error("it is not retired")
	}
	if got := stack.Rows[string](t, weir, `select actor_kind from audit_entries where tenant_id = $1 and action = 'instance.retired' and object = $2`, operator.String(), gone); len(got) != 1 || got[0] != "operator" {
		t.Errorf("the audit has %v", got)
	}
}
