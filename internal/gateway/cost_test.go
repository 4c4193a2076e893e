package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
	"weir/internal/id"
	"weir/test/stack"
)

// TestACallThatItsProviderRefusedCostNothing, where a request has a price, as
// pictures have.
func TestACallThatItsProviderRefusedCostNothing(t *testing.T) {
	t.Parallel()
	s, up := rig(t), upstreamtest.New(t)
	w := s.Setup(t, stack.Options{Upstream: up})
	s.Want(t, 200, "POST", "/api/v1/catalogue/prices", w.ManagementKey, `{"csv": "provider,model,class,above,micros_per_million,currency,valid_from,source\ncustom,test-small,request,0,40000000000,EUR,2020-11-01,our own server\n", "dry_run": false}`)
	cost := func(a stack.Answer) (out string) {
		u, err := id.Request.Parse(a.Header.Get("X-Request-Id"))
		if err != nil {
			t.Fatal(err)
		}
		stack.Eventually(t, 20*time.Second, func() string {
			got := stack.Rows[string](t, s, `select coalesce(cost_pico::text, 'unknown') from usage_events where request_id = $1`, u.String())
			if len(got) != 1 {
				return fmt.Sprintf("%d events", len(got))
			}
			out = got[0]
			return ""
		})
		return out
	}
	var one string
	stack.Eventually(t, 10*time.Second, func() string {
		one = cost(s.Want(t, 200, "POST", "/v1/images/generations", w.Key, `{"model": "test-small", "prompt": "a weir"}`))
		if one == "unknown" || one == "0" {
			return "no price yet"
		}
		return ""
	})
	up.Next(upstreamtest.Failed(400))
	if refused := cost(s.Call(t, "POST", "/v1/images/generations", w.Key, `{"model": "test-small", "prompt": "a weir"}`)); refused == one {
		t.Errorf("a call that the provider refused with 400 is booked to have cost %s, as one that it served", refused)
	}
}
