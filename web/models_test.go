package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"weir/internal/catalogue"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// serving adds a provider key that lists its models.
func (s site) serving(tenant uuid.UUID, name string, models ...string) tenants.ProviderKey {
	s.t.Helper()
	status := http.StatusOK
	k, err := s.tenants.AddProviderKey(s.t.Context(), tenant, tenants.NewProviderKey{Provider: "custom", Name: name, BaseURL: upstream(s.t, &status), Models: models})
	must(s.t, err)
	return k
}

func (s site) aliasNamed(tenant uuid.UUID, name string) (a tenants.Alias) {
	s.t.Helper()
	list, err := s.tenants.Aliases(s.t.Context(), tenant)
	must(s.t, err)
	for _, x := range list {
		if x.Name == name {
			a = x
		}
	}
	return a
}

func TestAnAliasIsMadeMovedAndSavedWithoutScript(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	tenant := made.Tenant.ID
	one := s.serving(tenant, "one", "big", "small")
	s.get("/models/aliases/new", session).has(t, "any key that has it", "key one", "any key of Custom", `<option value="big">`)
	f := url.Values{
		"name": {"acme-fast"}, "candidates.0.model": {"small"}, "candidates.1.model": {"big"}, "candidates.1.through": {id.ProviderKey.Format(one.ID)},
	}
	f.Set("do", "add")
	s.post("/models/aliases", session, f).has(t, `name="candidates.2.model"`)
	f.Set("do", "up.1")
	a := s.post("/models/aliases", session, f)
	if a.status != http.StatusOK || strings.Index(a.body, `value="big" autocomplete`) > strings.Index(a.body, `value="small" autocomplete`) {
		t.Fatalf("the second line is not the first now: %d", a.status)
	}
	f.Set("do", "remove.1")
	s.post("/models/aliases", session, f).hasNot(t, `name="candidates.1.model"`)
	if s.aliasNamed(tenant, "acme-fast").ID != uuid.Nil {
		t.Fatal("arranging lines stored something")
	}
	f.Del("do")
	f.Set("candidates.1.shared", "true")
	f.Set("candidates.1.weight", "3")
	if a := s.post("/models/aliases", session, f); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.get("/models?done=alias-added", session).has(t, "The alias is made.", "acme-fast", "3 names can be asked for, and all are ready.", "with it,", "key one, weight 3")
	got := s.aliasNamed(tenant, "acme-fast")
	if len(got.Candidates) != 2 || got.Candidates[1].Priority != 1 || got.Candidates[1].Weight != 3 || got.Candidates[1].Key != one.ID {
		t.Fatalf("stored %+v", got)
	}
	at := "/models/aliases/" + id.Alias.Format(got.ID)
	s.get(at, session).has(t, `value="small"`, `name="candidates.1.shared" value="true" checked`, `value="3"`)
}

func TestWhatIsWrongWithAnAliasStandsAtItsLine(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("admin")
	s.serving(made.Tenant.ID, "one", "big")
	a := s.post("/models/aliases", session, url.Values{
		"name": {"x"}, "candidates.0.model": {""}, "candidates.1.model": {"big"}, "candidates.2.model": {"x"}, "candidates.3.model": {"big"}, "candidates.3.weight": {"5000"},
	})
	if a.status != http.StatusBadRequest {
		t.Fatal(a.status)
	}
	a.has(t, `id="f-candidates-3-model-error"`, `id="f-candidates-3-weight-error"`, `value="5000"`)
	a = s.post("/models/aliases", session, url.Values{"name": {"x"}, "candidates.0.model": {""}, "candidates.1.model": {"x"}})
	a.has(t, `id="f-candidates-1-model-error"`, "This is the alias itself")
	a = s.post("/models/aliases", session, url.Values{"name": {"a b"}, "candidates.0.model": {""}})
	a.has(t, `id="f-name-error"`, "An alias needs at least one model that serves it.")
	a = s.post("/models/aliases", session, url.Values{"name": {"x"}, "candidates.0.model": {"big"}, "candidates.0.through": {id.Pool.Format(id.New())}})
	if a.status != http.StatusNotFound && a.status != http.StatusBadRequest {
		t.Errorf("a pool of nobody: %d", a.status)
	}
}

