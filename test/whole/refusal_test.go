package whole

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
	"weir/internal/id"
	"weir/test/stack"
)

const goroutines = 64

// scopes are where a limit can stand today.
var scopes = []string{"tenant", "customer", "api_key", "provider_key"}

// limitsWith are the limits of one scope: all of them wide, but one.
func limitsWith(tight stack.Limit) []stack.Limit {
	list := []stack.Limit{
		{Dimension: "requests", Window: "day", Amount: 1_000_000},
		{Dimension: "tokens", Window: "day", Amount: 1_000_000_000},
		{Dimension: "requests", Window: "minute", Amount: 1_000_000},
		{Dimension: "tokens", Window: "minute", Amount: 1_000_000_000},
		{Dimension: "concurrency", Window: "none", Amount: 1000},
	}
	for i, l := range list {
		if l.Dimension == tight.Dimension && l.Window == tight.Window {
			list[i] = tight
		}
	}
	return list
}

// limited is a world with limits on every scope, wide ones but for the tight
// one on one of them.
func limited(t *testing.T, up *upstreamtest.Upstream, scope string, tight stack.Limit) stack.World {
	t.Helper()
	of := func(s string) []stack.Limit {
		if s == scope {
			return limitsWith(tight)
		}
		return limitsWith(stack.Limit{})
	}
	w := weir.Setup(t, stack.Options{Upstream: up, Zone: stack.MiddayZone(), ProviderLimit: of("provider_key"), Plan: of("customer"), KeyLimit: of("api_key")})
	for i, l := range of("tenant") {
		limitTenant(t, w, i, l)
	}
	stack.Eventually(t, 2*time.Second, func() string {
		a := weir.Want(t, 200, "GET", "/v1/limits", w.Key, nil)
		if n := bytes.Count(a.Body, []byte(`"scope":"tenant"`)); n != len(of("tenant")) {
			return fmt.Sprintf("%d of the tenant's limits are in force: %s", n, a)
		}
		return ""
	})
	return w
}

// limitTenant gives a tenant a limit of its own, as the operator will. It is in
// force within a second.
func limitTenant(t *testing.T, w stack.World, position int, l stack.Limit) {
	t.Helper()
	policy := map[string]string{"minute": "bucket", "day": "calendar", "none": "gauge"}[l.Window]
	stack.Rows[string](t, weir, `
		insert into limits (tenant_id, limit_id, owner_kind, owner_id, position, dimension, win, policy, amount, burst, mode, outage)
		values ($1, $2, 'tenant', $1, $3, $4, $5, $6, $7, $8, 'enforce', 'share') returning dimension`,
		tenantUUID(t, w), id.New().String(), position, l.Dimension, l.Window, policy, l.Amount, l.Burst)
}

// ledger is what a limit says of itself.
type ledger struct {
	Used, Remaining, Debt int64
}

// ledgers reads the state of every limit on every scope: what the customer's
// key is shown, and what a decision that is not kept says of the provider key.
func ledgers(t *testing.T, w stack.World) map[string]ledger {
	t.Helper()
	out := map[string]ledger{}
	note := func(raw []byte) {
		var body struct {
			Data, Limits []struct {
				ID, Scope, Dimension, Window string
				ledger
			}
		}
		if err := json.Unmarshal(raw, &body); err != nil {
			t.Fatal(err)
		}
		for _, l := range append(body.Data, body.Limits...) {
			out[l.Scope+" "+l.Dimension+" "+l.Window] = l.ledger
		}
	}
	dry := fmt.Sprintf(`{"customer": %q, "model": "test-small", "provider_key": %q, "estimate": {"input_tokens": 1}, "dry_run": true}`, w.Customer, w.ProviderKey)
	if a := weir.Call(t, "POST", "/v1/reservations", w.ManagementKey, dry); a.Status == 201 {
		note(a.Body)
	}
	note(weir.Want(t, 200, "GET", "/v1/limits?model=test-small", w.Key, nil).Body)
	return out
}

// refill is what a minute's limit gets back by itself; everything else stands
// still while nothing is admitted.
func sameLedgers(t *testing.T, before, after map[string]ledger) {
	t.Helper()
	if len(before) != len(after) || len(before) < 15 {
		t.Fatalf("%d ledgers before, %d after", len(before), len(after))
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		b, a := before[name], after[name]
		if strings.HasSuffix(name, " minute") {
			if a.Used > b.Used || a.Remaining < b.Remaining || a.Debt > b.Debt {
				t.Errorf("%s: %+v before, %+v after", name, b, a)
			}
		} else if a != b {
			t.Errorf("%s: %+v before, %+v after", name, b, a)
		}
	}
}

