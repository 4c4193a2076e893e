package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
)

func firstPlan() url.Values {
	return url.Values{
		"name":               {"Starter"},
		"limits.0.dimension": {"requests"}, "limits.0.window": {"minute"}, "limits.0.amount": {"500"},
		"limits.1.dimension": {"tokens"}, "limits.1.window": {"minute"}, "limits.1.amount": {"200,000"},
	}
}

// goesOn fails unless a form led on to a page.
func (a answer) goesOn(t *testing.T, to string) {
	t.Helper()
	if a.status != http.StatusSeeOther || a.header.Get("Location") != to {
		t.Fatalf("%d to %q: %s", a.status, a.header.Get("Location"), a.body)
	}
}

// planOffered is the plan that the form of the first key offers.
func planOffered(body string) string {
	_, rest, _ := strings.Cut(body, `<option value="pln`)
	value, _, _ := strings.Cut(rest, `"`)
	return "pln" + value
}

// onThePath is a site with a practice provider, a plan and the form of the
// first key.
func (s site) onThePath() (tenant uuid.UUID, session string, key url.Values) {
	s.t.Helper()
	made, session := s.as("owner")
	s.post("/setup/provider", session, url.Values{"do": {"practice"}}).goesOn(s.t, "/setup")
	s.post("/setup/plan", session, firstPlan()).goesOn(s.t, "/setup")
	page := s.get("/setup", session)
	m := hidden.FindStringSubmatch(page.body)
	if m == nil {
		s.t.Fatal("no form of a key")
	}
	return made.Tenant.ID, session, url.Values{"once": {m[1]}, "name": {"Kestrel"}, "plan": {planOffered(page.body)}}
}

func TestTheFirstPathLeadsFromNothingToACallAndARefusal(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	tenant, session, form := s.onThePath()
	s.get("/", session).has(t, `href="/setup"`)
	a := s.post("/setup/key", session, form)
	shown := secret.FindString(a.body)
	if a.status != http.StatusOK || shown == "" || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %q %s", a.status, shown, a.body)
	}
	a.has(t, "curl http", "openai.NewClient", "from openai import OpenAI", "new OpenAI(", "Waiting for the first call", `data-live="/live"`)
	again := s.post("/setup/key", session, form)
	if again.hasNot(t, shown); again.status != http.StatusConflict || len(s.keysOf(tenant)) != 2 {
		t.Errorf("a reload: %d, %d keys", again.status, len(s.keysOf(tenant)))
	}
	tab := changed(form, "once", id.APIKey.Format(id.At(noon.Add(-time.Second))), "name", "From another tab")
	if a := s.post("/setup/key", session, tab); a.status != http.StatusConflict || len(s.keysOf(tenant)) != 2 {
		t.Errorf("another tab: %d, %d keys", a.status, len(s.keysOf(tenant)))
	}
	for _, path := range []string{"/setup", "/setup?step=key", "/setup?step=call", "/setup/call", "/"} {
		s.get(path, session).hasNot(t, shown)
	}
	s.get("/setup", session).has(t, "Send the first call", "Starter", "Practice", "Look again")

	failed := event(tenant, noon.Add(-2*time.Minute))
	failed.Outcome = usage.ProviderError
	s.store(failed)
	s.get("/setup/call", session).has(t, "did not succeed", "Waiting for the first call")
	s.store(event(tenant, noon.Add(-time.Minute)))
	s.get("/setup/call", session).has(t, "The first call arrived at 12:59:00", "<b>10 tokens</b>", "EUR")
	s.get("/setup", session).has(t, "See a refusal", "10 tokens, at 12:59:00")

	m := hidden.FindStringSubmatch(s.get("/setup", session).body)
	trip := s.post("/setup/refusal", session, url.Values{"once": {m[1]}})
	trip.has(t, "for i in 1 2; do", secret.FindString(trip.body), "Waiting for a refusal")
	keys := s.keysOf(tenant)
	at := slices.IndexFunc(keys, func(k tenants.APIKey) bool { return k.Name == tripName })
	k := keys[max(at, 0)]
	if len(k.Limits) != 1 || k.Limits[0].Amount != 1 || k.ExpiresAt == nil || !k.ExpiresAt.Equal(noon.Add(time.Hour)) {
		t.Fatalf("%+v", k)
	}
	s.store(refusedBy(event(tenant, noon.Add(-time.Second)), k.Limits[0]))
	s.get("/setup/refused", session).has(t, "HTTP/1.1 <b>429</b> Too Many Requests", "retry-after-ms: <b>59250</b>", "retry-after: <b>60</b>", "x-should-retry: <b>true</b>",
		"x-ratelimit-limit-requests: <b>1</b>", "x-ratelimit-remaining-requests: <b>0</b>", "x-ratelimit-reset-requests: <b>59.25s</b>", "ratelimit-policy: <b>&#34;rpm&#34;;q=1;w=60</b>", "ratelimit: <b>&#34;rpm&#34;;r=0;t=60</b>", "Rate limit reached for gpt-4o", "Try again in 59.25s.")
	told := s.get("/setup", session)
	told.has(t, "Be told in time", "is capped by the day", `value="100,000"`)
	s.post("/setup/alert", session, url.Values{"threshold": {"many"}}).has(t, `value="many"`, "A whole number more than 0")
	for range 2 {
		s.post("/setup/alert", session, url.Values{"threshold": {"250,000"}}).goesOn(t, "/setup")
	}
	alerts, err := s.notify.Alerts(t.Context(), tenant, uuid.Nil, 10)
	must(t, err)
	if len(alerts.Items) != 1 || alerts.Items[0].Amount != 250_000 || alerts.Items[0].Scope != limits.ScopeCustomer || alerts.Items[0].ScopeID == uuid.Nil {
		t.Fatalf("%+v", alerts.Items)
	}
	s.get("/setup", session).has(t, "Everything is in place", "at 250,000.")
	s.get("/", session).hasNot(t, `href="/setup"`)
	for _, step := range []string{"provider", "plan", "key", "call", "refusal", "alert"} { // going back
		s.get("/setup?step="+step, session).has(t, `aria-current="step"`, "Starter", "10 tokens")
	}
	for _, k := range s.keysOf(tenant) {
		_, err := s.tenants.RevokeAPIKey(t.Context(), tenant, k.ID)
		must(t, err)
	}
	s.get("/", session).hasNot(t, `href="/setup"`) // a path that was walked stays walked
}

