package quotes_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/quotes"
	"weir/internal/tenants"
)

func TestQuotesMadeAtOnceAreNumberedWithoutGapsByTheTenantsYear(t *testing.T) {
	r := newRig(t)
	r.pass(time.Hour) // 2027 in Berlin, 2026 in UTC
	var mu sync.Mutex
	var numbers []string
	must(t, joined(r.atOnce(func(s *quotes.Service) error {
		q, err := s.Add(t.Context(), r.tenant, r.wanted())
		mu.Lock()
		numbers = append(numbers, q.Number)
		mu.Unlock()
		return err
	})))
	slices.Sort(numbers)
	if len(slices.Compact(numbers)) != 20 || numbers[0] != "Q-2027-001" || numbers[19] != "Q-2027-020" {
		t.Fatalf("%v", numbers)
	}
}

func TestADraftNamesEveryFieldThatIsWrong(t *testing.T) {
	r := newRig(t)
	_, err := r.quotes[0].Add(t.Context(), r.tenant, quotes.Wanted{
		To: quotes.Recipient{Email: "nobody"}, ValidUntil: r.clock().Add(-time.Hour), Volumes: []quotes.Volume{{Model: "a", Input: -1}, {Model: "a"}},
	})
	var at []string
	for _, f := range fault.Of(err).Fields {
		at = append(at, f.Pointer)
	}
	slices.Sort(at)
	if want := []string{"/plan", "/to/email", "/to/name", "/valid_until", "/volumes/0/input_tokens", "/volumes/1/model"}; !slices.Equal(at, want) {
		t.Fatalf("%v", at)
	}
	if n := r.count(`select count(*) from quotes where tenant_id = $1`); n != 0 {
		t.Fatalf("%d quotes are left", n)
	}
}

func TestAQuoteSentTwiceAndAtOnceIsSentOnce(t *testing.T) {
	r := newRig(t)
	q := r.add(r.wanted())
	if link, err := r.quotes[0].Link(t.Context(), r.tenant, q.ID); link != "" || err != nil {
		t.Fatalf("a draft has the link %q, %v", link, err)
	}
	must(t, joined(r.atOnce(func(s *quotes.Service) error {
		_, err := s.Send(t.Context(), r.tenant, q.ID, "")
		return err
	})))
	if r.mails() != 1 || r.told("quote.sent") != 1 {
		t.Fatalf("%d mails, %d messages", r.mails(), r.told("quote.sent"))
	}
	if n := r.count(`select count(*) from mails where tenant_id = $1 and body like '%/q/%'`); n != 0 {
		t.Fatal("the link waits to be sent in the clear")
	}
	q, err := r.quotes[1].Quote(t.Context(), r.tenant, q.ID, 0)
	must(t, err)
	if end := time.Date(2027, 1, 15, 0, 0, 0, 0, time.FixedZone("", 3600)); q.Status != quotes.Sent || !q.Offer.ValidUntil.Equal(end) {
		t.Fatalf("%s until %v", q.Status, q.Offer.ValidUntil)
	}
}

func TestWhatWasSentIsFrozen(t *testing.T) {
	r := newRig(t)
	own := ownTerms(700, "99.00")
	w := r.wanted()
	w.Own = own
	q, _ := r.sent(w)
	for _, sql := range []string{
		`update quote_versions set note = 'x' where tenant_id = $1 and quote_id = $2`,
		`update quote_versions set valid_until = valid_until + interval '1 day' where tenant_id = $1 and quote_id = $2`,
		`update plan_versions set base_fee_minor = 1 where tenant_id = $1 and plan_id = (select plan_id from plans where quote_id = $2)`,
	} {
		if r.try(sql, q.ID) == nil {
			t.Errorf("%s went through", sql)
		}
	}
}

