package quotes_test

import (
	"testing"

	"weir/internal/billing"
	"weir/internal/limits"
	"weir/internal/quotes"
	"weir/internal/tenants"
)

func TestAnErasedCustomerIsNamedInNoneOfItsQuotesAndMails(t *testing.T) {
	r := newRig(t)
	w := r.wanted()
	w.Note = "Dear Adaeze"
	_, token := r.sent(w)
	got, err := r.quotes[0].Accept(t.Context(), token, yes(1))
	must(t, err)
	w.Customer = got.Result.Customer
	_, second := r.sent(w)
	_, third := r.sent(w)
	_, err = r.quotes[0].Decline(t.Context(), third, 1, "too dear, says Adaeze")
	must(t, err)
	_, err = r.billing.AddOverride(t.Context(), r.tenant, billing.NewOverride{
		Customer: got.Result.Customer, Reason: "Adaeze asked for it", Limit: limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 700},
	})
	must(t, err)
	other := r.wanted()
	other.To = quotes.Recipient{Name: "Bo Kestrel", Email: "bo@kestrel.example"}
	kept, _ := r.sent(other)
	for range 2 {
		_, err = r.tenants.EraseCustomer(t.Context(), r.tenant, got.Result.Customer, quotes.Forget, billing.Forget)
		must(t, err)
	}
	for what, sql := range map[string]string{
		"quotes":    `select count(*) from quotes x where tenant_id = $1 and x::text ~* 'adaeze|marlow'`,
		"versions":  `select count(*) from quote_versions x where tenant_id = $1 and x::text ~* 'adaeze|marlow'`,
		"overrides": `select count(*) from overrides x where tenant_id = $1 and x::text ~* 'adaeze|marlow'`,
		"messages":  `select count(*) from webhook_messages x where tenant_id = $1 and x::text ~* 'adaeze|marlow'`,
		"entries":   `select count(*) from audit_entries x where tenant_id = $1 and action like 'quote.%' and x::text ~* 'adaeze|marlow|too dear'`,
		"mails":     `select count(*) from mails x where tenant_id = $1 and x::text ~* 'adaeze|marlow'`,
	} {
		if n := r.count(sql); n != 0 {
			t.Errorf("%d %s name who was erased", n, what)
		}
	}
	if p, err := r.quotes[1].Open(t.Context(), token, true); err != nil || p.Status != quotes.Accepted || p.To.Name != tenants.ErasedName || p.Result != got.Result {
		t.Errorf("what was accepted: %+v, %v", p.Quote, err)
	}
	if _, err := r.quotes[1].Accept(t.Context(), second, yes(1)); code(err) != "quote_withdrawn" {
		t.Errorf("what was open yet: %v", err)
	}
	if q, err := r.quotes[0].Quote(t.Context(), r.tenant, kept.ID, 0); err != nil || q.To != other.To || r.count(`select count(*) from webhook_messages where tenant_id = $1 and body like '%Bo Kestrel%'`) != 1 || !q.Status.Open() || r.count(`select count(*) from mails where tenant_id = $1 and recipient = 'bo@kestrel.example'`) != 1 {
		t.Errorf("another's: %+v, %v", q, err)
	}
}
