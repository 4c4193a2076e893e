package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// plan is a published plan and its public id.
func (s site) plan(tenant uuid.UUID, name string, list ...limits.Limit) (billing.Plan, string) {
	s.t.Helper()
	p, err := s.billing.AddPlan(s.t.Context(), tenant, name, billing.NewVersion{Limits: list})
	must(s.t, err)
	p, err = s.billing.Publish(s.t.Context(), tenant, p.ID)
	must(s.t, err)
	return p, id.Plan.Format(p.ID)
}

func perMinute(d limits.Dimension, n int64) limits.Limit {
	return limits.Limit{Dimension: d, Window: limits.WindowMinute, Amount: n}
}

func perDay(d limits.Dimension, n int64) limits.Limit {
	return limits.Limit{Dimension: d, Window: limits.WindowDay, Amount: n}
}

func TestACustomerIsMadePutOnAPlanAndShownWithItsLevels(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	_, plan := s.plan(made.Tenant.ID, "Team", perMinute(limits.DimensionRequests, 500), perDay(limits.DimensionTokens, 5_000_000))
	a := s.post("/customers", session, url.Values{"name": {"Kestrel Support"}, "email": {"ops@kestrel.example"}, "external_id": {"crm-17"}})
	path := pathOf(t, a.header.Get("Location"))
	page := s.get(path, session)
	page.has(t, "Kestrel Support is on no plan, so every call is refused.", "ops@kestrel.example", "crm-17", "Put on this plan", "Team: 500 requests a minute")
	s.get("/customers", session).has(t, "on no plan, all refused")

	s.post(path+"/plan", session, url.Values{}).has(t, "Choose a plan.", `href="#f-plan"`)
	if a := s.post(path+"/plan", session, url.Values{"plan": {plan}}); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.post(path+"/plan", session, url.Values{"plan": {plan}}).has(t, "has an active subscription")

	customer, err := id.Customer.Parse(strings.TrimPrefix(path, "/customers/"))
	must(t, err)
	contract, err := s.billing.ContractOf(t.Context(), made.Tenant.ID, customer)
	must(t, err)
	_, err = s.engine.Reserve(t.Context(), limits.Request{Tenant: made.Tenant.ID, Plan: contract.Sets, Estimate: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: 12_880}}})
	must(t, err)
	s.addUse(made.Tenant.ID, customer, "gpt-4o", "ok", 40, 0, 1_000)
	s.addUse(made.Tenant.ID, customer, "gpt-4o", "refused_tokens_minute", 0, 10, 0)
	s.get(path, session).has(t,
		"<b>4,987,120</b> tokens left today", "Plan Team, version 1", "0 used, 12,880 held of 5,000,000", "4,987,120</span> left", "anew ", "499</span> left",
		"gpt-4o", "1,000", `title="0.000000000002 EUR"`)
	s.get("/customers", session).has(t, "Team, version 1", "passing", "20.0%", "0 used, 12,880 held of 5,000,000", "40 calls")
}

// addUse puts calls of a customer into today's books.
func (s site) addUse(tenant, customer uuid.UUID, model, outcome string, requests, refused, input int64) {
	s.t.Helper()
	s.super(`
		insert into usage_quarter (tenant_id, bucket, customer_id, counter_id, provider_key_id, model_asked, model_served, outcome, test,
			currency, cost_currency, requests, refused, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, units, charge_pico, cost_pico)
		values ($1, $2, $3, $4, $4, $5, $5, $6, false, 'EUR', '', $7, $8, $9, 0, 0, 0, 0, 0, 1, 0)`,
		tenant, noon.Add(-time.Hour), customer, id.New(), model, outcome, requests, refused, input)
}

func TestACustomerFormThatComesTwiceMakesOneCustomer(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	_, session := s.as("owner")
	in := url.Values{"name": {"Kestrel"}, "once": {s.once("/customers/new", session)}}
	first, second := s.post("/customers", session, in), s.post("/customers", session, in)
	a, b := pathOf(t, first.header.Get("Location")), pathOf(t, second.header.Get("Location"))
	if a != b || !strings.Contains(second.header.Get("Location"), "customer-once") {
		t.Errorf("the second made %s, the first %s", b, a)
	}
	s.get("/customers", session).has(t, a)
}

func TestACustomerFormKeepsWhatWasTypedAndNamesTheField(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("developer")
	_, err := s.tenants.AddCustomer(t.Context(), made.Tenant.ID, tenants.NewCustomer{Name: "Taken", ExternalID: "crm-1"})
	must(t, err)
	a := s.post("/customers", session, url.Values{"name": {" "}, "email": {"not an <address>"}, "external_id": {"kept"}})
	a.has(t, "2 things are not right yet", `href="#f-name"`, `href="#f-email"`, "not an &lt;address&gt;", `value="kept"`)
	if a.status != http.StatusBadRequest {
		t.Errorf("%d", a.status)
	}
	a = s.post("/customers", session, url.Values{"name": {"Kept"}, "external_id": {"crm-1"}})
	a.has(t, "Another customer has this external_id.", `href="#f-external_id"`, `value="Kept"`)
	if a.status != http.StatusConflict {
		t.Errorf("%d", a.status)
	}
	page, err := s.tenants.Customers(t.Context(), made.Tenant.ID, uuid.Nil, 10)
	if err != nil || len(page.Items) != 1 {
		t.Errorf("%d customers, %v", len(page.Items), err)
	}
}