func TestAcceptedTwiceAndAtOnceAQuoteHasOneResultAndShowsTheSecretOnce(t *testing.T) {
	r := newRig(t)
	q, token := r.sent(r.wanted())
	var mu sync.Mutex
	var secrets []string
	results := map[quotes.Result]bool{}
	accept := func(s *quotes.Service) error {
		got, err := s.Accept(t.Context(), token, yes(1))
		mu.Lock()
		defer mu.Unlock()
		results[got.Result] = true
		if got.Secret != "" {
			secrets = append(secrets, got.Secret)
		}
		return err
	}
	must(t, joined(r.atOnce(accept)))
	must(t, accept(r.quotes[0]))
	if len(results) != 1 || len(secrets) != 1 {
		t.Fatalf("%d results, %d secrets", len(results), len(secrets))
	}
	for what, sql := range map[string]string{
		"customers":     `select count(*) from customers where tenant_id = $1`,
		"subscriptions": `select count(*) from subscriptions where tenant_id = $1`,
		"keys":          `select count(*) from api_keys where tenant_id = $1 and kind = 'customer'`,
		"told":          `select count(*) from webhook_messages where tenant_id = $1 and type = 'quote.accepted'`,
		"links":         `select count(*) from mails where tenant_id = $1 and recipient = 'adaeze@marlow.example' and body like '%/portal/%'`,
		"entries":       `select count(*) from audit_entries where tenant_id = $1 and action = 'quote.accepted'`,
	} {
		if n := r.count(sql); n != 1 {
			t.Errorf("%d %s", n, what)
		}
	}
	q, err := r.quotes[1].Quote(t.Context(), r.tenant, q.ID, 0)
	must(t, err)
	c, err := r.billing.ContractOf(t.Context(), r.tenant, q.Result.Customer)
	must(t, err)
	if q.Status != quotes.Accepted || c.RequireActive() != nil || c.Version.ID != r.plan.Version.ID || c.Customer.Name != "Marlow & Finch" || c.Customer.Email != "adaeze@marlow.example" {
		t.Fatalf("%+v %+v", q, c)
	}
}

func TestAQuoteWithTermsOfItsOwnBecomesExactlyThem(t *testing.T) {
	r := newRig(t)
	own := ownTerms(700, "99.00")
	w := r.wanted()
	w.Own = own
	_, token := r.sent(w)
	got, err := r.quotes[0].Accept(t.Context(), token, yes(1))
	must(t, err)
	c, err := r.billing.ContractOf(t.Context(), r.tenant, got.Result.Customer)
	must(t, err)
	if c.Limits[0].Amount != 700 || c.Version.BaseFee != 9900 || len(c.Version.Prices) != 2 || c.Plan != "Team" {
		t.Fatalf("%+v", c)
	}
	plans, err := r.billing.Plans(t.Context(), r.tenant, uuid.Nil, 10)
	must(t, err)
	found, err := r.billing.FindPlans(t.Context(), r.tenant, "team", uuid.Nil, 10)
	must(t, err)
	if len(plans.Items) != 1 || len(found) != 1 || plans.Items[0].ID != r.plan.ID {
		t.Fatalf("the list of plans holds what one quote offers: %+v", plans.Items)
	}
}

func TestAQuoteWithAFeeOfItsOwnHasEverythingElseOfItsPlan(t *testing.T) {
	r := newRig(t)
	n := terms(500, "49.00")
	n.Limits = append(n.Limits, limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 5_000_000})
	plan, err := r.billing.AddPublished(t.Context(), r.tenant, "Daily", n)
	must(t, err)
	w := r.wanted()
	w.Plan, w.Own = plan.ID, &quotes.Own{BaseFee: &money.Amount{Amount: "9.00", Currency: "EUR"}}
	q, _ := r.sent(w)
	if got := q.Offer.Terms; got.BaseFee != 900 || len(got.Limits) != 2 || got.Limits[0].Amount != 500 || len(got.Prices) != 2 {
		t.Fatalf("%+v", got)
	}
}

func TestARevisedQuoteKeepsItsLinkAndSupersedesWhatWasSent(t *testing.T) {
	r := newRig(t)
	q, token := r.sent(r.wanted())
	own := ownTerms(800, "59.00")
	w := r.wanted()
	w.Own = own
	draft, err := r.quotes[0].Revise(t.Context(), r.tenant, q.ID, q.Tag(), w)
	must(t, err)
	if _, err := r.quotes[1].Revise(t.Context(), r.tenant, q.ID, q.Tag(), w); code(err) != "quote_changed" {
		t.Fatalf("over somebody's change: %v", err)
	}
	p, err := r.quotes[1].Open(t.Context(), token, false)
	must(t, err)
	if draft.Version.Number != 2 || p.Version.Number != 1 || p.Offer.Terms.Limits[0].Amount != 500 || p.NextDraft != 2 {
		t.Fatalf("draft %d, out %d: %+v", draft.Version.Number, p.Version.Number, p.Offer)
	}
	_, err = r.quotes[0].Send(t.Context(), r.tenant, q.ID, "")
	must(t, err)
	if _, err := r.quotes[0].Accept(t.Context(), token, yes(1)); code(err) != "quote_superseded" {
		t.Fatalf("what was superseded: %v", err)
	}
	got, err := r.quotes[0].Accept(t.Context(), token, yes(2))
	must(t, err)
	if got.Offer.Terms.Limits[0].Amount != 800 {
		t.Fatalf("%+v", got.Offer.Terms)
	}
	if _, err := r.quotes[0].Revise(t.Context(), r.tenant, q.ID, "", w); code(err) != "quote_accepted" {
		t.Fatalf("after it was accepted: %v", err)
	}
}