func refusedBy(e usage.Event, l limits.Limit) usage.Event {
	e.Outcome, e.Requests, e.Refused, e.Tokens, e.EndedAt = "refused_requests_minute", 0, 1, limits.Tokens{}, e.StartedAt
	e.Refusal = &usage.Refusal{Code: "rate_limit_exceeded", RetryAfter: 59250 * time.Millisecond, Limits: []usage.Refusing{{Limit: l, Used: 1, Requested: 1, Full: 59250 * time.Millisecond, RetryAfter: 59250 * time.Millisecond}}}
	return e
}

func TestEveryStepCanBeSkippedAndHomeLeadsThereUntilAllAre(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	_, session := s.as("owner")
	for _, step := range []string{"provider", "plan", "key", "call", "refusal", "alert"} {
		s.get("/", session).has(t, `href="/setup"`)
		page := s.get("/setup", session)
		page.has(t, `name="step" value="`+step+`"`)
		s.post("/setup/skip", session, url.Values{"step": {step}}).goesOn(t, "/setup")
	}
	s.get("/setup", session).has(t, "Everything is in place", "skipped")
	s.get("/", session).hasNot(t, `href="/setup"`, "To a first call")
	s.get("/setup?step=plan", session).has(t, `value="200,000"`) // and taken after all
	if a := s.post("/setup/skip", session, url.Values{"step": {"lunch"}}); a.status != http.StatusNotFound {
		t.Errorf("%d", a.status)
	}
}

func TestThePathCanBeLeftAtOnceForTheWholeTenantAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	_, session := s.as("owner")
	other := s.signIn(s.tenant("Bolt", "bo@bolt.example").SignInToken)
	s.post("/setup/skip", session, url.Values{"step": {"path"}}).goesOn(t, "/")
	s.get("/", session).hasNot(t, `href="/setup"`)
	s.get("/", other).has(t, `href="/setup"`)
}