// atOnce calls f from many goroutines that begin together.
func atOnce(n int, f func(i int)) {
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-begin
			f(i)
		})
	}
	ready.Wait()
	close(begin)
	done.Wait()
}

// TestARefusalLeavesEveryCounterOfEveryScopeUntouched has 64 callers refused
// again and again by a limit of one scope, and compares all ledgers.
func TestARefusalLeavesEveryCounterOfEveryScopeUntouched(t *testing.T) {
	t.Parallel()
	cases := []struct {
		scope  string
		tight  stack.Limit
		use    int64 // tokens to use up first
		ask    int64 // what each refused call may write
		status int
		code   string
	}{
		{"tenant", stack.Limit{Dimension: "tokens", Window: "day", Amount: 10_000}, 9_000, 2_000, 429, "insufficient_quota"},
		{"customer", stack.Limit{Dimension: "tokens", Window: "day", Amount: 10_000}, 9_000, 2_000, 429, "insufficient_quota"},
		{"customer", stack.Limit{Dimension: "tokens", Window: "day", Amount: 10_000}, 0, 20_000, 413, "request_too_large"},
		{"api_key", stack.Limit{Dimension: "requests", Window: "minute", Amount: 1, Burst: 2}, 0, 10, 429, "rate_limit_exceeded"},
		{"provider_key", stack.Limit{Dimension: "tokens", Window: "day", Amount: 10_000}, 9_000, 2_000, 503, "provider_capacity"},
	}
	for _, c := range cases {
		t.Run(c.scope+" "+c.code, func(t *testing.T) {
			t.Parallel()
			up := upstreamtest.New(t)
			w := limited(t, up, c.scope, c.tight)
			useTokens(t, w, c.use)
			if c.scope == "api_key" {
				for range 2 {
					weir.Want(t, 200, "POST", "/v1/chat/completions", w.Key, chat("test-small"))
				}
			}
			before, sent := ledgers(t, w), len(up.Calls())
			body := strings.Replace(chat("test-small"), "{", fmt.Sprintf(`{"max_tokens": %d, `, c.ask), 1)
			atOnce(goroutines, func(int) {
				for range 4 {
					a, err := weir.Do(t.Context(), "POST", "/v1/chat/completions", w.Key, body)
					if err != nil || a.Status != c.status || a.Text("error.code") != c.code {
						t.Errorf("%v %v, want %d %s", a, err, c.status, c.code)
						return
					}
				}
			})
			sameLedgers(t, before, ledgers(t, w))
			if n := len(up.Calls()) - sent; n != 0 {
				t.Errorf("%d refused calls reached the provider", n)
			}
			refusalsCostNothing(t, w, goroutines*4)
		})
	}
}

// useTokens has a call of the customer's take so many tokens, on every scope
// but the key's.
func useTokens(t *testing.T, w stack.World, n int64) {
	t.Helper()
	if n == 0 {
		return
	}
	reserve := fmt.Sprintf(`{"customer": %q, "model": "test-small", "provider_key": %q, "estimate": {"input_tokens": %d}}`, w.Customer, w.ProviderKey, n)
	rsv := weir.Want(t, 201, "POST", "/v1/reservations", w.ManagementKey, reserve).Text("id")
	weir.Want(t, 200, "POST", "/v1/reservations/"+rsv+"/settle", w.ManagementKey, fmt.Sprintf(`{"outcome": "ok", "usage": {"input_tokens": %d}}`, n))
}

// refusalsCostNothing waits for the events of so many refusals and looks at what
// they say and did.
func refusalsCostNothing(t *testing.T, w stack.World, n int64) {
	t.Helper()
	tenant := tenantUUID(t, w)
	stack.Eventually(t, patience, func() string {
		got := stack.Value[int64](t, weir, `select coalesce(sum(refused), 0)::bigint from usage_events where tenant_id = $1`, tenant)
		if got != n {
			return fmt.Sprintf("%d refusals in the books, want %d", got, n)
		}
		return ""
	})
	if bad := stack.Rows[string](t, weir, `
		select to_jsonb(e)::text from usage_events e
		where tenant_id = $1 and outcome like 'refused%'
		  and (requests <> 0 or input_tokens + cached_input_tokens + cache_write_tokens + output_tokens + reasoning_tokens + units <> 0
		       or charge_pico <> 0 or coalesce(cost_pico, 0) <> 0 or detail -> 'charges' is not null or detail -> 'attempts' is not null)`, tenant); len(bad) > 0 {
		t.Errorf("refusals with a cost: %s", brief(bad[0]))
	}
	if drift := stack.Rows[string](t, weir, driftSQL, tenant); len(drift) > 0 {
		t.Errorf("cap totals are not the sum of the events: %v", drift)
	}
}