func TestWhereACallGoesIsToldWithItsReason(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	tenant := made.Tenant.ID
	one, two := s.serving(tenant, "one", "big"), s.serving(tenant, "two", "big")
	s.practice(tenant, "practice")
	_, err := s.tenants.AddAlias(t.Context(), tenant, tenants.NewAlias{Name: "acme", Candidates: []tenants.AliasCandidate{
		{Model: "big", Key: one.ID}, {Model: "big"}, {Model: "practice-small"}, {Model: "nowhere"},
	}})
	must(t, err)
	page := s.get("/models/way?model=acme", session)
	page.has(t, "A call for acme goes to big, through one.", "not used", "nowhere is served by no provider key", "/providers/"+id.ProviderKey.Format(two.ID))
	s.super(`insert into provider_health (tenant_id, provider_key_id, model, source, reason, since, until, step) values ($1, $2, 'big', 'heuristic', 'rate_limited', $3, $4, 1)`,
		tenant, one.ID, noon, noon.Add(90e9))
	s.clock.advance(2e9)
	s.get("/models/way?model=acme", session).has(t, "A call for acme goes to big, through two.", "cooling", "It is at its limit, and did not say for how long.")
	s.get("/models", session).has(t, "of its ways is closed now.")
	if a := s.get("/models/way?model=ACME", session); a.status != http.StatusNotFound {
		t.Errorf("another case is another name: %d", a.status)
	}
	s.get("/search?q=acm", session).has(t, "/models/way?model=acme")
}

