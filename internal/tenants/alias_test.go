package tenants_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

func (b bench) served(t *testing.T, name string, models ...string) uuid.UUID {
	t.Helper()
	k, err := b.AddProviderKey(t.Context(), b.tenant, tenants.NewProviderKey{Provider: "custom", Name: name, BaseURL: b.up.URL, Models: models})
	if err != nil {
		t.Fatal(err)
	}
	return k.ID
}

// targets says where a call goes that asks for a name: "key/model@priority×weight".
func (b bench) targets(t *testing.T, asked string) string {
	t.Helper()
	routes, err := b.Routes(t.Context(), b.tenant)
	if err != nil {
		t.Fatal(err)
	}
	list, err := b.Aliases(t.Context(), b.tenant)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]tenants.Alias{}
	for _, a := range list {
		named[a.Name] = a
	}
	var out []string
	targets, _ := tenants.Targets(named, routes, asked)
	for _, to := range targets {
		out = append(out, fmt.Sprintf("%s/%s@%d×%d", to.Route.Key.Name, to.Model, to.Priority, to.Weight))
	}
	return strings.Join(out, " ")
}

func TestAnAliasGoesToItsCandidatesInOrder(t *testing.T) {
	b := newBench(t)
	one, two := b.served(t, "one", "big", "small"), b.served(t, "two", "big")
	b.served(t, "three", "big", "fast")
	p := b.pool(t, "account", nil, one, two)
	practice, err := b.AddProviderKey(t.Context(), b.tenant, tenants.NewProviderKey{Provider: "practice", Name: "practice", Models: []string{"big"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []tenants.NewAlias{
		{Name: "pooled", Candidates: []tenants.AliasCandidate{{Model: "big", Pool: p.ID}, {Model: "small"}}},
		{Name: "keyed", Candidates: []tenants.AliasCandidate{{Model: "big", Key: two, Priority: 2}, {Model: "small", Key: one, Priority: 1, Weight: 9}, {Model: "fast", Priority: 1}}},
		{Name: "by-vendor", Candidates: []tenants.AliasCandidate{{Model: "big", Provider: "practice"}}},
		{Name: "anyone", Candidates: []tenants.AliasCandidate{{Model: "big", Key: two}, {Model: "big"}}},
		{Name: "fast", Candidates: []tenants.AliasCandidate{{Model: "small"}, {Model: "fast"}}},
	} {
		if _, err := b.AddAlias(t.Context(), b.tenant, n); err != nil {
			t.Fatalf("%s: %v", n.Name, err)
		}
	}
	for asked, want := range map[string]string{
		"pooled":     "one/big@1×1 two/big@1×1 one/small@2×1",
		"keyed":      "one/small@1×9 three/fast@1×1 two/big@2×1",
		"by-vendor":  "practice/big@1×1",
		"anyone":     "two/big@1×1 one/big@2×1 three/big@2×1 practice/big@2×1",
		"fast":       "one/small@1×1 three/fast@2×1", // stands before the provider's, and reaches it
		"small":      "one/small@1×1",
		"Fast":       "",
		"fast ":      "", //nolint:gocritic // that is what is asked for
		"ｆａｓｔ":       "",
		"fast\u200b": "",
		"custom/big": "",
	} {
		if got := b.targets(t, asked); got != want {
			t.Errorf("%q goes to %q, not %q", asked, got, want)
		}
	}
	if err := b.RemoveProviderKey(t.Context(), b.tenant, practice.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.RemovePool(t.Context(), b.tenant, p.ID); err != nil {
		t.Fatal(err)
	}
	if got := b.targets(t, "by-vendor") + b.targets(t, "pooled"); got != "one/small@2×1" {
		t.Errorf("a key and a pool are gone: %q", got)
	}
	list, _ := b.Aliases(t.Context(), b.tenant)
	i := slices.IndexFunc(list, func(a tenants.Alias) bool { return a.Name == "pooled" })
	if n := list[i].Candidates[0].Named; n.Name != "account" || !n.Gone {
		t.Errorf("the pool that is gone is told as %+v", n)
	}
}

func TestAnAliasThatCouldNeverServeIsRefusedAtItsField(t *testing.T) {
	b := newBench(t)
	b.served(t, "one", "big")
	good := tenants.NewAlias{Name: "fast", Candidates: []tenants.AliasCandidate{{Model: "big"}}}
	made, err := b.AddAlias(t.Context(), b.tenant, good)
	if err != nil {
		t.Fatal(err)
	}
	many := make([]tenants.AliasCandidate, tenants.MaxCandidates+1)
	for i := range many {
		many[i].Model = fmt.Sprint("m", i)
	}
	key, pool := id.New(), id.New()
	for want, n := range map[string]tenants.NewAlias{
		"/name bad_model":                         {Name: "has space", Candidates: good.Candidates},
		"/description too_long":                   {Name: "x", Description: strings.Repeat("d", 501), Candidates: good.Candidates},
		"/description bad_characters":             {Name: "x", Description: "a\nb", Candidates: good.Candidates},
		"/candidates required":                    {Name: "x"},
		"/candidates too_many":                    {Name: "x", Candidates: many},
		"/candidates/0/model bad_model":           {Name: "x", Candidates: []tenants.AliasCandidate{{Model: ""}}},
		"/candidates/1/model duplicate":           {Name: "x", Candidates: []tenants.AliasCandidate{{Model: "big"}, {Model: "big", Priority: 7}}},
		"/candidates/0/priority out_of_range":     {Name: "x", Candidates: []tenants.AliasCandidate{{Model: "big", Priority: 101}}},
		"/candidates/0/weight out_of_range":       {Name: "x", Candidates: []tenants.AliasCandidate{{Model: "big", Weight: -1}}},
		"/candidates/0/provider not_allowed":      {Name: "x", Candidates: []tenants.AliasCandidate{{Model: "big", Key: key, Pool: pool}}},
		"/candidates/0/provider unknown_provider": {Name: "x", Candidates: []tenants.AliasCandidate{{Model: "big", Provider: "acme"}}},
		"/candidates/0/provider_key not_found":    {Name: "x", Candidates: []tenants.AliasCandidate{{Model: "big", Key: key}}},
		"/candidates/0/pool not_found":            {Name: "x", Candidates: []tenants.AliasCandidate{{Model: "big", Pool: pool}}},
		"/candidates/0/model alias_of_alias":      {Name: "x", Candidates: []tenants.AliasCandidate{{Model: "fast"}}},
		"/candidates/0/model alias_of_itself":     {Name: "x", Candidates: []tenants.AliasCandidate{{Model: "x"}}},
		"/name name_taken":                        good,
	} {
		_, err := b.AddAlias(t.Context(), b.tenant, n)
		f := fault.Of(err)
		if err == nil || len(f.Fields) != 1 || f.Fields[0].Pointer+" "+f.Fields[0].Code != want {
			t.Errorf("%s: %v %+v", want, err, f.Fields)
		}
	}
	itself := []tenants.AliasCandidate{{Model: "fast"}}
	if _, err := b.ChangeAlias(t.Context(), b.tenant, made.ID, tenants.AliasChange{Candidates: &itself}); fault.Of(err).Code != "invalid_fields" {
		t.Errorf("an alias comes to point at itself: %v", err)
	}
	other := b.made.Tenant.ID
	if _, err := b.Alias(t.Context(), id.New(), made.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("another tenant than %v reads it: %v", other, err)
	}
}

func TestAnAliasIsChangedInParts(t *testing.T) {
	b := newBench(t)
	b.served(t, "one", "big", "small")
	a, err := b.AddAlias(t.Context(), b.tenant, tenants.NewAlias{Name: "fast", Description: "What we sell", Candidates: []tenants.AliasCandidate{{Model: "big"}}})
	if err != nil {
		t.Fatal(err)
	}
	name, sticky := "faster", true
	if a, err = b.ChangeAlias(t.Context(), b.tenant, a.ID, tenants.AliasChange{Name: &name, Sticky: &sticky}); err != nil {
		t.Fatal(err)
	}
	if a.Name != "faster" || !a.Sticky || a.Description != "What we sell" || len(a.Candidates) != 1 {
		t.Errorf("got %+v", a)
	}
	if got := b.targets(t, "fast") + b.targets(t, "faster"); got != "one/big@1×1" {
		t.Errorf("the names go to %q", got)
	}
	list := []tenants.AliasCandidate{{Model: "small"}, {Model: "big", Priority: 1}}
	if a, err = b.ChangeAlias(t.Context(), b.tenant, a.ID, tenants.AliasChange{Candidates: &list}); err != nil || b.targets(t, "faster") != "one/small@1×1 one/big@1×1" {
		t.Errorf("got %+v, %v", a, err)
	}
	if err := b.RemoveAlias(t.Context(), b.tenant, a.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.RemoveAlias(t.Context(), b.tenant, a.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if err := b.RemoveAlias(t.Context(), b.tenant, uuid.Nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("removed nothing: %v", err)
	}
}