// driftSQL names every cap total that is not the sum of the tenant's events.
const driftSQL = `
	with charged as (
		select c ->> 'ledger' as ledger, (c ->> 'window_start')::timestamptz as window_start, sum((c ->> 'amount')::bigint) as used
		from usage_events, json_array_elements(detail -> 'charges') c
		where tenant_id = $1
		group by 1, 2)
	select coalesce(e.ledger, b.ledger) || ': ' || coalesce(e.used, 0) || ' by events, ' || coalesce(b.used, 0) || ' in the books'
	from charged e
	full join (select * from cap_totals where tenant_id = $1) b on b.ledger = e.ledger and b.window_start = e.window_start
	where coalesce(e.used, 0) <> coalesce(b.used, 0)`

// TestTheLastPlacesGoToExactlySoManyCallers lets 64 callers at once at a limit of
// ten, on each scope in turn: ten pass, and no ledger of any scope counts more.
func TestTheLastPlacesGoToExactlySoManyCallers(t *testing.T) {
	t.Parallel()
	const places = 10
	for _, scope := range scopes {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			up := upstreamtest.New(t)
			w := limited(t, up, scope, stack.Limit{Dimension: "requests", Window: "day", Amount: places})
			admitted := admissions(t, w)
			if admitted != places || len(up.Calls()) != places {
				t.Errorf("%d were admitted, %d reached the provider, want %d", admitted, len(up.Calls()), places)
			}
			each := int64(upstreamtest.Prompt(`"What is a weir?"`) + 6)
			for name, l := range ledgers(t, w) {
				want := map[string]int64{"requests day": places, "tokens day": places * each, "concurrency none": 0}
				_, kind, _ := strings.Cut(name, " ")
				if n, exact := want[kind]; exact && l.Used != n {
					t.Errorf("%s: %d used, want %d", name, l.Used, n)
				}
			}
			refusalsCostNothing(t, w, goroutines-places)
		})
	}
}

func admissions(t *testing.T, w stack.World) (admitted int) {
	t.Helper()
	var mu sync.Mutex
	atOnce(goroutines, func(int) {
		a, err := weir.Do(t.Context(), "POST", "/v1/chat/completions", w.Key, chat("test-small"))
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil && a.Status == 200:
			admitted++
		case err != nil || a.Status != 429 && a.Status != 503:
			t.Errorf("%v %v", a, err)
		}
	})
	return admitted
}

// TestNoMoreCallsRunAtOnceThanAllowed holds a provider's answers back until all
// callers have had theirs.
func TestNoMoreCallsRunAtOnceThanAllowed(t *testing.T) {
	t.Parallel()
	const places = 10
	up, open := upstreamtest.New(t), make(chan struct{})
	up.Choose(func(upstreamtest.Call) upstreamtest.Script { return upstreamtest.Script{Wait: open} })
	w := limited(t, up, "customer", stack.Limit{Dimension: "concurrency", Window: "none", Amount: places})
	var mu sync.Mutex
	refused := 0
	atOnce(goroutines, func(int) {
		a, err := weir.Do(t.Context(), "POST", "/v1/chat/completions", w.Key, chat("test-small"))
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil && a.Status == 429 && a.Text("error.code") == "concurrency_limit_exceeded" && a.Header.Get("Retry-After") == "1":
			if refused++; refused == goroutines-places {
				close(open)
			}
		case err != nil || a.Status != 200:
			t.Errorf("%v %v", a, err)
		}
	})
	if refused != goroutines-places || len(up.Calls()) != places {
		t.Errorf("%d were refused and %d reached the provider, want %d and %d", refused, len(up.Calls()), goroutines-places, places)
	}
	if l := ledgers(t, w)["customer concurrency none"]; l.Used != 0 || l.Remaining != places {
		t.Errorf("after the calls: %+v", l)
	}
}
