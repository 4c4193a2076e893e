package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/usage"
)

// planForm is what the form of a new plan sends as it opens.
func planForm() url.Values {
	return url.Values{
		"name":               {"Starter"},
		"limits.0.dimension": {"requests"}, "limits.0.window": {"minute"}, "limits.0.amount": {"500"}, "limits.0.burst": {""}, "limits.0.models": {""},
		"limits.1.dimension": {"tokens"}, "limits.1.window": {"minute"}, "limits.1.amount": {"200,000"}, "limits.1.burst": {""}, "limits.1.models": {""},
		"limits.2.dimension": {"tokens"}, "limits.2.window": {"day"}, "limits.2.amount": {""}, "limits.2.burst": {""}, "limits.2.models": {""},
		"prices.0.class": {"input"}, "prices.0.price": {""}, "prices.0.models": {""},
		"prices.1.class": {"output"}, "prices.1.price": {""}, "prices.1.models": {""},
	}
}

func changed(form url.Values, pairs ...string) url.Values {
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return form
}

func TestAPlanStartsInTheMiddleAndBecomesASentence(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	s.get("/plans", session).has(t, "No plan yet.")
	s.get("/plans/new", session).has(t, `value="500"`, `value="200,000"`, "<b>500</b> requests and <b>200,000</b> tokens a minute", "at most 999 can pass in any 60 seconds")
	a := s.post("/plans", session, changed(planForm(), "limits.2.amount", "5 000 000", "prices.0.price", "2.50", "prices.1.price", "10", "prices.1.models", "gpt-4o*", "base_fee.amount", "1,480.00"))
	if a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	path := pathOf(t, a.header.Get("Location"))
	page := s.get(path, session)
	page.has(t, "up to <b>5 million</b> tokens a day", "draft", "Publish version 1", "1480.00 EUR a month", "gpt-4o*", ">2.50</td>", ">10.00</td>", "every model", "EUR for a million")
	s.get("/plans", session).has(t, "Starter", "<b>5 million</b>", "draft")
	if a := s.post(path+"/publish", session, url.Values{}); a.status != http.StatusSeeOther {
		t.Fatal(a.status)
	}
	s.get(path, session).has(t, "published", "New version")
	plan, err := id.Plan.Parse(strings.TrimPrefix(path, "/plans/"))
	must(t, err)
	p, err := s.billing.Plan(t.Context(), made.Tenant.ID, plan)
	must(t, err)
	v := p.Version
	if len(v.Limits) != 3 || v.Limits[2].Amount != 5_000_000 || v.BaseFee != 148_000 || len(v.Prices) != 2 || v.Prices[0].MicrosPerMillion != 2_500_000 || v.Prices[1].Models != "gpt-4o*" || v.Prices[0].Models != "*" {
		t.Errorf("%+v", v)
	}
}

func TestAPreviewSaysWhatIsTypedAndKeepsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	_, session := s.as("billing")
	before := s.fingerprint()
	part := s.post("/plans/preview", session, changed(planForm(), "limits.0.amount", "60", "limits.2.amount", "1000000"))
	part.has(t, "<b>60</b> requests and <b>200,000</b> tokens a minute, up to <b>1 million</b> tokens a day", `hx-swap-oob="innerHTML"`, "at most 119 can pass in any 60 seconds", "Europe/Berlin")
	part.hasNot(t, "<html", "<main")
	s.post("/plans/preview", session, changed(planForm(), "limits.0.amount", "6o")).has(t, "Not yet: ", "not a whole number")
	s.post("/plans/preview", session, changed(planForm(), "limits.0.burst", "10")).has(t, "Not yet: ", "at least the amount")
	whole := s.post("/plans", session, changed(planForm(), "do", "preview", "limits.0.amount", "60"))
	whole.has(t, "<b>60</b> requests", `value="60"`, `value="Starter"`, "<html")
	if s.fingerprint() != before {
		t.Error("something was kept")
	}
}

func TestAPlanCapsAnswersWhereItsBoxIsTicked(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	const said, ticked = "a call that states no ceiling for it gets one", `name="cap_output" value="true" checked`
	s.get("/plans/new", session).hasNot(t, said, ticked)
	s.post("/plans/preview", session, changed(planForm(), "cap_output", "true")).has(t, said)
	s.post("/plans", session, changed(planForm(), "cap_output", "true", "do", "row")).has(t, said, ticked)
	path := pathOf(t, s.post("/plans", session, changed(planForm(), "cap_output", "true")).header.Get("Location"))
	s.get(path, session).has(t, said)
	s.get(path+"/edit", session).has(t, said, ticked)
	plan, err := id.Plan.Parse(strings.TrimPrefix(path, "/plans/"))
	must(t, err)
	for _, caps := range []bool{true, false} {
		p, err := s.billing.Plan(t.Context(), made.Tenant.ID, plan)
		if err != nil || p.Version.CapOutput != caps {
			t.Errorf("capped %v, want %v, %v", p.Version.CapOutput, caps, err)
		}
		s.post(path, session, planForm()) // the box is not ticked any more
	}
	s.get(path, session).hasNot(t, said)
}

