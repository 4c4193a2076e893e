package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// upstream is a provider whose list of models answers with a status.
func upstream(t *testing.T, status *int) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(*status)
		fmt.Fprint(w, `{"data": [{"id": "model-a"}, {"id": "model-b"}]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

func TestAProviderKeyIsAddedCheckedAndShownWithItsLimits(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	status := http.StatusOK
	a := s.post("/providers", session, url.Values{
		"provider": {"custom"}, "name": {"main"}, "base_url": {upstream(t, &status)}, "secret": {" sk-very-secret-8f2Q "},
		"limits.0.dimension": {"tokens"}, "limits.0.window": {"minute"}, "limits.0.amount": {"300,000"},
		"limits.1.dimension": {"requests"}, "limits.1.window": {"day"}, "limits.1.amount": {"900"}, "limits.1.each_model": {"true"},
	})
	if a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	path := pathOf(t, a.header.Get("Location"))
	page := s.get(a.header.Get("Location"), session)
	page.has(t, "This key works.", "The key is stored, sealed.", "model-a", "model-b", "…8f2Q", "Tokens a minute", "300,000</span> left", "Requests a day", "900</span> left", "0 used of 900 since 00:00 UTC")
	page.hasNot(t, "sk-very-secret")
	s.get("/providers", session).has(t, "One provider key, which works.", "main", "0 used of 300,000")

	status = http.StatusUnauthorized
	if a := s.post(path+"/verify", session, url.Values{}); a.status != http.StatusSeeOther {
		t.Fatal(a.status)
	}
	s.get(path, session).has(t, "The provider refuses this key. No call uses it.", "status 401")
	if n := len(s.providers(made.Tenant.ID)); n != 1 {
		t.Errorf("%d keys", n)
	}
}

// pathOf is a location without its query.
func pathOf(t *testing.T, location string) string {
	t.Helper()
	u, err := url.Parse(location)
	must(t, err)
	return u.Path
}

func (s site) providers(tenant uuid.UUID) []tenants.ProviderKey {
	s.t.Helper()
	page, err := s.tenants.ProviderKeys(s.t.Context(), tenant, uuid.Nil, 100)
	must(s.t, err)
	return page.Items
}

func TestAProviderFormKeepsWhatWasTypedButTheSecret(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("admin")
	a := s.post("/providers", session, url.Values{
		"provider": {"custom"}, "name": {"kept"}, "base_url": {"http://169.254.169.254/v1"}, "secret": {"sk-typed-secret"}, "models": {"m1, m2"},
		"limits.0.dimension": {"tokens"}, "limits.0.window": {"minute"}, "limits.0.amount": {"55,000"},
	})
	if a.status != http.StatusUnprocessableEntity {
		t.Errorf("%d", a.status)
	}
	a.has(t, "This base URL is not allowed", `href="#f-base_url"`, `value="kept"`, `value="http://169.254.169.254/v1"`, `value="55,000"`, `value="m1, m2"`, "Paste it once more")
	a.hasNot(t, "sk-typed-secret")
	a = s.post("/providers", session, url.Values{"provider": {"openai"}, "name": {""}})
	a.has(t, "A name is needed.", "OpenAI needs a key.", "2 things are not right yet", `href="#f-name"`, `href="#f-secret"`)
	a = s.post("/providers", session, url.Values{"provider": {"nobody"}, "name": {"x"}})
	a.has(t, "There is no such provider")
	s.practice(made.Tenant.ID, "Taken")
	a = s.post("/providers", session, url.Values{"provider": {"practice"}, "name": {"taken"}, "secret": {"left over"}, "base_url": {"left over"}})
	a.has(t, "Another provider key has this name.", `value="taken"`)
	if a.status != http.StatusConflict {
		t.Errorf("%d", a.status)
	}
	if n := len(s.providers(made.Tenant.ID)); n != 1 {
		t.Errorf("%d keys", n)
	}
}

func TestARowOfLimitsIsAddedWithoutLosingTheOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("admin")
	a := s.post("/providers", session, url.Values{
		"provider": {"openai"}, "name": {"kept"}, "do": {"row"},
		"limits.0.dimension": {"tokens"}, "limits.0.window": {"minute"}, "limits.0.amount": {"half"},
		"limits.1.dimension": {"tokens"}, "limits.1.window": {"day"}, "limits.1.amount": {"7"},
	})
	a.has(t, `value="kept"`, `value="half"`, `value="7"`, `name="limits.2.amount"`)
	a.hasNot(t, "not right yet")
	if a.status != http.StatusOK || len(s.providers(made.Tenant.ID)) != 0 {
		t.Errorf("%d", a.status)
	}
}

func TestRemovingAProviderKeySaysWhatHappensAndAsksForItsName(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	s.practice(made.Tenant.ID, "Practice")
	s.customerKey(made.Tenant.ID, "Kestrel", "production")
	key := s.providers(made.Tenant.ID)[0]
	s.super(`
		insert into usage_quarter (tenant_id, bucket, customer_id, counter_id, provider_key_id, model_asked, model_served, outcome, test,
			currency, cost_currency, requests, refused, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, units, charge_pico, cost_pico)
		values ($1, $2, $3, $3, $4, 'm', 'm', 'ok', true, 'EUR', '', 1234, 0, 1, 0, 0, 0, 0, 0, 0, 0)`, made.Tenant.ID, noon.Add(-time.Hour), id.New(), key.ID)
	path := "/providers/" + id.ProviderKey.Format(key.ID)
	ask := s.get(path+"/remove", session)
	ask.has(t, "Remove Practice?", "<b>1,234</b><span>calls went through it today", "served by this key alone", "<b>1</b><span>key of 1 customer", "practice-small")
	s.post(path+"/remove", session, url.Values{"word": {"practice"}}).has(t, "not the name", `value="practice"`)
	if len(s.providers(made.Tenant.ID)) != 1 {
		t.Fatal("removed by another word")
	}
	a := s.post(path+"/remove", session, url.Values{"word": {"Practice"}})
	s.get(a.header.Get("Location"), session).has(t, "its secret forgotten", "No provider key yet.")
	if a := s.get(path, session); a.status != http.StatusNotFound {
		t.Errorf("%d", a.status)
	}
}

func TestAProviderKeyTellsOfEachModelHowManyCallsEndedWellAndHowFast(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	s.practice(made.Tenant.ID, "Practice")
	key := s.providers(made.Tenant.ID)[0]
	took := func(outcome usage.Outcome, d time.Duration) usage.Event {
		e := event(made.Tenant.ID, noon.Add(-time.Hour))
		e.ProviderKey, e.ModelAsked, e.Test, e.Outcome, e.EndedAt = key.ID, "practice-small", true, outcome, e.StartedAt.Add(d)
		return e
	}
	s.store(took(usage.OK, 900*time.Millisecond), took(usage.OK, 920*time.Millisecond), took(usage.OK, 40*time.Second), took(usage.ProviderError, 12*time.Millisecond))
	s.get("/providers/"+id.ProviderKey.Format(key.ID), session).has(t, "75.0%", "1 failed", `data-l="p50" class="n">889 ms<`, `data-l="p50" class="n q">–<`)
}

func TestTheGaugeOfAProviderKeyFollowsItsCalls(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	k, err := s.tenants.AddProviderKey(t.Context(), made.Tenant.ID, tenants.NewProviderKey{
		Provider: "practice", Name: "Practice",
		Limits: []limits.Limit{{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 10}, {Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 0}},
	})
	must(t, err)
	_, err = s.engine.Reserve(t.Context(), limits.Request{Tenant: made.Tenant.ID, Candidates: []limits.Candidate{{ProviderKey: k.ID, Limits: limits.Compile(k.Limits[:1])}}, Estimate: limits.Cost{Requests: 4}})
	must(t, err)
	s.get("/providers/"+id.ProviderKey.Format(k.ID), session).has(t, `aria-label="Requests a minute: 0 used, 4 held of 10, 6 left"`, ">6</span> left", "full in 24 s", "admits nothing; waiting does not help")
}

func TestProviderKeysAreForOwnersAndAdminsOfTheirTenantOnly(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"owner", "admin", "developer", "billing", "viewer"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, local)
			made, session := s.as(role)
			other := s.tenant("Bolt", "bo@bolt.example")
			s.practice(made.Tenant.ID, "Mine")
			s.practice(other.Tenant.ID, "Theirs")
			mine, theirs := "/providers/"+id.ProviderKey.Format(s.providers(made.Tenant.ID)[0].ID), "/providers/"+id.ProviderKey.Format(s.providers(other.Tenant.ID)[0].ID)
			before, allowed := s.fingerprint(), role == "owner" || role == "admin"
			for _, path := range []string{"/providers", "/providers/new", "/providers/new/offers?provider=groq", mine, mine + "/remove", mine + "/rotate", mine + "/switch", mine + "/edit"} {
				if a := s.get(path, session); (a.status == http.StatusOK) != allowed || !allowed && a.status != http.StatusForbidden {
					t.Errorf("GET %s: %d", path, a.status)
				}
			}
			word := url.Values{"word": {"Theirs"}, "provider": {"practice"}, "name": {"x"}}
			for _, a := range []answer{s.get(theirs, session), s.get(theirs+"/remove", session), s.post(theirs+"/remove", session, word), s.post(theirs+"/verify", session, word), s.get(theirs+"/clear", session), s.post(theirs+"/clear", session, word), s.post(theirs+"/forget", session, word), s.get(theirs+"/tiles/cooling", session), s.get(theirs+"/rotate", session), s.post(theirs+"/rotate", session, word), s.get(theirs+"/switch", session), s.post(theirs+"/switch", session, word)} {
				if allowed && a.status != http.StatusNotFound || !allowed && a.status != http.StatusForbidden {
					t.Errorf("another tenant's: %d", a.status)
				}
				a.hasNot(t, "Theirs")
			}
			if !allowed {
				for _, path := range []string{"/providers", mine + "/verify", mine + "/remove", mine + "/clear", mine + "/forget", mine + "/rotate", mine + "/switch"} {
					if a := s.post(path, session, url.Values{"word": {"Mine"}, "provider": {"practice"}, "name": {"x"}}); a.status != http.StatusForbidden {
						t.Errorf("POST %s: %d", path, a.status)
					}
				}
			}
			if s.fingerprint() != before {
				t.Error("something was changed")
			}
		})
	}
}
