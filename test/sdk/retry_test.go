package sdk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
	"weir/internal/limits/redistest"
	"weir/test/stack"
)

// TestTheClientComesBackExactlyWhenItWasTold drains a bucket, and lets the
// client's own retry do the rest: one refusal, one wait, one success.
func TestTheClientComesBackExactlyWhenItWasTold(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a asker) {
		w := serving(t, a.provider, stack.Limit{Dimension: "tokens", Window: "minute", Amount: 60_000})
		drain := fmt.Sprintf(`{"customer": %q, "model": "test-small", "estimate": {"input_tokens": 60000}}`, w.Customer)
		weir.Want(t, 201, "POST", "/v1/reservations", w.ManagementKey, drain)
		ask, wire := a.with(t, weir, w.Key)
		began := time.Now()
		if err := ask(t.Context(), 3000); err != nil { // as many as come back in three seconds
			t.Fatal(err)
		}
		if wire.calls() != 2 || wire.first().StatusCode != http.StatusTooManyRequests || len(w.up.Calls()) != 1 {
			t.Errorf("%d HTTP calls, %d at the provider", wire.calls(), len(w.up.Calls()))
		}
		wait := wire.wait()
		if took := time.Since(began); wait < time.Millisecond || wait > 3100*time.Millisecond || took < wait || took > wait+patience {
			t.Errorf("told to wait %s, it took %s", wait, took)
		}
	})
}

// TestAWaitOfManySecondsIsNotCutShort: of openai-go 3.99.0 (any wait up to two
// minutes, then none) and anthropic-sdk-go 2.15.0 (any wait). They call once,
// and wait until their program loses patience.
func TestAWaitOfManySecondsIsNotCutShort(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a asker) {
		w := serving(t, a.provider, stack.Limit{Dimension: "requests", Window: "minute", Amount: 1})
		ask, wire := a.with(t, weir, w.Key)
		if err := ask(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // more than any backoff
		defer cancel()
		if err := ask(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the wait ended with %v", err)
		}
		if wire.calls() != 2 {
			t.Errorf("%d HTTP calls, want the one that was allowed and the one that was refused", wire.calls())
		}
		if s, _ := strconv.Atoi(wire.last().Header.Get("Retry-After")); s < 30 || s > 60 || wire.last().Header.Get("X-Should-Retry") != "true" {
			t.Errorf("headers %v", wire.last().Header)
		}
	})
}

// TestACallBeyondTheConcurrencyComesThroughOnceASlotIsFree.
func TestACallBeyondTheConcurrencyComesThroughOnceASlotIsFree(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a asker) {
		w := serving(t, a.provider, stack.Limit{Dimension: "concurrency", Window: "none", Amount: 1})
		gate := make(chan struct{})
		w.up.Next(upstreamtest.Script{Wait: gate})
		first, _ := a.with(t, weir, w.Key)
		second, wire := a.with(t, weir, w.Key)
		errs := make(chan error, 2)
		go func() { errs <- first(t.Context(), 10) }()
		stack.Eventually(t, patience, func() string {
			if len(w.up.Calls()) == 1 {
				return ""
			}
			return "the first call has not reached the provider"
		})
		began := time.Now()
		go func() { errs <- second(t.Context(), 10) }()
		stack.Eventually(t, patience, func() string {
			if wire.calls() > 0 {
				return ""
			}
			return "the second call is not answered"
		})
		close(gate)
		if err := errors.Join(<-errs, <-errs); err != nil {
			t.Fatal(err)
		}
		if h := wire.first().Header; wire.first().StatusCode != http.StatusTooManyRequests || h.Get("Retry-After") != "1" || h.Get("X-Should-Retry") != "true" {
			t.Errorf("%d, headers %v", wire.first().StatusCode, h)
		}
		// A slow machine may not have freed the slot within the second.
		if took := time.Since(began); wire.calls() < 2 || wire.calls() > 3 || len(w.up.Calls()) != 2 || took < time.Second {
			t.Errorf("%d HTTP calls, %d at the provider, in %s", wire.calls(), len(w.up.Calls()), took)
		}
	})
}

// TestAProviderWithoutRoomIsTriedAgainWhenItSaidSo: its own 429 becomes a
// statement about capacity, with the exact wait, which the client honours.
func TestAProviderWithoutRoomIsTriedAgainWhenItSaidSo(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a asker) {
		w := serving(t, a.provider)
		limited := upstreamtest.Limited(http.Header{"Retry-After-Ms": {"1700"}})
		if a.provider == anthropicForm {
			limited = upstreamtest.AnthropicLimited(2)
		}
		w.up.Next(limited)
		ask, wire := a.with(t, weir, w.Key)
		began := time.Now()
		if err := ask(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		status := map[string]int{openAIForm: http.StatusServiceUnavailable, anthropicForm: 529}[a.provider]
		if wire.first().StatusCode != status || wire.wait() > 2*time.Second || wire.first().Header.Get("X-Should-Retry") != "true" {
			t.Errorf("%d, headers %v", wire.first().StatusCode, wire.first().Header)
		}
		if took, wait := time.Since(began), wire.wait(); wire.calls() != 2 || len(w.up.Calls()) != 2 || took < wait || wait < time.Second {
			t.Errorf("%d HTTP calls, %d at the provider, in %s, told to wait %s", wire.calls(), len(w.up.Calls()), took, wait)
		}
	})
}

