package verdict_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/limits/limitstest"
	"weir/internal/verdict"
)

func limit(kind limits.ScopeKind, d limits.Dimension, amount int64) limits.Limit {
	return limits.Default(limits.Limit{Scope: limits.Scope{Kind: kind, ID: id.New()}, Dimension: d, Window: limits.WindowMinute, Amount: amount})
}

func headers(states []limits.State) http.Header {
	h := http.Header{}
	verdict.Headers(h, states)
	return h
}

func TestALimitOfZeroIsTheTightest(t *testing.T) {
	clock := limitstest.NewClock(limitstest.Noon)
	m := limits.NewMemory(limits.MemoryOptions{Now: clock.Now})
	plan := []limits.Limit{limit(limits.ScopeCustomer, limits.DimensionRequests, 500), limit(limits.ScopeAPIKey, limits.DimensionRequests, 0)}
	d, err := m.Reserve(t.Context(), limits.Request{Tenant: id.New(), Plan: []*limits.Set{limits.Compile(plan)}, Estimate: limits.Cost{Requests: 1}})
	if err != nil || d.Admitted {
		t.Fatal(d, err)
	}
	if h := headers(d.States); h.Get("x-ratelimit-remaining-requests") != "0" || h.Get("x-ratelimit-limit-requests") != "0" {
		t.Errorf("a call that a key's limit of 0 refuses is told %q of %q are left", h.Get("x-ratelimit-remaining-requests"), h.Get("x-ratelimit-limit-requests"))
	}
}

func TestABucketInDebtSaysWhenThereIsMore(t *testing.T) {
	clock := limitstest.NewClock(limitstest.Noon)
	m := limits.NewMemory(limits.MemoryOptions{Now: clock.Now})
	tenant, plan := id.New(), []limits.Limit{limit(limits.ScopeCustomer, limits.DimensionTokens, 60)}
	d, err := m.Reserve(t.Context(), limits.Request{Tenant: tenant, Plan: []*limits.Set{limits.Compile(plan)}, Estimate: limits.Cost{Requests: 1}})
	if err != nil {
		t.Fatal(err)
	}
	o, err := m.Settle(t.Context(), tenant, d.Reservation.ID, limits.Settlement{Actual: limits.Cost{Tokens: limits.Tokens{Input: 90}}})
	if err != nil {
		t.Fatal(err)
	}
	clock.Move(29 * time.Second)
	live, err := m.Live(t.Context(), tenant, plan, "", "")
	if err != nil || live[0].NextCallAfter != 2*time.Second { // of the 30 owed one is left
		t.Fatalf("%v, %v", live, err)
	}
	if got := headers(o.States).Get("RateLimit"); !strings.Contains(got, "t=31") {
		t.Errorf("30 tokens are owed, one is refilled a second: %s", got)
	}
}