func TestCustomersArePagedAndFound(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	for range pageRows {
		s.addCustomer(made.Tenant.ID, "Common")
	}
	_, rare := s.addCustomer(made.Tenant.ID, "Rarebird")
	a := s.get("/customers", session)
	a.has(t, "Rarebird", `rel="next"`)
	if n := strings.Count(a.body, ">Common</a>"); n != pageRows-1 {
		t.Errorf("%d on the first page", n)
	}
	next := href(a.body, `rel="next"`)
	if b := s.get(next, session); strings.Count(b.body, ">Common</a>") != 1 {
		t.Errorf("the second page %s", next)
	}
	for _, q := range []string{"rareb", rare} {
		found := s.get("/customers?q="+q, session)
		found.has(t, "Rarebird", `value="`+q+`"`)
		found.hasNot(t, ">Common</a>")
	}
	s.get("/customers?q=nobody", session).has(t, "No customer is called that.")
}

// href is the address of the link that has an attribute.
func href(body, attribute string) string {
	i := strings.Index(body, attribute)
	if i < 0 {
		return ""
	}
	start := strings.LastIndex(body[:i], `href="`) + len(`href="`)
	return strings.ReplaceAll(body[start:start+strings.IndexByte(body[start:], '"')], "&amp;", "&")
}

func TestCustomersAreForTheirRolesOnly(t *testing.T) {
	t.Parallel()
	for role, may := range map[string]struct{ see, change, plans bool }{
		"owner": {true, true, true}, "admin": {true, true, true}, "developer": {true, true, false}, "billing": {true, false, true}, "viewer": {},
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, local)
			made, session := s.as(role)
			x, public := s.addCustomer(made.Tenant.ID, "Kestrel")
			_, plan := s.plan(made.Tenant.ID, "Team", perMinute(limits.DimensionTokens, 5))
			for path, allowed := range map[string]bool{"/customers": may.see, "/customers/" + public: may.see, "/customers/new": may.change} {
				if a := s.get(path, session); (a.status == http.StatusOK) != allowed || !allowed && a.status != http.StatusForbidden {
					t.Errorf("GET %s: %d", path, a.status)
				}
			}
			if a := s.post("/customers", session, url.Values{"name": {"Made"}}); (a.status == http.StatusSeeOther) != may.change {
				t.Errorf("making one: %d", a.status)
			}
			if a := s.post("/customers", session, url.Values{"name": {"Made on a plan"}, "plan": {plan}}); (a.status == http.StatusSeeOther) != (may.change && may.plans) {
				t.Errorf("making one on a plan: %d", a.status)
			}
			if a := s.post("/customers/"+public+"/plan", session, url.Values{"plan": {plan}}); (a.status == http.StatusSeeOther) != may.plans {
				t.Errorf("putting one on a plan: %d", a.status)
			}
			c, err := s.billing.ContractOf(t.Context(), made.Tenant.ID, x.ID)
			if err != nil || (c.Subscription != uuid.Nil) != may.plans {
				t.Errorf("%v %v", c.Subscription, err)
			}
		})
	}
}

func TestAnotherTenantsCustomerIsNotThere(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	mine, session := s.as("owner")
	_, plan := s.plan(mine.Tenant.ID, "Team", perMinute(limits.DimensionRequests, 5))
	other := s.tenant("Bolt", "bo@bolt.example")
	x, theirs := s.addCustomer(other.Tenant.ID, "Bolt-Customer")
	_, theirPlan := s.plan(other.Tenant.ID, "Bolt-Plan", perMinute(limits.DimensionRequests, 5))
	_, own := s.addCustomer(mine.Tenant.ID, "Kestrel")
	unknown := s.get("/customers/"+id.Customer.Format(id.New()), session)
	for _, a := range []answer{s.get("/customers/"+theirs, session), s.post("/customers/"+theirs+"/plan", session, url.Values{"plan": {plan}}), s.get("/customers/not-an-id", session), unknown} {
		if a.status != http.StatusNotFound {
			t.Errorf("%d", a.status)
		}
		a.hasNot(t, "Bolt")
	}
	s.get("/customers?q=Bolt", session).hasNot(t, "Bolt-Customer")
	s.get("/customers?q="+theirs, session).hasNot(t, "Bolt-Customer")
	a := s.post("/customers/"+own+"/plan", session, url.Values{"plan": {theirPlan}})
	a.has(t, "There is no such plan.")
	a.hasNot(t, "Bolt")
	if c, err := s.billing.ContractOf(t.Context(), other.Tenant.ID, x.ID); err != nil || c.Subscription != uuid.Nil {
		t.Errorf("%v %v", c.Subscription, err)
	}
	if _, err := s.billing.Plan(t.Context(), mine.Tenant.ID, uuid.Nil); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

func TestACustomerPageSurvivesUsageThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	x, public := s.addCustomer(made.Tenant.ID, "Kestrel")
	p, _ := s.plan(made.Tenant.ID, "Team", perMinute(limits.DimensionRequests, 5))
	_, err := s.billing.Subscribe(t.Context(), made.Tenant.ID, x.ID, p.ID)
	must(t, err)
	s.super(`revoke select on usage_quarter from weir_app`)
	a := s.get("/customers/"+public, session)
	a.has(t, "Its usage could not be read", "5</span> left", a.header.Get("X-Request-Id"))
	list := s.get("/customers", session)
	list.has(t, "unknown", "Kestrel", "passing")
	if a.status != http.StatusOK || list.status != http.StatusOK {
		t.Errorf("%d %d", a.status, list.status)
	}
}