func TestAStepOfThePathKeepsWhatWasTypedAndNamesTheField(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	tenant, session, key := s.onThePath()
	for name, c := range map[string]struct {
		path   string
		form   url.Values
		says   []string
		status int
	}{
		"no secret":    {"/setup/provider", url.Values{"provider": {"openai"}, "secret": {" "}}, []string{`href="#f-secret"`, `value="openai" selected`}, 400},
		"no address":   {"/setup/provider", url.Values{"provider": {"custom"}, "base_url": {"http://169.254.169.254/v1"}, "secret": {"sk-x"}}, []string{`href="#f-base_url"`, `value="http://169.254.169.254/v1"`}, 422},
		"no number":    {"/setup/plan", changed(firstPlan(), "name", "Gold", "limits.1.amount", "lots"), []string{`value="lots"`, `value="Gold"`, `href="#f-limits-1-amount"`}, 400},
		"taken name":   {"/setup/plan", firstPlan(), []string{"Another plan has this name.", `value="200,000"`}, 409},
		"preview":      {"/setup/plan", changed(firstPlan(), "do", "preview", "limits.0.amount", "60"), []string{"<b>60</b> requests", `value="60"`}, 200},
		"no name":      {"/setup/key", url.Values{"once": key["once"], "plan": key["plan"], "name": {""}}, []string{`href="#f-name"`}, 400},
		"no such plan": {"/setup/key", url.Values{"once": key["once"], "plan": {id.Plan.Format(id.New())}, "name": {"kept"}}, []string{`href="#f-plan"`, `value="kept"`}, 400},
		"no customer":  {"/setup/refusal", url.Values{"once": key["once"]}, []string{"A customer with a key is needed first"}, 400},
	} {
		a := s.post(c.path, session, c.form)
		if a.status != c.status {
			t.Errorf("%s: %d", name, a.status)
		}
		a.has(t, c.says...)
	}
	if n := len(s.keysOf(tenant)); n != 1 {
		t.Errorf("%d keys", n)
	}
	s.get("/setup?step=key", session).has(t, planOffered(s.get("/setup?step=key", session).body))
}

func TestAFirstProviderKeyThatIsRefusedSaysSoAndItsSecretNeverComesBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	_, session := s.as("owner")
	s.post("/setup/provider", session, url.Values{"provider": {"nobody"}, "secret": {"sk-very-secret"}}).hasNot(t, "sk-very-secret")
	status := http.StatusUnauthorized
	form := url.Values{"provider": {"custom"}, "base_url": {upstream(t, &status)}, "secret": {"sk-very-secret"}}
	s.post("/setup/provider", session, form).goesOn(t, "/setup?step=provider")
	page := s.get("/setup", session)
	page.has(t, "did not pass its live check")
	page.hasNot(t, "sk-very-secret", `class="done"`)
	status = http.StatusOK
	s.post("/setup/provider", session, form).goesOn(t, "/setup")
	s.get("/setup", session).has(t, "Custom 2, 2 models.", "What a customer may use")
}

func TestAProviderKeyOfThePathGetsANameThatIsFree(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	for range 2 { // a double click
		s.post("/setup/provider", session, url.Values{"do": {"practice"}}).goesOn(t, "/setup")
	}
	if n := len(s.providers(made.Tenant.ID)); n != 1 {
		t.Fatalf("%d practice providers", n)
	}
	status := http.StatusOK
	form := url.Values{"provider": {"custom"}, "base_url": {upstream(t, &status)}, "secret": {"sk-very-secret"}}
	for range 2 {
		s.post("/setup/provider", session, form).goesOn(t, "/setup")
	}
	first := s.providers(made.Tenant.ID)[1]
	if err := s.tenants.RemoveProviderKey(t.Context(), made.Tenant.ID, first.ID); err != nil {
		t.Fatal(err)
	}
	s.post("/setup/provider", session, form).goesOn(t, "/setup")
	if n := len(s.providers(made.Tenant.ID)); n != 3 {
		t.Errorf("%d provider keys", n)
	}
}

func TestAStepOfThePathStaysDoneHoweverManyCallsFollow(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	tenant, session, form := s.onThePath()
	s.post("/setup/key", session, form)
	k := s.keyNamed(tenant, "First key")
	s.post("/setup/alert", session, url.Values{"threshold": {"5,000"}}).goesOn(t, "/setup")
	limit := limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 1}
	s.store(event(tenant, noon.Add(-time.Hour)), refusedBy(event(tenant, noon.Add(-time.Hour)), limit))
	for what, one := range map[string]func(time.Time) usage.Event{
		"refused": func(at time.Time) usage.Event { return refusedBy(event(tenant, at), limit) },
		"passed":  func(at time.Time) usage.Event { return event(tenant, at) },
	} {
		var many []usage.Event
		for i := range 110 {
			many = append(many, one(noon.Add(-time.Duration(i)*time.Second)))
		}
		s.store(many...)
		s.get("/setup", session).has(t, "Everything is in place", k.Last4)
		if strings.Contains(s.get("/", session).body, `href="/setup"`) {
			t.Errorf("after 110 calls that were %s, home leads to the path again", what)
		}
	}
}

