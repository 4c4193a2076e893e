package whole

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/test/stack"
)

// settled makes a call of the decision API that used 10 input tokens.
func settled(t *testing.T, w stack.World, labels string) {
	t.Helper()
	r := weir.Want(t, 201, "POST", "/v1/reservations", w.ManagementKey, fmt.Sprintf(`{"customer": %q, "model": "gpt-4o", "estimate": {"input_tokens": 10}%s}`, w.Customer, labels))
	weir.Want(t, 200, "POST", "/v1/reservations/"+r.Text("id")+"/settle", w.ManagementKey, `{"outcome": "ok", "usage": {"input_tokens": 10}}`)
}

func TestUsageIsReportedByEndUserTagAndOutcome(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Zone: stack.MiddayZone()})
	settled(t, w, `, "end_user": "ann", "tags": {"team": "red"}`)
	settled(t, w, `, "end_user": "ann", "tags": {"team": "blue"}`)
	settled(t, w, ``)
	stack.Eventually(t, patience, func() string {
		if a := weir.Want(t, 200, "GET", "/api/v1/usage", w.ManagementKey, nil); a.JSON("totals.requests") != 3.0 {
			return a.String()
		}
		return ""
	})
	for path, want := range map[string]float64{
		"group_by=end_user": 30, "group_by=tag:team": 30, "group_by=outcome&outcome=ok": 30, "outcome=refused": 0, "end_user=ann": 20, "tag:team=red": 10, "tag:team=green": 0,
	} {
		a := weir.Want(t, 200, "GET", "/api/v1/usage?"+path, w.ManagementKey, nil)
		if a.JSON("totals.input_tokens") != want || a.Text("complete_until") == "" {
			t.Errorf("%s: %s", path, a)
		}
	}
	a := weir.Want(t, 200, "GET", "/api/v1/usage?group_by=tag:team", w.ManagementKey, nil)
	if a.Text("data.0.group.tag:team") != "" || a.Text("data.1.group.tag:team") != "blue" || a.Text("data.2.group.tag:team") != "red" {
		t.Errorf("by tag: %s", a)
	}
	for _, path := range []string{"group_by=shoe", "group_by=tag:", "group_by=tag:a%20b", "outcome=fine", "tag:a=1&tag:b=2", "tag:%20=1", "tag:a="} {
		weir.Want(t, 400, "GET", "/api/v1/usage?"+path, w.ManagementKey, nil)
	}
	for path, want := range map[string]int{"tag:team=red": 1, "end_user=ann": 2, "outcome=ok": 3, "model=none": 0, "request=" + weir.Want(t, 200, "GET", "/api/v1/requests", w.ManagementKey, nil).Text("data.0.id"): 1} {
		a := weir.Want(t, 200, "GET", "/api/v1/requests?"+path, w.ManagementKey, nil)
		if list, _ := a.JSON("data").([]any); len(list) != want {
			t.Errorf("%s: %s", path, a)
		}
	}
	weir.Want(t, 400, "GET", "/api/v1/requests?outcome=fine", w.ManagementKey, nil)
	weir.Want(t, 400, "GET", "/api/v1/requests?request=req_1", w.ManagementKey, nil)
}

func TestWhatProvidersChargeNeedsTheScopeForMoney(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	settled(t, w, ``)
	stack.Eventually(t, patience, func() string {
		if a := weir.Want(t, 200, "GET", "/api/v1/usage", w.ManagementKey, nil); a.JSON("totals.unpriced_requests") != 1.0 || a.JSON("totals.provider_cost") == nil {
			return a.String()
		}
		return ""
	})
	narrow := weir.Want(t, 201, "POST", "/api/v1/api-keys", w.ManagementKey, `{"kind": "management", "name": "reader", "scopes": ["usage:read"]}`).Text("secret")
	if a := weir.Want(t, 200, "GET", "/api/v1/usage", narrow, nil); a.JSON("totals.provider_cost") != nil || a.JSON("totals.unpriced_requests") != nil {
		t.Errorf("without money:read: %s", a)
	}
}

