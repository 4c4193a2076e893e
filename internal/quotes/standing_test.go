package quotes_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/quotes"
	"weir/internal/tenants"
)

func TestAcceptingLeadsToTheQuotedVersionWhereverTheCustomerStands(t *testing.T) {
	for name, c := range map[string]struct {
		before  func(r *rig, sub billing.Subscription)
		none    bool // without a subscription to begin with
		another bool // a subscription of its own comes of it
		trial   bool
		want    billing.Status
		stays   func(billing.Subscription) bool
	}{
		"on no plan": {none: true, another: true, want: billing.Active},
		"active":     {want: billing.Active},
		"trialing":   {trial: true, want: billing.Trialing},
		"past due": {before: func(r *rig, sub billing.Subscription) {
			_, err := r.billing.SetPastDue(r.t.Context(), r.tenant, sub.ID, true)
			must(r.t, err)
		}, want: billing.PastDue},
		"suspended": {before: func(r *rig, sub billing.Subscription) {
			_, err := r.billing.Suspend(r.t.Context(), r.tenant, sub.ID)
			must(r.t, err)
		}, want: billing.Active, stays: func(sub billing.Subscription) bool { return sub.SuspendedAt != nil }},
		"cancelled": {before: func(r *rig, sub billing.Subscription) {
			_, err := r.billing.Cancel(r.t.Context(), r.tenant, sub.ID)
			must(r.t, err)
		}, want: billing.Active},
		"cancelled, and its period is over": {before: func(r *rig, sub billing.Subscription) {
			_, err := r.billing.Cancel(r.t.Context(), r.tenant, sub.ID)
			must(r.t, err)
			r.pass(sub.Current.End.Sub(r.clock()))
		}, another: true, want: billing.Active},
		"ended": {before: func(r *rig, sub billing.Subscription) {
			_, err := r.billing.End(r.t.Context(), r.tenant, sub.ID)
			must(r.t, err)
		}, another: true, want: billing.Active},
		"with a change that waits": {before: func(r *rig, sub billing.Subscription) {
			small, err := r.billing.AddPublished(r.t.Context(), r.tenant, "Small", terms(5, "1.00"))
			must(r.t, err)
			change, err := r.billing.PreviewChange(r.t.Context(), r.tenant, sub.ID, small.ID, "")
			must(r.t, err)
			_, err = r.billing.ChangeBy(r.t.Context(), r.tenant, sub.ID, change.Token)
			must(r.t, err)
		}, want: billing.Active},
		"with a change that waited till now": {before: func(r *rig, sub billing.Subscription) {
			small, err := r.billing.AddPublished(r.t.Context(), r.tenant, "Small", terms(5, "1.00"))
			must(r.t, err)
			change, err := r.billing.PreviewChange(r.t.Context(), r.tenant, sub.ID, small.ID, "")
			must(r.t, err)
			_, err = r.billing.ChangeBy(r.t.Context(), r.tenant, sub.ID, change.Token)
			must(r.t, err)
			r.pass(sub.Current.End.Sub(r.clock()))
		}, want: billing.Active},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			x, err := r.tenants.AddCustomer(t.Context(), r.tenant, tenants.NewCustomer{Name: "Kestrel"})
			must(t, err)
			var sub billing.Subscription
			if !c.none {
				on := terms(100, "19.00")
				if c.trial {
					on.TrialDays = 14
				}
				p, err := r.billing.AddPublished(t.Context(), r.tenant, "Old", on)
				must(t, err)
				sub, err = r.billing.Subscribe(t.Context(), r.tenant, x.ID, p.ID)
				must(t, err)
			}
			w := r.wanted()
			w.Customer, w.Own, w.ValidUntil = x.ID, ownTerms(900, "149.00"), r.clock().Add(60*24*time.Hour)
			q, token := r.sent(w)
			if c.before != nil {
				c.before(r, sub)
			}
			for _, err := range r.atOnce(func(s *quotes.Service) error {
				_, err := s.Accept(t.Context(), token, yes(1))
				return err
			}) {
				must(t, err)
			}
			got, err := r.quotes[0].Quote(t.Context(), r.tenant, q.ID, 0)
			must(t, err)
			now, err := r.billing.Subscription(t.Context(), r.tenant, got.Result.Subscription)
			must(t, err)
			if now.PlanVersion != q.Offer.Terms.ID || now.Status != c.want || now.Pending != uuid.Nil || now.Customer != x.ID || (now.ID != sub.ID) != c.another {
				t.Errorf("it is %+v", now)
			}
			if c.stays != nil && !c.stays(now) {
				t.Errorf("not as it was: %+v", now)
			}
			if n := r.count(`select count(*) from subscriptions where tenant_id = $1 and customer_id = $2 and status <> 'ended'`, x.ID); n != 1 || r.told("quote.accepted") != 1 {
				t.Errorf("%d subscriptions, told %d times", n, r.told("quote.accepted"))
			}
		})
	}
}