func TestAStepThatIsNotTheRolesSaysWhoCan(t *testing.T) {
	t.Parallel()
	for role, may := range map[string][]string{"owner": {"provider", "plan", "key", "refusal", "alert", "skip"}, "developer": {"refusal"}, "billing": {"plan", "alert", "skip"}, "viewer": {}} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, local)
			_, session := s.as(role)
			for _, step := range []string{"provider", "plan", "key", "refusal", "alert"} {
				page := s.get("/setup?step="+step, session)
				if strings.Contains(page.body, "Your role here is ") == slices.Contains(may, step) {
					t.Errorf("%s: the page shows what is not the role's, or hides what is", step)
				}
				if slices.Contains(may, step) {
					continue
				}
				page.has(t, "An owner")
				before := s.fingerprint()
				if a := s.post("/setup/"+step, session, changed(firstPlan(), "do", "practice")); a.status != http.StatusForbidden || s.fingerprint() != before {
					t.Errorf("POST %s: %d, or something was changed", step, a.status)
				}
			}
			if a := s.post("/setup/skip", session, url.Values{"step": {"plan"}}); (a.status == http.StatusSeeOther) != slices.Contains(may, "skip") {
				t.Errorf("skip: %d", a.status)
			}
		})
	}
}

func TestThePathOfAnotherTenantIsNotSeen(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	other := s.tenant("Bolt", "bo@bolt.example")
	s.practice(other.Tenant.ID, "Bolt-Practice")
	_, plan := s.plan(other.Tenant.ID, "Bolt-Plan", perMinute(limits.DimensionRequests, 5))
	key := s.customerKey(other.Tenant.ID, "Bolt-Customer", "Bolt-Key")
	s.store(event(other.Tenant.ID, noon.Add(-time.Minute)), refusedBy(event(other.Tenant.ID, noon.Add(-time.Second)), perMinute(limits.DimensionRequests, 1)))
	_, session := s.as("owner")
	for _, path := range []string{"/setup", "/setup?step=key", "/setup?step=call", "/setup?step=refusal", "/setup/call", "/setup/refused"} {
		s.get(path, session).hasNot(t, "Bolt", key.Last4, "429")
	}
	once := id.APIKey.Format(id.At(noon))
	if a := s.post("/setup/key", session, url.Values{"once": {once}, "name": {"Mine"}, "plan": {plan}}); a.status != http.StatusBadRequest {
		t.Errorf("a plan of another tenant: %d", a.status)
	}
}

func TestTheAlertOfThePathIsAShareOfTheCapWhereThereIsOne(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	key := s.customerKey(made.Tenant.ID, "Heron Ltd", "production")
	_, plan := s.plan(made.Tenant.ID, "Capped", limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 5_000_000})
	planID, err := id.Plan.Parse(plan)
	must(t, err)
	if _, err := s.billing.Move(t.Context(), made.Tenant.ID, key.Customer, planID); err != nil {
		_, err = s.billing.Subscribe(t.Context(), made.Tenant.ID, key.Customer, planID)
		must(t, err)
	}
	s.get("/setup?step=alert", session).has(t, "<b>Heron Ltd</b> has used <b>80%</b> of", "5 million tokens")
	s.post("/setup/alert", session, nil).goesOn(t, "/setup")
	alerts, err := s.notify.Alerts(t.Context(), made.Tenant.ID, uuid.Nil, 10)
	must(t, err)
	if a := alerts.Items[0]; a.Percent != 80 || a.ScopeID != key.Customer || a.Window != limits.WindowDay || !a.Mail {
		t.Errorf("%+v", a)
	}
}

func TestWhoSignedUpIsLedToThePathOnce(t *testing.T) {
	s := newSite(t, localSite)
	s.post("/sign-up", "", signUpForm())
	_, token := s.mailed(1)
	s.post("/confirm", "", url.Values{"token": {token}}).goesOn(t, "/setup")
	s.post("/sign-in", "", url.Values{"email": {"ann@acme.example"}, "password": {"a good long phrase"}}).goesOn(t, "/")
}