func TestAReportTellsHowLongCallsTookWhereTheyWereMeasured(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Zone: stack.MiddayZone()})
	at := time.Now().Add(-10 * time.Minute).UTC()
	event := func(own, model string, took time.Duration) string {
		return fmt.Sprintf(`{"id": %q, "customer": %q, "model": %q, "started_at": %q, "ended_at": %q, "outcome": "ok", "usage": {"input_tokens": 10}}`,
			own, w.Customer, model, at.Format(time.RFC3339Nano), at.Add(took).Format(time.RFC3339Nano))
	}
	weir.Want(t, 200, "POST", "/api/v1/events", w.ManagementKey, `{"events": [`+strings.Join([]string{
		event("a", "slow", 2*time.Minute), event("b", "fast", 200*time.Millisecond), event("c", "fast", 210*time.Millisecond), event("d", "fast", 0), event("e", "unknown", 0),
	}, ",")+`]}`)
	path := "/api/v1/usage?group_by=model&from=" + at.Add(-time.Minute).Format("2006-01-02T15:04:05Z")
	stack.Eventually(t, patience, func() string {
		if a := weir.Want(t, 200, "GET", path, w.ManagementKey, nil); a.JSON("totals.requests") != 5.0 {
			return a.String()
		}
		return ""
	})
	a := weir.Want(t, 200, "GET", path, w.ManagementKey, nil)
	for where, want := range map[string]float64{
		"totals.latency.measured": 3, "totals.latency.p50_ms": 222, "data.0.latency.measured": 2, "data.0.latency.p99_ms": 222, "data.1.latency.p50_ms": 111111, "totals.latency.p95_ms": 111111,
	} {
		if got := a.JSON(where); got != want {
			t.Errorf("%s is %v, want %v: %s", where, got, want, a)
		}
	}
	if a.Text("data.2.group.model") != "unknown" || a.JSON("data.2.latency") != nil {
		t.Errorf("of calls that were not measured: %s", a)
	}
}

func TestAnExportIsMadeByTheWorkerAndHandedOutWhole(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Zone: stack.MiddayZone()})
	for range 3 {
		settled(t, w, ``)
	}
	stack.Eventually(t, patience, func() string {
		if a := weir.Want(t, 200, "GET", "/api/v1/usage", w.ManagementKey, nil); a.JSON("totals.requests") != 3.0 {
			return a.String()
		}
		return ""
	})
	from := time.Now().UTC().Add(-24 * time.Hour).Format(time.RFC3339)
	made := map[string]string{}
	for _, kind := range []string{"usage", "requests"} {
		made[kind] = weir.Want(t, 202, "POST", "/api/v1/exports", w.ManagementKey, fmt.Sprintf(`{"kind": %q, "format": "csv", "from": %q, "filters": {"model": "gpt-4o"}}`, kind, from)).Text("id")
	}
	for kind, export := range made {
		path := "/api/v1/exports/" + export
		stack.Eventually(t, patience, func() string {
			if a := weir.Want(t, 200, "GET", path, w.ManagementKey, nil); a.Text("status") != "ready" {
				return a.String()
			}
			return ""
		})
		file := weir.Want(t, 200, "GET", path+"/content", w.ManagementKey, nil)
		lines := strings.Split(strings.TrimSpace(string(file.Body)), "\r\n")
		sum := sha256.Sum256([]byte(strings.Join(lines[:len(lines)-1], "\r\n") + "\r\n"))
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "checksum,rows ") || !strings.Contains(last, hex.EncodeToString(sum[:])) || !strings.Contains(last, stack.MiddayZone()) {
			t.Errorf("%s ends with %s", kind, last)
		}
		if rows := map[string]int{"usage": 4, "requests": 5}[kind]; len(lines) != rows {
			t.Errorf("%s has %d lines: %s", kind, len(lines), file.Body)
		}
	}
	narrow := weir.Want(t, 201, "POST", "/api/v1/api-keys", w.ManagementKey, `{"kind": "management", "name": "reader", "scopes": ["usage:read"]}`).Text("secret")
	weir.Want(t, 403, "POST", "/api/v1/exports", narrow, fmt.Sprintf(`{"kind": "audit", "format": "csv", "from": %q}`, from))
	weir.Want(t, 202, "POST", "/api/v1/exports", w.ManagementKey, fmt.Sprintf(`{"kind": "audit", "format": "json", "from": %q}`, from))
	if a := weir.Want(t, 400, "POST", "/api/v1/exports", w.ManagementKey, fmt.Sprintf(`{"kind": "audit", "format": "json", "from": %q, "filters": {"model": "gpt-4o"}}`, from)); a.Text("errors.0.pointer") != "/filters" {
		t.Errorf("a filter: %s", a)
	}
	weir.Want(t, 403, "POST", "/api/v1/exports", narrow, fmt.Sprintf(`{"kind": "requests", "format": "csv", "from": %q}`, from))
	weir.Want(t, 403, "GET", "/api/v1/exports/"+made["usage"]+"/content", narrow, nil)
	bad := weir.Want(t, 400, "POST", "/api/v1/exports", w.ManagementKey, `{"kind": "usage", "format": "csv", "from": "yesterday", "filters": {"outcome": "fine"}}`)
	if bad.Text("errors.0.pointer") != "/from" || bad.Text("errors.1.pointer") != "/filters/outcome" {
		t.Errorf("what is wrong: %s", bad)
	}
	other := weir.Setup(t, stack.Options{})
	weir.Want(t, 404, "GET", "/api/v1/exports/"+made["usage"]+"/content", other.ManagementKey, nil)
}