func TestAPlanFormKeepsWhatWasTypedAndNamesTheField(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	s.plan(made.Tenant.ID, "Taken", perMinute(limits.DimensionRequests, 5))
	for name, c := range map[string]struct {
		pairs  []string
		says   string
		field  string
		status int
	}{
		"no name":        {[]string{"name", " "}, "A name is needed.", "name", 400},
		"taken name":     {[]string{"name", "taken"}, "Another plan has this name.", "name", 409},
		"no number":      {[]string{"limits.1.amount", "lots"}, "not a whole number", "limits.1.amount", 400},
		"after a gap":    {[]string{"limits.0.amount", "", "limits.2.amount", "-1"}, "from 0 to", "limits.2.amount", 400},
		"small burst":    {[]string{"limits.1.burst", "7"}, "at least the amount", "limits.1.burst", 400},
		"burst of a day": {[]string{"limits.2.amount", "9", "limits.2.burst", "10"}, "has a burst", "limits.2.burst", 400},
		"bad window":     {[]string{"limits.1.window", "none"}, "no limit on tokens", "limits.1.window", 400},
		"bad pattern":    {[]string{"limits.1.models", "a#b"}, "no commas, hashes or spaces", "limits.1.models", 400},
		"bad price":      {[]string{"prices.1.price", "1.2.3"}, "not a price", "prices.1.price", 400},
		"fine price":     {[]string{"prices.1.price", "0.0000001"}, "not a price", "prices.1.price", 400},
		"bad fee":        {[]string{"base_fee.amount", "4.999"}, "not an amount", "base_fee.amount", 400},
	} {
		a := s.post("/plans", session, changed(changed(planForm(), "prices.0.price", "0.125"), c.pairs...))
		if a.status != c.status {
			t.Errorf("%s: %d", name, a.status)
		}
		a.has(t, c.says, `href="#f-`+strings.ReplaceAll(c.field, ".", "-")+`"`, `aria-invalid="true"`, `value="0.125"`)
		for i := 0; i < len(c.pairs); i += 2 {
			if c.pairs[i+1] != "" && !strings.HasSuffix(c.pairs[i], "window") {
				a.has(t, `value="`+c.pairs[i+1]+`"`)
			}
		}
	}
	twice := s.post("/plans", session, changed(planForm(), "limits.2.window", "minute", "limits.2.amount", "9"))
	twice.has(t, "has the same dimension, window and models")
	page, err := s.billing.Plans(t.Context(), made.Tenant.ID, uuid.Nil, 10)
	if err != nil || len(page.Items) != 1 {
		t.Errorf("%d plans, %v", len(page.Items), err)
	}
}

func TestANewVersionChangesNobodyAndLosesNothingOfItsLimits(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	p, public := s.plan(made.Tenant.ID, "Team", limits.Limit{
		Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: 200_000, Burst: 300_000, Models: []string{"gpt-4o*"}, EachModel: true,
		Weights: map[limits.Class]int64{limits.ClassCachedInput: 0}, Outage: limits.OutageClosed, Scope: limits.Scope{Kind: limits.ScopeEndUser},
	})
	x, _ := s.addCustomer(made.Tenant.ID, "Kestrel")
	_, err := s.billing.Subscribe(t.Context(), made.Tenant.ID, x.ID, p.ID)
	must(t, err)
	form := s.get("/plans/"+public+"/edit", session)
	form.has(t, `value="200,000"`, `value="300,000"`, `value="gpt-4o*"`, `value="0"`, "cached input counts 0 times", "for each end user", "closed while the store is out")
	for _, amount := range []string{"400,000", "500,000"} { // the second changes the same draft
		a := s.post("/plans/"+public, session, url.Values{
			"limits.0.dimension": {"tokens"}, "limits.0.window": {"minute"}, "limits.0.amount": {amount}, "limits.0.burst": {"600000"},
			"limits.0.models": {"gpt-4o*"}, "limits.0.each_model": {"true"},
			"limits.0.weights.cached_input": {"0"}, "limits.0.outage": {"closed"}, "limits.0.mode": {"enforce"}, "limits.0.policy": {""}, "limits.0.scope": {"end_user"},
		})
		if a.status != http.StatusSeeOther {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	s.get("/plans/"+public, session).has(t, "Version 2 is a draft.", "1 customer stays on version 1", "Publish version 2")
	versions, err := s.billing.Versions(t.Context(), made.Tenant.ID, p.ID)
	if err != nil || len(versions) != 2 {
		t.Fatalf("%d versions, %v", len(versions), err)
	}
	l := versions[0].Limits[0]
	if l.Amount != 500_000 || l.Burst != 600_000 || !l.EachModel || l.Weights[limits.ClassCachedInput] != 0 || len(l.Weights) != 1 || l.Outage != limits.OutageClosed || !l.EachEndUser() {
		t.Errorf("%+v", l)
	}
	s.post("/plans/"+public+"/publish", session, url.Values{})
	c, err := s.billing.ContractOf(t.Context(), made.Tenant.ID, x.ID)
	if err != nil || c.Version.Number != 1 || c.Version.Limits[0].Amount != 200_000 {
		t.Errorf("the customer is on version %d, %v", c.Version.Number, err)
	}
}

func TestPlansAreReadByAllAndChangedByTheirRolesOnly(t *testing.T) {
	t.Parallel()
	for role, may := range map[string]struct{ change, money bool }{
		"owner": {true, true}, "admin": {true, true}, "developer": {}, "billing": {true, true}, "viewer": {},
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, local)
			made, session := s.as(role)
			p, err := s.billing.AddPlan(t.Context(), made.Tenant.ID, "Team", billing.NewVersion{
				Limits: []limits.Limit{perMinute(limits.DimensionRequests, 5)}, Prices: []billing.Price{{Models: "*", Class: usage.Input, MicrosPerMillion: 7_770_000}},
			})
			must(t, err)
			public := "/plans/" + id.Plan.Format(p.ID)
			before := s.fingerprint()
			page := s.get(public, session)
			page.has(t, "<b>5</b> requests a minute")
			if strings.Contains(page.body, ">7.77</td>") != may.money || strings.Contains(page.body, "Publish version") != may.change {
				t.Error("it shows what is not the role's, or hides what is")
			}
			for _, path := range []string{"/plans/new", public + "/edit"} {
				if a := s.get(path, session); (a.status == http.StatusOK) != may.change {
					t.Errorf("GET %s: %d", path, a.status)
				}
			}
			if may.change {
				return
			}
			for _, path := range []string{"/plans", "/plans/preview", public, public + "/publish"} {
				if a := s.post(path, session, planForm()); a.status != http.StatusForbidden {
					t.Errorf("POST %s: %d", path, a.status)
				}
			}
			if s.fingerprint() != before {
				t.Error("something was changed")
			}
		})
	}
}

