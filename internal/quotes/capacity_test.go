package quotes_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/quotes"
	"weir/internal/tenants"
)

// keyFor adds a practice key that carries so many requests a minute.
func (r *rig) keyFor(name string, requests int64) tenants.ProviderKey {
	r.t.Helper()
	k, err := r.tenants.AddProviderKey(r.t.Context(), r.tenant, tenants.NewProviderKey{
		Provider: "practice", Name: name, Limits: []limits.Limit{{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: requests}},
	})
	must(r.t, err)
	return k
}

func (r *rig) ceiling(percent int64) {
	r.t.Helper()
	_, err := r.tenants.Change(r.t.Context(), r.tenant, tenants.TenantChange{CeilingPercent: &percent})
	must(r.t, err)
}

func TestAQuoteOverTheCeilingNeedsAReasonThatIsKept(t *testing.T) {
	r := newRig(t)
	key := r.keyFor("Practice", 400)
	_, token := r.sent(r.wanted()) // nobody chose a ceiling
	_, err := r.quotes[0].Accept(t.Context(), token, yes(1))
	must(t, err) // 500 are sold
	r.ceiling(250)
	q := r.add(r.wanted()) // 1,000 of 400: just 2.5 times
	report, err := r.quotes[0].Capacity(t.Context(), r.tenant, q)
	must(t, err)
	if report.Over() || report.Percent() != 250 {
		t.Fatalf("%d%%, over %v: %+v", report.Percent(), report.Over(), report.Rows)
	}
	if !slices.Equal(report.Tipping, []string{"Team"}) { // a third of 500 would be 1,500 of 400
		t.Fatalf("tipping: %v", report.Tipping)
	}
	r.ceiling(249)
	if _, err := r.quotes[0].Send(t.Context(), r.tenant, q.ID, ""); code(err) != "over_capacity" || !fault.Is(err, fault.Refused) || !strings.Contains(err.Error(), "2.5 times") {
		t.Fatalf("without a reason: %v", err)
	}
	if r.mails() != 2 { // the first quote's, and its portal link
		t.Fatalf("%d mails", r.mails())
	}
	q, err = r.quotes[0].Send(t.Context(), r.tenant, q.ID, "we add a second account")
	must(t, err)
	if q.Offer.Reason != "we add a second account" || q.Offer.RatioPercent == nil || *q.Offer.RatioPercent != 250 {
		t.Fatalf("%+v", q.Offer)
	}
	// A key that rests carries nothing, and is named.
	r.sql(`
		insert into provider_health (tenant_id, provider_key_id, model, version, source, reason, status, since, until) values ($1, $2, '', 1, 'auth', 'auth', 401, $3, $4)
		on conflict (tenant_id, provider_key_id, model) do update set source = 'auth', reason = 'auth', status = 401, since = $3, until = $4`, key.ID, r.clock(), r.clock().Add(time.Hour))
	report, err = r.quotes[0].Capacity(t.Context(), r.tenant, q)
	must(t, err)
	if len(report.Rows) == 0 || len(report.Rows[0].Resting) != 1 || report.Rows[0].Measures[0].Carried != 0 {
		t.Fatalf("%+v", report.Rows)
	}
}

func TestAnExistingCustomersQuoteCountsInThePlaceOfWhatItHas(t *testing.T) {
	r := newRig(t)
	r.keyFor("Practice", 500)
	c, err := r.tenants.AddCustomer(t.Context(), r.tenant, tenants.NewCustomer{Name: "Kestrel"})
	must(t, err)
	_, err = r.billing.Subscribe(t.Context(), r.tenant, c.ID, r.plan.ID)
	must(t, err)
	w := r.wanted()
	w.Customer, w.Own = c.ID, ownTerms(900, "99.00")
	report, err := r.quotes[0].Capacity(t.Context(), r.tenant, r.add(w))
	must(t, err)
	if m := report.Rows[0].Measures[0]; m.Sold != 500 || m.After != 900 || m.Carried != 500 {
		t.Fatalf("%+v", m)
	}
	report, err = r.quotes[0].Capacity(t.Context(), r.tenant, r.add(quotes.Wanted{To: r.wanted().To, Plan: r.plan.ID}))
	must(t, err)
	if m := report.Rows[0].Measures[0]; m.Sold != 500 || m.After != 1000 {
		t.Fatalf("%+v", m)
	}
}

func TestAnOverrideCountsInThePlaceOfWhatACustomersQuoteSays(t *testing.T) {
	r := newRig(t)
	r.keyFor("Practice", 500)
	c, err := r.tenants.AddCustomer(t.Context(), r.tenant, tenants.NewCustomer{Name: "Kestrel"})
	must(t, err)
	_, err = r.billing.Subscribe(t.Context(), r.tenant, c.ID, r.plan.ID)
	must(t, err)
	until := r.clock().Add(time.Hour)
	_, err = r.billing.AddOverride(t.Context(), r.tenant, billing.NewOverride{
		Customer: c.ID, Reason: "a fair", Until: &until, Limit: limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 2000},
	})
	must(t, err)
	w := r.wanted()
	w.Customer, w.Own = c.ID, ownTerms(900, "99.00")
	q := r.add(w)
	for _, want := range [][2]int64{{2000, 2000}, {500, 900}} {
		report, err := r.quotes[0].Capacity(t.Context(), r.tenant, q)
		must(t, err)
		if m := report.Rows[0].Measures[0]; m.Sold != want[0] || m.After != want[1] {
			t.Errorf("%+v", m)
		}
		r.pass(time.Hour)
	}
}
