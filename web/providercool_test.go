package web

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

func TestWhatCoolsIsShownWithReasonSourceAndEndAndCanBeCleared(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	s.practice(made.Tenant.ID, "Practice")
	k := s.providers(made.Tenant.ID)[0]
	path := "/providers/" + id.ProviderKey.Format(k.ID)
	s.get(path, session).has(t, "This key works.", "Nothing rests", "This key stands below its first step.", "practice-large", "not used today", "Nothing is learned yet.")

	fail := func(model string, f limits.Failure) {
		t.Helper()
		f.Sent, f.At = noon.Add(-time.Minute), noon
		_, err := s.tenants.ReportFailure(t.Context(), made.Tenant.ID, k.ID, model, f)
		must(t, err)
	}
	fail("practice-small", limits.Failure{Status: 429, Wait: time.Hour, Detail: "TPM"})
	s.get(path, session).has(t, "This key works. 1 of 2 models cools until", "429. It is at its limit, and said how long to wait.", ">TPM<", "authoritative", "in 1 h 0 min", "Stated, so it is never tried early.", "cooling until")
	fail("practice-large", limits.Failure{Status: 429, Daily: limits.DailySpent})
	s.get(path, session).has(t, "No call uses this key now: it is cooling until", "a daily cap of it is spent", "heuristic", "A guess: from", "A success ends the bench")
	s.get("/providers", session).has(t, "One provider key, which cools.", "cooling until")
	s.get("/", session).has(t, "Provider key: cooling until", "Practice: ")
	tile := s.get(path+"/tiles/cooling", session)
	tile.has(t, `id="tile-cooling"`, `hx-swap-oob="true"`, "No call uses this key now")
	tile.hasNot(t, "<html")

	ask := s.get(path+"/clear?model=practice-small", session)
	ask.has(t, "Clear the cooldown of practice-small?", "<b>1</b><span>cooldown ends now", "1 h 0 min", `action="`+path+`/clear?model=practice-small"`)
	a := s.post(path+"/clear?model=practice-small", session, url.Values{})
	if a.status != http.StatusSeeOther {
		t.Fatal(a.status)
	}
	s.get(a.header.Get("Location"), session).has(t, "It is cleared.", "This key works. 1 of 2 models cools until")
	s.post(path+"/clear", session, url.Values{})
	s.get(path, session).has(t, "Nothing rests")
}

func TestWhatIsLearnedStandsBesideWhatIsConfiguredAndCanBeForgotten(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	k, err := s.tenants.AddProviderKey(t.Context(), made.Tenant.ID, tenants.NewProviderKey{
		Provider: "practice", Name: "Practice", Limits: []limits.Limit{{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 1000}},
	})
	must(t, err)
	must(t, s.tenants.Learn(t.Context(), made.Tenant.ID, k.ID, limits.Learn(nil, "practice-small", []limits.Statement{
		{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 60, From: limits.FromHeader, Detail: "x"},
		{Dimension: limits.DimensionRequests, Window: limits.WindowDay, Amount: 5000, From: limits.FromBody, Detail: "RPD"},
	}, noon)))
	path := "/providers/" + id.ProviderKey.Format(k.ID)
	s.get(path, session).has(t, "practice-small, requests a minute", "stated in a header", "<b>60</b>", "practice-small, requests a day", "stated in a refusal", "<b>5,000</b>", "Requests a minute, learned")
	a := s.post(path+"/forget", session, url.Values{"model": {"practice-small"}, "dimension": {"requests"}, "window": {"day"}})
	page := s.get(a.header.Get("Location"), session)
	page.has(t, "It is forgotten.", "practice-small, requests a minute")
	page.hasNot(t, "practice-small, requests a day")
}