func TestAnotherTenantsPlanIsNotThere(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	_, session := s.as("owner")
	other := s.tenant("Bolt", "bo@bolt.example")
	_, public := s.plan(other.Tenant.ID, "Bolt-Plan", perMinute(limits.DimensionRequests, 5))
	before := s.fingerprint()
	for _, a := range []answer{
		s.get("/plans/"+public, session), s.get("/plans/"+public+"/edit", session), s.post("/plans/"+public, session, planForm()),
		s.post("/plans/"+public+"/publish", session, url.Values{}), s.get("/plans/"+id.Plan.Format(id.New()), session), s.get("/plans/nothing", session),
	} {
		if a.status != http.StatusNotFound {
			t.Errorf("%d", a.status)
		}
		a.hasNot(t, "Bolt")
	}
	s.get("/plans", session).hasNot(t, "Bolt-Plan")
	if s.fingerprint() != before {
		t.Error("something was changed")
	}
}

func TestEveryPartOfALimitCanBeTyped(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	in := func() url.Values {
		return url.Values{
			"name":               {"Finer"},
			"limits.0.dimension": {"tokens"}, "limits.0.window": {"minute"}, "limits.0.amount": {"200,000"}, "limits.0.policy": {"sliding"}, "limits.0.mode": {"shadow"},
			"limits.0.weights.cached_input": {"0.25"}, "limits.0.weights.output": {"1"},
			"limits.1.dimension": {"spend"}, "limits.1.window": {"month"}, "limits.1.amount": {"1,250.50"}, "limits.1.outage": {"open"}, "limits.1.mode": {"enforce"},
			"limits.2.dimension": {"requests"}, "limits.2.window": {"rolling_day"}, "limits.2.amount": {"9000"}, "limits.2.mode": {"enforce"},
		}
	}
	s.post("/plans", session, changed(in(), "limits.0.weights.cached_input", "a lot")).has(t, "not a factor", `value="a lot"`, `aria-invalid="true"`)
	s.post("/plans", session, changed(in(), "limits.1.amount", "12.1234567")).has(t, "not an amount of money", `value="12.1234567"`)
	s.post("/plans", session, changed(in(), "limits.1.policy", "sliding")).has(t, `aria-invalid="true"`)
	a := s.post("/plans", session, in())
	if a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	path := pathOf(t, a.header.Get("Location"))
	s.get(path+"/edit", session).has(t, `value="1,250.50"`, `value="0.25"`, "cached input counts 0.25 times", "never more in any window of that length", "reported only, refuses nothing", "open while the store is out")
	page, err := s.billing.Plans(t.Context(), made.Tenant.ID, uuid.Nil, 10)
	must(t, err)
	versions, err := s.billing.Versions(t.Context(), made.Tenant.ID, page.Items[0].ID)
	must(t, err)
	got := versions[0].Limits
	if len(got) != 3 || got[0].Policy != limits.PolicySliding || got[0].Mode != limits.ModeShadow || got[0].Weights[limits.ClassCachedInput] != 250 || len(got[0].Weights) != 1 ||
		got[1].Amount != 1_250_500_000 || got[1].Outage != limits.OutageOpen || got[2].Policy != limits.PolicySliding || got[2].Window != limits.WindowRollingDay {
		t.Errorf("%+v", got)
	}
}