func TestTermsThatBeginAsAnotherPlanAreCalledSoAndWhatIsOutKeepsItsName(t *testing.T) {
	r := newRig(t)
	other, err := r.billing.AddPublished(t.Context(), r.tenant, "Scale", terms(2000, "290.00"))
	must(t, err)
	w := r.wanted()
	w.Own = ownTerms(700, "99.00")
	q, token := r.sent(w)
	w.Plan = other.ID
	draft, err := r.quotes[0].Revise(t.Context(), r.tenant, q.ID, q.Tag(), w)
	must(t, err)
	p, err := r.quotes[0].Open(t.Context(), token, false)
	must(t, err)
	if draft.Offer.Plan != "Scale" || p.Offer.Plan != "Team" {
		t.Fatalf("the draft offers %s, what is out %s", draft.Offer.Plan, p.Offer.Plan)
	}
}

func TestADraftThatIsThrownAwayLeavesWhatIsOut(t *testing.T) {
	r := newRig(t)
	q, token := r.sent(r.wanted())
	for range 2 {
		w := r.wanted()
		w.Note = "another"
		_, err := r.quotes[0].Revise(t.Context(), r.tenant, q.ID, "", w)
		must(t, err)
		for range 2 {
			q, err = r.quotes[0].Discard(t.Context(), r.tenant, q.ID)
			must(t, err)
		}
	}
	if p, err := r.quotes[0].Open(t.Context(), token, false); err != nil || p.Version.Number != 1 || p.NextDraft != 0 || !p.Status.Open() {
		t.Fatalf("%+v, %v", p, err)
	}
}

func TestAQuoteThatIsOverMakesNothing(t *testing.T) {
	for want, end := range map[string]func(r *rig, q quotes.Quote, token string) error{
		"quote_expired": func(r *rig, _ quotes.Quote, _ string) error { r.pass(30 * 24 * time.Hour); return nil },
		"quote_declined": func(r *rig, _ quotes.Quote, token string) error {
			return joined(r.atOnce(func(s *quotes.Service) error {
				_, err := s.Decline(r.t.Context(), token, 1, "too little a minute")
				return err
			}))
		},
		"quote_withdrawn": func(r *rig, q quotes.Quote, _ string) error {
			return joined(r.atOnce(func(s *quotes.Service) error { _, err := s.Withdraw(r.t.Context(), r.tenant, q.ID); return err }))
		},
		"quote_unavailable": func(r *rig, _ quotes.Quote, _ string) error {
			return r.try(`update tenants set suspended_at = now() where tenant_id = $1`)
		},
	} {
		t.Run(want, func(t *testing.T) {
			r := newRig(t)
			q, token := r.sent(r.wanted())
			must(t, end(r, q, token))
			if _, err := r.quotes[0].Accept(t.Context(), token, yes(1)); code(err) != want {
				t.Fatalf("accepted: %v", err)
			}
			if n := r.count(`select count(*) from customers where tenant_id = $1`); n != 0 {
				t.Fatal("a customer is left")
			}
			if want == "quote_declined" && r.told("quote.declined") != 1 {
				t.Errorf("told %d times", r.told("quote.declined"))
			}
			if want == "quote_unavailable" {
				return
			}
			if _, err := r.quotes[0].Send(t.Context(), r.tenant, q.ID, ""); code(err) != "nothing_to_send" {
				t.Errorf("sent as it was: %v", err)
			}
			_, err := r.quotes[0].Revise(t.Context(), r.tenant, q.ID, "", r.wanted())
			must(t, err)
			_, err = r.quotes[0].Send(t.Context(), r.tenant, q.ID, "")
			must(t, err)
			_, err = r.quotes[0].Accept(t.Context(), token, yes(2))
			must(t, err)
		})
	}
}

func TestADraftThatWasWithdrawnCanBeTakenUpAgain(t *testing.T) {
	r := newRig(t)
	q := r.add(r.wanted())
	q, err := r.quotes[0].Withdraw(t.Context(), r.tenant, q.ID)
	must(t, err)
	if q.Status != quotes.Withdrawn {
		t.Fatal(q.Status)
	}
	_, err = r.quotes[0].Revise(t.Context(), r.tenant, q.ID, "", r.wanted())
	must(t, err)
	if q, err = r.quotes[0].Send(t.Context(), r.tenant, q.ID, ""); err != nil || q.Status != quotes.Sent {
		t.Fatalf("%s, %v", q.Status, err)
	}
}

