package notify

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/billing"
	"weir/internal/limits"
	"weir/internal/tenants"
)

func TestWhatHappensToATenantIsToldOnceWithoutSecrets(t *testing.T) {
	r := newRig(t)
	r.endpoint(newFar(t, 200))
	ctx := t.Context()
	bills := billing.New(r.pg.App, r.clock)
	c, err := r.tenants.AddCustomer(ctx, r.tenant, tenants.NewCustomer{Name: "Kestrel"})
	name := "Kestrel Support"
	_, err1 := r.tenants.ChangeCustomer(ctx, r.tenant, c.ID, tenants.CustomerChange{Name: &name})
	_, err2 := r.tenants.SuspendCustomer(ctx, r.tenant, c.ID)
	_, err3 := r.tenants.SuspendCustomer(ctx, r.tenant, c.ID)
	_, err4 := r.tenants.ResumeCustomer(ctx, r.tenant, c.ID)
	k, err5 := r.tenants.AddAPIKey(ctx, r.tenant, tenants.NewAPIKey{Kind: tenants.ForCustomer, Customer: c.ID, Name: "main"})
	_, made, err6 := r.tenants.RotateAPIKey(ctx, r.tenant, k.ID, time.Hour)
	_, err7 := r.tenants.RevokeAPIKey(ctx, r.tenant, k.ID)
	p, err8 := bills.AddPlan(ctx, r.tenant, "Team", billing.NewVersion{Limits: []limits.Limit{{Dimension: limits.DimensionRequests, Window: limits.WindowDay, Amount: 10}}})
	if err := errors.Join(err, err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
		t.Fatal(err)
	}
	_, err = bills.Publish(ctx, r.tenant, p.ID)
	_, err1 = bills.Subscribe(ctx, r.tenant, c.ID, p.ID)
	pk, err2 := r.tenants.AddProviderKey(ctx, r.tenant, tenants.NewProviderKey{Provider: "practice", Name: "P"})
	if err := errors.Join(err, err1, err2); err != nil {
		t.Fatal(err)
	}
	at := r.clock()
	for range 2 { // one burst is one cooldown
		_, err = r.tenants.ReportFailure(ctx, r.tenant, pk.ID, "m", limits.Failure{Status: 429, Wait: time.Minute, Sent: at, At: at})
	}
	_, err1 = r.tenants.ClearCooldowns(ctx, r.tenant, tenants.Cleared{})
	_, err2 = r.tenants.ReportFailure(ctx, r.tenant, pk.ID, "m", limits.Failure{Status: 401, Sent: at, At: at})
	if err := errors.Join(err, err1, err2); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range r.all() {
		got = append(got, string(m.Type))
		if strings.Contains(m.Body, k.Secret) || strings.Contains(m.Body, made.Secret) {
			t.Errorf("%s holds a secret", m.Type)
		}
	}
	slices.Reverse(got)
	want := []string{
		"customer.created", "customer.changed", "customer.suspended", "customer.resumed", "api_key.created", "api_key.rotated", "api_key.revoked",
		"plan.published", "subscription.created", "provider_key.cooling", "provider_key.recovered", "provider_key.failed", "provider_key.cooling",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}