func TestAnImportedCallIsCountedOnceAndRatedByThePlanOfItsTime(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Zone: stack.MiddayZone(), Plan: []stack.Limit{{Dimension: "requests", Window: "day", Amount: 1}}})
	event := func(own, more string, at time.Time) string {
		return fmt.Sprintf(`{"id": %q, "customer": %q, "model": "gpt-4o", "started_at": %q, "outcome": "ok", "usage": {"input_tokens": 10}%s}`, own, w.Customer, at.UTC().Format(time.RFC3339Nano), more)
	}
	send := func(events ...string) stack.Answer {
		return weir.Want(t, 200, "POST", "/api/v1/events", w.ManagementKey, `{"events": [`+strings.Join(events, ",")+`]}`)
	}
	now := time.Now()
	send(event("e0", "", now))
	a := send(event("e1", "", now), event("e1", "", now), event("e2", "", now), event("e0", "", now), event("e2", `, "end_user": "other"`, now),
		event("late", "", now.Add(-34*24*time.Hour)), event("too-late", "", now.Add(-36*24*time.Hour)), event("early", "", now.Add(time.Hour)),
		`{"id": "x"}`, strings.Replace(event("nobody", "", now), w.Customer, "cus_01kb0000000000000000000000", 1), event("keyed", fmt.Sprintf(`, "api_key": %q`, w.KeyID), now))
	for i, want := range []string{"stored", "duplicate", "stored", "duplicate", "conflict", "stored", "invalid", "invalid", "invalid", "invalid", "stored"} {
		if got := a.Text(fmt.Sprintf("results.%d.status", i)); got != want {
			t.Errorf("event %d is %s, want %s: %s", i, got, want, a.Text(fmt.Sprintf("results.%d.id", i)))
		}
	}
	for i, want := range map[int]string{6: "/events/6/started_at too_old", 7: "/events/7/started_at in_the_future", 9: "/events/9/customer not_found"} {
		at := fmt.Sprintf("results.%d.error.errors.0.", i)
		if got := a.Text(at+"pointer") + " " + a.Text(at+"code"); got != want {
			t.Errorf("event %d: %s", i, got)
		}
	}
	stack.Eventually(t, patience, func() string {
		u := weir.Want(t, 200, "GET", "/api/v1/usage?bucket=1d&from="+now.Add(-40*24*time.Hour).UTC().Format(time.DateOnly), w.ManagementKey, nil)
		if u.JSON("totals.requests") != 5.0 || u.JSON("totals.input_tokens") != 50.0 {
			return u.String()
		}
		return ""
	})
	r := weir.Want(t, 200, "GET", "/api/v1/requests?model=gpt-4o", w.ManagementKey, nil)
	if r.Text("data.0.kind") != "imported" {
		t.Errorf("in the log: %s", r)
	}
	if again := send(event("e1", "", now)); again.Text("results.0.status") != "duplicate" {
		t.Errorf("once it is in the books: %s", again)
	}
	weir.Want(t, 200, "POST", "/v1/chat/completions", w.Key, chat("practice-small")) // no limit was charged
	reader := weir.Want(t, 201, "POST", "/api/v1/api-keys", w.ManagementKey, `{"kind": "management", "name": "reader", "scopes": ["usage:read"]}`).Text("secret")
	weir.Want(t, 403, "POST", "/api/v1/events", reader, `{"events": []}`)
	weir.Want(t, 400, "POST", "/api/v1/events", w.ManagementKey, `{"events": []}`)
}

