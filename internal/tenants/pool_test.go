package tenants_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

func aMinute(d limits.Dimension, amount int64) limits.Limit {
	return limits.Limit{Dimension: d, Window: limits.WindowMinute, Amount: amount}
}

func (b bench) pool(t *testing.T, name string, list []limits.Limit, keys ...uuid.UUID) tenants.Pool {
	t.Helper()
	p, err := b.AddPool(t.Context(), b.tenant, tenants.NewPool{Name: name, Limits: list, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (b bench) route(t *testing.T, key uuid.UUID) tenants.Route {
	t.Helper()
	routes, err := b.Routes(t.Context(), b.tenant)
	i := slices.IndexFunc(routes, func(r tenants.Route) bool { return r.Key.ID == key })
	if err != nil || i < 0 {
		t.Fatalf("no route for %v: %v", key, err)
	}
	return routes[i]
}

// reserve says whether a call of tokens fits through a key, by an engine that
// keeps its ledgers.
func reserve(t *testing.T, e *limits.Memory, b bench, key uuid.UUID, model string, tokens int64) bool {
	t.Helper()
	r := b.route(t, key)
	d, err := e.Reserve(t.Context(), limits.Request{
		Tenant: b.tenant, ID: id.New(), Model: model, TTL: time.Minute,
		Candidates: []limits.Candidate{{ProviderKey: key, Model: model, Limits: r.LimitsFor(model)}},
		Estimate:   limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: tokens}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d.Admitted
}

func TestKeysOfAPoolShareItsLimitsAndKeepTheirOwn(t *testing.T) {
	b := newBench(t)
	second, alone := b.add(t, "second"), b.add(t, "alone")
	p := b.pool(t, "account", []limits.Limit{aMinute(limits.DimensionTokens, 100)}, b.key, second)
	own := []limits.Limit{aMinute(limits.DimensionTokens, 30)}
	if _, err := b.ChangeProviderKey(t.Context(), b.tenant, second, tenants.KeyChange{Limits: &own}); err != nil {
		t.Fatal(err)
	}
	e := limits.NewMemory(limits.MemoryOptions{Now: b.clock.now})
	if !reserve(t, e, b, b.key, "m", 60) {
		t.Error("60 of the pool's 100 are refused")
	}
	if reserve(t, e, b, second, "m", 35) {
		t.Error("35 pass through a key of 30")
	}
	if !reserve(t, e, b, second, "m", 30) {
		t.Error("30 are refused, of 40 that are left in the pool")
	}
	if reserve(t, e, b, b.key, "m", 20) {
		t.Error("20 pass, of 10 that are left in the pool")
	}
	if !reserve(t, e, b, alone, "m", 1000) {
		t.Error("a key outside is held to the pool")
	}
	if r := b.route(t, second); r.Pool.ID != p.ID || r.Pool.Name != "account" {
		t.Errorf("the route's pool is %+v", r.Pool)
	}
	if r := b.route(t, alone); r.Pool.ID != uuid.Nil {
		t.Errorf("a key outside is in %+v", r.Pool)
	}
}

func TestWhatIsLearnedOfOneKeyCountsForItsPoolOnly(t *testing.T) {
	b := newBench(t)
	second, alone := b.add(t, "second"), b.add(t, "alone")
	p := b.pool(t, "account", nil, b.key, second)
	learn := func(key uuid.UUID, amount int64, at time.Time) {
		t.Helper()
		err := b.Learn(t.Context(), b.tenant, key, []limits.Learned{{Model: "m", Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: amount, From: limits.FromHeader, LearnedAt: at, SeenAt: at}})
		if err != nil {
			t.Fatal(err)
		}
	}
	now := b.clock.now()
	learn(b.key, 100, now)
	e := limits.NewMemory(limits.MemoryOptions{Now: b.clock.now})
	if !reserve(t, e, b, second, "m", 70) || reserve(t, e, b, b.key, "m", 40) {
		t.Error("what was learned of one key is not one ledger of the pool")
	}
	if !reserve(t, e, b, alone, "m", 1000) || !reserve(t, e, b, b.key, "other", 1000) {
		t.Error("it counts for another key or model")
	}
	learn(second, 50, now.Add(time.Minute))
	if got, err := b.Pool(t.Context(), b.tenant, p.ID); err != nil || len(got.Learned) != 1 || got.Learned[0].Amount != 50 {
		t.Errorf("the pool goes by %+v, not by what was stated last (%v)", got.Learned, err)
	}
	if err := b.RemovePool(t.Context(), b.tenant, p.ID); err != nil {
		t.Fatal(err)
	}
	if l := b.route(t, b.key).Key.LimitsFor("m"); len(l) != 1 || l[0].Amount != 100 || l[0].Scope.Kind != limits.ScopeProviderKey {
		t.Errorf("out of the pool the key counts by %+v", l)
	}
	if r := b.route(t, b.key); r.Pool.ID != uuid.Nil {
		t.Errorf("the key is still in %+v", r.Pool)
	}
}

func TestAPoolTakesKeysOfOneProviderThatAreInNoOther(t *testing.T) {
	b := newBench(t)
	practice, err := b.AddProviderKey(t.Context(), b.tenant, tenants.NewProviderKey{Provider: "practice", Name: "practice"})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := b.AddProviderKey(t.Context(), b.tenant, tenants.NewProviderKey{Provider: "custom", Name: "elsewhere", BaseURL: provider(t, 200, `{"data":[]}`)})
	if err != nil {
		t.Fatal(err)
	}
	p := b.pool(t, "account", nil, b.key)
	for name, c := range map[string]struct {
		keys []uuid.UUID
		code string
	}{
		"another provider":       {[]uuid.UUID{practice.ID, b.key}, "invalid_fields"},
		"another custom address": {[]uuid.UUID{elsewhere.ID, b.add(t, "third")}, "invalid_fields"},
		"one that is in a pool":  {[]uuid.UUID{b.key}, "in_other_pool"},
		"one that is not there":  {[]uuid.UUID{id.New()}, "not_found"},
	} {
		_, err := b.AddPool(t.Context(), b.tenant, tenants.NewPool{Name: name, Keys: c.keys})
		f := fault.Of(err)
		if err == nil || f.Code != c.code || len(f.Fields) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := b.pool(t, "other", nil, b.add(t, "fourth"))
	if k, err := b.ChangeProviderKey(t.Context(), b.tenant, b.key, tenants.KeyChange{Pool: &other.ID}); err != nil || k.Pool.ID != other.ID || len(k.Pool.Keys) != 2 {
		t.Errorf("a key moves to another pool: %+v, %v", k.Pool, err)
	}
	if p, err = b.Pool(t.Context(), b.tenant, p.ID); err != nil || len(p.Keys) != 0 {
		t.Errorf("and stays in its own: %+v, %v", p, err)
	}
	if _, err := b.ChangeProviderKey(t.Context(), b.tenant, elsewhere.ID, tenants.KeyChange{Pool: &other.ID}); err == nil {
		t.Error("a key at another address joins")
	}
	if _, err := b.AddProviderKey(t.Context(), b.tenant, tenants.NewProviderKey{Provider: "practice", Name: "another", Pool: other.ID}); err == nil {
		t.Error("a key of another provider is made in the pool")
	}
	if _, err := b.AddPool(t.Context(), b.tenant, tenants.NewPool{Name: "OTHER", Provider: "custom"}); fault.Of(err).Code != "name_taken" {
		t.Errorf("two pools of one name: %v", err)
	}
}

func TestAPoolsDaysEndInItsProvidersZone(t *testing.T) {
	b := newBench(t)
	p, err := b.AddPool(t.Context(), b.tenant, tenants.NewPool{
		Name: "account", Keys: []uuid.UUID{b.key}, Zone: "America/Los_Angeles",
		Limits: []limits.Limit{{Dimension: limits.DimensionRequests, Window: limits.WindowDay, Amount: 5}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if l := b.route(t, b.key).Key.LimitsFor("m"); len(l) != 1 || l[0].Zone != "America/Los_Angeles" || l[0].Scope.Kind != limits.ScopePool || l[0].Scope.ID != p.ID {
		t.Errorf("got %+v", l)
	}
	zone := "Asia/Tokyo"
	if p, err = b.ChangePool(t.Context(), b.tenant, p.ID, tenants.PoolChange{Zone: &zone}); err != nil || p.Zone != zone || len(p.PastZones) != 1 {
		t.Errorf("corrected: %+v, %v", p, err)
	}
	spend := []limits.Limit{{Dimension: limits.DimensionSpend, Window: limits.WindowDay, Amount: 1}}
	if _, err := b.ChangePool(t.Context(), b.tenant, p.ID, tenants.PoolChange{Limits: &spend}); fault.Of(err).Code != "invalid_fields" {
		t.Errorf("a pool limits what a provider charges: %v", err)
	}
}
