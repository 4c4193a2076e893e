package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/catalogue"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// picky is a provider that lets one secret in.
func picky(t *testing.T, secret *atomic.Value) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secret.Load().(string) {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(w, `{"data": [{"id": "model-a"}]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

func TestAProviderKeyIsRotatedOnItsPageAndAnotherHostNeedsTheSecretAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	var lets atomic.Value
	lets.Store("sk-first-secret-8f2Q")
	at, elsewhere := picky(t, &lets), picky(t, &lets)
	s.post("/providers", session, url.Values{"provider": {"custom"}, "name": {"main"}, "base_url": {at}, "secret": {"sk-first-secret-8f2Q"}})
	path := "/providers/" + id.ProviderKey.Format(s.providers(made.Tenant.ID)[0].ID)
	s.get(path, session).has(t, path+"/rotate", "…8f2Q", "Switch off…")
	s.get(path+"/rotate", session).has(t, "In the place of …8f2Q", `value="`+at+`"`)

	refused := s.post(path+"/rotate", session, url.Values{"secret": {"sk-wrong-secret-0000"}, "base_url": {at}})
	refused.has(t, "The provider refused this key (status 401). Nothing is changed.", `href="#f-secret"`, "Paste it once more")
	refused.hasNot(t, "sk-wrong-secret")
	if refused.status != http.StatusUnprocessableEntity {
		t.Errorf("%d", refused.status)
	}
	moved := s.post(path+"/rotate", session, url.Values{"base_url": {elsewhere}})
	moved.has(t, "This is another host. A key is only ever sent where it was given for", `value="`+elsewhere+`"`)
	s.post(path+"/rotate", session, url.Values{"base_url": {at}, "secret": {" "}}).has(t, "Nothing is changed yet")

	lets.Store("sk-other-secret-77aa")
	a := s.post(path+"/rotate", session, url.Values{"secret": {" sk-other-secret-77aa "}, "base_url": {elsewhere}})
	page := s.get(a.header.Get("Location"), session)
	page.has(t, "The new key is checked and stored, sealed.", "…77aa", elsewhere, "This key works.")
	page.hasNot(t, "sk-other-secret")
}

func TestAProviderKeyIsSwitchedOffAndOnAndSaysWhatThatMeans(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	s.practice(made.Tenant.ID, "Practice")
	path := "/providers/" + id.ProviderKey.Format(s.providers(made.Tenant.ID)[0].ID)
	s.get(path, session).hasNot(t, path+"/rotate")
	s.get(path+"/switch", session).has(t, "Switch Practice off?", "models are served by this key alone, and by none until it is on again: practice-large, practice-small", "Its secret, its limits and what is used stay.")
	a := s.post(path+"/switch", session, url.Values{})
	s.get(a.header.Get("Location"), session).has(t, "The key is switched off.", "This key is switched off. No call uses it.", "Switch on…")
	s.get(path+"/switch", session).has(t, "Switch Practice on?", "It is checked live first.")
	a = s.post(path+"/switch", session, url.Values{})
	s.get(a.header.Get("Location"), session).has(t, "is switched on.", "This key works.")
}

func TestWhatIsConfiguredStandsBesideWhatIsPublishedAndLearned(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	_, err := catalogue.New(s.db.App, tenants.Audit).Import(t.Context(), made.Tenant.ID, catalogue.KindLimits, catalogue.Import{
		CSV: "provider,model,tier,dimension,window,amount,cached_input,valid_from,valid_to,source\n" +
			"practice,*,house,requests,minute,600,counted,2026-11-01,,https://house.example/limits\npractice,practice-small,house,requests,day,70,counted,2026-11-01,,https://house.example/limits\n",
	})
	must(t, err)
	k, err := s.tenants.AddProviderKey(t.Context(), made.Tenant.ID, tenants.NewProviderKey{
		Provider: "practice", Name: "Practice", Limits: []limits.Limit{
			{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 1000},
			{Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: 90, EachModel: true},
		},
	})
	must(t, err)
	path := "/providers/" + id.ProviderKey.Format(k.ID)
	s.get(path, session).has(t, "All models together, requests a minute", "Each model, tokens a minute", "Say which one this account is on", "Nothing went through this key in the last 24 hours.")
	s.get(path+"/edit", session).has(t, "Tier of the account", `<option value="house">House</option>`)

	filled := s.post(path+"/edit", session, url.Values{
		"name": {"Practice"}, "zone": {"UTC"}, "tier": {"house"}, "do": {"tier"},
		"limits.0.dimension": {"requests"}, "limits.0.window": {"minute"}, "limits.0.amount": {"1,000"},
	})
	filled.has(t, `<option value="house" selected>`, `value="1,000"`, `value="70"`, `value="practice-small"`)
	if now := s.providers(made.Tenant.ID)[0]; now.Tier != "" || len(now.Limits) != 2 {
		t.Errorf("a form that is filled in stores nothing: %+v", now)
	}
	s.post(path+"/edit", session, url.Values{"name": {"Practice"}, "zone": {"UTC"}, "tier": {"house"}, "limits.0.dimension": {"requests"}, "limits.0.window": {"minute"}, "limits.0.amount": {"1,000"}})
	must(t, s.tenants.Learn(t.Context(), made.Tenant.ID, k.ID, limits.Learn(nil, "practice-small", []limits.Statement{
		{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 60, From: limits.FromHeader, Detail: "x"},
	}, noon)))
	page := s.get(path, session)
	page.has(t, "<small>not as published</small>", "house.example</a>", "1 Nov 2026", "practice-small, requests a day", "practice-small, requests a minute", "<b>60</b>", "Published for the tier house.")
	if n := strings.Count(page.body, "not as published"); n != 2 { // the key's own, and what was learned
		t.Errorf("%d rows differ", n)
	}
}

func TestTheBusiestMinuteOfADayStandsAgainstTheLimit(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	k, err := s.tenants.AddProviderKey(t.Context(), made.Tenant.ID, tenants.NewProviderKey{
		Provider: "practice", Name: "Practice", Limits: []limits.Limit{{Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: 4000}},
	})
	must(t, err)
	for minute, tokens := range map[time.Duration]int{61: 900, 62: 1000, 200: 300} {
		s.super(`
			insert into usage_minute (tenant_id, bucket, customer_id, counter_id, provider_key_id, model_asked, model_served, outcome, test,
				currency, cost_currency, requests, refused, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, units, charge_pico, cost_pico)
			values ($1, $2, $3, $3, $4, 'm', 'm', 'ok', true, 'EUR', '', 3, 0, $5, 0, 0, 0, 0, 0, 0, 0)`, made.Tenant.ID, noon.Add(-minute*time.Minute), id.New(), k.ID, tokens)
	}
	s.get("/providers/"+id.ProviderKey.Format(k.ID), session).has(t, "tokens in the busiest minute", "1,000 tokens", "25% of the limit", "4,000 tokens a minute", "at "+noon.Add(-62*time.Minute).In(berlin(t)).Format("15:04"))
}