// TestAnImportedCallMayStateWhatItsProviderCharged, to the last decimal, and
// whatever is not an amount is named.
func TestAnImportedCallMayStateWhatItsProviderCharged(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Zone: stack.MiddayZone()})
	now := time.Now().UTC()
	event := func(own, cost string) string {
		return fmt.Sprintf(`{"id": %q, "customer": %q, "model": "own-model", "started_at": %q, "outcome": "ok", "usage": {"input_tokens": 10}%s}`, own, w.Customer, now.Format(time.RFC3339Nano), cost)
	}
	cost := func(amount, currency string) string {
		return fmt.Sprintf(`, "provider_cost": {"amount": %q, "currency": %q}`, amount, currency)
	}
	send := func(events ...string) stack.Answer {
		return weir.Want(t, 200, "POST", "/api/v1/events", w.ManagementKey, `{"events": [`+strings.Join(events, ",")+`]}`)
	}
	a := send(event("a", cost("0.000000000001", "USD")), event("b", cost("12.5", "USD")), event("c", cost("7", "CHF")), event("d", ""),
		event("e", cost("-1", "USD")), event("f", cost("1e3", "usd")), event("g", cost("0.0000000000001", "USD")), event("h", `, "provider_cost": {}`), event("a", cost("0.02", "USD")), event("a", cost("0.000000000001", "USD")))
	for i, want := range []string{"stored", "stored", "stored", "stored", "invalid", "invalid", "invalid", "invalid", "conflict", "duplicate"} {
		if got := a.Text(fmt.Sprintf("results.%d.status", i)); got != want {
			t.Errorf("event %d is %s, want %s: %s", i, got, want, a)
		}
	}
	for at, want := range map[string]string{
		"results.4.error.errors.0.pointer": "/events/4/provider_cost/amount", "results.5.error.errors.1.pointer": "/events/5/provider_cost/currency", "results.6.error.errors.0.code": "bad_amount",
	} {
		if got := a.Text(at); got != want {
			t.Errorf("%s is %s", at, got)
		}
	}
	stack.Eventually(t, patience, func() string {
		u := weir.Want(t, 200, "GET", "/api/v1/usage?bucket=1d", w.ManagementKey, nil)
		if u.JSON("totals.requests") != 4.0 || u.JSON("totals.unpriced_requests") != 1.0 || !strings.Contains(u.String(), "12.500000000001") || !strings.Contains(u.String(), "CHF") {
			return u.String()
		}
		return ""
	})
	if again := send(event("a", cost("0.000000000001", "USD")), event("a", "")); again.Text("results.0.status") != "duplicate" || again.Text("results.1.status") != "conflict" {
		t.Errorf("once it is in the books: %s", again)
	}
}

func TestWhatIfTriesHistoryUnderAnotherPlan(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Zone: stack.MiddayZone()})
	for range 4 {
		settled(t, w, ``)
	}
	plan := weir.Want(t, 201, "POST", "/api/v1/plans", w.ManagementKey, `{"name": "Two a day", "limits": [{"dimension": "requests", "window": "day", "amount": 2}], "prices": [{"models": "*", "class": "input", "micros_per_million": 1000000}]}`)
	body := fmt.Sprintf(`{"customer": %q, "plan": %q}`, w.Customer, plan.Text("id"))
	stack.Eventually(t, patience, func() string {
		a := weir.Want(t, 200, "POST", "/api/v1/usage/what-if", w.ManagementKey, body)
		if a.JSON("calls") != 4.0 {
			return a.String()
		}
		if a.JSON("refused") != 2.0 || a.JSON("by_limit.0.refused") != 2.0 || a.Text("by_limit.0.limit.dimension") != "requests" || a.Text("plan_version") != plan.Text("version.id") {
			t.Errorf("got %s", a)
		}
		return ""
	})
	byKey := weir.Want(t, 200, "POST", "/api/v1/usage/what-if", w.ManagementKey, fmt.Sprintf(`{"api_key": %q, "plan_version": %q}`, w.KeyID, plan.Text("version.id")))
	if byKey.JSON("calls") != 0.0 { // a management key made the calls
		t.Errorf("by key: %s", byKey)
	}
	weir.Want(t, 400, "POST", "/api/v1/usage/what-if", w.ManagementKey, fmt.Sprintf(`{"plan": %q}`, plan.Text("id")))
	weir.Want(t, 400, "POST", "/api/v1/usage/what-if", w.ManagementKey, fmt.Sprintf(`{"customer": %q}`, w.Customer))
	other := weir.Setup(t, stack.Options{})
	weir.Want(t, 404, "POST", "/api/v1/usage/what-if", other.ManagementKey, body)
}