func TestADeveloperSeesWhatCanBeAskedForAndNoKeys(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("developer")
	one := s.serving(made.Tenant.ID, "secret-name", "big")
	_, err := s.tenants.AddAlias(t.Context(), made.Tenant.ID, tenants.NewAlias{Name: "acme", Candidates: []tenants.AliasCandidate{{Model: "big", Key: one.ID}}})
	must(t, err)
	for _, path := range []string{"/models", "/models/way?model=acme", "/models/way?model=big"} {
		page := s.get(path, session)
		page.has(t, "big")
		page.hasNot(t, "secret-name", id.ProviderKey.Format(one.ID), "New alias", "/models/aliases/new")
	}
	for _, path := range []string{"/models/aliases/new", "/providers/pools/new"} {
		if a := s.get(path, session); a.status != http.StatusForbidden {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}

func TestAnAliasIsRemovedByItsName(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	tenant := made.Tenant.ID
	s.serving(tenant, "one", "big")
	a, err := s.tenants.AddAlias(t.Context(), tenant, tenants.NewAlias{Name: "big", Candidates: []tenants.AliasCandidate{{Model: "big"}}})
	must(t, err)
	at := "/models/aliases/" + id.Alias.Format(a.ID) + "/remove"
	s.get(at, session).has(t, "Remove big?", "goes to the provider’s model of this name", "1</b>")
	if r := s.post(at, session, url.Values{"word": {"bi"}}); r.status != http.StatusBadRequest {
		t.Errorf("another word: %d", r.status)
	}
	if r := s.post(at, session, url.Values{"word": {"big"}}); r.status != http.StatusSeeOther || s.aliasNamed(tenant, "big").ID != uuid.Nil {
		t.Errorf("removed: %d", r.status)
	}
}

func TestRemovingAProviderKeySaysWhichLinesOfAliasesItLeavesEmpty(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	one := s.serving(made.Tenant.ID, "one", "big")
	at := "/providers/" + id.ProviderKey.Format(one.ID) + "/remove"
	s.get(at, session).hasNot(t, "of an alias names the key")
	_, err := s.tenants.AddAlias(t.Context(), made.Tenant.ID, tenants.NewAlias{Name: "acme", Candidates: []tenants.AliasCandidate{{Model: "big", Key: one.ID}, {Model: "big"}}})
	must(t, err)
	s.get(at, session).has(t, "line of an alias names the key, and is passed over from now on")
}

func TestAPoolIsMadeOfKeysChangedAndTakenApart(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	tenant := made.Tenant.ID
	one := s.serving(tenant, "one", "big")
	two, err := s.tenants.AddProviderKey(t.Context(), tenant, tenants.NewProviderKey{Provider: "custom", Name: "two", BaseURL: one.BaseURL, Models: []string{"big"}})
	must(t, err)
	s.get("/providers", session).has(t, "No pool yet.", "/providers/pools/new")
	s.post("/providers/pools", session, url.Values{"name": {"account"}}).has(t, `id="f-provider_keys-error"`, "Tick at least one key")
	a := s.post("/providers/pools", session, url.Values{
		"name": {"account"}, "provider_keys": {id.ProviderKey.Format(one.ID), id.ProviderKey.Format(two.ID)},
		"limits.0.dimension": {"tokens"}, "limits.0.window": {"minute"}, "limits.0.amount": {"300,000"},
	})
	if a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.get("/providers", session).has(t, "account", "one, two", "0 used of 300,000")
	s.get("/providers/"+id.ProviderKey.Format(one.ID), session).has(t, "one quota with its other keys", "300,000</span> left")
	s.get("/limits?idle=shown", session).has(t, "what the provider allows all keys of the pool")
	page, err := s.tenants.Pools(t.Context(), tenant, uuid.Nil, 10)
	must(t, err)
	at := "/providers/pools/" + id.Pool.Format(page.Items[0].ID)
	s.get(at, session).has(t, `value="300,000"`, "checked", "Tokens a minute", "America/Los_Angeles")
	a = s.post(at, session, url.Values{"name": {"organisation"}, "zone": {"UTC"}, "provider_keys": {id.ProviderKey.Format(two.ID)}, "limits.0.dimension": {"requests"}, "limits.0.window": {"day"}, "limits.0.amount": {"7"}})
	if a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	x, err := s.tenants.Pool(t.Context(), tenant, page.Items[0].ID)
	must(t, err)
	if len(x.Keys) != 1 || x.Keys[0] != two.ID || x.Name != "organisation" || x.Limits[0].Dimension != limits.DimensionRequests {
		t.Errorf("changed to %+v", x)
	}
	s.get(at+"/remove", session).has(t, "Take organisation apart?", "key counts by itself from now on")
	if a := s.post(at+"/remove", session, url.Values{"word": {"organisation"}}); a.status != http.StatusSeeOther {
		t.Errorf("taken apart: %d", a.status)
	}
	s.get("/providers", session).has(t, "No pool yet.")
}

func TestWhatIsPublishedOfAModelStandsBesideIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	tenant := made.Tenant.ID
	status := http.StatusOK
	_, err := s.tenants.AddProviderKey(t.Context(), tenant, tenants.NewProviderKey{Provider: "openai", Name: "main", Secret: keyring.NewSecret("sk-x"), BaseURL: upstream(t, &status), Models: []string{"gpt-4.1", "nobody-knows"}})
	must(t, err)
	book := catalogue.BuiltIn().Facts("openai", "gpt-4.1", noon)
	if !book.Known || len(book.Prices) == 0 {
		t.Fatal("the catalogue knows nothing of it: take another model")
	}
	price := micros(book.Prices[0].MicrosPerMillion)
	s.get("/models", session).has(t, "tokens of context", price, "USD a million")
	page := s.get("/models/way?model=gpt-4.1", session)
	page.has(t, "What is published", "gpt-4.1</span> at OpenAI", price, book.Model.Source)
	s.get("/models/way?model=nobody-knows", session).hasNot(t, "What is published")
	s.super(`update members set role = 'developer' where tenant_id = $1`, tenant)
	s.get("/models/way?model=gpt-4.1", session).hasNot(t, price, "USD a million")
}
