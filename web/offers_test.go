package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"weir/internal/catalogue"
	"weir/internal/tenants"
)

func TestATierThatIsChosenGivesTheKeyWhatTheProviderPublishes(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	s.get("/providers/new?provider=openrouter", session).has(t, "Your tier at OpenRouter", "All of *:free together: 20 requests a minute, 50 requests a day", "published, as of 10 June 2026", "openrouter.ai</a>")
	s.get("/providers/new?provider=deepseek", session).has(t, "DeepSeek publishes no limits that are known here.")
	s.get("/providers/new?provider=custom", session).hasNot(t, "Your tier at", "publishes no limits")
	part := s.get("/providers/new/offers?provider=google", session)
	part.has(t, `id="offers"`, "Each of gemini-2.5-flash, ", "250,000 input tokens a minute")
	part.hasNot(t, "<html")

	form := url.Values{"provider": {"groq"}, "name": {"main"}, "secret": {"gsk-not-real-000000"}, "base_url": {"https://127.0.0.1:9/v1"}, "tier": {"google/free"}, "do": {"tiers"}}
	kept := s.post("/providers", session, form)
	kept.has(t, "Your tier at Groq", `value="main"`, "Paste it once more", "Each of openai/gpt-oss-120b, ")
	kept.hasNot(t, "gsk-not-real")
	if n := len(s.providers(made.Tenant.ID)); n != 0 {
		t.Fatalf("%d keys", n)
	}
}

func TestAPublishedTierBecomesTheKeysLimitsAndWhatIsTypedCountsFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	status := http.StatusOK
	_, err := catalogue.New(s.db.App, tenants.Audit).Import(t.Context(), made.Tenant.ID, catalogue.KindLimits, catalogue.Import{
		CSV: "provider,model,tier,dimension,window,amount,cached_input,valid_from,valid_to,source\n" +
			"custom,*,house,requests,minute,600,counted,2026-11-01,,our own server\ncustom,*,house,input_tokens,minute,90000,free,2026-11-01,,our own server\n" +
			"custom,model-a,house,requests,day,70,counted,2026-11-01,,our own server\ncustom,model-b,house,requests,day,70,counted,2026-11-01,,our own server\n",
	})
	must(t, err)
	a := s.post("/providers", session, url.Values{
		"provider": {"custom"}, "name": {"main"}, "base_url": {upstream(t, &status)}, "secret": {"sk-very-secret-8f2Q"}, "tier": {"custom/house"},
		"limits.0.dimension": {"requests"}, "limits.0.window": {"minute"}, "limits.0.amount": {"30"},
	})
	if a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	k := s.providers(made.Tenant.ID)[0]
	var got []string
	for _, l := range k.Limits {
		_, rest, _ := strings.Cut(l.Ledger("model-a"), "/")
		got = append(got, rest)
	}
	if k.Tier != "house" || len(k.Limits) != 3 || k.Limits[0].Amount != 30 || k.Limits[1].Weights["cached_input"] != 0 || len(k.Limits[1].Weights) != 1 && !k.Limits[2].EachModel {
		t.Errorf("%q %v %+v", k.Tier, got, k.Limits)
	}
	a = s.post("/providers", session, url.Values{"provider": {"practice"}, "name": {"p"}, "tier": {"custom/house"}})
	if a.status != http.StatusSeeOther || s.providers(made.Tenant.ID)[0].Tier != "" {
		t.Errorf("a tier of another provider: %d", a.status)
	}
}