// TestAProviderThatStaysFullIsToldAsCapacity, never as a limit of the plan.
func TestAProviderThatStaysFullIsToldAsCapacity(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a asker) {
		w := serving(t, a.provider)
		limited := upstreamtest.AnthropicLimited(1)
		w.up.Choose(func(upstreamtest.Call) upstreamtest.Script { return limited })
		ask, wire := a.with(t, weir, w.Key)
		r := refused(t, ask(t.Context(), 10))
		if r.Kind != a.in("server_error", "overloaded_error") || r.Code != "provider_capacity" || r.Limit != "" {
			t.Errorf("%s", r.Text)
		}
		if wire.calls() != 3 || len(w.up.Calls()) > 3 {
			t.Errorf("%d HTTP calls, %d at the provider", wire.calls(), len(w.up.Calls()))
		}
	})
}

// TestAFailureOfTheProviderIsTriedAgain: the client makes its two retries.
func TestAFailureOfTheProviderIsTriedAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a asker) {
		w := serving(t, a.provider)
		fail := upstreamtest.Failed(500)
		w.up.Next(fail, fail)
		ask, wire := a.with(t, weir, w.Key)
		if err := ask(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		if wire.calls() != 3 || len(w.up.Calls()) != 3 || wire.first().StatusCode != http.StatusBadGateway {
			t.Errorf("%d HTTP calls, %d at the provider, the first answered with %d", wire.calls(), len(w.up.Calls()), wire.first().StatusCode)
		}
		w.up.Next(fail, fail, fail)
		r := refused(t, ask(t.Context(), 10))
		if r.Status != http.StatusBadGateway || r.Kind != a.in("server_error", "api_error") || r.Code != "upstream_error" || wire.calls() != 6 {
			t.Errorf("%d HTTP calls, at last %d %s", wire.calls(), r.Status, r.Text)
		}
	})
}

// TestAnOverloadedProviderIsTriedAgain: 503 and Anthropic's 529.
func TestAnOverloadedProviderIsTriedAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a asker) {
		for _, script := range []upstreamtest.Script{upstreamtest.Failed(503), upstreamtest.Overloaded()} {
			script.Header = http.Header{"Retry-After": {"1"}}
			w := serving(t, a.provider)
			w.up.Next(script)
			ask, wire := a.with(t, weir, w.Key)
			if err := ask(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
			if n := wire.calls(); n < 2 || n > 3 || len(w.up.Calls()) != 2 {
				t.Errorf("%d HTTP calls, %d at the provider", n, len(w.up.Calls()))
			}
		}
	})
}

// TestALimiterThatIsOutIsTriedAgain: of a limit that is closed while its store
// is out nothing passes. The clients come back twice, when they were told.
func TestALimiterThatIsOutIsTriedAgain(t *testing.T) {
	t.Parallel()
	own := stack.Fresh(t) // whose processes complain of each other
	server := redistest.Start(t)
	replica := own.Replica(t, "REDIS_URL="+server.URL(), "REDIS_BUDGET=100ms")
	worlds := map[string]world{}
	for _, a := range askers {
		worlds[a.name] = servingAt(t, own, a.provider, stack.Limit{Dimension: "requests", Window: "minute", Amount: 100, Outage: "closed"})
		ask, _ := a.with(t, replica, worlds[a.name].Key)
		if err := ask(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
	}
	server.Signal(syscall.SIGSTOP)
	each(t, func(t *testing.T, a asker) {
		w := worlds[a.name]
		ask, wire := a.with(t, replica, w.Key)
		began := time.Now()
		r := refused(t, ask(t.Context(), 10))
		if r.Status != http.StatusServiceUnavailable || r.Kind != a.in("server_error", "api_error") || r.Code != "limiter_unavailable" {
			t.Errorf("%d %s", r.Status, r.Text)
		}
		if h := wire.last().Header; wire.calls() != 3 || h.Get("Retry-After") != "5" || h.Get("X-Should-Retry") != "true" || len(w.up.Calls()) != 1 {
			t.Errorf("%d HTTP calls, %d at the provider, headers %v", wire.calls(), len(w.up.Calls()), h)
		}
		if took := time.Since(began); took < 10*time.Second {
			t.Errorf("three calls in %s, told to wait 5s after each", took)
		}
	})
}