func TestALinkNeverComesToBeOfAnotherCustomer(t *testing.T) {
	r := newRig(t)
	var two [2]tenants.Customer
	for i := range two {
		var err error
		two[i], err = r.tenants.AddCustomer(t.Context(), r.tenant, tenants.NewCustomer{Name: "Kestrel"})
		must(t, err)
	}
	w := r.wanted()
	q, _ := r.sent(w)
	w.Customer = two[0].ID
	if _, err := r.quotes[0].Revise(t.Context(), r.tenant, q.ID, "", w); code(err) != "quote_customer_fixed" {
		t.Errorf("a new customer's to one that there is: %v", err)
	}
	q, token := r.sent(w)
	for what, to := range map[string]uuid.UUID{"another's": two[1].ID, "a new one's": uuid.Nil} {
		w.Customer = to
		if _, err := r.quotes[0].Revise(t.Context(), r.tenant, q.ID, "", w); code(err) != "quote_customer_fixed" {
			t.Errorf("%s: %v", what, err)
		}
	}
	got, err := r.quotes[0].Accept(t.Context(), token, yes(1))
	if err != nil || got.Result.Customer != two[0].ID {
		t.Errorf("it became %v's: %v", got.Result.Customer, err)
	}
}

func TestTheWayIntoThePortalOfACustomerThatThereIsGoesToWhomTheQuoteWasSentAlone(t *testing.T) {
	r := newRig(t)
	x, err := r.tenants.AddCustomer(t.Context(), r.tenant, tenants.NewCustomer{Name: "Kestrel", Email: "ann@kestrel.example"})
	must(t, err)
	stranger := quotes.Acceptance{Version: 1, Name: "Mallory", Email: "mallory@elsewhere.example"}
	mailed := func(to string) int {
		return r.count(`select count(*) from mails where tenant_id = $1 and recipient = $2 and subject like 'Your limits%'`, to)
	}
	w := r.wanted()
	w.Customer = x.ID
	_, token := r.sent(w)
	_, err = r.quotes[0].Accept(t.Context(), token, stranger)
	must(t, err)
	if mailed(stranger.Email) != 0 || mailed(w.To.Email) != 1 {
		t.Errorf("%d to who came by the link, %d to whom it was sent", mailed(stranger.Email), mailed(w.To.Email))
	}
	_, token = r.sent(r.wanted())
	_, err = r.quotes[0].Accept(t.Context(), token, stranger)
	must(t, err)
	if mailed(stranger.Email) != 1 {
		t.Error("who made the customer has no way in")
	}
}

func TestAQuoteIsFoundByItsNumberHoweverManyThereAre(t *testing.T) {
	r := newRig(t)
	r.sql(`insert into quote_numbers (tenant_id, year, last) values ($1, $2, 1233)`, r.clock().In(time.FixedZone("", 3600)).Year())
	q := r.add(r.wanted())
	for _, text := range []string{q.Number, "1234", "q-20"} {
		page, err := r.quotes[0].Quotes(t.Context(), r.tenant, quotes.Filter{Text: text}, uuid.Nil, 10)
		if err != nil || len(page.Items) != 1 || page.Items[0].Number != q.Number {
			t.Errorf("%s by %q: %+v, %v", q.Number, text, page.Items, err)
		}
	}
	if _, err := r.quotes[0].Quote(t.Context(), r.tenant, q.ID, 1<<40); code(err) != "not_found" {
		t.Errorf("a version that there cannot be: %v", err)
	}
}

func TestWhomAVersionIsForIsFrozenWithIt(t *testing.T) {
	r := newRig(t)
	w := r.wanted()
	q, token := r.sent(w)
	next := w
	next.To = quotes.Recipient{Name: "Bo Kestrel", Email: "bo@kestrel.example", Company: "Kestrel"}
	draft, err := r.quotes[0].Revise(t.Context(), r.tenant, q.ID, "", next)
	must(t, err)
	if draft.To != next.To {
		t.Errorf("the draft is for %+v", draft.To)
	}
	if p, err := r.quotes[1].Open(t.Context(), token, true); err != nil || p.To != w.To {
		t.Errorf("what is out is for %+v, %v", p.To, err)
	}
	_, err = r.quotes[0].Resend(t.Context(), r.tenant, q.ID)
	must(t, err)
	if n := r.count(`select count(*) from mails where tenant_id = $1 and recipient = $2`, w.To.Email); n != 2 {
		t.Errorf("%d mails to whom it was sent", n)
	}
	got, err := r.quotes[0].Accept(t.Context(), token, yes(1))
	must(t, err)
	c, err := r.tenants.Customer(t.Context(), r.tenant, got.Result.Customer)
	if err != nil || c.Name != w.To.Called() {
		t.Errorf("the customer is %+v, %v", c, err)
	}
	q, token = r.sent(w)
	_, err = r.quotes[0].Revise(t.Context(), r.tenant, q.ID, "", next)
	must(t, err)
	q, err = r.quotes[0].Send(t.Context(), r.tenant, q.ID, "")
	must(t, err)
	if p, err := r.quotes[1].Open(t.Context(), token, true); err != nil || p.To != next.To || q.To != next.To {
		t.Errorf("the next version is for %+v, %v", p.To, err)
	}
	if r.try(`update quote_versions set to_name = 'another' where tenant_id = $1`) == nil {
		t.Error("the database changes whom it was sent to")
	}
}