func TestAQuoteExpiresByTheClockAndIsToldOnce(t *testing.T) {
	r := newRig(t)
	q, _ := r.sent(r.wanted())
	r.pass(16 * 24 * time.Hour)
	page, err := r.quotes[0].Quotes(t.Context(), r.tenant, quotes.Filter{Statuses: []quotes.Status{quotes.Expired}}, uuid.Nil, 10)
	must(t, err)
	if len(page.Items) != 1 || page.Items[0].Status != quotes.Expired {
		t.Fatalf("before the sweep: %+v", page.Items)
	}
	must(t, joined(r.atOnce(func(s *quotes.Service) error { return s.Lapse(t.Context()) })))
	if n := r.told("quote.expired"); n != 1 {
		t.Fatalf("told %d times", n)
	}
	if q, err = r.quotes[0].Quote(t.Context(), r.tenant, q.ID, 0); err != nil || q.Status != quotes.Expired {
		t.Fatalf("%s, %v", q.Status, err)
	}
}

func TestACustomerThatThereIsMovesAndKeepsItsKey(t *testing.T) {
	r := newRig(t)
	c, err := r.tenants.AddCustomer(t.Context(), r.tenant, tenants.NewCustomer{Name: "Kestrel"})
	must(t, err)
	sub, err := r.billing.Subscribe(t.Context(), r.tenant, c.ID, r.plan.ID)
	must(t, err)
	_, err = r.tenants.AddAPIKey(t.Context(), r.tenant, tenants.NewAPIKey{Kind: tenants.ForCustomer, Customer: c.ID, Name: "Own"})
	must(t, err)
	own := ownTerms(900, "149.00")
	w := r.wanted()
	w.Customer, w.Own = c.ID, own
	_, token := r.sent(w)
	_, err = r.tenants.SuspendCustomer(t.Context(), r.tenant, c.ID)
	must(t, err)
	if _, err := r.quotes[0].Accept(t.Context(), token, yes(1)); code(err) != "quote_unavailable" {
		t.Fatalf("suspended: %v", err)
	}
	_, err = r.tenants.ResumeCustomer(t.Context(), r.tenant, c.ID)
	must(t, err)
	got, err := r.quotes[0].Accept(t.Context(), token, yes(1))
	must(t, err)
	if got.Secret != "" || got.Result.APIKey != uuid.Nil || got.Result.Subscription != sub.ID || got.Result.Customer != c.ID {
		t.Fatalf("%+v", got.Result)
	}
	contract, err := r.billing.ContractOf(t.Context(), r.tenant, c.ID)
	must(t, err)
	if contract.Limits[0].Amount != 900 {
		t.Fatalf("%+v", contract.Limits)
	}
}

func TestALookIsNotedAndALinkThatLeadsNowhereIsNot(t *testing.T) {
	r := newRig(t)
	q, token := r.sent(r.wanted())
	for range 2 {
		_, err := r.quotes[0].Open(t.Context(), token, true)
		must(t, err)
	}
	if q, err := r.quotes[1].Quote(t.Context(), r.tenant, q.ID, 0); err != nil || q.Views != 2 || q.Status != quotes.Viewed || q.ViewedAt == nil {
		t.Fatalf("%+v, %v", q, err)
	}
	for _, bad := range []string{"", "x", token[:42] + "_", token + "a"} {
		if _, err := r.quotes[0].Open(t.Context(), bad, true); bad != token && !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestAnEstimateIsRatedAndRoundedAsAnInvoiceIs(t *testing.T) {
	v := billing.Version{BaseFee: 4900, Currency: "EUR", Prices: []billing.Price{
		{Models: "a*", Class: "input", MicrosPerMillion: 75_000},
		{Models: "*", Class: "output", Scheme: billing.Graduated, Included: 1_000_000, Tiers: []billing.Tier{{UpTo: 10_000_000, MicrosPerMillion: 1_000_000}, {MicrosPerMillion: 500_000}}},
	}}
	e, err := quotes.Estimate(v, []quotes.Volume{{Model: "ab", Input: 1_000_003, Output: 7_500_000}, {Model: "b", Input: 9, Output: 5_000_000}})
	must(t, err)
	if len(e.Lines) != 3 || e.Lines[1].AmountMinor != 8 || e.Lines[2].Units != 12_500_000 || e.Lines[2].AmountMinor != 1025 || e.TotalMinor != 5933 || len(e.Unpriced) != 0 {
		t.Fatalf("%+v", e)
	}
	v.Minimum = 6000
	if e, err = quotes.Estimate(v, nil); err != nil || e.Minimum != 1100 || e.TotalMinor != 6000 {
		t.Fatalf("%+v, %v", e, err)
	}
	e, err = quotes.Estimate(billing.Version{Currency: "EUR"}, []quotes.Volume{{Model: "b", Input: 5}})
	must(t, err)
	if len(e.Lines) != 0 || !slices.Equal(e.Unpriced, []string{"b"}) {
		t.Fatalf("a model without a price: %+v", e)
	}
}
